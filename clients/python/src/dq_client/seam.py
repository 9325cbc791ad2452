"""Between a command and the client library that sends it: redis-py or valkey-py, sync or asyncio.

Nothing of a library is imported here. What is asked of its client is `execute_command`, and of its
pipelines that they also tell how many commands they hold.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from dq_client.commands import Command
from dq_client.errors import refusal
from dq_client.words import Word

T = TypeVar("T")

#: A wait is sent in pieces: both libraries give up on a reply after five seconds.
WAIT_AT_MOST_MS = 2_000
#: Of the client's own timeout. A reply that is given up on may have brought jobs.
_OF_THE_TIMEOUT = 0.5


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


def checked(client: Any, is_async: bool) -> None:
    """Raises TypeError for a client with which a queue would add nothing: a pipeline, or one of the
    other kind.
    """
    if hasattr(client, "execute"):
        raise TypeError(
            "a pipeline is no client: make the queue with the client itself, and put a command on "
            "the pipeline by on=pipeline"
        )
    modules = {kind.__module__ for kind in type(client).__mro__}
    is_of_asyncio = any(".asyncio" in module for module in modules) or inspect.iscoroutinefunction(
        getattr(client, "execute_command", None)
    )
    if is_of_asyncio and not is_async:
        raise TypeError("this client is an asyncio client: take AsyncQueue, or AsyncTopic, with it")
    is_of_a_library = any(module.split(".")[0] in ("redis", "valkey") for module in modules)
    if is_async and is_of_a_library and not is_of_asyncio:
        raise TypeError("this client is a blocking client: take Queue, or Topic, with it")


class Later(Generic[T]):
    """The reply of a command on a pipeline, once that is executed."""

    def __init__(self, command: Command[T], place: int):
        self._command = command
        self._place = place

    def of(self, replies: list[Any]) -> T:
        """The reply among those of the pipeline. An error of this command is raised."""
        reply = replies[self._place]
        if isinstance(reply, Exception):
            raise refusal(reply, self._command.words) or reply
        return self._command.parse(reply)


def reply_or_error(later: Later[T], replies: list[Any]) -> T | Exception:
    try:
        return later.of(replies)
    except Exception as error:
        return error


def put(command: Command[T], pipeline: Pipeline) -> Later[T]:
    later = Later(command, len(pipeline))
    pipeline.execute_command(*command.words, **undecoded(pipeline))
    return later


def call(client: Client, command: Command[T]) -> T:
    reply = None
    for number, words in enumerate(pieces(command, client)):
        try:
            told = client.execute_command(*words, **routing(client, words))
        except Exception as error:
            if typed := refusal(error, words):
                raise typed from error
            raise
        reply = command.joined(reply, told) if number else told
        if not command.is_waiting(reply):
            break
    return command.parse(reply)


async def call_async(client: AsyncClient, command: Command[T]) -> T:
    reply = None
    for number, words in enumerate(pieces(command, client)):
        try:
            told = await client.execute_command(*words, **routing(client, words))
        except Exception as error:
            if typed := refusal(error, words):
                raise typed from error
            raise
        reply = command.joined(reply, told) if number else told
        if not command.is_waiting(reply):
            break
    return command.parse(reply)


def pieces(command: Command[Any], client: Any) -> Iterator[list[Word]]:
    """The command, again and again until its wait is over."""
    at = command.wait_at
    if at is None:
        yield command.words
        return
    at_most_ms = wait_at_most_ms(client)
    total_ms = int(command.words[at])
    if total_ms != 0 and total_ms <= at_most_ms:  # a negative one is for the server to refuse
        yield command.words
        return
    end = time.monotonic() + total_ms / 1000
    is_endless, left_ms = total_ms == 0, total_ms
    sent_once = command.words[at + 1 :]
    while is_endless or left_ms > 0:
        piece_ms = at_most_ms if is_endless else min(left_ms, at_most_ms)
        yield [*command.words[:at], piece_ms, *sent_once]
        sent_once = []
        left_ms = round((end - time.monotonic()) * 1000)


def wait_at_most_ms(client: Any) -> int:
    """How long one call may wait: the client's `socket_timeout` must not end it."""
    timeout_s: float | None = settings(client).get("socket_timeout")
    if not timeout_s:
        return WAIT_AT_MOST_MS
    return max(1, min(WAIT_AT_MOST_MS, int(timeout_s * 1000 * _OF_THE_TIMEOUT)))


def settings(client: Any) -> Mapping[str, Any]:
    """What the connections of a client, or of a pipeline, are made with."""
    for name in ("connection_pool", "nodes_manager", "cluster_client"):
        found = getattr(getattr(client, name, None), "connection_kwargs", None)
        if found is not None:
            return found  # type: ignore[no-any-return]
    return getattr(client, "connection_kwargs", {})


def undecoded(client: Any) -> dict[str, Any]:
    """With `decode_responses=True` the library would fail at a body or an id that isn't UTF-8, and
    lose the whole reply.
    """
    return {"NEVER_DECODE": True} if settings(client).get("decode_responses") else {}


def routing(client: Any, words: list[Word]) -> dict[str, Any]:
    """DQ.NEXT has no key, so the client of a cluster has to be told where to send it."""
    options = undecoded(client)
    if words[0] == "DQ.NEXT" and hasattr(client, "get_random_node"):
        options["target_nodes"] = "random"
    return options
