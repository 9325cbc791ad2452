"""Changing what is in a queue, and its settings."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from dq_client.commands.base import (
    Command,
    Id,
    Key,
    State,
    nothing,
)
from dq_client.words import (
    Backoff,
    Rate,
    Sink,
    Word,
    sent,
)

if TYPE_CHECKING:
    pass


def delete(key: Key, *id: Id) -> Command[int]:
    """DQ.DEL: removes jobs, whatever their state. Returns how many there were."""
    return Command(key.command("DEL", *map(sent, id)), int)


def kick(key: Key, *, count: int | None = None, spread: timedelta | None = None) -> Command[int]:
    """Makes dead jobs ready again, oldest first. With `spread` they come due evenly over that time:
    `count` is 10,000 at most then.
    """
    return Command(key.command("KICK", count=count, spread=spread), int)


def kickjob(key: Key, *id: Id) -> Command[int]:
    """Makes dead or delayed jobs ready now."""
    return Command(key.command("KICKJOB", *map(sent, id)), int)


def pause(key: Key, *, group: Id | None = None, for_: timedelta | None = None) -> Command[None]:
    """Stops the queue, or a group, from handing out jobs."""
    return Command(key.command("PAUSE", group=group, for_=for_), nothing)


def resume(key: Key, *id: Id, group: Id | None = None) -> Command[int | None]:
    """Ends the pause of the queue, or of a group. With ids, ends the HOLD of these jobs: returns
    how many were on hold.
    """
    ids: list[Word] = ["ID", *map(sent, id)] if id else []
    words = [*key.command("RESUME", group=group), *ids]
    return Command(words, lambda reply: int(reply) if id else None)


def purge(
    key: Key, state: State, *, older: timedelta | None = None, count: int | None = None
) -> Command[int]:
    """Removes jobs by state and age, a batch at a time: call it until it returns 0."""
    return Command(key.command("PURGE", state=state, older=older, count=count), int)


def alter(
    key: Key,
    *,
    ttr: timedelta | None = None,
    attempts: int | None = None,
    backoff: Backoff | None = None,
    keep: timedelta | None = None,
    late: timedelta | None = None,
    maxjobs: int | None = None,
    deadkeep: timedelta | None = None,
    concurrency: int | None = None,
    rate: Rate | None = None,
    groupconcurrency: int | None = None,
    grouprate: Rate | None = None,
    sink: Sink | str | None = None,
    nosink: bool = False,
) -> Command[None]:
    """Sets the queue's limits, and its defaults for jobs added later."""
    words = key.command(
        "ALTER",
        ttr=ttr,
        attempts=attempts,
        backoff=backoff,
        keep=keep,
        late=late,
        maxjobs=maxjobs,
        deadkeep=deadkeep,
        concurrency=concurrency,
        rate=rate,
        groupconcurrency=groupconcurrency,
        grouprate=grouprate,
        sink=sink,
        nosink=nosink,
    )
    return Command(words, nothing)
