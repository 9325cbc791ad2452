"""The programs of examples/, run as its README.md says.

They run in a copy under target/examples, where their packages and builds stay. The first test
module that needs a language makes the copy, for all processes of this run. A language whose tools
are missing is skipped.
"""

import fcntl
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
import redis

from harness.paths import ROOT, TARGET
from harness.server import Server, eventually

SOURCE = ROOT / "examples"

# The tools of each language, in the version from which on they do.
TOOLS = {
    "python": {},
    "node": {"node": 20, "npm": 1},
    "java": {"javac": 17, "mvn": 3},
    "rust": {"cargo": 1},
    "ruby": {"ruby": 3, "gem": 3},
    "php": {"php": 8},
    "go": {"go": 1},
}

# What the tools say when their package registry doesn't answer, or a package isn't there.
OUT_OF_REACH = {
    "node": ("ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN"),
    "java": ("No plugin found for prefix", "Could not transfer"),
    "ruby": ("Could not find a valid gem", "Unable to download"),
    "php": ("Extension 'redis' not present",),
    "go": ("dial tcp", "no such host", "module lookup disabled", "403 Forbidden"),
}


@dataclass
class Example:
    """The programs of one language, ready to run."""

    directory: Path
    producer: list[str]
    worker: list[str]
    environment: dict[str, str]


class Worker:
    """A running worker, and what it has printed so far."""

    def __init__(self, example: Example, port: int, output: Path):
        self._output = output
        with output.open("wb") as file:
            self._process = launch(example, port, file)

    def lines(self) -> list[str]:
        return self._output.read_text().splitlines()

    def has_said(self, line: str) -> None:
        """Waits until the worker has printed this line."""
        __tracebackhide__ = True

        def said() -> bool:
            lines = self.lines()
            assert self._process.poll() is None or line in lines, f"it ended: {lines}"
            return line in lines

        eventually(said, within_s=30)

    def has_complained(self, command: str) -> None:
        """Waits until the worker has printed that this command got no reply."""
        __tracebackhide__ = True
        eventually(
            lambda: any(line.startswith(f"{command}: ") for line in self.lines()), within_s=30
        )

    def stops_when_told(self, number: signal.Signals = signal.SIGTERM) -> list[str]:
        """Sends the worker a signal to stop; returns what it has printed when it has ended."""
        self._process.send_signal(number)
        assert self._process.wait(timeout=30) == 0, self.lines()
        assert self.lines()[-1] == "stopped"
        return self.lines()[:-1]

    def kill9(self) -> None:
        self._process.kill()
        self._process.wait()


def launch(example: Example, port: int, output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts the example's worker; its output goes to `self`."""
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *example.worker],
        cwd=example.directory,
        env=example.environment | url_of(port),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )


@contextmanager
def writes_of_worker(example: Example, port: int) -> Iterator[Iterator[str]]:
    """A running worker, and each piece that it wrote, as it was written: whole lines or parts of
    them.
    """
    # The kernel keeps apart what is written to such a pipe in one go, and a read gets one of these.
    read_end, write_end = os.pipe2(os.O_DIRECT)
    with os.fdopen(read_end, "rb", buffering=0) as reading:
        with os.fdopen(write_end, "wb", buffering=0) as writing:
            process = launch(example, port, writing)
        try:
            yield iter(lambda: reading.read(select.PIPE_BUF).decode(), "")
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module", params=TOOLS)
def example(request: pytest.FixtureRequest, testrun_uid: str) -> Example:
    return installed(request.param, testrun_uid)


def installed(language: str, testrun_uid: str) -> Example:
    for tool, version in TOOLS[language].items():
        if version_of(tool) < version:
            pytest.skip(f"{tool} {version} or later is missing")

    block = re.search(
        rf"```sh\ncd {language}\n(.*?)```", (SOURCE / "README.md").read_text(), re.DOTALL
    )
    install, producer, worker = [shlex.split(line) for line in block.group(1).splitlines()]
    directory = TARGET / "examples" / language
    directory.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {
        # The python that runs the tests. It has redis-py, and must not get another.
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "CARGO_TARGET_DIR": str(directory / "target"),
    }
    # An installation takes away, for a while, what another worker would be running on.
    with (directory / ".installed-by").open("a+") as installed_by:
        fcntl.flock(installed_by, fcntl.LOCK_EX)
        installed_by.seek(0)
        if installed_by.read() != testrun_uid:
            install_in(directory, language, install, environment)
            installed_by.truncate(0)
            installed_by.write(testrun_uid)
    return Example(directory, producer, worker, environment)


def install_in(
    directory: Path, language: str, install: list[str], environment: dict[str, str]
) -> None:
    unwanted = shutil.ignore_patterns("node_modules", "target")
    shutil.copytree(SOURCE / language, directory, dirs_exist_ok=True, ignore=unwanted)
    # A build may take all that the tests beside it leave, and no more.
    installed = subprocess.run(
        ["nice", "-n", "19", *install],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if installed.returncode != 0:
        output = installed.stdout + installed.stderr
        unreachable = next(
            (text for text in OUT_OF_REACH.get(language, ()) if text in output), None
        )
        if unreachable:
            pytest.skip(f"what the example in {language} needs can't be had: {unreachable}")
        pytest.fail(f"{shlex.join(install)}:\n{output}")


def version_of(tool: str) -> int:
    """The major version of a program; 0 when it is missing."""
    if shutil.which(tool) is None:
        return 0
    how = "version" if tool == "go" else "--version"
    told = subprocess.run([tool, how], capture_output=True, text=True).stdout
    version = re.search(r"(\d+)\.\d", told)
    return int(version.group(1)) if version else 0


def url_of(port: int) -> dict[str, str]:
    return {"REDIS_URL": f"redis://127.0.0.1:{port}"}


@pytest.fixture
def start_at(example: Example, tmp_path: Path) -> Iterator[Callable[[int], Worker]]:
    """Starts workers for a server's port."""
    workers: list[Worker] = []

    def start(port: int) -> Worker:
        worker = Worker(example, port, tmp_path / f"worker-{len(workers)}")
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        worker.kill9()


def produce(example: Example, server: Server) -> list[str]:
    done = subprocess.run(
        example.producer,
        cwd=example.directory,
        env=example.environment | url_of(server.port),
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
    """The body of a job on which a worker spends a fifth of a second for each person."""
    return " ".join(f"p{n}@example.com" for n in range(count))


def counts(r: redis.Redis) -> dict[str, int]:
    states = ("delayed", "ready", "reserved", "dead")
    counted = {state: r.execute_command("DQ.LEN", "mail", "STATE", state) for state in states}
    return {state: count for state, count in counted.items() if count}
