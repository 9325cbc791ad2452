"""Adding jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from dq_client.commands.base import (
    Command,
    Id,
    Key,
)
from dq_client.replies import Added, Over, Taken
from dq_client.words import (
    Backoff,
    Cron,
    Word,
    list_of,
    options,
    sent,
    text,
    text_or_none,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack


class JobOptions(TypedDict, total=False):
    """The options of DQ.ADD but those of schedules: DQ.MADD has them for all of its jobs."""

    delay: timedelta | None
    at: datetime | None
    ttr: timedelta | None
    priority: int | None
    attempts: int | None
    backoff: Backoff | None
    ttl: timedelta | None
    keep: timedelta | None
    late: timedelta | None
    group: Id | None
    nx: bool
    replace: bool
    after: Sequence[Id] | None
    before: Sequence[Id] | None
    ondead: Literal["HOLD", "RUN"] | None
    hold: bool


class AddOptions(JobOptions, total=False):
    """The options of DQ.ADD."""

    every: timedelta | None
    cron: Cron | str | None
    misfire: Literal["ONE", "ALL"] | None
    jitter: timedelta | None
    runs: int | None
    until: datetime | None
    ensure: bool


class Add:
    """A job that is to be added by another command: by `done`, or as a step of a flow."""

    def __init__(self, body: Any, id: Id = "*", **options: Unpack[AddOptions]):
        self.body = body
        self.id = id
        self.options = options

    def words(self, key: Key) -> list[Word]:
        return [sent(self.id), key.payload(self.body), *_options(**self.options)]


def _options(**given: Any) -> list[Word]:
    """Those of a job, some of which are lists of ids."""
    for name in ("after", "before"):
        if (ids := given.get(name)) is not None:
            list_of("ids", name, ids)
    return options(**given)


def add(
    key: Key, id: Id, body: Any, **options: Unpack[AddOptions]
) -> Command[Added | Taken | Over]:
    """Adds a job, to be delivered when it is due. `"*"` lets the server make the id."""

    def read(reply: Any) -> Added | Taken | Over:
        if reply is not None:
            return Added(text(reply))
        return Over(text(id)) if options.get("ensure") else Taken(text(id))

    return Command(key.command("ADD", *Add(body, id, **options).words(key)), read)


def add_many(
    key: Key,
    jobs: Iterable[Any],
    *,
    delays: Sequence[timedelta] | None = None,
    ats: Sequence[datetime] | None = None,
    spread: timedelta | None = None,
    **options: Unpack[JobOptions],
) -> Command[list[str | None]]:
    """DQ.MADD: adds many jobs, 10,000 at most, in one step, all of them or none. A job is its body,
    or a tuple of id and body; without an id, or with `"*"`, the server makes one. Returns the ids,
    None where `nx` found one taken.

    `delays` and `ats` have a delay or a time for each job. With `spread` the jobs come due evenly
    over that time, from `delay`, `at` or now. The other options are those of all jobs.

    An error of one of the jobs says which, counted from 1 (`job 3: id is taken in this queue`), and
    has its id.
    """
    pairs = [_id_and_body(job) for job in list_of("bodies or (id, body) tuples", "jobs", jobs)]
    words: list[Word] = [word for id, body in pairs for word in (sent(id), key.payload(body))]
    words += _options(delays=delays, ats=ats, spread=spread, **options)
    return Command(
        key.command("MADD", len(pairs), *words),
        lambda reply: [text_or_none(id) for id in reply],
    )


def _id_and_body(job: Any) -> tuple[Id, Any]:
    """A tuple is never a body, so that what a job is doesn't depend on what is in it."""
    if not isinstance(job, tuple):
        return "*", job
    if len(job) != 2:
        raise TypeError(f"a tuple in jobs is an id and a body, and not {job!r}")
    return job
