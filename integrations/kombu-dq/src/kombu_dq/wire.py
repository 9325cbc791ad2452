"""What goes over the wire, beyond what redis-py does: maps, and errors in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from kombu.utils.encoding import bytes_to_str
from redis import Redis
from redis.exceptions import (
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TimeoutError,
    TryAgainError,
)

#: The server is away: the same command may get through later.
UNREACHABLE = (ConnectionError, TimeoutError, OSError)
#: The same, as replies of a server that is a replica now, about to become something else, or has no
#: room. redis-py knows these by a class, and takes the word off their text.
_PASSING_KINDS = (
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    TryAgainError,
)
#: And these by their text alone.
_PASSING_WORDS = ("UNBLOCKED", "MISCONF", "NOREPLICAS", "BUSY")
#: What a pipeline puts before the server's words.
_ANNOTATION = re.compile(r"^Command # .* caused error: ", re.DOTALL)


class Delivery(NamedTuple):
    """A job as POP and MPOP hand it out. A job that came with NOACK has no lease."""

    id: bytes
    body: bytes
    lease: int | None
    attempt: int


def fields(reply: Any) -> dict[str, Any]:
    """A map, as RESP3 has it or flat as in RESP2. The empty one for nil."""
    if not reply:
        return {}
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    return {bytes_to_str(name): value for name, value in pairs}


def passes(error: BaseException) -> bool:
    """Whether the server may take the same command later, perhaps on another connection."""
    if isinstance(error, (*UNREACHABLE, *_PASSING_KINDS)):
        return True
    return isinstance(error, ResponseError) and said(error).startswith(_PASSING_WORDS)


def said(error: BaseException) -> str:
    """The server's own words."""
    return _ANNOTATION.sub("", str(error))


def is_too_large(error: BaseException) -> bool:
    """Whether the server would never take it: a body or a result is over its limit."""
    return "dq.max-body-bytes" in str(error)


def in_one_go(client: Redis, commands: Sequence[Sequence[Any]]) -> list[Any]:
    """The replies to a pipeline. An error of one command is its reply; one of the connection is
    raised.
    """
    if not commands:
        return []
    pipeline = client.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command)
    replies: list[Any] = pipeline.execute(raise_on_error=False)
    for reply in replies:
        if isinstance(reply, Exception) and passes(reply):
            raise reply
    return replies


def in_one_transaction(client: Redis, commands: Sequence[Sequence[Any]]) -> list[Any]:
    """The replies of a MULTI. The first error among them is raised."""
    with client.pipeline(transaction=True) as pipeline:
        for command in commands:
            pipeline.execute_command(*command)
        replies: list[Any] = pipeline.execute()
    return replies


@contextmanager
def plain_errors() -> Iterator[None]:
    """Says what an error comes from. One that another connection may not have is an error of this
    one.
    """
    try:
        yield
    except ResponseError as error:
        text = said(error)
        if passes(error):
            raise ConnectionError(text) from error
        if "unknown command" in text.lower():
            raise ResponseError(f"the server has no module DQ: {text}") from error
        if "wrong kind of value" in text:
            hint = "the key of a queue holds something else: give DQ a database of its own (dq://host/1)"
            raise ResponseError(f"{hint}: {text}") from error
        raise
