"""The client, and what is done again while its server is away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from redis.asyncio import Redis

from dq_client.outages import passes, pauses

T = TypeVar("T")


def connected(url: str | None, parameters: dict[str, Any]) -> Redis:
    return Redis.from_url(url, **parameters) if url else Redis(**parameters)


async def persistently(call: Callable[[], Awaitable[T]], patience: timedelta) -> T:
    """Calls again after an error of an outage, until one has lasted too long."""
    loop, waits = asyncio.get_running_loop(), pauses()
    deadline = loop.time() + patience.total_seconds()
    while True:
        try:
            return await call()
        except Exception as error:
            pause_s = next(waits)
            if not passes(error) or loop.time() + pause_s > deadline:
                raise
            await asyncio.sleep(pause_s)
