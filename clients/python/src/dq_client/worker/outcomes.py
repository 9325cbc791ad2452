"""What came of a job: the words of a handler, and the commands that say it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from dq_client import commands
from dq_client.commands import NOTHING, Add, Command, Key
from dq_client.replies import Delivery

#: How an outcome is called, in hooks and logs.
Name = Literal["done", "released", "buried", "unbegun", "lost"]

_REASON_BYTES = 512


# ---- words of a handler --------------------------------------------------------------------------


@dataclass(frozen=True)
class Done:
    """Returned by a handler that has more to say than a result."""

    result: Any = NOTHING
    #: How long the job and its result are kept, in place of the job's own KEEP.
    keep: timedelta | None = None
    #: Jobs that are added in the same step.
    add: Sequence[Add] = ()
    #: What is raised in its place when the server refuses it, as its result is too long; without it
    #: the job is released, with the server's words as the reason.
    refused: Callable[[Exception], Retry | Bury] | None = None


class Retry(Exception):
    """Raised by a handler: another attempt may succeed, after `in_` or the job's backoff."""

    def __init__(
        self,
        reason: str | None = None,
        *,
        in_: timedelta | None = None,
        priority: int | None = None,
    ):
        super().__init__(reason or "")
        self.reason = reason
        self.delay = in_
        self.priority = priority


class Bury(Exception):
    """Raised by a handler: no attempt ever will succeed."""

    def __init__(self, reason: str | None = None):
        super().__init__(reason or "")
        self.reason = reason


# ---- what is told --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settlement:
    """A job, what came of it, and the command that says so; None for one of a batch of FINISH, and
    where there is nothing to say any more.
    """

    job: Delivery
    name: Name
    command: Command[Any] | None = None
    refused: Callable[[Exception], Retry | Bury] | None = None

    @property
    def is_finish(self) -> bool:
        return self.name == "done" and self.command is None


def of_return(key: Key, job: Delivery, value: Any) -> Settlement:
    done = value if isinstance(value, Done) else Done(NOTHING if value is None else value)
    if done == Done():
        return Settlement(job, "done")
    command = commands.done(
        key, job.id, _lease(job), result=done.result, keep=done.keep, add=done.add
    )
    return Settlement(job, "done", command, done.refused)


def of_error(key: Key, job: Delivery, error: BaseException) -> Settlement:
    match error:
        case Bury():
            reason = _short(error.reason)
            return Settlement(job, "buried", commands.bury(key, job.id, _lease(job), reason=reason))
        case Retry():
            command = commands.release(
                key,
                job.id,
                _lease(job),
                delay=error.delay,
                priority=error.priority,
                reason=_short(error.reason),
            )
            return Settlement(job, "released", command)
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    command = commands.release(key, job.id, _lease(job), reason=_short(reason))
    return Settlement(job, "released", command)


def unbegun(key: Key, job: Delivery) -> Settlement:
    return Settlement(job, "unbegun", commands.release(key, job.id, _lease(job), unbegun=True))


def _lease(job: Delivery) -> int:
    assert job.lease is not None, "workers take jobs under a lease"
    return job.lease


def _short(reason: str | None) -> str | None:
    """As much of it as the server takes."""
    if reason is None:
        return None
    data = reason.encode("utf-8", "backslashreplace")[:_REASON_BYTES]
    return data.decode("utf-8", "ignore")
