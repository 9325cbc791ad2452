#!/usr/bin/env python3
"""What an ADD costs the server while many consumers wait: a table, on each kind of server.

    target/venv/bin/python scripts/measure_waiters.py [waiters ...]

Each waits on a connection of its own, all at one key. `wakes` is an ADD of a job that the first of them gets
(it comes back at once, to the end of the line); `later` is an ADD of a job that is due in an hour. Both are
microseconds of the ADD alone, as `INFO commandstats` counts them; `median` and `worst` are those of the time
between sending a job that wakes and the consumer's having it, in microseconds, on a connection that does
nothing else.
"""

import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "blackbox"))

from harness.pipelined import Pipelined
from harness.server import KINDS, Kind, Server, eventually

WAITERS = [1, 100, 1_000, 5_000]
ADDS = 2_000
WAIT = ("DQ.POP", "q", "BLOCK", 0, "NOACK")


def main() -> None:
    counts = [int(word) for word in sys.argv[1:]] or WAITERS
    raise_limit(max(counts) + 1_000)
    print(f"{'server':12} {'waiters':>8} {'wakes':>8} {'later':>8} {'median':>8} {'worst':>8}")
    for kind in KINDS:
        for count in counts:
            with tempfile.TemporaryDirectory() as directory:
                server = Server(kind, Path(directory), "maxclients 20000")
                try:
                    measure(kind, server, count)
                finally:
                    server.kill9()


def measure(kind: Kind, server: Server, count: int) -> None:
    waiters = [Pipelined(server.port) for _ in range(count)]
    # The line is as the list: who was served goes to its end.
    for waiter in waiters:
        waiter.send(WAIT)
    with server.client() as r:
        eventually(lambda: r.info("dq")["dq_waiting_consumers"] == count, 60)
        wakes, latencies = add_and_wake(r, waiters)
        later = usec_per_add(r, lambda adder: adder.call("DQ.ADD", "q", "*", "x", "DELAY", 3_600_000))
    median, worst = statistics.median(latencies), max(latencies)
    print(f"{kind!s:12} {count:8} {wakes:8.2f} {later:8.2f} {median:8.0f} {worst:8.0f}", flush=True)
    for waiter in waiters:
        waiter.close()


def add_and_wake(r, waiters: list[Pipelined]) -> tuple[float, list[float]]:
    latencies = []
    turn = iter(range(10**9))

    def add(adder: Pipelined) -> None:
        waiter = waiters[next(turn) % len(waiters)]
        begin = time.perf_counter()
        adder.send(("DQ.ADD", "q", "*", "x"))
        got = waiter.receive()
        latencies.append((time.perf_counter() - begin) * 1e6)
        assert len(got) == 1, got
        adder.receive()
        waiter.send(WAIT)
        # It waits again before the next job comes: sent on another connection, it might be later.
        while len(waiters) == 1 and not r.info("dq")["dq_waiting_consumers"]:
            pass

    return usec_per_add(r, add), latencies


def usec_per_add(r, add) -> float:
    adder = Pipelined(r.connection_pool.connection_kwargs["port"])
    for _ in range(50):
        add(adder)
    r.config_resetstat()
    for _ in range(ADDS):
        add(adder)
    adder.close()
    return r.info("commandstats")["cmdstat_dq.add"]["usec_per_call"]


def raise_limit(files: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, hard), hard))


if __name__ == "__main__":
    main()
