"""Looking at a queue, which changes nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from dq_client import replies
from dq_client.commands.base import (
    Command,
    Id,
    Key,
    State,
    waiting,
)
from dq_client.info import Info
from dq_client.replies import Dep, Deps, Group, Job, Outcome, Page
from dq_client.words import (
    fields,
    moment,
    options,
    sent,
    text,
    unix_ms_or_none,
)

if TYPE_CHECKING:
    pass


def get(key: Key, id: Id) -> Command[Job | None]:
    """All that there is to a job; None when it isn't there."""

    def read(reply: Any) -> Job | None:
        return None if reply is None else replies.job(reply, key.codec)

    return Command(key.command("GET", sent(id)), read)


def result(key: Key, id: Id, block: timedelta | None = None) -> Command[Outcome | None]:
    """What came of a job: its result, or why it is dead. With `block` it waits for that, and then
    tells how the job stands. None when there is no such job.
    """

    def read(reply: Any) -> Outcome | None:
        if reply is None:
            return None
        state, what = reply
        return Outcome(text(state), None if what is None else sent(what), key.codec)

    def is_waiting(reply: Any) -> bool:
        return reply is not None and text(reply[0]) not in ("done", "dead")

    return waiting(key.command("RESULT", sent(id)), block, read, is_waiting)


def deps(
    key: Key, id: Id, *, from_: int | None = None, count: int | None = None
) -> Command[Deps | None]:
    """What a job waits for, or has waited for, and what came of it, in the order in which it was
    named. None when there is no such job.
    """

    def read(reply: Any) -> Deps | None:
        if reply is None:
            return None
        place, shown = reply
        items = [
            Dep(text(state), None if what is None else sent(what), key.codec, text(id))
            for id, state, what in shown
        ]
        return Deps(None if place is None else int(place), items)

    return Command(key.command("DEPS", sent(id), from_=from_, count=count), read)


def peek(
    key: Key,
    state: State | None = None,
    *,
    after: Id | None = None,
    from_: datetime | None = None,
    count: int | None = None,
) -> Command[list[Job]]:
    """The next jobs in a state, `ready` without one, without taking them."""
    from_ms = unix_ms_or_none(from_)
    words = key.command("PEEK", state=state, after=after, from_=from_ms, count=count)
    return Command(words, lambda reply: [replies.job(each, key.codec) for each in reply])


def scan(
    key: Key,
    cursor: int = 0,
    *,
    state: State | None = None,
    match: Id | None = None,
    scheduled: bool = False,
    count: int | None = None,
) -> Command[Page[str]]:
    """Some ids of the queue's jobs, and where to go on."""
    words = key.command("SCAN", cursor, state=state, match=match, scheduled=scheduled, count=count)
    return Command(words, lambda reply: Page(int(reply[0]), [text(id) for id in reply[1]]))


def groups(key: Key, cursor: int = 0, *, count: int | None = None) -> Command[Page[Group]]:
    """Some groups of the queue, and where to go on."""

    def read(reply: Any) -> Page[Group]:
        return Page(int(reply[0]), [replies.read(Group, fields(each)) for each in reply[1]])

    return Command(key.command("GROUPS", cursor, count=count), read)


def len_(key: Key, state: State | None = None) -> Command[int]:
    """How many jobs there are, or how many in one state."""
    return Command(key.command("LEN", state=state), int)


def forecast(
    key: Key, step: timedelta, count: int, *, from_: datetime | None = None
) -> Command[list[int]]:
    """How many jobs come due in each of the next steps of time."""
    from_ms = unix_ms_or_none(from_)
    return Command(key.command("FORECAST", from_=from_ms, step=step, count=count), list)


def info(key: Key) -> Command[Info | None]:
    """Settings, counts, totals and lateness; None when there is no such queue."""

    def read(reply: Any) -> Info | None:
        return None if reply is None else replies.read(Info, fields(reply))

    return Command(key.command("INFO"), read)


def next_(
    key: Key,
    expression: str,
    *,
    tz: str | None = None,
    from_: datetime | None = None,
    count: int | None = None,
) -> Command[list[datetime]]:
    """When a cron expression comes next. It has nothing to do with the queue."""
    words = ["DQ.NEXT", expression, *options(tz=tz, from_=unix_ms_or_none(from_), count=count)]
    return Command(words, lambda reply: [moment(each) for each in reply])
