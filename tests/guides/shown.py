"""What is in a queue."""

import time
from typing import Any

import redis


def jobs(r: redis.Redis, key: str, state: str) -> dict[str, dict[str, Any]]:
    """By id, those that leave first first."""
    replies = r.execute_command("DQ.PEEK", key, "STATE", state, "COUNT", 100)
    maps = [dict(zip(reply[::2], reply[1::2], strict=True)) for reply in replies]
    return {job["id"]: job for job in maps}


def minutes_ahead(job: dict[str, Any]) -> float:
    return float(job["due"] / 1000 - time.time()) / 60
