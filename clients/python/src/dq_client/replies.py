"""What comes back: each reply as a type."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Generic, TypeVar

from dq_client import envelope, words
from dq_client.codec import Codec

T = TypeVar("T")
Item = TypeVar("Item")


# ---- ADD -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Added:
    """The job is in the queue."""

    id: str


@dataclass(frozen=True)
class Taken:
    """With `nx`: the id is taken, and the job that has it stays as it is."""

    id: str

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True)
class Over:
    """With `ensure`: the schedule has no run left."""

    id: str

    def __bool__(self) -> bool:
        return False


# ---- jobs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Delivery:
    """A job that was taken. Its body is decoded when it is asked for, so that one that can't be
    decoded is the handler's failure, and not that of a whole batch.
    """

    key: str
    id: str
    #: None with `noack`.
    lease: int | None
    attempt: int
    #: The bytes as they were added, without an envelope.
    payload: bytes
    headers: Mapping[str, str]
    #: With `withdue`.
    due: datetime | None
    codec: Codec = field(repr=False)

    @cached_property
    def body(self) -> Any:
        return self.codec.decode(self.payload)


@dataclass(frozen=True)
class FinishedAndTaken:
    """The reply of a POP that finished jobs first."""

    #: How many of the leases were valid.
    finished: int
    jobs: list[Delivery]


@dataclass(frozen=True)
class Edges:
    """Of a job that waits for others, or that others wait for."""

    #: How many jobs it still waits for.
    pending: int
    after: int
    before: int
    on_hold: bool


@dataclass(frozen=True)
class Schedule:
    """Of a job that comes back."""

    every: timedelta | None
    cron: str | None
    tz: str | None
    misfire: str
    jitter: timedelta
    runs: int
    until: datetime | None
    occurrence: datetime
    next: datetime | None
    runs_begun: int
    failed_runs: int
    missed: int


@dataclass(frozen=True)
class Job:
    """All that there is to a job: GET and PEEK."""

    id: str
    #: The bytes as they were added, with an envelope if there is one.
    payload: bytes = field(metadata={"wire": "body"})
    state: str
    due: datetime | None
    deadline: datetime | None
    priority: int
    ttr: timedelta
    attempts: int
    attempt: int
    attempts_left: int | None
    lease: int | None
    created: datetime
    since: datetime | None
    backoff_base: timedelta
    backoff_max: timedelta
    ttl: timedelta
    expires: datetime | None
    keep: timedelta
    late: timedelta
    kept_until: datetime | None
    reason: str | None
    timed_out: int
    released: int
    buried: int
    kicked: int
    group: str | None
    note: str | None
    result_payload: bytes | None = field(metadata={"wire": "result"})
    edges: Edges | None = field(metadata={"wire": None})
    schedule: Schedule | None = field(metadata={"wire": None})
    codec: Codec = field(repr=False, metadata={"wire": None})

    @cached_property
    def body(self) -> Any:
        return self.codec.decode(envelope.unwrapped(self.payload)[0])

    @cached_property
    def result(self) -> Any:
        """None too when it has none: `result_payload` tells."""
        return None if self.result_payload is None else self.codec.decode(self.result_payload)


@dataclass(frozen=True)
class Outcome:
    """What came of a job: RESULT."""

    state: str
    payload: bytes | None
    codec: Codec = field(repr=False)

    @property
    def is_done(self) -> bool:
        return self.state == "done"

    @property
    def is_dead(self) -> bool:
        return self.state == "dead"

    @cached_property
    def value(self) -> Any:
        """The result of a done job; None when it was finished without one."""
        return (
            self.codec.decode(self.payload) if self.is_done and self.payload is not None else None
        )

    @property
    def reason(self) -> str | None:
        """Of a dead job."""
        return words.text_or_none(self.payload) if self.is_dead else None


@dataclass(frozen=True)
class Dep(Outcome):
    """A job that another one waits for, or has waited for. One that was removed is `gone`."""

    id: str


@dataclass(frozen=True)
class Deps:
    """Some of them, and where to go on: None when there are no more."""

    next: int | None
    items: list[Dep]


# ---- queues --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    group: str
    ready: int
    reserved: int
    delayed: int
    paused: bool
    paused_until: datetime | None
    blocked_until: datetime | None


@dataclass(frozen=True)
class Page(Generic[Item]):
    """A part of a scan. The scan goes on at the cursor, and is over when that is 0."""

    cursor: int
    items: list[Item]


# ---- reading -------------------------------------------------------------------------------------

# By the annotations of the dataclasses.
_READERS: dict[str, Callable[[Any], Any]] = {
    "str": words.text,
    "int": int,
    "bool": bool,
    "bytes": words.blob,
    "timedelta": words.duration,
    "datetime": words.moment,
}


def wire_names(kind: type) -> dict[str, str]:
    """The names of a reply's fields, as the server has them, by those of the dataclass."""
    in_ms: tuple[str, ...] = getattr(kind, "IN_MS", ())
    named = {}
    for each in dataclasses.fields(kind):
        plain = each.name.replace("_", "-") + ("-ms" if each.name in in_ms else "")
        named[each.name] = each.metadata.get("wire", plain)
    return {name: wire for name, wire in named.items() if wire is not None}


def read(kind: type[T], told: Mapping[str, Any], **more: Any) -> T:
    """A dataclass from a map. What a newer server tells besides is left out."""
    wired = wire_names(kind)
    values = {
        each.name: _value(str(each.type), told.get(wired[each.name]))
        for each in dataclasses.fields(kind)  # type: ignore[arg-type]
        if each.name in wired
    }
    return kind(**values, **more)


def _value(annotation: str, word: Any) -> Any:
    return None if word is None else _READERS[annotation.removesuffix(" | None")](word)


def job(reply: Any, codec: Codec) -> Job:
    told = words.fields(reply)
    return read(
        Job,
        told,
        edges=read(Edges, told) if "pending" in told else None,
        schedule=read(Schedule, told) if "misfire" in told else None,
        codec=codec,
    )


def delivery(reply: list[Any], key: str, codec: Codec) -> Delivery:
    id, body, lease, attempt, *due = reply
    payload, headers = envelope.unwrapped(words.blob(body))
    return Delivery(
        key=key,
        id=words.text(id),
        lease=None if lease is None else int(lease),
        attempt=int(attempt),
        payload=payload,
        headers=headers,
        due=words.moment(due[0]) if due else None,
        codec=codec,
    )
