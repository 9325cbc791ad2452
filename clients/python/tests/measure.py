"""How fast a worker with an empty handler is, beside the raw commands of the same client library.

    target/clients/venv/bin/python clients/python/tests/measure.py [JOBS]

Each line: jobs a second, processor time for a job in this program and in the server. `raw` takes a
job with DQ.POP and finishes it with DQ.FINISH, one after the other.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis
import redis.asyncio

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "blackbox"))

from dq_client import AsyncQueue, Queue
from dq_client.worker import Worker
from harness.server import KNOWN, Server

JOBS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        server = Server(KNOWN["redis-8.2"], Path(directory))
        try:
            for _ in range(2):
                measure("raw", server, raw)
                for concurrency in (1, 10, 100):
                    measure(f"function, {concurrency}", server, worker(Queue, concurrency))
                    measure(f"coroutine, {concurrency}", server, worker(AsyncQueue, concurrency))
        finally:
            server.kill9()


def measure(name: str, server: Server, work: Callable[[int], float]) -> None:
    with redis.Redis(port=server.port) as client:
        client.flushall()
        pipeline = client.pipeline(transaction=False)
        for number in range(JOBS):
            Queue(client, "q").add(f"job:{number}", {"n": number}, on=pipeline)
        pipeline.execute()
    mine, theirs = own_time(), time_of(server.pid)
    took_s = work(server.port)
    per_job = [(own_time() - mine) / JOBS * 1e6, (time_of(server.pid) - theirs) / JOBS * 1e6]
    here, there = per_job
    print(f"{name:14} {JOBS / took_s:6.0f} a second, {here:4.0f} µs here, {there:3.0f} µs there")


def own_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def time_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def raw(port: int) -> float:
    with redis.Redis(port=port) as client:
        begun = time.perf_counter()
        while popped := client.execute_command("DQ.POP", "q"):
            client.execute_command("DQ.FINISH", "q", popped[0][0], popped[0][2])
        return time.perf_counter() - begun


def worker(kind: Any, concurrency: int) -> Callable[[int], float]:
    def work(port: int) -> float:
        left = JOBS
        ended = 0.0

        def count() -> None:
            nonlocal left, ended
            left -= 1
            if not left:
                ended = time.perf_counter()
                working.stop()

        def handle(_: Any) -> None:
            count()

        async def handle_async(_: Any) -> None:
            count()

        library: Any = redis if kind is Queue else redis.asyncio
        queue = kind(library.Redis(port=port), "q")
        handler = handle if kind is Queue else handle_async
        working = Worker(queue, handler, concurrency=concurrency)
        begun = time.perf_counter()
        working.run()
        with redis.Redis(port=port) as client:
            assert Queue(client, "q").len() == 0
        return ended - begun

    return work


if __name__ == "__main__":
    main()
