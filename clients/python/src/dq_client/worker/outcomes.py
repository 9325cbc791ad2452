"""What came of a job: the words of a handler, and the commands that say it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from dq_client import commands
from dq_client.commands import NOTHING, Add, Command, Key
from dq_client.errors import DQError
from dq_client.replies import Delivery
from dq_client.words import text_of

if TYPE_CHECKING:
    from dq_client.worker.hands import Hand

#: How an outcome is called.
Name = Literal["done", "released", "buried", "unbegun"]

_REASON_BYTES = 512
_TOO_LONG = "body must be at most "


# ---- words of a handler --------------------------------------------------------------------------


@dataclass(frozen=True)
class Done:
    """Returned by a handler that has more to say than a result."""

    result: Any = NOTHING
    #: How long the job and its result are kept, in place of the job's own KEEP.
    keep: timedelta | None = None
    #: Jobs that are added in the same step.
    add: Sequence[Add] = ()
    #: What is raised in its place when the server refuses it. Without it, the job is released with
    #: the server's words as the reason; one whose result, or a job of `add`, is too long is dead.
    refused: Callable[[Exception], Retry | Bury] | None = None


class Retry(Exception):
    """Raised by a handler: another attempt may succeed, after `in_` or the job's backoff.

    The reason is text; of anything else, such as an exception, it is what that says. TypeError when
    `in_` is no timedelta, or the priority no integer.
    """

    def __init__(
        self,
        reason: Any = None,
        *,
        in_: timedelta | None = None,
        priority: int | None = None,
    ):
        if in_ is not None and not isinstance(in_, timedelta):
            raise TypeError(f"in_ is a timedelta, such as timedelta(seconds=30), and not {in_!r}")
        if priority is not None and not isinstance(priority, int):
            raise TypeError(f"a priority is an integer from 0 to 255, and not {priority!r}")
        self.reason = None if reason is None else text_of(reason)
        super().__init__(self.reason or "")
        self.delay = in_
        self.priority = priority


class Bury(Exception):
    """Raised by a handler: no attempt ever will succeed. The reason is as that of Retry."""

    def __init__(self, reason: Any = None):
        self.reason = None if reason is None else text_of(reason)
        super().__init__(self.reason or "")


# ---- what is told --------------------------------------------------------------------------------


@dataclass(slots=True)
class Settlement:
    """A job, what came of it, and the command that says so; None for one of a batch of FINISH."""

    job: Delivery
    name: Name
    command: Command[Any] | None = None
    refused: Callable[[Exception], Retry | Bury] | None = None
    #: Why the attempt failed, for the log.
    error: BaseException | None = None
    reason: str | None = None
    #: Of the result, in bytes.
    size: int | None = None
    #: How often the server has refused what was to be said of this job.
    refusals: int = 0
    #: It has a FINISH of its own.
    is_alone: bool = False
    #: None for a job that was never begun.
    hand: Hand | None = None

    @property
    def is_finish(self) -> bool:
        return self.name == "done" and self.command is None

    @property
    def is_failure(self) -> bool:
        return self.name in ("released", "buried")

    @property
    def is_void(self) -> bool:
        """The job isn't this worker's any more."""
        return self.hand is not None and self.hand.job.is_lost


def of_return(key: Key, job: Delivery, value: Any) -> Settlement:
    """Raises what the codec raises, and TypeError for what can't be sent."""
    if value is None:
        return Settlement(job, "done")
    done = value if isinstance(value, Done) else Done(value)
    if done.result is NOTHING and done.keep is None and not done.add:
        return Settlement(job, "done")
    command = commands.done(
        key, job.id, _lease(job), result=done.result, keep=done.keep, add=done.add
    )
    encoded = command.words[5] if done.result is not NOTHING else None
    size = len(encoded) if isinstance(encoded, bytes) else None
    return Settlement(job, "done", command, done.refused, size=size)


def of_error(key: Key, job: Delivery, error: BaseException) -> Settlement:
    """Never raises: what can't be said is the reason."""
    match error:
        case Bury():
            return buried(key, job, error.reason, error)
        case Retry():
            try:
                return released(
                    key, job, error.reason, error, delay=error.delay, priority=error.priority
                )
            except Exception as wrong:
                return refused(key, job, wrong)
    return released(key, job, text_of(error), error)


def refused(
    key: Key, job: Delivery, error: BaseException, refusals: int = 1, size: int | None = None
) -> Settlement:
    """In place of an outcome that the server refuses, or that can't be sent: a failed attempt that
    says so. A result that is too long, of `size` bytes, will be so at each attempt: the job is dead
    at once.
    """
    is_too_long = isinstance(error, DQError) and error.message.startswith(_TOO_LONG)
    reason = f"outcome refused: {_words_of(error)}"
    if is_too_long and size is not None:
        reason += f", and the result has {size} bytes"
    kind = buried if is_too_long or refusals > 1 else released
    settlement = kind(key, job, reason, error)
    settlement.refusals = refusals
    return settlement


def released(
    key: Key, job: Delivery, reason: str | None, error: BaseException | None, **options: Any
) -> Settlement:
    command = commands.release(key, job.id, _lease(job), reason=_short(reason), **options)
    return Settlement(job, "released", command, error=error, reason=reason)


def buried(key: Key, job: Delivery, reason: str | None, error: BaseException | None) -> Settlement:
    command = commands.bury(key, job.id, _lease(job), reason=_short(reason))
    return Settlement(job, "buried", command, error=error, reason=reason)


def unbegun(key: Key, job: Delivery) -> Settlement:
    return Settlement(job, "unbegun", commands.release(key, job.id, _lease(job), unbegun=True))


def _lease(job: Delivery) -> int:
    assert job.lease is not None, "workers take jobs under a lease"
    return job.lease


# ---- reasons -------------------------------------------------------------------------------------


def _words_of(error: BaseException) -> str:
    """The server's words, or those of an exception."""
    if not isinstance(error, DQError):
        return text_of(error)
    return error.message if error.code == "ERR" else f"{error.code} {error.message}"


def _short(reason: str | None) -> str | None:
    """As much of it as the server takes."""
    if reason is None:
        return None
    data = reason.encode("utf-8", "backslashreplace")[:_REASON_BYTES]
    return data.decode("utf-8", "ignore")
