"""The jobs in hand: each has a place, runs its handler, and comes to an outcome."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from dq_client.commands import Key
from dq_client.errors import LeaseLost
from dq_client.replies import Delivery
from dq_client.worker import outcomes
from dq_client.worker.calling import Caller, Threads
from dq_client.worker.outcomes import Settlement
from dq_client.worker.running import AsyncRunningJob, RunningJob

logger = logging.getLogger("dq_client")

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

    @property
    def delivery(self) -> Delivery:
        return self.job.delivery

    def lose(self) -> None:
        """The job isn't this worker's any more: the handler is told to end."""
        self.job.is_lost = True
        if self.task is not None and isinstance(self.job, AsyncRunningJob):
            self.task.cancel()


class Hands:
    def __init__(
        self, work: Work, ttr: timedelta, caller: Caller, settle: Callable[[Settlement], None]
    ):
        self._work = work
        self._ttr = ttr
        self._caller = caller
        self._settle = settle
        self._threads = Threads("dq-handler")
        self._in_hand: dict[str, set[Hand]] = {}
        self._some: dict[str, asyncio.Event] = {}
        self._none = asyncio.Event()
        self._none.set()

    def of(self, key: Key) -> list[Hand]:
        """Those of a queue whose leases are to be kept."""
        return [hand for hand in self._in_hand.get(key.name, ()) if not hand.job.is_lost]

    def all(self) -> list[Hand]:
        return [hand for hands in self._in_hand.values() for hand in hands]

    def some(self, key: Key) -> asyncio.Event:
        """Set while jobs of this queue are in hand."""
        return self._some.setdefault(key.name, asyncio.Event())

    @property
    def none(self) -> asyncio.Event:
        """Set while no job is in hand."""
        return self._none

    def begin(
        self, key: Key, delivery: Delivery, good_until: float, end: Callable[[], None]
    ) -> None:
        """`end` is called when the place is free again."""
        kind = AsyncRunningJob if self._work.is_async else RunningJob
        hand = Hand(key, kind(delivery, key, self._caller, self._ttr), good_until)
        if isinstance(hand.job, RunningJob):
            hand.job.loop = asyncio.get_running_loop()
        self._in_hand.setdefault(key.name, set()).add(hand)
        self.some(key).set()
        self._none.clear()
        hand.task = asyncio.create_task(self._run(hand, end))

    async def _run(self, hand: Hand, end: Callable[[], None]) -> None:
        settlement: Settlement | None = None
        try:
            settlement = await self._outcome(hand)
        finally:
            self._leave(hand)
            end()
        if settlement is not None and not hand.job.is_lost:
            self._settle(settlement)

    def _leave(self, hand: Hand) -> None:
        of_queue = self._in_hand[hand.key.name]
        of_queue.discard(hand)
        if not of_queue:
            self.some(hand.key).clear()
            if not any(self._in_hand.values()):
                self._none.set()

    async def _outcome(self, hand: Hand) -> Settlement | None:
        try:
            value = await self._worked(hand)
        except LeaseLost:
            hand.job.is_lost = True
        except asyncio.CancelledError as error:
            # Either it was told to end, or the handler itself was cancelled by something else.
            if not hand.job.is_lost:
                return outcomes.of_error(hand.key, hand.delivery, error)
        except Exception as error:
            return outcomes.of_error(hand.key, hand.delivery, error)
        else:
            return self._returned(hand, value)
        logger.info("%s: lost, attempt %d", hand.delivery.id, hand.delivery.attempt)
        return None

    def _returned(self, hand: Hand, value: Any) -> Settlement:
        try:
            return outcomes.of_return(hand.key, hand.delivery, value)
        except Exception as error:  # a result that can't be encoded
            return outcomes.of_error(hand.key, hand.delivery, error)

    async def _worked(self, hand: Hand) -> Any:
        if isinstance(hand.job, AsyncRunningJob):
            with _span(hand):
                return await self._worked_async(hand.job)
        return await self._threads.run(lambda: self._worked_in_thread(hand))

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

    def _worked_in_thread(self, hand: Hand) -> Any:
        with _span(hand):
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
