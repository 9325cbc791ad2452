"""Publishing with conditions: messages that are held until the parts of a chord are settled, and
messages that are added together with the end of the job that they come of.

Celery publishes in the thread that asks it to, however deep its canvas is. So what is said here to
a thread goes for all that it publishes meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from kombu_dq.job import Job, Payload

Command = list[str | bytes | int]
#: Most jobs that one job can wait for.
MAX_PARTS = 10_000
#: Most jobs that one DQ.DONE adds.
MAX_ADDS = 1_000


@dataclass(frozen=True)
class Parts:
    """The stand-ins for the header of a chord: held jobs, which its closing job waits for."""

    closing_id: str
    #: Empty while a generator makes the header: then the chord is open, and parts come as they end.
    ids: Sequence[str]
    #: How long the chord waits for them; None without end.
    ttl_ms: int | None

    def commands(self, key: str, job: Job) -> list[Command]:
        """Adds the stand-ins, and the job that waits for them. Sent again, a chord begins anew."""
        ttl: Command = [] if self.ttl_ms is None else ["TTL", self.ttl_ms]
        held: list[Command] = [
            ["DQ.ADD", key, part, "", "HOLD", *ttl, "REPLACE"] for part in self.ids
        ]
        closing: Command = ["DQ.ADD", key, self.closing_id, job.body, *job.options()]
        closing += ["AFTER", len(self.ids), *self.ids] if self.ids else ["HOLD", *ttl]
        closing += ["ONDEAD", "RUN", "REPLACE"]
        return [*held, closing]


@dataclass(frozen=True)
class Addition:
    """A message that is to be added."""

    key: str
    job: Job
    message: Payload
    parts: Parts | None = None

    def commands(self) -> list[Command]:
        if self.parts is not None:
            return self.parts.commands(self.key, self.job)
        return [["DQ.ADD", self.key, self.job.id, self.job.body, *self.job.options(), "NX"]]


@dataclass
class Outbox:
    """What was published while it was open. Nothing of it is in a queue yet."""

    additions: list[Addition] = field(default_factory=list)

    def goes_into_one_done(self, key: str) -> bool:
        """Whether the DQ.DONE of a job of that queue can add all of it."""
        return 0 < len(self.additions) <= MAX_ADDS and all(
            each.key == key and each.parts is None for each in self.additions
        )


class _Said(threading.local):
    outbox: Outbox | None = None
    parts: Parts | None = None


_said = _Said()


def current() -> Outbox | None:
    """Where this thread's messages are to go; None for at once into their queues."""
    return _said.outbox


def parts() -> Parts | None:
    """What this thread's messages are to wait for."""
    return _said.parts


@contextmanager
def collecting() -> Iterator[Outbox]:
    """Keeps what this thread publishes in an outbox."""
    before, _said.outbox = _said.outbox, Outbox()
    try:
        yield _said.outbox
    finally:
        _said.outbox = before


@contextmanager
def held_behind(parts: Parts) -> Iterator[None]:
    """What this thread publishes waits for these parts."""
    before, _said.parts = _said.parts, parts
    try:
        yield
    finally:
        _said.parts = before
