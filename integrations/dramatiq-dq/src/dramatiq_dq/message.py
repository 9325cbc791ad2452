"""A message in a worker's hands."""

from __future__ import annotations

from dramatiq import Message
from dramatiq.broker import MessageProxy
from dramatiq.errors import DecodeError

from dq_client import Add, Delivery

#: Of a reason, in bytes.
_REASON_AT_MOST = 512


class HeldMessage(MessageProxy):
    """A message with the lease under which this worker has it. Raises DecodeError for what is none.

    Its queue is the one that it came from, whatever it says itself: Dramatiq looks for a consumer
    of that name, and a thread of its worker ends where there is none.
    """

    def __init__(self, delivery: Delivery, queue_name: str):
        message = Message.decode(delivery.payload)
        _check(message, delivery.payload)
        if message.queue_name != queue_name:
            message = message.copy(queue_name=queue_name)
        super().__init__(message)
        self.job_id = delivery.id
        self.lease = delivery.lease or 0
        #: Its retry, which is added when it is acknowledged, in one step.
        self.following: list[Add] = []

    @property
    def key(self) -> tuple[str, int]:
        """Names this delivery; a message itself can't be in a set."""
        return self.job_id, self.lease

    @property
    def has_raised(self) -> bool:
        """Its actor is through, with an exception."""
        return self._exception is not None

    @property
    def reason(self) -> str | None:
        """Why it failed, as far as a reason of DQ reaches."""
        return None if self._exception is None else reason_of(self._exception)


def reason_of(error: BaseException) -> str:
    """An exception in words: also one that has none, or words that aren't UTF-8."""
    try:
        said = str(error)
    except Exception as mute:
        said = f"(its text can't be had: {type(mute).__name__})"
    return short(f"{type(error).__name__}: {said}")


def short(reason: str) -> str:
    """As much of it as the server takes."""
    data = reason.encode("utf-8", "backslashreplace")[:_REASON_AT_MOST]
    return data.decode("utf-8", "ignore")


def _check(message: Message[object], data: bytes) -> None:
    """What Dramatiq takes for granted, and would end a thread for."""
    kinds: list[tuple[str, object, type[object]]] = [
        ("queue_name", message.queue_name, str),
        ("actor_name", message.actor_name, str),
        ("message_id", message.message_id, str),
        ("kwargs", message.kwargs, dict),
        ("options", message.options, dict),
    ]
    for name, value, kind in kinds:
        if not isinstance(value, kind):
            error = TypeError(f"{name} is of type {type(value).__name__}")
            raise DecodeError("Failed to decode message.", data, error)
