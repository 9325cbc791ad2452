"""The client, and what is done again while its server is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from redis.asyncio import Redis

from dq_client.outages import passes, pauses

T = TypeVar("T")
logger = logging.getLogger("taskiq.dq")

#: How long a worker that is told to stop tries to reach its server.
LAST_WORDS_S = 5.0


def connected(url: str | None, parameters: dict[str, Any]) -> Redis:
    return Redis.from_url(url, **parameters) if url else Redis(**parameters)


def checked(name: str, duration: timedelta) -> timedelta:
    """Raises TypeError for a number, which may be meant in seconds, ValueError for 0 and below."""
    if not isinstance(duration, timedelta):
        raise TypeError(f"{name} is a timedelta, such as timedelta(minutes=1), not {duration!r}")
    if duration <= timedelta(0):
        raise ValueError(f"{name} must be longer than 0")
    return duration


class Link:
    """To one server. An outage is one line of the log, and its end another."""

    def __init__(self, client: Any):
        self._client = client
        self._is_cluster = hasattr(client, "get_random_node")
        self._is_away = False
        self._stopping = asyncio.Event()

    @property
    def is_away(self) -> bool:
        return self._is_away

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def begin(self) -> None:
        self._stopping.clear()

    def stop(self) -> None:
        """What is tried again ends soon."""
        self._stopping.set()

    def passes(self, error: BaseException) -> bool:
        """Whether the server may take the same command later. A RuntimeError or AttributeError is
        that of a cluster's client, whose nodes change, alone.
        """
        is_race = isinstance(error, (RuntimeError, AttributeError))
        return passes(error) and (self._is_cluster or not is_race)

    async def at_the_primary(self, call: Callable[[], Awaitable[T]]) -> T:
        """Calls once more where the server that was asked is a replica by now: it has done nothing,
        and the address may lead to the new primary.
        """
        try:
            return await call()
        except Exception as error:
            if type(error).__name__ != "ReadOnlyError":
                raise
            await self._leave()
            return await call()

    async def _leave(self) -> None:
        """Next time it connects again. Clients of clusters see to that by themselves."""
        pool = getattr(self._client, "connection_pool", None)
        if pool is not None and not self._is_cluster:
            with suppress(Exception):
                await pool.disconnect(inuse_connections=False)

    async def failed(self, error: BaseException) -> None:
        """Leaves the server: its address may lead to another one by now."""
        await self._leave()
        if not self._is_away:
            self._is_away = True
            name = type(error).__name__
            logger.warning("%s doesn't answer: %s: %s", self._address(), name, error)

    def answered(self) -> None:
        if self._is_away:
            self._is_away = False
            logger.warning("%s answers again", self._address())

    async def pause(self, seconds: float) -> None:
        """Shorter when the worker is told to stop meanwhile."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def persistently(self, call: Callable[[], Awaitable[T]], patience: timedelta) -> T:
        """Calls again after an error of an outage, until one has lasted too long: for a worker that
        is told to stop, some seconds.
        """
        loop, waits = asyncio.get_running_loop(), pauses()
        deadline = loop.time() + patience.total_seconds()
        while True:
            try:
                reply = await call()
            except Exception as error:
                if not self.passes(error):
                    raise
                await self.failed(error)
                if self.is_stopping:
                    deadline = min(deadline, loop.time() + LAST_WORDS_S)
                pause_s = next(waits)
                if loop.time() + pause_s > deadline:
                    raise
                await (asyncio.sleep if self.is_stopping else self.pause)(pause_s)
            else:
                self.answered()
                return reply

    def _address(self) -> str:
        if self._is_cluster:
            return "the cluster"
        pool = getattr(self._client, "connection_pool", None)
        known = getattr(pool, "connection_kwargs", {})
        address = known.get("path") or f"{known.get('host', 'localhost')}:{known.get('port', 6379)}"
        return f"the server at {address}"
