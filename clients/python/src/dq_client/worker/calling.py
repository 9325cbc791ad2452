"""How a worker calls the server: by an asyncio client, or by a blocking one in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from dq_client.commands import Command
from dq_client.errors import refusal
from dq_client.outages import passes, pauses
from dq_client.queue import AsyncQueue, Queue
from dq_client.seam import (
    Later,
    call,
    call_async,
    put,
    reply_or_error,
    settings,
    wait_at_most_ms,
)
from dq_client.worker import reporting
from dq_client.worker.nodes import Nodes
from dq_client.worker.reporting import Outages
from dq_client.worker.threads import Threads

T = TypeVar("T")


class Caller:
    """The client of a worker's queues."""

    def __init__(self, queues: Sequence[Queue | AsyncQueue]):
        client = queues[0].client
        if any(queue.client is not client for queue in queues):
            raise ValueError("the queues of a worker need the same client")
        self.client: Any = client
        self._is_async = isinstance(queues[0], AsyncQueue)
        self._threads = Threads("dq-call")
        self.is_cluster = hasattr(client, "get_random_node")
        is_of_nodes = self._is_async and self.is_cluster and Nodes.serve(client)
        self._nodes = Nodes(client) if is_of_nodes else None
        self.outages = Outages(address_of(client), self.is_cluster)

    def check_connections(self, needed: int) -> None:
        """A wait in the server holds a connection."""
        pool = getattr(self.client, "connection_pool", None)
        if (most := getattr(pool, "max_connections", None)) and most < needed:
            reporting.few_connections(most, needed)

    @property
    def longest_wait(self) -> timedelta:
        """For how long one call may wait in the server."""
        return timedelta(milliseconds=wait_at_most_ms(self.client))

    async def call(self, command: Command[T]) -> T:
        if self._nodes is not None:
            (reply,) = await self._nodes.send([command.words])
            if isinstance(reply, Exception):
                raise refusal(reply, command.words) or reply
            return command.parse(reply)
        if self._is_async:
            return await call_async(self.client, command)
        return await self._threads.run(lambda: call(self.client, command))

    async def batch(self, batch: Sequence[Command[Any]]) -> list[Any]:
        """The replies to several commands of one slot in one round trip; an error is the reply of
        its own.
        """
        if self._nodes is not None:
            replies = await self._nodes.send([command.words for command in batch])
            lines = [Later(command, at) for at, command in enumerate(batch)]
            return [reply_or_error(each, replies) for each in lines]
        pipeline = self.client.pipeline(transaction=False)
        later = [put(command, pipeline) for command in batch]
        if self._is_async:
            replies = await pipeline.execute(raise_on_error=False)
        else:
            replies = await self._threads.run(lambda: pipeline.execute(raise_on_error=False))
        return [reply_or_error(each, replies) for each in later]

    async def ask(self, queue: str, command: Command[T], until: Callable[[], bool]) -> T | None:
        """The reply, as soon as the server gives one. None when it is told to stop before that."""
        answer = await self.ask_when(queue, command, until)
        return answer[0]

    async def ask_when(
        self, queue: str, command: Command[T], until: Callable[[], bool]
    ) -> tuple[T | None, float]:
        """The same, and when the attempt that was answered was sent: at this time of the loop, or
        later, as the client library sends it again by itself.
        """
        loop = asyncio.get_running_loop()
        for pause_s in pauses():
            sent_at = loop.time()
            try:
                reply = await self.call(command)
            except Exception as error:
                if not passes(error):
                    raise
                self.outages.failed(queue, error)
            else:
                self.outages.answered(queue)
                return reply, sent_at
            await self.leave()
            if until():
                break
            await asyncio.sleep(pause_s)
        return None, loop.time()

    async def leave(self) -> None:
        """The address may lead to another server by now. Clients of clusters see to it by
        themselves.
        """
        pool = getattr(self.client, "connection_pool", None)
        if pool is None:
            return
        with suppress(Exception):  # of connections that are broken anyway
            if self._is_async:
                await pool.disconnect(inuse_connections=False)
            else:
                pool.disconnect(inuse_connections=False)


def address_of(client: Any) -> str:
    """The server's, for the log: without a password."""
    if hasattr(client, "get_random_node"):
        return "the cluster"
    pool = getattr(client, "connection_pool", None)
    if name := getattr(pool, "service_name", None):
        return f"{name!r} of the sentinels"
    told = settings(client)
    if path := told.get("path"):
        return f"unix:{path}"
    host = told.get("host") or "localhost"
    return f"{f'[{host}]' if ':' in host else host}:{told.get('port') or 6379}"
