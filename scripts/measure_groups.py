#!/usr/bin/env python3
"""What groups cost: a million jobs in 100,000 groups, beside a million without.

    target/venv/bin/python scripts/measure_groups.py [jobs groups]

The server's processor time for each DQ.ADD, DQ.POP and DQ.FINISH, in pipelines; bytes a job; and how long a
DQ.POP takes that finds expired jobs at the front of every group.
"""

import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import redis

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "blackbox"))

from harness.server import KINDS, Server

JOBS, GROUPS = 1_000_000, 100_000
POPS = 100_000
AT_ONCE = 1_000
Words = tuple[str | int, ...]


def main() -> None:
    jobs, groups = (int(number) for number in sys.argv[1:3]) if sys.argv[2:] else (JOBS, GROUPS)
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as directory:
            server = Server(kind, Path(directory))
            try:
                with server.client() as r:
                    without = costs(r, jobs, 0)
                    among = costs(r, jobs, groups)
                    print(f"{server}: {jobs:,} jobs without groups | in {groups:,} | ratio")
                    for name in without:
                        ratio = among[name] / max(without[name], 0.001)
                        print(f"  {name}: {without[name]:.2f} | {among[name]:.2f} | {ratio:.2f}")
                    print(f"  {expired(r, groups)}")
            finally:
                server.stop()


def costs(r: redis.Redis, jobs: int, groups: int) -> dict[str, float]:
    r.flushall()
    before = r.info("memory")["used_memory"]
    of_group = (lambda n: ("GROUP", f"customer:{n % groups}")) if groups else (lambda n: ())
    adds = (("DQ.ADD", "q", f"job:{n:012}", "b" * 64, *of_group(n)) for n in range(jobs))
    figures = {"µs for each DQ.ADD": cpu_us(r, adds, jobs)}
    figures["bytes for each job"] = (r.info("memory")["used_memory"] - before) / jobs
    pops = min(POPS, jobs // 2)
    taken: list[list[object]] = []
    figures["µs for each DQ.POP"] = cpu_us(r, (("DQ.POP", "q") for _ in range(pops)), pops, taken)
    claims = [(job[0][0], job[0][2]) for job in taken]
    figures["µs for each DQ.FINISH"] = cpu_us(r, (("DQ.FINISH", "q", *claim) for claim in claims), pops)
    return figures


def cpu_us(r: redis.Redis, commands: Iterable[Words], count: int, replies: list | None = None) -> float:
    """Of the server's processor, for each command."""
    begin, commands = cpu_s(r), iter(commands)
    while some := list(islice(commands, AT_ONCE)):
        pipeline = r.pipeline(transaction=False)
        for words in some:
            pipeline.execute_command(*words)
        got = pipeline.execute()
        if replies is not None:
            replies.extend(got)
    return (cpu_s(r) - begin) / count * 1e6


def cpu_s(r: redis.Redis) -> float:
    cpu = r.info("cpu")
    return cpu["used_cpu_user"] + cpu["used_cpu_sys"]


def expired(r: redis.Redis, groups: int) -> str:
    """Each group has a job that has expired, and one that is still to come."""
    r.flushall()
    pipeline = r.pipeline(transaction=False)
    for n in range(groups):
        pipeline.execute_command("DQ.ADD", "q", f"old:{n}", "x", "TTL", 1, "GROUP", n)
        pipeline.execute_command("DQ.ADD", "q", f"new:{n}", "x", "DELAY", 86_400_000, "GROUP", n)
        if n % AT_ONCE == AT_ONCE - 1:
            pipeline.execute()
    pipeline.execute()
    time.sleep(0.1)
    took = []
    for _ in range(3):
        r.config_resetstat()
        assert r.execute_command("DQ.POP", "q") is None
        took.append(r.info("commandstats")["cmdstat_dq.pop"]["usec"] / 1_000)
    return "ms of three DQ.POPs behind expired jobs of every group: " + ", ".join(f"{ms:.2f}" for ms in took)


if __name__ == "__main__":
    main()
