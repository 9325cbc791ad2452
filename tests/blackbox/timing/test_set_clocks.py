"""The server's wall clock is set while it runs. Its timers use another clock."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.clock import HOUR_MS
from harness.server import Server, eventually
from harness.wall_clock import WallClock


def test_a_job_due_before_the_clock_was_set_back_comes_when_it_is_due_again(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    """The timer has seen it become ready, and would come again for the next job only."""
    clock = WallClock(tmp_path, "server")
    server = fresh_server(environment=clock.environment)
    with server.client() as r:
        r.execute_command("DQ.ADD", "q", "next", "x", "DELAY", HOUR_MS)
        r.execute_command("DQ.ADD", "q", "due", "x", "DELAY", 100)
        # Nobody has asked for the queue: so it is the timer that has counted it.
        eventually(lambda: r.info("dq")["dq_jobs_ready"] == 1)
        clock.set(-2_000_000)
        assert r.execute_command("DQ.POP", "q") is None
        popped = r.execute_command("DQ.POP", "q", "BLOCK", 8_000)
        assert popped is not None, "nobody served who waited"
        assert popped[0][0] == "due"


def test_a_group_that_its_rate_holds_back_waits_no_longer_than_an_interval_when_the_clock_is_set_back(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    """Nobody does anything to the queue but wait. It was held back until the clock had caught
    up.
    """
    clock = WallClock(tmp_path, "server")
    server = fresh_server("appendonly yes", environment=clock.environment)
    with server.client() as r, server.client() as waiting, ThreadPoolExecutor() as aside:
        for name in ("a", "b"):
            r.execute_command("DQ.ADD", "q", name, "x", "GROUP", "g")
        clock.set(2_000_000_000)
        r.execute_command("DQ.ALTER", "q", "GROUPRATE", 1, 300)
        assert r.execute_command("DQ.POP", "q", "NOACK")[0][0] == "a"
        clock.set(0)
        popped = aside.submit(
            waiting.execute_command, "DQ.POP", "q", "BLOCK", 8_000, "NOACK"
        ).result(20)
        assert popped is not None, "nobody served who waited"
        assert popped[0][0] == "b"
        # What is loaded has come to the same.
        digest = r.execute_command("DEBUG", "DIGEST-VALUE", "q")
        r.execute_command("DEBUG", "LOADAOF")
        assert r.execute_command("DEBUG", "DIGEST-VALUE", "q") == digest
        assert r.info("dq")["dq_diverged"] == 0


def test_consumers_are_served_however_often_the_clock_is_set(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    """The server's own timers go by it: one that waits while it is set back by an hour comes an
    hour later. With that, nobody was served any more who waited, and nobody sent away."""
    clock = WallClock(tmp_path, "server")
    server = fresh_server(environment=clock.environment)
    is_over = threading.Event()

    def produce() -> None:
        with server.client() as r:
            for at in itertools.takewhile(lambda _: not is_over.is_set(), itertools.count()):
                r.execute_command("DQ.ADD", f"q{at % 3}", "*", "x", "DELAY", at % 4)

    def consume(queue: str) -> None:
        with server.client() as r:
            while not is_over.is_set():
                r.execute_command("DQ.POP", queue, "BLOCK", 30, "NOACK")

    with ThreadPoolExecutor() as aside:
        clients = [aside.submit(produce) for _ in range(2)]
        clients += [aside.submit(consume, f"q{at % 3}") for at in range(6)]
        for at in range(1_500):
            clock.set((0, 1_900_000_000, -300_000_000, 5_500_000_000)[at % 4])
        clock.set(0)
        is_over.set()
        for client in clients:
            client.result(20)
    # What comes due while somebody waits takes both of the module's timers.
    with server.client() as r:
        r.flushall()
        r.execute_command("DQ.ADD", "late", "one", "x", "DELAY", 50)
        popped = r.execute_command("DQ.POP", "late", "BLOCK", 8_000)
        assert popped is not None, "nobody served who waited"


def test_a_death_that_was_settled_stays_settled_when_the_clock_is_set_back(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    """The log has said it. A wait for a job isn't told of a death that is to come again."""
    clock = WallClock(tmp_path, "server")
    server = fresh_server("appendonly yes", environment=clock.environment)
    with server.client() as r, server.client() as waiting, ThreadPoolExecutor() as aside:
        r.execute_command("DQ.ADD", "q", "a", "x", "TTL", 2_000, "DELAY", HOUR_MS)
        r.execute_command("DQ.ADD", "q", "b", "x", "AFTER", 1, "a", "ONDEAD", "RUN")
        r.execute_command("DQ.ADD", "q", "c", "x", "AFTER", 1, "a")
        told = aside.submit(waiting.execute_command, "DQ.RESULT", "q", "a", "BLOCK", 60_000)
        eventually(lambda: r.info("dq")["dq_watchers"] == 1)
        clock.set(-2_000_000)
        assert r.execute_command("DQ.LEN", "q", "STATE", "held") == 2
        clock.set(0)
        assert told.result(20) == ["dead", "its time to live is over"]
        eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "ready") == 1)
        clock.set(-2_000_000)
        assert r.execute_command("DQ.DEPS", "q", "b")[1] == [
            ["a", "dead", "its time to live is over"]
        ]
        digest = r.execute_command("DEBUG", "DIGEST-VALUE", "q")
        for way in ("LOADAOF", "RELOAD"):
            r.execute_command("DEBUG", way)
            assert r.execute_command("DEBUG", "DIGEST-VALUE", "q") == digest
        # Whatever the clock says, both go on.
        r.execute_command("DQ.KICKJOB", "q", "a")
        left = [r.execute_command("DQ.POP", "q", "COUNT", 9, "NOACK") for _ in range(2)]
        assert sorted(job[0] for popped in left for job in popped or []) == ["a", "b", "c"]
