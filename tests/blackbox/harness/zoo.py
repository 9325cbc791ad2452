"""A queue with a job of every kind, for tests of what must stay the same."""

from dataclasses import dataclass
from typing import Any

import redis

from harness.clock import DAY_MS, HOUR_MS, now_ms
from harness.queues import digests, info, job
from harness.server import eventually

BINARY = bytes(range(256))


@dataclass(frozen=True)
class Snapshot:
    """All that a client can see of a queue."""

    digest: bytes | str
    jobs: dict[bytes, Any]
    info: dict[str, Any]


@dataclass(frozen=True)
class Zoo:
    """A queue with jobs of every kind; none changes its state within the next hour."""

    ids: list[bytes]
    # The ready ones, in the order in which they leave.
    ready: list[bytes]

    def snapshot(self, r: redis.Redis, key: str) -> Snapshot:
        jobs = {id: job(r, key, id) for id in self.ids}
        return Snapshot(digests(r, key)[0], jobs, info(r, key))


def make_zoo(r: redis.Redis, key: str) -> Zoo:
    """Makes that queue; `r` must not decode replies."""
    ids: list[bytes] = []

    def add(id: bytes, body: bytes, *options: str | int) -> bytes:
        made = r.execute_command("DQ.ADD", key, id, body, *options)
        ids.append(made)
        return made

    def pop(*options: str | int) -> list[list[Any]]:
        return r.execute_command("DQ.POP", key, *options)

    def until(id: bytes, state: bytes) -> None:
        eventually(lambda: job(r, key, id)["state"] == state)

    # Gone again: they show in the totals only.
    for gone in b"finished", b"deleted":
        r.execute_command("DQ.ADD", key, gone, b"")
    pop()
    assert r.execute_command("DQ.FINISH", key, b"finished") == 1
    assert r.execute_command("DQ.DEL", key, b"deleted") == 1

    def give_back(verb: str, id: bytes, *options: str | int) -> None:
        """The report of the worker that has just taken the job."""
        ((got, _, lease, _),) = pop("TTR", DAY_MS)
        assert got == id
        assert r.execute_command(verb, key, id, lease, *options) == 1

    for id in b"dead-z", b"dead-a":
        add(id, b"it failed", "ATTEMPTS", 1, "TTR", 1, "PRIORITY", 9)
        pop()
        until(id, b"dead")
    add(b"buried", b"x")
    give_back("DQ.BURY", b"buried", "REASON", "no such customer")
    add(b"buried-without-a-word", b"x", "ATTEMPTS", 0, "TTL", DAY_MS)
    give_back("DQ.BURY", b"buried-without-a-word")
    add(b"released-for-the-last-time", b"x", "ATTEMPTS", 1)
    give_back("DQ.RELEASE", b"released-for-the-last-time", "REASON", BINARY)
    for id in b"died-of-age-z", b"died-of-age-a":
        add(id, b"x", "TTL", 1, "DELAY", DAY_MS)
        until(id, b"dead")
    add(b"died-of-age-in-hand", b"x", "TTL", 30, "BACKOFF", 5, HOUR_MS)
    pop("TTR", DAY_MS)
    until(b"died-of-age-in-hand", b"dead")

    add(b"done", b"x", "KEEP", DAY_MS)
    give_back("DQ.FINISH", b"done")
    add(b"taken", b"x", "KEEP", DAY_MS, "TTL", DAY_MS)
    pop("NOACK")
    add(b"*", b"x", "KEEP", DAY_MS)
    pop("NOACK")

    add(b"put-off", b"x", "ATTEMPTS", 0)
    give_back("DQ.RELEASE", b"put-off", "DELAY", DAY_MS, "REASON", "closed until tomorrow")
    add(b"backed-off", b"x", "BACKOFF", DAY_MS, 2 * DAY_MS)
    give_back("DQ.RELEASE", b"backed-off")
    add(b"backing-off", b"x", "BACKOFF", DAY_MS, 2 * DAY_MS, "TTR", 1)
    pop()
    until(b"backing-off", b"delayed")
    add(b"mortal", b"x", "TTL", DAY_MS, "DELAY", HOUR_MS * 2, "KEEP", 1)
    add(b"touched", b"x", "TTR", DAY_MS, "TTL", 2 * DAY_MS)
    give_back("DQ.TOUCH", b"touched", "TTR", 2**47)

    add(b"leased", b"x", "TTR", 3 * HOUR_MS)
    pop()
    add(b"leased-for-longer", BINARY, "TTR", 1, "ATTEMPTS", 0)
    pop("TTR", DAY_MS)
    add(b"leased-twice", b"x", "ATTEMPTS", 2, "TTR", 1)
    pop()
    until(b"leased-twice", b"ready")
    pop("TTR", DAY_MS)

    far = now_ms() + DAY_MS
    # Scheduled for one millisecond in an order that is not that of their ids.
    for id in b"z", b"a", b"m", b"0":
        add(b"far-" + id, b"far", "AT", far)
    add(b"far-urgent", b"far", "AT", far, "PRIORITY", 0, "TTR", 2**48 - 1)
    add(b"far-lazy", b"far", "AT", far + 1, "PRIORITY", 255, "ATTEMPTS", 2**32 - 1)
    add(b"the-last-time-there-is", b"", "AT", 2**48 - 1)
    add(b"*", b"named by the queue", "DELAY", DAY_MS)
    add(b"*", b"named by the queue", "DELAY", DAY_MS)
    add(b"moved", b"old", "PRIORITY", 3)
    r.execute_command("DQ.ADD", key, b"moved", b"new", "AT", far, "REPLACE")

    lazy = [add(b"lazy", b"x", "PRIORITY", 255, "ATTEMPTS", 0, "TTL", DAY_MS)]
    add(b"kicked-z", b"x", "PRIORITY", 254, "DELAY", DAY_MS)
    add(b"kicked-a", b"x", "PRIORITY", 254, "DELAY", DAY_MS, "TTL", DAY_MS)
    assert r.execute_command("DQ.KICKJOB", key, b"kicked-z", b"kicked-a") == 2
    lazy = [b"kicked-z", b"kicked-a", *lazy]
    ready = [
        add(BINARY, BINARY * 400),
        add(b"i" * 512, b"long " * 10_000),
        add(b"\0", b""),
        add(b"*", b"\r\n$5\r\n"),
    ]
    urgent = [add(b"urgent-z", b"x", "PRIORITY", 1), add(b"urgent-a", b"x", "PRIORITY", 1)]

    again = [add(b"again-z", b"x", "PRIORITY", 0), add(b"again-a", b"x", "PRIORITY", 0)]
    for _ in range(2):
        handed_out = pop("COUNT", 2, "TTR", 1)
        assert [delivery[0] for delivery in handed_out] == again
        for id in again:
            until(id, b"ready")

    settings = ("TTR", DAY_MS, "ATTEMPTS", 7, "BACKOFF", 5, 50, "KEEP", 0)
    r.execute_command("DQ.ALTER", key, *settings, "MAXJOBS", 1_000_000, "DEADKEEP", DAY_MS)
    return Zoo(ids, again + urgent + ready + lazy)


def pop_all(r: redis.Redis, key: str) -> list[list[Any]]:
    """All ready jobs, one POP each, in order."""
    handed_out = []
    while delivery := r.execute_command("DQ.POP", key, "TTR", HOUR_MS):
        handed_out += delivery
    return handed_out
