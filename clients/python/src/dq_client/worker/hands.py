"""The jobs in hand: each has a place, runs its handler, and comes to an outcome. Until the server
has that, its lease is kept.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from dq_client.commands import Key
from dq_client.errors import LeaseLost
from dq_client.replies import Delivery
from dq_client.worker import outcomes, reporting
from dq_client.worker.calling import Caller
from dq_client.worker.outcomes import Settlement
from dq_client.worker.running import AsyncRunningJob, RunningJob
from dq_client.worker.threads import Threads

Hook = Callable[..., Any]


@dataclass(frozen=True)
class Work:
    """What is done with each job."""

    handler: Callable[[Any], Any]
    before: Sequence[Hook] = ()
    after: Sequence[Hook] = ()

    @property
    def is_async(self) -> bool:
        """A coroutine, or an object that is called as one."""
        return inspect.iscoroutinefunction(self.handler) or inspect.iscoroutinefunction(
            type(self.handler).__call__
        )


@dataclass(eq=False)
class Hand:
    """A job in hand."""

    key: Key
    job: AsyncRunningJob | RunningJob
    #: Until when the lease is good, by this machine's clock.
    good_until: float
    task: asyncio.Task[None] | None = field(default=None, repr=False)
    is_begun: bool = False
    #: The handler has ended; the server may not have its outcome yet.
    is_ended: bool = False

    @property
    def delivery(self) -> Delivery:
        return self.job.delivery

    def lose(self) -> None:
        """The job isn't this worker's any more: the handler is told to end."""
        self.job.is_lost = True
        # A task that hasn't begun would never leave its place.
        is_running = self.is_begun and not self.is_ended
        if self.task is not None and is_running and isinstance(self.job, AsyncRunningJob):
            self.task.cancel()


@dataclass(slots=True)
class Ended:
    """How a handler has ended. What it raised is no exception here: asyncio lets some of them, such
    as SystemExit, end the whole program.
    """

    value: Any = None
    error: BaseException | None = None


class Hands:
    def __init__(
        self, work: Work, ttr: timedelta, caller: Caller, settle: Callable[[Settlement], None]
    ):
        self._work = work
        self._ttr = ttr
        self._caller = caller
        self._settle = settle
        self._threads = Threads("dq-handler")
        self._pid = os.getpid()
        self._in_hand: dict[str, dict[str, Hand]] = {}
        self._some: dict[str, asyncio.Event] = {}
        self._running = 0
        self._none = asyncio.Event()
        self._none.set()

    def of(self, key: Key) -> list[Hand]:
        """Those of a queue whose leases are to be kept."""
        in_hand = self._in_hand.get(key.name, {})
        return [hand for hand in in_hand.values() if not hand.job.is_lost]

    def running(self) -> list[Hand]:
        """Those whose handlers run."""
        return [hand for hand in self.all() if not hand.is_ended]

    def all(self) -> list[Hand]:
        """With those whose outcomes the server doesn't have yet."""
        return [hand for hands in self._in_hand.values() for hand in hands.values()]

    def some(self, key: Key) -> asyncio.Event:
        """Set while jobs of this queue are in hand."""
        return self._some.setdefault(key.name, asyncio.Event())

    @property
    def none(self) -> asyncio.Event:
        """Set while no handler runs."""
        return self._none

    def begin(
        self, key: Key, delivery: Delivery, good_until: float, end: Callable[[], None]
    ) -> None:
        """`end` is called when the place is free again."""
        kind = AsyncRunningJob if self._work.is_async else RunningJob
        hand = Hand(key, kind(delivery, key, self._caller, self._ttr), good_until)
        if isinstance(hand.job, RunningJob):
            hand.job.loop = asyncio.get_running_loop()
        of_queue = self._in_hand.setdefault(key.name, {})
        if (earlier := of_queue.get(delivery.id)) is not None:
            earlier.lose()  # its lease is void, or the job would not have come again
        of_queue[delivery.id] = hand
        self.some(key).set()
        self._running += 1
        self._none.clear()
        hand.task = asyncio.create_task(self._run(hand, end))

    def leave(self, hand: Hand) -> None:
        """The server has its outcome, or the job is another worker's."""
        of_queue = self._in_hand[hand.key.name]
        if of_queue.get(hand.delivery.id) is hand:
            del of_queue[hand.delivery.id]
        if not of_queue:
            self.some(hand.key).clear()

    async def _run(self, hand: Hand, end: Callable[[], None]) -> None:
        hand.is_begun = True
        try:
            settlement = self._outcome(hand, await self._worked(hand))
        finally:
            hand.is_ended = True
            self._running -= 1
            if not self._running:
                self._none.set()
            end()
        if settlement is None:
            self.leave(hand)
        else:
            settlement.hand = hand
            self._settle(settlement)

    def _outcome(self, hand: Hand, ended: Ended) -> Settlement | None:
        """None when the job isn't this worker's any more."""
        if isinstance(ended.error, LeaseLost):
            hand.job.is_lost = True
        if hand.job.is_lost:
            reporting.lost(hand.delivery, ended.error or "another worker may have it")
            return None
        if ended.error is not None:
            return outcomes.of_error(hand.key, hand.delivery, ended.error)
        try:
            return outcomes.of_return(hand.key, hand.delivery, ended.value)
        except BaseException as error:  # a result that can't be encoded
            return outcomes.refused(hand.key, hand.delivery, error)

    async def _worked(self, hand: Hand) -> Ended:
        if hand.job.is_lost:
            return Ended(error=LeaseLost(hand.delivery.id))
        try:
            if not isinstance(hand.job, AsyncRunningJob):
                return await self._threads.run(lambda: self._worked_in_thread(hand))
            with _span(hand):
                return Ended(await self._worked_async(hand.job))
        except BaseException as error:
            return Ended(error=error)
        finally:
            self._leave_a_fork()

    async def _worked_async(self, job: AsyncRunningJob) -> Any:
        for hook in self._work.before:
            await _settled(hook(job))
        try:
            value = await self._work.handler(job)
        except BaseException as error:
            for hook in self._work.after:
                await _settled(hook(job, error))
            raise
        for hook in self._work.after:
            await _settled(hook(job, None))
        return value

    def _worked_in_thread(self, hand: Hand) -> Ended:
        try:
            with _span(hand):
                return Ended(self._hooked(hand))
        except BaseException as error:
            return Ended(error=error)
        finally:
            self._leave_a_fork()

    def _leave_a_fork(self) -> None:
        """A process that a handler has forked is no second worker on the same connections."""
        if os.getpid() != self._pid:
            os._exit(0)

    def _hooked(self, hand: Hand) -> Any:
        for hook in self._work.before:
            hook(hand.job)
        try:
            value = self._work.handler(hand.job)
        except BaseException as error:
            for hook in self._work.after:
                hook(hand.job, error)
            raise
        for hook in self._work.after:
            hook(hand.job, None)
        return value


def _span(hand: Hand) -> Any:
    tracing = hand.key.tracing
    return tracing.processing(hand.delivery) if tracing is not None else nullcontext()


async def _settled(reply: Any) -> None:
    """A hook may be a function or a coroutine."""
    if isinstance(reply, Awaitable):
        await reply
