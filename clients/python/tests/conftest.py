"""Fixtures: the client's own (dq_client.testing), and both kinds of clients of redis-py.

queue     makes a Queue of an empty server
aqueue    makes an AsyncQueue of it, in a loop that `run` runs
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest
import redis
import redis.asyncio

from dq_client import AsyncQueue, Queue
from harness.server import KINDS, MODULE

T = TypeVar("T")

# The server of the module's own tests, for the fixtures of dq_client.testing.
os.environ.setdefault("DQ_SERVER", str(KINDS[0].binary))
os.environ.setdefault("DQ_MODULE", str(MODULE))


@pytest.fixture
def client(dq_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(dq_url) as client:
        yield client


@pytest.fixture
def queue(client: redis.Redis) -> Callable[..., Queue]:
    return lambda name="q", **options: Queue(client, name, **options)


@pytest.fixture
def with_aqueue(dq_url: str) -> Callable[[Callable[[AsyncQueue], Coroutine[Any, Any, T]]], T]:
    """Runs a coroutine function with an AsyncQueue `q`."""

    def run(work: Callable[[AsyncQueue], Coroutine[Any, Any, T]]) -> T:
        async def main() -> T:
            async with redis.asyncio.Redis.from_url(dq_url) as client:
                return await work(AsyncQueue(client, "q"))

        return asyncio.run(main())

    return run
