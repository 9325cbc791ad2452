"""Five thousand consumers that wait."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from harness.pipelined import Pipelined
from turns.scenes import BATCH, CLIENTS, NEW_KEY
from turns.scenes.many import REPEATS
from turns.subject import Subject

WAITERS = 5_000
SOON_MS = 4_000


def make_queue(s: Subject) -> None:
    """An empty queue: making a key is a case of its own."""
    s.calls([("DQ.ADD", "q", "first", "x"), ("DQ.DEL", "q", "first")])


@contextmanager
def crowd(
    s: Subject, how_many: int, *words: str | int, flushes: bool = True
) -> Iterator[list[Pipelined]]:
    """This many connections that have sent this command, which blocks them."""
    lines = [Pipelined(s.port, timeout_s=60) for _ in range(how_many)]
    for line in lines:
        line.send(words)
    s.until(lambda: s.says("waiting_consumers") == how_many)
    try:
        yield lines
    finally:
        for line in lines:
            line.close()
        s.until(lambda: s.says("waiting_consumers") == 0)
        s.until(
            lambda: int(re.search(rb"connected_clients:(\d+)", s.call("INFO", "clients"))[1]) < 5
        )
        if flushes:
            s.call("FLUSHALL")


def served(s: Subject, waiters: int) -> None:
    adds = [("DQ.ADD", "q", n, "x") for n in range(waiters)]
    for _ in range(REPEATS):
        make_queue(s)
        with crowd(s, waiters, "DQ.POP", "q", "BLOCK", 0) as lines, s.turn("ADD for one of them"):
            s.call("DQ.ADD", "q", "one", "x")
            assert lines[0].receive()
        with (
            crowd(s, waiters, "DQ.POP", "q", "BLOCK", 0),
            s.turn("ADD that makes the queue", NEW_KEY),
        ):
            s.call("DQ.ADD", "q", "one", "x")
        make_queue(s)
        words = [word for n in range(2 * waiters) for word in (n, "x" * 100)]
        with (
            crowd(s, waiters, "DQ.POP", "q", "BLOCK", 0) as lines,
            s.turn("MADD of 10,000", BATCH),
        ):
            s.call("DQ.MADD", "q", 2 * waiters, *words)
            assert lines[-1].receive()
        make_queue(s)
        with (
            crowd(s, waiters, "DQ.POP", "q", "BLOCK", 0),
            s.turn("a transaction with an ADD for each", BATCH),
        ):
            s.send(("MULTI",), *adds, ("EXEC",))
            s.receive(waiters + 2)
            s.until(lambda: s.says("waiting_consumers") == 0)
        with crowd(s, waiters, "DQ.POP", "q", "BLOCK", 0):
            at = s.now() + SOON_MS
            s.calls([(*add, "AT", at) for add in adds])
            with s.turn("a job for each falls due"):
                s.until(lambda: s.says("waiting_consumers") == 0)
        with crowd(s, waiters, "DQ.POP", "q", "BLOCK", 0):
            s.calls([("DQ.ADD", "other", n, "x") for n in range(waiters)])
            with s.turn("RENAME brings a job for each", NEW_KEY):
                s.call("RENAME", "other", "q")
                s.until(lambda: s.says("waiting_consumers") == 0)


def in_one_pipeline(s: Subject, waiters: int) -> None:
    """One pipeline of commands. A turn reads one buffer of commands of each client, by the server's
    own limits.
    """
    for _ in range(REPEATS):
        make_queue(s)
        with (
            crowd(s, waiters, "DQ.POP", "q", "BLOCK", 0),
            s.turn("a pipeline with an ADD for each", BATCH),
        ):
            s.send(*[("DQ.ADD", "q", n, "x") for n in range(waiters)])
            s.receive(waiters)
            s.until(lambda: s.says("waiting_consumers") == 0)


def gone(s: Subject, waiters: int) -> None:
    for _ in range(REPEATS):
        until = s.now() + SOON_MS + waiters
        lines = [Pipelined(s.port, timeout_s=60) for _ in range(waiters)]
        for line in lines:
            line.send(("DQ.POP", "q", "BLOCK", until - s.now()))
        s.until(lambda: s.says("waiting_consumers") == waiters)
        assert s.now() < until, "the machine is too slow to tell"
        with s.turn("all of them time out"):
            s.until(lambda: s.says("waiting_consumers") == 0)
        for line in lines:
            line.close()
        s.until(
            lambda: int(re.search(rb"connected_clients:(\d+)", s.call("INFO", "clients"))[1]) < 5
        )


def lost(s: Subject, waiters: int) -> None:
    """The consumers are killed while their jobs are on the way; the module gives the jobs back."""
    for _ in range(REPEATS):
        with crowd(s, waiters, "DQ.POP", "q", "BLOCK", 0):
            s.call("DQ.PAUSE", "q")
            s.calls([("DQ.ADD", "q", n, "x") for n in range(waiters)])
            with s.turn("all of them are killed by one CLIENT KILL", CLIENTS):
                s.send(("DQ.RESUME", "q"), ("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
                s.receive(2)
                s.until(lambda: s.jobs("q", "ready") == waiters)


def one_with_many(s: Subject, jobs: int) -> None:
    """One consumer that waits with COUNT 10000."""
    for _ in range(REPEATS):
        line = Pipelined(s.port, timeout_s=60)
        me = line.call("CLIENT", "ID")
        at = s.now() + SOON_MS
        s.fill("q", jobs, "AT", at)
        line.send(("DQ.POP", "q", "BLOCK", 0, "COUNT", 10_000))
        with s.turn("they fall due, and it gets them", BATCH):
            assert len(line.receive()) == jobs
        s.call("DEL", "q")

        s.fill("q", jobs)
        s.call("DQ.PAUSE", "q")
        line.send(("DQ.POP", "q", "BLOCK", 0, "COUNT", 10_000))
        s.until(lambda: s.says("waiting_consumers") == 1)
        with s.turn("it is assigned them and killed; they are given back", BATCH):
            s.send(("DQ.RESUME", "q"), ("CLIENT", "KILL", "ID", me))
            s.receive(2)
            s.until(lambda: s.jobs("q", "ready") == jobs)
        line.close()
        s.call("DEL", "q")


def one_with_large_ones(s: Subject, _jobs: int) -> None:
    for _ in range(REPEATS):
        line = Pipelined(s.port, timeout_s=60)
        s.call("DQ.ADD", "q", "a", "x")
        s.call("DQ.PAUSE", "q")
        s.fill("q", 20, body=b"x" * (1 << 20))
        line.send(("DQ.POP", "q", "BLOCK", 0, "COUNT", 10_000))
        s.until(lambda: s.says("waiting_consumers") == 1)
        with s.turn("it gets 16 of 1 MiB", BATCH):
            s.call("DQ.RESUME", "q")
            assert len(line.receive()) == 17
        line.close()
        s.call("DEL", "q")


def many_with_large_ones(s: Subject, waiters: int) -> None:
    """Each gets a job of 1 MiB."""
    for _ in range(REPEATS):
        make_queue(s)
        with crowd(s, waiters, "DQ.POP", "q", "BLOCK", 0) as lines:
            s.call("DQ.PAUSE", "q")
            s.fill("q", waiters, body=b"x" * (1 << 20))
            with s.turn("100 wait, and each gets a job of 1 MiB"):
                s.call("DQ.RESUME", "q")
                for line in lines:
                    assert line.receive()
