"""A worker with an empty handler: DQ's clients beside others. `make bench-clients` runs it.

    python clients.py --rounds 3 --only "DQ, Python"

Each contestant has a server of its own, and its worker as its documentation advises. In each round
every contestant is measured once.

- *jobs/s*: jobs were added before; from the first one that is gone until none is left, by the
  clock of this program, which asks the server how many are left. So a start isn't counted.
- *client µs*, *server µs*: processor time a job in that span, of all processes of the worker, and
  of the server.
- *p50 ms*, *p99 ms*: how late a handler begins, of jobs that fall due one at a time while the
  worker has nothing else to do.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis
from servers import MODULE, ROOT, TICKS, Server, fields_of, server, show

HERE = Path(__file__).parent / "contestants"
VENV = ROOT / "target" / "bench-clients" / "venv" / "bin"
BULLMQ = ROOT / "target" / "bench-bullmq"
TYPESCRIPT = ROOT / "target" / "typescript"
RUST = ROOT / "target" / "bench-clients" / "rust" / "release" / "dq-bench-worker"
APALIS = ROOT / "target" / "bench-clients" / "apalis" / "release" / "apalis-bench-worker"
PLACES = 100
WITHIN_S = 120


@dataclass
class Contestant:
    # Its program, which is told what to do in further words.
    program: Callable[[Server], list[str]]
    worker: Callable[[Server], list[str]]
    left: Callable[[redis.Redis], int]
    jobs: int
    module: bool = False
    in_folder: Path = HERE
    # Whether it is measured how late jobs with a delay begin.
    is_late: bool = True


def python(file: str) -> Callable[[Server], list[str]]:
    return lambda of: [str(VENV / "python"), file, of.url]


def left_in_dq(r: redis.Redis) -> int:
    return r.execute_command("DQ.LEN", "queue")


CONTESTANTS = {
    "DQ, Python": Contestant(
        python("dq_worker.py"),
        lambda of: [*python("dq_worker.py")(of), "worker", str(PLACES)],
        left_in_dq,
        jobs=50_000,
        module=True,
    ),
    "DQ, raw commands in Python": Contestant(
        python("dq_worker.py"),
        lambda of: [*python("dq_worker.py")(of), "raw"],
        left_in_dq,
        jobs=20_000,
        module=True,
        is_late=False,
    ),
    "DQ, TypeScript": Contestant(
        lambda of: ["node", "dq.mjs", of.url],
        lambda of: ["node", "dq.mjs", of.url, "worker", str(PLACES)],
        left_in_dq,
        jobs=100_000,
        module=True,
        in_folder=TYPESCRIPT,
    ),
    "DQ, Rust": Contestant(
        lambda of: [str(RUST), of.url],
        lambda of: [str(RUST), of.url, "worker", str(PLACES)],
        left_in_dq,
        jobs=400_000,
        module=True,
    ),
    "Celery": Contestant(
        python("celery_app.py"),
        lambda _: [
            *(str(VENV / "celery"), "-A", "celery_app", "worker", "-c", "2"),
            *("--without-gossip", "--without-mingle", "-l", "error"),
        ],
        lambda r: r.llen("celery") + r.hlen("unacked"),
        jobs=5_000,
    ),
    "Dramatiq": Contestant(
        python("dramatiq_app.py"),
        lambda _: [str(VENV / "dramatiq"), "dramatiq_app", "-p", "2"],
        lambda r: r.hlen("dramatiq:bench.msgs") + r.hlen("dramatiq:bench.DQ.msgs"),
        jobs=10_000,
    ),
    "RQ": Contestant(
        python("rq_app.py"),
        lambda of: [str(VENV / "rq"), "worker", "--url", of.url, "--with-scheduler", "bench"],
        lambda r: (
            r.llen("rq:queue:bench") + r.zcard("rq:wip:bench") + r.zcard("rq:scheduled:bench")
        ),
        jobs=300,
    ),
    "BullMQ": Contestant(
        lambda of: ["node", "bullmq.mjs", str(of.port)],
        lambda of: ["node", "bullmq.mjs", str(of.port), "worker", str(PLACES)],
        lambda r: (
            r.llen("bull:bench:wait") + r.llen("bull:bench:active") + r.zcard("bull:bench:delayed")
        ),
        jobs=20_000,
        in_folder=BULLMQ,
    ),
    # It knows the time of a job in whole seconds. All jobs begin among those with a time, and one
    # script takes all that are due: of more than some thousand, Lua can't unpack them.
    "apalis": Contestant(
        lambda of: [str(APALIS), of.url],
        lambda of: [str(APALIS), of.url, "worker", str(PLACES)],
        lambda r: (
            r.zcard("bench:scheduled")
            + r.llen("bench:active")
            + r.scard("bench:inflight:bench-worker")
        ),
        jobs=5_000,
        is_late=False,
    ),
}


def processor_s(session: int) -> float:
    """What all processes of a session have used, and those of them that have ended."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = fields_of(stat)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session:
            total += sum(int(fields[at]) for at in (11, 12, 13, 14))
    return total / TICKS


