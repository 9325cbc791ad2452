"""What a redis-py client sees of queues: jobs, counts, digests."""

from typing import Any

import redis

from harness.clock import HOUR_MS, now_ms
from harness.resp import fields
from harness.server import Server, eventually


def binary_client(server: Server, **options: Any) -> redis.Redis:
    return server.client(decode_responses=False, **options)


def digests(r: redis.Redis, *keys: str | bytes) -> list[bytes | str]:
    """The digest of each queue, one number each. Equal queues have equal digests."""
    return r.execute_command("DEBUG", "DIGEST-VALUE", *keys)


def queues_of(server: Server) -> dict[str, str]:
    """The digest of every queue of the server."""
    with server.client() as r:
        keys = sorted(r.scan_iter(_type="delayq-dq", count=1_000))
        return dict(zip(keys, digests(r, *keys), strict=True)) if keys else {}


def come_to_rest(r: redis.Redis) -> None:
    """Waits until no job of any queue will leave its state within the next hour without a
    command.
    """
    keys = list(r.scan_iter(_type="delayq-dq", count=1_000))
    for key in keys:
        r.execute_command("DQ.ALTER", key, "DEADKEEP", 0)

    def all_are_kept() -> bool:
        first_to_go = [r.execute_command("DQ.PEEK", key, "STATE", "done") for key in keys]
        return all(
            fields(job)["kept-until"] > now_ms() + HOUR_MS for jobs in first_to_go for job in jobs
        )

    eventually(all_are_kept)


def job(r: redis.Redis, key: str, id: bytes | str) -> dict[str, Any] | None:
    flat = r.execute_command("DQ.GET", key, id)
    return flat and fields(flat)


def info(r: redis.Redis, key: str) -> dict[str, Any]:
    """The fields of DQ.INFO that depend on the queue alone, not on when and where it is asked.

    Left out are: the memory, which depends on the queue's history; the lateness, which belongs to
    the server; the counts of the last minute; and the age of the oldest ready job.
    """
    told = fields(r.execute_command("DQ.INFO", key))
    passing = [name for name in told if name.startswith("lateness-")]
    for name in "memory", "oldest-ready-ms", *passing:
        del told[name]
    return told


def waiting(r: redis.Redis) -> int:
    """How many queues the timer waits for. Asking for it touches none of them."""
    return r.info("dq")["dq_queues_waiting"]
