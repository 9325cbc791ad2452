"""The examples: each language's producer and worker, run as examples/README.md says.

They run in a copy under target/examples, where what they fetch and build stays. A language whose
tools are missing is skipped.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from server import KINDS, TARGET, Server, eventually

SOURCE = TARGET.parent / "examples"

# The tools of each language, in the version from which on they do.
TOOLS = {
    "python": {},
    "node": {"node": 20, "npm": 1},
    "java": {"javac": 17, "mvn": 3},
    "rust": {"cargo": 1},
}

# What the tools say when their package registry doesn't answer.
OUT_OF_REACH = {
    "node": ("ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN"),
    "java": ("No plugin found for prefix", "Could not transfer"),
}

# What is tested are the examples, so one kind of server does. The first of them has to wait until
# its language's packages are fetched and built.
pytestmark = [
    pytest.mark.parametrize(
        "kind", [kind for kind in KINDS if kind.name == "redis-8.2"], ids=str, indirect=True
    ),
    pytest.mark.timeout(600),
]


@dataclass
class Example:
    """One language's programs, ready to run."""

    directory: Path
    producer: list[str]
    worker: list[str]
    environment: dict[str, str]


class Worker:
    """A worker that runs, and what it has printed so far."""

    def __init__(self, example: Example, server: Server, output: Path):
        self._output = output
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *example.worker],
                cwd=example.directory,
                env=example.environment | url_of(server),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    def lines(self) -> list[str]:
        return self._output.read_text().splitlines()

    def has_said(self, line: str) -> None:
        """Waits until it has printed this line."""
        __tracebackhide__ = True

        def said() -> bool:
            lines = self.lines()
            assert self._process.poll() is None or line in lines, f"it ended: {lines}"
            return line in lines

        eventually(said, within_s=30)

    def stops_when_told(self, number: signal.Signals = signal.SIGTERM) -> list[str]:
        """Tells it to stop, and returns what it has printed when it is gone."""
        self._process.send_signal(number)
        assert self._process.wait(timeout=30) == 0, self.lines()
        assert self.lines()[-1] == "stopped"
        return self.lines()[:-1]

    def kill9(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module", params=TOOLS)
def example(request: pytest.FixtureRequest) -> Example:
    language = request.param
    for tool, version in TOOLS[language].items():
        if version_of(tool) < version:
            pytest.skip(f"{tool} {version} or later is missing")

    block = re.search(rf"```sh\ncd {language}\n(.*?)```", (SOURCE / "README.md").read_text(), re.DOTALL)
    install, producer, worker = [shlex.split(line) for line in block.group(1).splitlines()]
    directory = TARGET / "examples" / language
    unwanted = shutil.ignore_patterns("node_modules", "target")
    shutil.copytree(SOURCE / language, directory, dirs_exist_ok=True, ignore=unwanted)
    environment = os.environ | {
        # The python that runs the tests. It has redis-py, and must not get another.
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "CARGO_TARGET_DIR": str(directory / "target"),
    }
    installed = subprocess.run(
        install, cwd=directory, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if installed.returncode != 0:
        output = installed.stdout + installed.stderr
        unreachable = next((text for text in OUT_OF_REACH.get(language, ()) if text in output), None)
        if unreachable:
            pytest.skip(f"the package registry of {language} is out of reach: {unreachable}")
        pytest.fail(f"{shlex.join(install)}:\n{output}")
    return Example(directory, producer, worker, environment)


def version_of(tool: str) -> int:
    """Its major version, 0 when there is none."""
    if shutil.which(tool) is None:
        return 0
    told = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
    version = re.search(r"(\d+)\.\d", told)
    return int(version.group(1)) if version else 0


def url_of(server: Server) -> dict[str, str]:
    return {"REDIS_URL": f"redis://127.0.0.1:{server.port}"}


@pytest.fixture
def start(example: Example, server: Server, tmp_path: Path) -> Iterator[Callable[[], Worker]]:
    workers: list[Worker] = []

    def start() -> Worker:
        worker = Worker(example, server, tmp_path / f"worker-{len(workers)}")
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        worker.kill9()


def produce(example: Example, server: Server) -> list[str]:
    done = subprocess.run(
        example.producer,
        cwd=example.directory,
        env=example.environment | url_of(server),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


def job(r: redis.Redis, job_id: str) -> dict[str, str | int | None]:
    shown = r.execute_command("DQ.GET", "mail", job_id)
    return dict(zip(shown[::2], shown[1::2], strict=True))


def people(count: int) -> str:
    """The body of a job that takes a worker a fifth of a second for each of them."""
    return " ".join(f"p{n}@example.com" for n in range(count))


def counts(r: redis.Redis) -> dict[str, int]:
    states = ("delayed", "ready", "reserved", "dead")
    counted = {state: r.execute_command("DQ.LEN", "mail", "STATE", state) for state in states}
    return {state: count for state, count in counted.items() if count}


def test_the_worker_does_what_the_producer_queues(
    example: Example, server: Server, r: redis.Redis, start: Callable[[], Worker]
) -> None:
    assert produce(example, server) == [
        "added: welcome:ann",
        "queued already: welcome:ann",
        "added: newsletter:7",
        "added: welcome:dan",
        "added: welcome:nobody",
        "added: reminder:bob",
        "cancelled: reminder:bob",
    ]
    assert job(r, "welcome:ann").items() >= {"ttr": 10_000, "attempt": 0}.items()
    policy = {"attempts": 3, "backoff-base": 200, "backoff-max": 60_000}
    assert job(r, "welcome:dan").items() >= policy.items()

    worker = start()
    for line in (
        "welcome:ann: finished, attempt 1",
        "newsletter:7: finished, attempt 1",
        "welcome:nobody: buried, not an address: nobody, attempt 1",
        "welcome:dan: failed, down.example does not answer, attempt 3",
    ):
        worker.has_said(line)
    # Those that died are kept, with their reasons; the others are gone.
    assert counts(r) == {"dead": 2}
    assert job(r, "welcome:nobody").items() >= {"attempt": 1, "reason": "not an address: nobody"}.items()
    assert job(r, "welcome:dan").items() >= {"attempt": 3, "reason": "down.example does not answer"}.items()

    assert sorted(worker.stops_when_told(signal.SIGINT)) == [
        "newsletter:7: finished, attempt 1",
        "sent newsletter:7 to ann@example.com",
        "sent newsletter:7 to bob@example.com",
        "sent newsletter:7 to eve@example.com",
        "sent welcome:ann to ann@example.com",
        "welcome:ann: finished, attempt 1",
        "welcome:dan: failed, down.example does not answer, attempt 1",
        "welcome:dan: failed, down.example does not answer, attempt 2",
        "welcome:dan: failed, down.example does not answer, attempt 3",
        "welcome:nobody: buried, not an address: nobody, attempt 1",
    ]


def test_a_worker_that_is_told_to_stop_gives_back_what_it_has_not_begun(
    r: redis.Redis, start: Callable[[], Worker]
) -> None:
    r.execute_command("DQ.ADD", "mail", "long", people(10))
    # Given back, they don't wait for a backoff, and haven't lost an attempt.
    r.execute_command("DQ.ADD", "mail", "b", people(1), "BACKOFF", 60_000, 60_000)
    r.execute_command("DQ.ADD", "mail", "c", people(1), "ATTEMPTS", 1)
    worker = start()
    worker.has_said("sent long to p0@example.com")
    lines = worker.stops_when_told()
    assert lines[-4:] == [
        "sent long to p9@example.com",
        "long: finished, attempt 1",
        "b: given back, attempt 1",
        "c: given back, attempt 1",
    ]
    assert counts(r) == {"ready": 2}
    popped = r.execute_command("DQ.POP", "mail", "COUNT", 10)
    assert [(job_id, attempt) for job_id, _, _, attempt in popped] == [("b", 1), ("c", 1)]


def test_the_jobs_of_a_killed_worker_come_back(r: redis.Redis, start: Callable[[], Worker]) -> None:
    r.execute_command("DQ.ADD", "mail", "long", people(300), "TTR", 1_500)
    r.execute_command("DQ.ADD", "mail", "unbegun", people(1), "TTR", 1_500)
    killed = start()
    killed.has_said("sent long to p0@example.com")
    killed.kill9()

    # The next one waits in DQ.POP when their TTR runs out.
    start().has_said("sent long to p0@example.com")
    for job_id in ("long", "unbegun"):
        assert job(r, job_id)["attempt"] == 2


def test_a_worker_keeps_its_leases_and_notices_when_one_is_lost(
    r: redis.Redis, start: Callable[[], Worker]
) -> None:
    for job_id in ("long", "next", "unbegun"):
        # A minute is what they would take.
        r.execute_command("DQ.ADD", "mail", job_id, people(1 if job_id == "next" else 300))

    def beats() -> None:
        """Waits until the lease of the job in work has been renewed."""
        before = job(r, "long")["deadline"]
        eventually(lambda: job(r, "long")["deadline"] > before, within_s=10)

    worker = start()
    worker.has_said("sent long to p0@example.com")
    leased_until = job(r, "next")["deadline"]
    beats()
    # Also that of a job that waits for its turn.
    eventually(lambda: job(r, "next")["deadline"] > leased_until, within_s=10)

    r.execute_command("DQ.DEL", "mail", "unbegun")
    beats()
    beats()  # by now the worker has learned of that
    r.execute_command("DQ.DEL", "mail", "long")
    worker.has_said("unbegun: lost, attempt 1")
    lines = worker.stops_when_told()
    assert [line for line in lines if not line.startswith("sent long ")] == [
        "long: lost, attempt 1",
        "sent next to p0@example.com",
        "next: finished, attempt 1",
        "unbegun: lost, attempt 1",
    ]
    assert counts(r) == {}
