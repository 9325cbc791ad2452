#!/usr/bin/env python3
"""What groups cost: a million jobs in 100,000 groups, beside a million without.

    target/venv/bin/python scripts/measure_groups.py [--jobs N] [--groups N] [--on SERVER]

The server's processor time for each DQ.ADD, DQ.POP and DQ.FINISH, one by one in pipelines and in batches, in
parts of which the median counts; and bytes a job. `make bench-instructions` counts instructions of the same,
and `make turns` has the longest turns of the event loop.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import redis

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "blackbox"))

from harness.server import KINDS, Server

AT_ONCE = 1_000
BATCH = 16
# In each part so many jobs are handed out and finished.
PARTS, PART = 7, 16_000
Words = tuple[str | int, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description="What groups cost.")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=100_000)
    names = [kind.name for kind in KINDS]
    parser.add_argument("--on", action="append", choices=names, help="those of make test")
    options = parser.parse_args()
    if options.jobs < 2 * PARTS * PART:
        parser.error(f"--jobs: {2 * PARTS * PART} at least")
    for kind in KINDS:
        if options.on is None or kind.name in options.on:
            with tempfile.TemporaryDirectory() as directory:
                server = Server(kind, Path(directory))
                try:
                    compare(server, options.jobs, options.groups)
                finally:
                    server.stop()


def compare(server: Server, jobs: int, groups: int) -> None:
    with server.client() as r:
        without = costs(r, jobs, lambda n: ())
        among = costs(r, jobs, lambda n: ("GROUP", f"customer:{n % groups}"))
    print(f"{server}: {jobs:,} jobs without groups | in {groups:,} | ratio")
    for name, figure in without.items():
        print(f"  {name}: {figure:.2f} | {among[name]:.2f} | {among[name] / figure:.2f}", flush=True)


def costs(r: redis.Redis, jobs: int, of_group: Callable[[int], Words]) -> dict[str, float]:
    r.flushall()
    before = used_bytes(r)
    adds = (("DQ.ADD", "q", f"job:{n:012}", "b" * 100, *of_group(n)) for n in range(jobs))
    figures = {"µs for each DQ.ADD": cpu_us(r, adds) / jobs}
    figures["bytes for each job"] = (used_bytes(r) - before) / jobs
    parts: dict[str, list[float]] = {}
    for _ in range(PARTS):
        for at_a_time, name in ((1, ""), (BATCH, f", in batches of {BATCH}")):
            taken: list[list[list[object]]] = []
            pops = (("DQ.POP", "q", "COUNT", at_a_time) for _ in range(PART // at_a_time))
            parts.setdefault(f"µs a job in DQ.POP{name}", []).append(cpu_us(r, pops, taken) / PART)
            claims = (
                ("DQ.FINISH", "q", *(word for job in some for word in (job[0], job[2]))) for some in taken
            )
            parts.setdefault(f"µs a job in DQ.FINISH{name}", []).append(cpu_us(r, claims) / PART)
    return figures | {name: statistics.median(some) for name, some in parts.items()}


def used_bytes(r: redis.Redis) -> int:
    """When nothing is being freed any more, by whatever thread."""
    before, used = None, r.info("memory")["used_memory"]
    while before is None or used < before:
        time.sleep(0.2)
        before, used = used, r.info("memory")["used_memory"]
    return used


def cpu_us(r: redis.Redis, commands: Iterable[Words], replies: list | None = None) -> float:
    """Of the server's processor, for all of them."""
    begin, commands = cpu_s(r), iter(commands)
    while some := list(islice(commands, AT_ONCE)):
        pipeline = r.pipeline(transaction=False)
        for words in some:
            pipeline.execute_command(*words)
        got = pipeline.execute()
        if replies is not None:
            replies.extend(got)
    return (cpu_s(r) - begin) * 1e6


def cpu_s(r: redis.Redis) -> float:
    cpu = r.info("cpu")
    return cpu["used_cpu_user"] + cpu["used_cpu_sys"]


if __name__ == "__main__":
    main()
