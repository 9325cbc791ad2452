"""What every command is made of: a queue's key, words, and how the reply is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from operator import not_
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from dq_client import envelope, replies
from dq_client.codec import JSON, Codec
from dq_client.replies import Delivery
from dq_client.words import (
    Word,
    options,
    sent,
)

if TYPE_CHECKING:
    from dq_client.tracing import Tracing

T = TypeVar("T")
Id = str | bytes
#: A lease, or `"*"` for the latest one of the job.
Lease = int | str
State = Literal["delayed", "ready", "reserved", "dead", "done", "held"]


def _answered(_: Any) -> bool:
    return False


def _later(_: Any, reply: Any) -> Any:
    return reply


class Nothing:
    """An argument that isn't given, where None is a value like any other."""


NOTHING = Nothing()


@dataclass(frozen=True)
class Command(Generic[T]):
    words: list[Word]
    parse: Callable[[Any], T]
    #: Where among the words the milliseconds are for which the command waits.
    wait_at: int | None = None
    #: Whether a reply says that the time is over, and that what was waited for hasn't come.
    is_waiting: Callable[[Any], bool] = _answered
    #: The reply to a wait that is sent in pieces, from the reply so far and that of the next piece.
    #: The words behind `wait_at` are sent with the first piece alone.
    joined: Callable[[Any, Any], Any] = _later


@dataclass(frozen=True)
class Key:
    """A queue's key, and how its bodies are written."""

    name: str
    codec: Codec = JSON
    tracing: Tracing | None = field(default=None, compare=False)

    def payload(self, body: Any) -> bytes:
        headers = self.tracing.headers(self.name) if self.tracing else {}
        return envelope.wrapped(self.codec.encode(body), headers)

    def command(self, name: str, /, *words: Word, **given: Any) -> list[Word]:
        return [f"DQ.{name}", sent(self.name), *words, *options(**given)]

    def deliveries(self, reply: Any) -> list[Delivery]:
        return [replies.delivery(each, self.name, self.codec) for each in reply or ()]


def waiting(
    words: list[Word],
    block: timedelta | None,
    parse: Callable[[Any], T],
    is_waiting: Callable[[Any], bool] = not_,
) -> Command[T]:
    """The command with BLOCK as its last option."""
    if block is None:
        return Command(words, parse)
    words = words + options(block=block)
    return Command(words, parse, len(words) - 1, is_waiting)


def nothing(_: Any) -> None:
    """Of OK."""
