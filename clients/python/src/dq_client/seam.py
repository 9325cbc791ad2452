"""Between a command and the client library that sends it: redis-py or valkey-py, sync or asyncio.

Nothing of a library is imported here. What is asked of its client is `execute_command`, and of its
pipelines that they also tell how many commands they hold.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from dq_client.commands import Command
from dq_client.errors import refusal
from dq_client.words import Word

T = TypeVar("T")

#: A wait is sent in pieces: both libraries give up on a reply after five seconds.
WAIT_AT_MOST_MS = 2_000


class Client(Protocol):
    """`redis.Redis`, `redis.RedisCluster`, `valkey.Valkey`, …"""

    def execute_command(self, *words: Any, **options: Any) -> Any: ...

    def pipeline(self, transaction: Any = ...) -> Any: ...


class AsyncClient(Protocol):
    """`redis.asyncio.Redis`, `redis.asyncio.RedisCluster`, `valkey.asyncio.Valkey`, …"""

    def execute_command(self, *words: Any, **options: Any) -> Awaitable[Any]: ...

    def pipeline(self, transaction: Any = ...) -> Any: ...


class Pipeline(Protocol):
    """A pipeline of either kind. It is executed by the program that made it."""

    def execute_command(self, *words: Any, **options: Any) -> Any: ...

    def __len__(self) -> int: ...


class Later(Generic[T]):
    """The reply of a command on a pipeline, once that is executed."""

    def __init__(self, command: Command[T], place: int):
        self._command = command
        self._place = place

    def of(self, replies: list[Any]) -> T:
        """The reply among those of the pipeline. An error of this command is raised."""
        reply = replies[self._place]
        if isinstance(reply, Exception):
            raise refusal(reply) or reply
        return self._command.parse(reply)


def put(command: Command[T], pipeline: Pipeline) -> Later[T]:
    later = Later(command, len(pipeline))
    pipeline.execute_command(*command.words)
    return later


def call(client: Client, command: Command[T]) -> T:
    reply = None
    for words in pieces(command):
        try:
            reply = client.execute_command(*words, **routing(client, words))
        except Exception as error:
            if typed := refusal(error):
                raise typed from error
            raise
        if not command.is_waiting(reply):
            break
    return command.parse(reply)


async def call_async(client: AsyncClient, command: Command[T]) -> T:
    reply = None
    for words in pieces(command):
        try:
            reply = await client.execute_command(*words, **routing(client, words))
        except Exception as error:
            if typed := refusal(error):
                raise typed from error
            raise
        if not command.is_waiting(reply):
            break
    return command.parse(reply)


def pieces(command: Command[Any]) -> Iterator[list[Word]]:
    """The command, again and again until its wait is over."""
    at = command.wait_at
    total_ms = 0 if at is None else int(command.words[at])
    if at is None or (total_ms <= WAIT_AT_MOST_MS and total_ms != 0):
        yield command.words
        return
    end = time.monotonic() + total_ms / 1000
    is_endless, left_ms = total_ms == 0, total_ms
    while is_endless or left_ms > 0:
        piece_ms = WAIT_AT_MOST_MS if is_endless else min(left_ms, WAIT_AT_MOST_MS)
        yield [*command.words[:at], piece_ms, *command.words[at + 1 :]]
        left_ms = round((end - time.monotonic()) * 1000)


def routing(client: Any, words: list[Word]) -> dict[str, Any]:
    """DQ.NEXT has no key, so the client of a cluster has to be told where to send it."""
    is_cluster = hasattr(client, "get_random_node")
    return {"target_nodes": "random"} if is_cluster and words[0] == "DQ.NEXT" else {}
