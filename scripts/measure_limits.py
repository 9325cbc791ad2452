#!/usr/bin/env python3
"""What a queue costs that a limit holds back, while 1,000 consumers wait for it.

    target/venv/bin/python scripts/measure_limits.py

For each limit: the share of a processor it takes, the timer's runs a second, and the longest of them;
at rest, and while a job a millisecond is added.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import redis

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "blackbox"))

from harness.pipelined import Pipelined
from harness.server import KINDS, Server, eventually

CONSUMERS = 1_000
SECONDS = 5
DAY_MS = 86_400_000
LIMITS = {
    "none held": [],
    "CONCURRENCY 1": ["CONCURRENCY", 1],
    "RATE 1 86400000": ["RATE", 1, DAY_MS],
    "RATE 20 1000": ["RATE", 20, 1_000],
}


def main() -> None:
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as directory:
            server = Server(kind, Path(directory))
            try:
                for name, words in LIMITS.items():
                    measure(server, name, words)
            finally:
                server.stop()


def measure(server: Server, name: str, limit: list[str | int]) -> None:
    with server.client() as r:
        r.flushall()
        if limit:
            r.execute_command("DQ.ALTER", "q", *limit)
            for n in range(10):
                r.execute_command("DQ.ADD", "q", n, "x", "TTR", DAY_MS)
            r.execute_command("DQ.POP", "q", "COUNT", 10)
        consumers = [Pipelined(server.port) for _ in range(CONSUMERS)]
        for consumer in consumers:
            consumer.send(("DQ.POP", "q", "BLOCK", 0, "TTR", DAY_MS))
        eventually(lambda: r.info("dq")["dq_waiting_consumers"] >= CONSUMERS - 200)
        print(f"{server}, {name}:", during(server, lambda: time.sleep(SECONDS)))
        if limit:
            print(f"{server}, {name}, adding:", during(server, lambda: add_for(r, SECONDS)))
        for consumer in consumers:
            consumer.close()
        eventually(lambda: r.info("dq")["dq_waiting_consumers"] == 0)


def add_for(r: redis.Redis, seconds: int) -> None:
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        r.execute_command("DQ.ADD", "q", f"more-{n}", "x")
        n += 1
        time.sleep(0.001)


def during(server: Server, do: Callable[[], None]) -> str:
    with server.client() as r:
        before = r.info("dq")
        cpu, begin = cpu_s(server.pid), time.monotonic()
        do()
        took, cpu = time.monotonic() - begin, cpu_s(server.pid) - cpu
        after = r.info("dq")
    runs = (after["dq_timer_runs"] - before["dq_timer_runs"]) / took
    popped = (after["dq_jobs_popped"] - before["dq_jobs_popped"]) / took
    longest = after["dq_timer_max_us"]
    timer = f"{runs:.1f} timer runs/s, longest run {longest} µs"
    return f"{100 * cpu / took:.1f} % CPU, {popped:.1f} jobs/s, {timer}"


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
