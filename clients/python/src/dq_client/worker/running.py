"""A job that a handler works on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from dq_client import commands
from dq_client.commands import NOTHING, Key
from dq_client.errors import LeaseLost
from dq_client.replies import Delivery, Dep

if TYPE_CHECKING:
    from dq_client.worker.calling import Caller

T = TypeVar("T")


class _Running:
    def __init__(self, delivery: Delivery, key: Key, caller: Caller, ttr: timedelta):
        self.delivery = delivery
        self._key = key
        self._caller = caller
        self._ttr = ttr
        #: Whether the job isn't this worker's any more: the handler should end.
        self.is_lost = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, attempt={self.attempt})"

    @property
    def queue(self) -> str:
        """The name of the queue that it came from."""
        return self.delivery.key

    @property
    def id(self) -> str:
        return self.delivery.id

    @property
    def body(self) -> Any:
        return self.delivery.body

    @property
    def attempt(self) -> int:
        return self.delivery.attempt

    @property
    def due(self) -> datetime | None:
        """With the id it names a run of a schedule, the same at each attempt."""
        return self.delivery.due

    @property
    def headers(self) -> Mapping[str, str]:
        return self.delivery.headers

    def check(self) -> None:
        """Raises LeaseLost when the job isn't this worker's any more: for between two steps."""
        if self.is_lost:
            raise LeaseLost(self.id)

    async def _checkpoint(self, body: Any, note: str | None) -> None:
        self.check()
        lease = self.delivery.lease
        assert lease is not None
        command = commands.touch(self._key, self.id, lease, ttr=self._ttr, body=body, note=note)
        is_mine = await self._caller.ask(self.queue, command, until=lambda: self.is_lost)
        if not is_mine:
            self.is_lost = True
            raise LeaseLost(self.id)

    async def _deps(self) -> list[Dep]:
        found: list[Dep] = []
        place: int | None = 0
        while place is not None:
            command = commands.deps(self._key, self.id, from_=place)
            page = await self._caller.ask(self.queue, command, until=lambda: self.is_lost)
            if page is None:
                raise LeaseLost(self.id)
            found += page.items
            place = page.next
        return found


class AsyncRunningJob(_Running):
    """What a handler that is a coroutine gets. It is cancelled when the lease is lost."""

    async def checkpoint(self, body: Any = NOTHING, *, note: str | None = None) -> None:
        """The job goes on with this body, at the next attempt too; `note` says how far it is.
        Raises LeaseLost when the job isn't this worker's any more.
        """
        await self._checkpoint(body, note)

    async def deps(self) -> list[Dep]:
        """The jobs that this one has waited for, and what came of them, in the order in which they
        were named.
        """
        return await self._deps()


class RunningJob(_Running):
    """What a handler that is a function gets. It runs in a thread, and can't be cancelled: a long
    one calls `check` between its steps.
    """

    loop: asyncio.AbstractEventLoop

    def checkpoint(self, body: Any = NOTHING, *, note: str | None = None) -> None:
        """The job goes on with this body, at the next attempt too; `note` says how far it is.
        Raises LeaseLost when the job isn't this worker's any more.
        """
        self._wait_for(self._checkpoint(body, note))

    def deps(self) -> list[Dep]:
        """The jobs that this one has waited for, and what came of them, in the order in which they
        were named.
        """
        return self._wait_for(self._deps())

    def _wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()
