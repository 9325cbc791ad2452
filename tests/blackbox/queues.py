"""Queues for tests about what must stay the same: every kind of job, and all there is to see."""

import time
from dataclasses import dataclass
from typing import Any

import redis

from server import Server, eventually

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
BINARY = bytes(range(256))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def binary_client(server: Server, **options: Any) -> redis.Redis:
    return server.client(decode_responses=False, **options)


def digests(r: redis.Redis, *keys: str | bytes) -> list[bytes | str]:
    """What a queue is, as one number each: equal queues have equal ones."""
    return r.execute_command("DEBUG", "DIGEST-VALUE", *keys)


def fields(flat: list[Any]) -> dict[str, Any]:
    """A RESP2 map; its names are text, whatever the client makes of the values."""
    names = (name.decode() if isinstance(name, bytes) else name for name in flat[::2])
    return dict(zip(names, flat[1::2], strict=True))


def job(r: redis.Redis, key: str, id: bytes | str) -> dict[str, Any] | None:
    flat = r.execute_command("DQ.GET", key, id)
    return flat and fields(flat)


def info(r: redis.Redis, key: str) -> dict[str, Any]:
    """What DQ.INFO tells, but for the memory: that depends on what the queue has been."""
    told = fields(r.execute_command("DQ.INFO", key))
    del told["memory"]
    return told


def waiting(r: redis.Redis) -> int:
    """How many queues the timer has in view: seen without touching any of them."""
    return r.info("dq")["dq_queues_waiting"]


@dataclass(frozen=True)
class Snapshot:
    """All that is to be seen of a queue."""

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
    """Makes that queue; `r` decodes nothing."""
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

    for id in b"dead-z", b"dead-a":
        add(id, b"it failed", "ATTEMPTS", 1, "TTR", 1, "PRIORITY", 9)
        pop()
        until(id, b"dead")

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

    lazy = [add(b"lazy", b"x", "PRIORITY", 255, "ATTEMPTS", 0)]
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
    return Zoo(ids, again + urgent + ready + lazy)


def pop_all(r: redis.Redis, key: str) -> list[list[Any]]:
    """Everything that is ready, one POP each, in order."""
    handed_out = []
    while delivery := r.execute_command("DQ.POP", key, "TTR", HOUR_MS):
        handed_out += delivery
    return handed_out
