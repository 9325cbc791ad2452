"""Fan-ins of many jobs, with handlers that do nothing: DQ, BullMQ flows, Celery chords.

    python flows.py --fan-ins 1000 --jobs 100

Each contestant has a server of its own, and one worker as its documentation advises. What is
measured begins when the first job is added, and ends when the last fan-in has run. `make
bench-flows` runs it; BullMQ's part is bench/bullmq/bench.js.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from servers import MODULE, ROOT, Server, server, show

BATCH = 100


def run_dq(of: Server, fan_ins: int, jobs: int) -> int:
    """Added in pipelines of one fan-in each, taken and finished by a hundred."""
    r = of.client()
    for flow in range(fan_ins):
        pipe = r.pipeline(transaction=False)
        parts = [f"{flow}:{part}" for part in range(jobs)]
        for part in parts:
            pipe.execute_command("DQ.ADD", "queue", part, "x")
        pipe.execute_command("DQ.ADD", "queue", flow, "all", "AFTER", jobs, *parts)
        pipe.execute()
    ended = 0
    while taken := r.execute_command("DQ.POP", "queue", "COUNT", BATCH):
        claims = [word for job in taken for word in (job[0], job[2])]
        r.execute_command("DQ.FINISH", "queue", *claims)
        ended += sum(job[1] == "all" for job in taken)
    return ended


def run_bullmq(of: Server, fan_ins: int, jobs: int) -> int:
    words = ["node", "bench.js", str(of.port), "flows", str(fan_ins), str(jobs)]
    told = subprocess.run(
        words, cwd=ROOT / "target" / "bench-bullmq", check=True, capture_output=True, text=True
    ).stdout
    return json.loads(told.split("end ", 1)[1])["jobs"]


def run_celery(of: Server, fan_ins: int, jobs: int) -> int:
    words = [str(ROOT / "target" / "kombu" / "venv" / "bin" / "python"), "chords.py"]
    words += [of.url, str(fan_ins), str(jobs)]
    told = subprocess.run(
        words, cwd=Path(__file__).parent, check=True, capture_output=True, text=True
    )
    return int(told.stdout.split()[-1])


CONTESTANTS: dict[str, Callable[[Server, int, int], int]] = {
    "DQ": run_dq,
    "BullMQ": run_bullmq,
    "Celery": run_celery,
}


def measure(name: str, arguments: argparse.Namespace) -> dict[str, float]:
    module = ["--loadmodule", str(arguments.module.resolve())] if name == "DQ" else []
    with server(arguments.server, *module) as started:
        begin, used = time.monotonic(), started.processor_s()
        ended = CONTESTANTS[name](started, arguments.fan_ins, arguments.jobs)
        took, used = time.monotonic() - begin, started.processor_s() - used
        commands = started.client().info("stats")["total_commands_processed"]
    if ended != arguments.fan_ins:
        sys.exit(f"{name}: {ended} of {arguments.fan_ins} fan-ins have run")
    jobs = arguments.fan_ins * (arguments.jobs + 1)
    return {"jobs/s": jobs / took, "server µs": 1e6 * used / jobs, "commands": commands / jobs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fan-ins", type=int, default=1_000)
    parser.add_argument("--jobs", type=int, default=100, help="of each fan-in")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=CONTESTANTS, action="append")
    parser.add_argument("--server", default="redis-server")
    parser.add_argument("--module", type=Path, default=MODULE)
    arguments = parser.parse_args()
    names = arguments.only or list(CONTESTANTS)
    samples = {name: [] for name in names}
    for _ in range(arguments.rounds):
        for name in names:
            samples[name].append(measure(name, arguments))
    show(f"{arguments.fan_ins} fan-ins of {arguments.jobs}", samples)


if __name__ == "__main__":
    main()
