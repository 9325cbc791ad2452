"""Ten thousand clients that wait for what becomes of jobs, and workers that renew many leases."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness.pipelined import Pipelined
from turns.scenes import BATCH, CLIENTS
from turns.scenes.many import HOUR_MS, REPEATS
from turns.scenes.waiters import SOON_MS
from turns.subject import Subject

WATCHERS = 10_000
HOLDERS = 10
# Clients that renew the same leases, and how many leases these are.
RESULT = b"x" * (1 << 20)
SHARERS = 500
SHARED = 2_000


@contextmanager
def crowd(
    s: Subject, commands: list[tuple[str | bytes | int, ...]], *, are_killed: bool = False
) -> Iterator[list[Pipelined]]:
    """A connection for each of these commands, which block them."""
    lines = [Pipelined(s.port, timeout_s=60) for _ in commands]
    for line, words in zip(lines, commands, strict=True):
        line.send(words)
    s.until(lambda: s.says("watchers") == len(lines))
    try:
        yield lines
    finally:
        s.until(lambda: s.says("watchers") == 0)
        for line in lines:
            if not are_killed:
                line.receive()
            line.close()
        s.call("FLUSHALL")


def of_one_job(s: Subject, watchers: int) -> None:
    wait = ("DQ.RESULT", "q", "a", "BLOCK", 0)
    ends = {
        "DONE of the job": ["DQ.DONE", "q", "a", "*", "RESULT", "x" * 100],
        "DEL of the job": ["DQ.DEL", "q", "a"],
        "DEL of the key": ["DEL", "q"],
        "FLUSHALL": ["FLUSHALL"],
    }
    for _ in range(REPEATS):
        for name, end in ends.items():
            s.calls([("DQ.ADD", "q", "a", "x"), ("DQ.POP", "q", "TTR", HOUR_MS)])
            with crowd(s, [wait] * watchers), s.turn(f"all wait for one job: {name}"):
                s.call(*end)
                s.until(lambda: s.says("watchers") == 0)
        s.call("DQ.ADD", "q", "a", "x", "TTL", SOON_MS + watchers // 2)
        with crowd(s, [wait] * watchers), s.turn("all wait for one job: its TTL is over"):
            s.until(lambda: s.says("watchers") == 0)
        s.call("DQ.ADD", "q", "a", "x")
        until = s.now() + SOON_MS + watchers // 2
        waits = [("DQ.RESULT", "q", "a", "BLOCK", SOON_MS + watchers // 2)] * watchers
        with crowd(s, waits), s.turn("all wait for one job: their time is over"):
            assert s.now() < until
            s.until(lambda: s.says("watchers") == 0)


def of_many_jobs(s: Subject, watchers: int) -> None:
    """Each waits for a job of its own."""
    ids = range(watchers)
    waits = [("DQ.RESULT", "q", n, "BLOCK", 0) for n in ids]
    ends = {
        "DEL of the key": (["DEL", "q"], None),
        "FLUSHALL": (["FLUSHALL"], None),
        "SWAPDB": (["SWAPDB", 0, 1], None),
        "DEL of all jobs": (["DQ.DEL", "q", *ids], BATCH),
    }
    for _ in range(REPEATS):
        for name, (end, why) in ends.items():
            s.calls([("DQ.ADD", "q", n, "x") for n in ids])
            with crowd(s, waits), s.turn(f"each waits for a job: {name}", why):
                s.call(*end)
                s.until(lambda: s.says("watchers") == 0)
        ttl = SOON_MS + watchers // 2
        at = s.now() + ttl
        s.calls([("DQ.ADD", "q", n, "x", "TTL", at - s.now()) for n in ids])
        with crowd(s, waits), s.turn("each waits for a job: their TTL is over"):
            s.until(lambda: s.says("watchers") == 0)


def of_leases(s: Subject, leases: int) -> None:
    """Workers that hold as many leases as one call takes."""
    for _ in range(REPEATS):
        words = []
        for holder in range(HOLDERS):
            s.calls([("DQ.ADD", "q", f"{holder}:{n}", "x") for n in range(leases)])
            held = s.call("DQ.POP", "q", "COUNT", leases, "TTR", HOUR_MS)
            words.append([word for id, _, lease, _ in held for word in (id, lease)])
        with s.turn("RENEW of 10,000 leases", BATCH):
            assert s.call("DQ.RENEW", "q", 0, 0, *words[0]) == []
        with s.turn("RENEW of 10,000 leases that waits, and its end", BATCH):
            assert s.call("DQ.RENEW", "q", 0, 200, *words[0]) == []
        waits = [("DQ.RENEW", "q", 0, HOUR_MS, *one) for one in words]
        with crowd(s, waits), s.turn("ten workers wait: a job of each is deleted"):
            s.call("DQ.DEL", "q", *[f"{holder}:7" for holder in range(HOLDERS)])
            s.until(lambda: s.says("watchers") == 0)
        for holder in range(HOLDERS):
            s.calls([("DQ.ADD", "q", f"{holder}:{n}", "x") for n in range(leases)])
            held = s.call("DQ.POP", "q", "COUNT", leases, "TTR", HOUR_MS)
            words[holder] = [word for id, _, lease, _ in held for word in (id, lease)]
        waits = [("DQ.RENEW", "q", 0, HOUR_MS, *one) for one in words]
        with crowd(s, waits), s.turn("ten workers wait: DEL of the key"):
            s.call("DEL", "q")
            s.until(lambda: s.says("watchers") == 0)


def of_large_results(s: Subject, readers: int) -> None:
    """A result of 1 MiB that many clients wait for, and such results of many jobs."""
    for _ in range(REPEATS):
        s.calls([("DQ.ADD", "q", "a", "x"), ("DQ.POP", "q", "TTR", HOUR_MS)])
        wait = ("DQ.RESULT", "q", "a", "BLOCK", 0)
        with crowd(s, [wait] * readers), s.turn("all wait for one job: DONE with 1 MiB"):
            s.call("DQ.DONE", "q", "a", "*", "RESULT", RESULT)
            s.until(lambda: s.says("watchers") == 0)
        s.call("SELECT", 1)
        for n in range(readers):
            s.call("DQ.ADD", "q", n, "x", "KEEP", HOUR_MS)
            s.call("DQ.POP", "q")
            s.call("DQ.DONE", "q", n, "*", "RESULT", RESULT)
        s.call("SELECT", 0)
        s.calls([("DQ.ADD", "q", n, "x") for n in range(readers)])
        waits = [("DQ.RESULT", "q", n, "BLOCK", 0) for n in range(readers)]
        with crowd(s, waits), s.turn("each waits for a job: SWAPDB brings results of 1 MiB"):
            s.call("SWAPDB", 0, 1)
            s.until(lambda: s.says("watchers") == 0)


def of_shared_leases(s: Subject, sharers: int) -> None:
    """Clients that renew the same leases."""
    shared = max(1, SHARED * sharers // SHARERS)
    for _ in range(REPEATS):
        for name, end in {
            "DEL of all jobs": ["DQ.DEL", "q", *range(shared)],
            "DEL of the key": ["DEL", "q"],
            "FLUSHALL": ["FLUSHALL"],
            "their time is over": [],
            "they are killed": ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
        }.items():
            s.calls([("DQ.ADD", "q", n, "x", "TTR", HOUR_MS) for n in range(shared)])
            held = s.call("DQ.POP", "q", "COUNT", shared)
            words = [word for id, _, lease, _ in held for word in (id, lease)]
            block = SOON_MS + 10 * sharers if not end else HOUR_MS
            waits = [("DQ.RENEW", "q", 0, block, *words)] * sharers
            with crowd(s, waits, are_killed=name == "they are killed"):
                if name == "DEL of the key":
                    with s.turn("500 workers wait for the same 2,000 leases: RENEW of another"):
                        assert s.call("DQ.RENEW", "q", 0, 0, *words) == []
                why = CLIENTS if name == "they are killed" else None
                with s.turn(f"500 workers wait for the same 2,000 leases: {name}", why):
                    if end:
                        s.call(*end)
                    s.until(lambda: s.says("watchers") == 0)


def of_many_leases(s: Subject, leases: int) -> None:
    """400,000 leases that are waited for, at one key."""
    for _ in range(REPEATS):
        waits = []
        for _ in range(40):
            s.fill("q", leases, "TTR", HOUR_MS)
            held = s.call("DQ.POP", "q", "COUNT", leases)
            words = [word for id, _, lease, _ in held for word in (id, lease)]
            waits.append(("DQ.RENEW", "q", 0, HOUR_MS, *words))
        with crowd(s, waits), s.turn("400,000 leases are waited for: DEL of the key"):
            s.call("DEL", "q")
            s.until(lambda: s.says("watchers") == 0)
