"""From the start of a worker to its end: its parts, and how they come and go."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dq_client import commands
from dq_client.commands import Add, Command, Key
from dq_client.errors import Full, Invalid
from dq_client.outages import passes
from dq_client.replies import Added, Delivery, Over, Taken
from dq_client.worker import outcomes, renewing, reporting
from dq_client.worker.calling import Caller
from dq_client.worker.failures import Failures, OnError
from dq_client.worker.fetching import Source, sources
from dq_client.worker.hands import Hands, Work
from dq_client.worker.outcomes import Settlement
from dq_client.worker.settling import Settler

logger = logging.getLogger("dq_client")

#: Before and after the grace time, for the last words with the server.
LAST_WORDS_S = 5.0
#: Declared schedules are made sure of again.
DECLARE_S = 60.0
_LOOK_S = 1.0


@dataclass(frozen=True)
class Schedule:
    key: Key
    job: Add

    def command(self, is_first: bool) -> Command[Added | Taken | Over]:
        """By ENSURE at the start, and by NX later: what a newer program declares stays."""
        options = {**self.job.options, "ensure": is_first, "nx": not is_first}
        return commands.add(self.key, self.job.id, self.job.body, **options)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Settings:
    """What a worker is made with."""

    weights: dict[Key, int]
    work: Work
    concurrency: int
    ttr: timedelta
    grace: timedelta
    caller: Caller
    on_error: OnError | None
    schedules: list[Schedule]


class Serving:
    def __init__(self, settings: Settings):
        self._settings = settings
        self._caller = settings.caller
        self._ttr = settings.ttr
        self._stopping = asyncio.Event()
        self._hurrying = asyncio.Event()
        self._sources = sources(settings.weights, settings.concurrency, settings.caller.is_cluster)
        self._failures = Failures(list(settings.weights), self._caller, settings.on_error)
        self._settlers = [self._settler(source) for source in self._sources]
        self._settler_of = {
            name: settler
            for source, settler in zip(self._sources, self._settlers, strict=True)
            for name in source.keys
        }
        self._hands = Hands(settings.work, self._ttr, self._caller, self._settle)
        #: Whether handlers still run at the end.
        self.is_stuck = False

    def _settler(self, source: Source) -> Settler:
        return Settler(source.keys, self._caller, self._told, self._failures.look)

    def _settle(self, settlement: Settlement) -> None:
        self._settler_of[settlement.job.key].settle(settlement)

    def _told(self, settlement: Settlement, is_mine: bool, shown: Any) -> None:
        if settlement.hand is not None:
            self._hands.leave(settlement.hand)
        if settlement.is_failure:
            # A line that can't be written is no reason to keep a job.
            with suppress(Exception):
                self._failures.told(settlement, is_mine, shown)

    # ---- start and end ---------------------------------------------------------------------------

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        self._stopping.set()

    def signalled(self) -> None:
        (self._hurrying if self._stopping.is_set() else self._stopping).set()

    async def run(self) -> None:
        self._caller.check_connections(2 * len(self._sources) + len(self._settings.weights))
        helpers = [settler.run() for settler in self._settlers]
        helpers += [
            renewing.keep(key, self._hands, self._ttr, self._caller)
            for key in self._settings.weights
        ]
        helpers += [
            renewing.watch(self._hands, self._ttr),
            self._declare(),
            self._failures.hint_at_start(),
        ]
        async with Crew() as crew:
            helping = [crew.start(helper) for helper in helpers]
            try:
                fetching = [
                    crew.start(self._fetch(source, settler))
                    for source, settler in zip(self._sources, self._settlers, strict=True)
                ]
                stopping = crew.start(self._stopping.wait())
                await first_of([stopping], [*helping, *fetching])
                for source in self._sources:
                    source.places.has_free.set()
                await asyncio.wait(fetching, timeout=LAST_WORDS_S)
            finally:
                self._stopping.set()
                await self._end()

    async def _end(self) -> None:
        """The jobs in hand may end within the grace time. The others go back, unbegun."""
        with suppress(asyncio.TimeoutError):
            ended = either(self._hands.none, self._hurrying)
            await asyncio.wait_for(ended, self._settings.grace.total_seconds())
        for hand in self._hands.running():
            if not hand.job.is_lost:
                hand.lose()
                self._settle(outcomes.unbegun(hand.key, hand.delivery))
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(until(self._is_idle), LAST_WORDS_S)
        self.is_stuck = bool(self._hands.running())
        if self.is_stuck:
            ids = [hand.delivery.id for hand in self._hands.running()]
            logger.warning("handlers don't end, and are left behind: jobs %s", ids[:5])

    def _is_idle(self) -> bool:
        return all(settler.is_idle for settler in self._settlers)

    # ---- schedules -------------------------------------------------------------------------------

    async def _declare(self) -> None:
        """What is refused at the start ends the worker, but for a queue that is full: its jobs are
        to be taken.
        """
        for each in self._settings.schedules:
            try:
                command = each.command(is_first=True)
                await self._caller.ask(each.key.name, command, self._stopping.is_set)
            except Full as error:
                logger.warning("schedule %r can't be declared: %s", each.job.id, error)
        await self._declare_again()

    async def _declare_again(self) -> None:
        """A server that has lost its data has lost its schedules."""
        loop = asyncio.get_running_loop()
        endless = [each for each in self._settings.schedules if not each.job.options.get("runs")]
        while endless:
            outages = self._caller.outages.count
            at = loop.time() + random.uniform(DECLARE_S / 2, DECLARE_S)
            while loop.time() < at and outages == self._caller.outages.count:
                await asyncio.sleep(min(_LOOK_S, DECLARE_S / 2))
            for each in endless:
                queue, id = each.key.name, each.job.id
                try:
                    added = await self._caller.call(each.command(is_first=False))
                    if isinstance(added, Added):
                        logger.warning("queue %r: schedule %r was gone, and is back", queue, id)
                except Invalid as error:  # its UNTIL is over
                    logger.debug("schedule %r can't be declared: %s", id, error)
                except Exception as error:
                    if not passes(error):
                        logger.warning("schedule %r can't be declared: %s", id, error)

    # ---- taking jobs -----------------------------------------------------------------------------

    async def _fetch(self, source: Source, settler: Settler) -> None:
        block = min(renewing.interval(self._ttr), self._caller.longest_wait)
        queue = next(iter(source.keys))
        while not self._stopping.is_set():
            if not settler.has_room.is_set():
                await either(settler.has_room, self._stopping)
                continue
            await source.places.has_free.wait()
            count = source.places.take()
            if not count:  # woken to stop
                return
            command = source.command(count, block, self._ttr)
            answer = await self._caller.ask_when(queue, command, self._stopping.is_set)
            asked_at = answer[1]
            jobs = [source.told(delivery) for delivery in answer[0] or ()]
            source.places.give_back(count - len(jobs))
            if jobs and self._is_late(asked_at):
                kept, asked_at = await self._still_held(jobs[0][0], [job for _, job in jobs])
                source.places.give_back(len(jobs) - len(kept))
                jobs = [(key, job) for key, job in jobs if job.id in kept]
            for key, job in jobs:
                if self._stopping.is_set():
                    settler.settle(outcomes.unbegun(key, job))
                    continue
                good_until = asked_at + self._ttr.total_seconds()
                self._hands.begin(key, job, good_until, source.places.give_back)

    def _is_late(self, asked_at: float) -> bool:
        """Whether a reply was so long under way that its leases may be about to end. The client
        library has sent the call several times, in an outage, or a handler has blocked the loop.
        """
        return asyncio.get_running_loop().time() - asked_at > self._ttr.total_seconds() / 2

    async def _still_held(self, key: Key, jobs: list[Delivery]) -> tuple[set[str], float]:
        """The ids of jobs of one queue whose leases are still good, and since when."""
        held = {job.id: job for job in jobs}
        while True:
            command = commands.renew(
                key, self._ttr, timedelta(0), renewing.pairs(list(held.values()))
            )
            answer = await self._caller.ask_when(key.name, command, self._stopping.is_set)
            void, asked_at = answer
            for id in void or ():
                reporting.lost(held.pop(id), "it came too late")
            if void is None or not held or not self._is_late(asked_at):
                return set(held), asked_at


class Crew:
    """Tasks that end with the block."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Crew:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        self._tasks.append(asyncio.create_task(coroutine))
        return self._tasks[-1]


async def first_of(wanted: list[asyncio.Task[Any]], others: list[asyncio.Task[Any]]) -> None:
    """Waits for one of the wanted tasks. An error of any other is raised."""
    pending = {*wanted, *others}
    while not any(task.done() for task in wanted):
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


async def either(one: asyncio.Event, other: asyncio.Event) -> None:
    """Waits until one of them is set."""
    if one.is_set() or other.is_set():
        return
    waiting = [asyncio.ensure_future(event.wait()) for event in (one, other)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)
