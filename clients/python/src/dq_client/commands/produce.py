"""Adding jobs."""

from __future__ import annotations

from collections.abc import Sequence
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
    ids_of,
    options,
    sent,
    text,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AddOptions(TypedDict, total=False):
    """The options of DQ.ADD."""

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
    every: timedelta | None
    cron: Cron | str | None
    misfire: Literal["ONE", "ALL"] | None
    jitter: timedelta | None
    runs: int | None
    until: datetime | None
    nx: bool
    replace: bool
    ensure: bool
    after: Sequence[Id] | None
    before: Sequence[Id] | None
    ondead: Literal["HOLD", "RUN"] | None
    hold: bool


class Add:
    """A job that is to be added by another command: by `done`, or as a step of a flow."""

    def __init__(self, body: Any, id: Id = "*", **options: Unpack[AddOptions]):
        self.body = body
        self.id = id
        self.options = options

    def words(self, key: Key) -> list[Word]:
        for name in ("after", "before"):
            if (ids := self.options.get(name)) is not None:
                ids_of(name, ids)
        return [sent(self.id), key.payload(self.body), *options(**self.options)]


def add(
    key: Key, id: Id, body: Any, **options: Unpack[AddOptions]
) -> Command[Added | Taken | Over]:
    """Adds a job, to be delivered when it is due. `"*"` lets the server make the id."""

    def read(reply: Any) -> Added | Taken | Over:
        if reply is not None:
            return Added(text(reply))
        return Over(text(id)) if options.get("ensure") else Taken(text(id))

    return Command(key.command("ADD", *Add(body, id, **options).words(key)), read)
