"""A worker: what it serves, and how it is started and stopped."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dq_client.commands import Add, Id
from dq_client.queue import AsyncQueue, Queue
from dq_client.topic import AsyncTopic, Topic
from dq_client.worker import loops
from dq_client.worker.calling import Caller
from dq_client.worker.failures import OnError
from dq_client.worker.fetching import sources
from dq_client.worker.hands import Hook, Work
from dq_client.worker.serving import LAST_WORDS_S, Schedule, Serving, Settings
from dq_client.worker.signals import Signals

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dq_client.commands import AddOptions

Served = Queue | AsyncQueue | Topic | AsyncTopic


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
    `on_error`     `on_error(job, error)`, a function or a coroutine, is called after each failed
                   attempt, when the server knows of it. What it raises goes to the log
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
        on_error: OnError | None = None,
    ):
        self._weights = weights_of(queues)
        if not isinstance(concurrency, int) or concurrency < 1:
            raise ValueError(
                f"concurrency is how many jobs are worked on at the same time: an integer from 1 "
                f"on, and not {concurrency!r}"
            )
        for name, value in (("ttr", ttr), ("grace", grace)):
            if not isinstance(value, timedelta):
                raise TypeError(f"{name} is a timedelta, such as timedelta(seconds=30)")
        if ttr <= timedelta(0) or grace < timedelta(0):
            raise ValueError("ttr is longer than 0, and grace isn't negative")
        caller = Caller(list(self._weights))
        self._settings = Settings(
            weights={queue.key: weight for queue, weight in self._weights.items()},
            work=Work(handler, tuple(before), tuple(after)),
            concurrency=concurrency,
            ttr=ttr,
            grace=grace,
            caller=caller,
            on_error=on_error,
            schedules=[],
        )
        # So that what is wrong is told now.
        sources(self._settings.weights, concurrency, caller.is_cluster)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serving: Serving | None = None
        self._is_told_to_stop = False

    def schedule(
        self,
        id: Id,
        body: Any,
        *,
        queue: Queue | AsyncQueue | None = None,
        **options: Unpack[AddOptions],
    ) -> None:
        """Declares a schedule, by EVERY or CRON, of the first queue or of this one. The worker
        makes sure that the job is there: with this schedule at its start, with any after each
        outage and every minute. One with `runs` is declared at the start alone, as it would begin
        to count again.
        """
        options["ensure"] = True
        of = queue or next(iter(self._weights))
        self._settings.schedules.append(Schedule(of.key, Add(body, id, **options)))

    # ---- start and end ---------------------------------------------------------------------------

    def run(self) -> None:
        """Works until SIGTERM or SIGINT, in a loop of its own. The second signal ends the grace
        time. After the grace time the process can end, even if handlers don't: `run` returns, and
        what keeps the process alive after the program's own end is cut off.
        """
        numbers = (signal.SIGTERM, signal.SIGINT)
        with self._signals(numbers) as signals:
            loops.run(self._serve(signals), lambda: signals.is_stuck)

    @property
    def is_stopping(self) -> bool:
        return self._is_told_to_stop or (self._serving is not None and self._serving.is_stopping)

    def stop(self) -> None:
        """Takes no more jobs, and ends when those in hand are done, or the grace time is over. May
        be called from any thread; before `serve`, that ends at once.
        """
        self._call(lambda: self._serving.stop() if self._serving else None)

    def _call(self, what: Callable[[], None]) -> None:
        loop = self._loop
        if loop is None:
            self._is_told_to_stop = True
            return
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(what)

    async def serve(self, *, signals: Sequence[signal.Signals] = ()) -> None:
        """Works until it is told to stop, in a loop that runs already. An error that waiting
        doesn't mend, such as a wrong password, ends it. Handlers that don't end in the grace time
        go on in this loop.
        """
        with self._signals(signals) as caught:
            await self._serve(caught)

    def _signals(self, numbers: Sequence[signal.Signals]) -> Signals:
        words_s = 2 * LAST_WORDS_S
        patience_s = self._settings.grace.total_seconds() + words_s
        return Signals(numbers, self._signalled, patience_s, words_s)

    def _signalled(self) -> None:
        """The second signal ends the grace time."""
        self._call(lambda: self._serving.signalled() if self._serving else None)

    async def _serve(self, signals: Signals) -> None:
        self._serving = serving = Serving(self._settings)
        self._loop = asyncio.get_running_loop()
        try:
            if self._is_told_to_stop:
                self._is_told_to_stop = False
                return
            await serving.run()
        finally:
            self._loop = None
            if serving.is_stuck:
                signals.is_stuck = True


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
