"""A worker: its parts, its start and its end."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dq_client import commands
from dq_client.commands import Add, Id
from dq_client.queue import AsyncQueue, Queue
from dq_client.topic import AsyncTopic, Topic
from dq_client.worker import fetching, outcomes, renewing
from dq_client.worker.calling import Caller
from dq_client.worker.hands import Hands, Hook, Work
from dq_client.worker.settling import Settler

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dq_client.commands import AddOptions

logger = logging.getLogger("dq_client")

Served = Queue | AsyncQueue | Topic | AsyncTopic
#: After the grace time, for the last words to the server.
_LAST_WORDS_S = 5.0


class Worker:
    """Takes the jobs of queues and runs a handler for each.

    >>> def send(job: RunningJob) -> None: ...
    >>> Worker(Queue(redis.Redis(), "mail"), send, concurrency=10).run()

    `queues` is a queue, a topic, several of them, or several with their weights: `{urgent: 3,
    bulk: 1}`. They share one client. The handler is a function, and runs in a thread, or a
    coroutine. What it returns is the job's result; None is none. What it raises gives the job back
    for another attempt; see `Retry`, `Bury` and `Done`.

    `concurrency`  how many jobs are worked on at the same time
    `ttr`          how soon the job of a worker that died is delivered again; a worker that lives
                   keeps its leases for as long as it needs
    `grace`        how long the jobs in hand may go on when the worker is told to stop
    `before`, `after`  hooks, called where the handler runs: `before(job)`, `after(job, error)`
    """

    def __init__(
        self,
        queues: Served | Iterable[Served] | Mapping[Any, int],
        handler: Callable[[Any], Any],
        *,
        concurrency: int = 10,
        ttr: timedelta = timedelta(seconds=60),
        grace: timedelta = timedelta(seconds=30),
        before: Sequence[Hook] = (),
        after: Sequence[Hook] = (),
    ):
        self._weights = weights_of(queues)
        self._caller = Caller(list(self._weights))
        self._keys = {queue.key.name: queue.key for queue in self._weights}
        self._concurrency = concurrency
        self._work = Work(handler, tuple(before), tuple(after))
        self._ttr = ttr
        self._grace = grace
        self._sources()  # so that what is wrong is told now
        self._schedules: list[tuple[Queue | AsyncQueue, Add]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._hurrying = asyncio.Event()

    def schedule(
        self,
        id: Id,
        body: Any,
        *,
        queue: Queue | AsyncQueue | None = None,
        **options: Unpack[AddOptions],
    ) -> None:
        """Declares a schedule, by EVERY or CRON, of the first queue or of this one. At each start
        the worker makes sure that the job is there, with this schedule.
        """
        options["ensure"] = True
        self._schedules.append((queue or next(iter(self._weights)), Add(body, id, **options)))

    def _sources(self) -> list[fetching.Source]:
        weights = {queue.key: weight for queue, weight in self._weights.items()}
        return fetching.sources(weights, self._concurrency, self._caller.is_cluster)

    # ---- start and end ---------------------------------------------------------------------------

    def run(self) -> None:
        """Works until SIGTERM or SIGINT."""
        asyncio.run(self.serve(signals=(signal.SIGTERM, signal.SIGINT)))

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Takes no more jobs, and ends when those in hand are done, or the grace time is over. May
        be called from any thread.
        """
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def serve(self, *, signals: Sequence[signal.Signals] = ()) -> None:
        """Works until it is told to stop, in a loop that runs already. An error that waiting
        doesn't mend, such as a wrong password, ends it.
        """
        self._loop = asyncio.get_running_loop()
        self._stopping, self._hurrying = asyncio.Event(), asyncio.Event()
        for number in signals:
            self._loop.add_signal_handler(number, self._signalled)
        settler = Settler(self._keys, self._caller)
        hands = Hands(self._work, self._ttr, self._caller, settler.settle)
        helpers = [settler.run(), renewing.watch(hands, self._ttr)]
        helpers += [
            renewing.keep(key, hands, self._ttr, self._caller) for key in self._keys.values()
        ]
        async with Crew() as crew:
            helping = [crew.start(helper) for helper in helpers]
            try:
                await self._ensure_schedules()
                sources = self._sources()
                fetching = [crew.start(self._fetch(each, hands, settler)) for each in sources]
                stopping = crew.start(self._stopping.wait())
                await first_of([stopping], [*helping, *fetching])
                for source in sources:
                    source.places.has_free.set()
                await asyncio.wait(fetching, timeout=_LAST_WORDS_S)
            finally:
                self._stopping.set()
                await self._end(hands, settler)
                for number in signals:
                    self._loop.remove_signal_handler(number)

    def _signalled(self) -> None:
        """The second signal ends the grace time."""
        (self._hurrying if self._stopping.is_set() else self._stopping).set()

    async def _ensure_schedules(self) -> None:
        for queue, job in self._schedules:
            command = commands.add(queue.key, job.id, job.body, **job.options)
            await self._caller.ask(command, self._stopping.is_set)

    async def _fetch(self, source: fetching.Source, hands: Hands, settler: Settler) -> None:
        loop = asyncio.get_running_loop()
        block = renewing.interval(self._ttr)
        while not self._stopping.is_set():
            await source.places.has_free.wait()
            count = source.places.take()
            if not count:  # woken to stop
                return
            asked_at = loop.time()
            command = source.command(count, block, self._ttr)
            taken = await self._caller.ask(command, self._stopping.is_set)
            source.places.give_back(count - len(taken or ()))
            for delivery in taken or ():
                key, job = source.told(delivery)
                if self._stopping.is_set():
                    settler.settle(outcomes.unbegun(key, job))
                    continue
                good_until = asked_at + self._ttr.total_seconds()
                hands.begin(key, job, good_until, source.places.give_back)

    async def _end(self, hands: Hands, settler: Settler) -> None:
        """The jobs in hand may end within the grace time. The others go back, unbegun."""
        with suppress(asyncio.TimeoutError):
            ended = either(hands.none, self._hurrying)
            await asyncio.wait_for(ended, self._grace.total_seconds())
        for hand in hands.all():
            if not hand.job.is_lost:
                hand.lose()
                settler.settle(outcomes.unbegun(hand.key, hand.delivery))
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(until(lambda: settler.is_idle), _LAST_WORDS_S)


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


def weights_of(queues: Any) -> dict[Queue | AsyncQueue, int]:
    """Each queue with its weight. A topic is all its queues."""
    if isinstance(queues, (Queue, AsyncQueue, Topic, AsyncTopic)):
        queues = [queues]
    pairs = queues.items() if isinstance(queues, Mapping) else ((each, 1) for each in queues)
    found: dict[Queue | AsyncQueue, int] = {}
    for served, weight in pairs:
        if weight < 1:
            raise ValueError("a weight is 1 at least")
        for queue in served.all_queues if isinstance(served, (Topic, AsyncTopic)) else [served]:
            found[queue] = weight
    if not found:
        raise ValueError("a worker needs a queue")
    return found