@contextmanager
def worker(one: Contestant, of: Server, environment: dict[str, str]) -> Iterator[int]:
    """Runs it, in a session of its own."""
    started = subprocess.Popen(
        one.worker(of),
        cwd=one.in_folder,
        env=environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield started.pid
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def wait_until(condition: Callable[[], bool]) -> float:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("a worker doesn't get there")
        time.sleep(0.005)
    return time.monotonic()


def rate(one: Contestant, of: Server, environment: dict[str, str]) -> dict[str, float]:
    add = [*one.program(of), "add", str(one.jobs)]
    subprocess.run(add, cwd=one.in_folder, env=environment, check=True)
    r = of.client()
    assert one.left(r) == one.jobs, f"{one.left(r)} of {one.jobs} jobs are there"
    with worker(one, of, environment) as session:
        began = wait_until(lambda: one.left(r) < one.jobs)
        left, client, used = one.left(r), processor_s(session), of.processor_s()
        ended = wait_until(lambda: one.left(r) == 0)
        client, used = processor_s(session) - client, of.processor_s() - used
    return {
        "jobs/s": left / (ended - began),
        "client µs": 1e6 * client / left,
        "server µs": 1e6 * used / left,
    }


def lateness(
    one: Contestant, of: Server, environment: dict[str, str], jobs: int
) -> dict[str, float]:
    file = Path(environment["LATE_FILE"])

    def add(count: int) -> None:
        """Adds jobs that are due soon, and waits until all were begun."""
        words = [*one.program(of), "late", str(count)]
        subprocess.run(words, cwd=one.in_folder, env=environment, check=True)
        wait_until(lambda: file.exists() and len(file.read_text().splitlines()) == count)

    with worker(one, of, environment):
        # The first of them find a worker that is still starting, and aren't counted.
        add(10)
        file.unlink()
        add(jobs)
    all_of_it = sorted(map(float, file.read_text().split()))
    file.unlink()
    return {"p50 ms": all_of_it[jobs // 2], "p99 ms": all_of_it[jobs * 99 // 100]}


def measure(name: str, arguments: argparse.Namespace) -> dict[str, float]:
    one = CONTESTANTS[name]
    module = ["--loadmodule", str(arguments.module.resolve())] if one.module else []
    with tempfile.TemporaryDirectory() as folder:
        with server(arguments.server, *module) as of:
            late_file = str(Path(folder) / "late")
            environment = {**os.environ, "BROKER": of.url, "LATE_FILE": late_file}
            measured = rate(one, of, environment)
        if not one.is_late or not arguments.late:
            return measured
        with server(arguments.server, *module) as of:
            environment["BROKER"] = of.url
            return measured | lateness(one, of, environment, arguments.late)


def main() -> None:
    parser = argparse.ArgumentParser(description="Workers with an empty handler.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--late", type=int, default=100, help="jobs for lateness; 0 for none")
    parser.add_argument("--only", choices=CONTESTANTS, action="append")
    parser.add_argument("--server", default="redis-server")
    parser.add_argument("--module", type=Path, default=MODULE)
    parser.add_argument("--json", type=Path, help="writes all samples there, too")
    arguments = parser.parse_args()
    names = arguments.only or list(CONTESTANTS)
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(arguments.rounds):
        for name in names:
            samples[name].append(measure(name, arguments))
            print(name, samples[name][-1], file=sys.stderr)
    if arguments.json:
        arguments.json.write_text(json.dumps(samples, indent=2))
    show("a worker of", samples)


if __name__ == "__main__":
    main()
