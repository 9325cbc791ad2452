"""Messages in a worker's hands, and keeping their leases."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta

from taskiq import TaskiqMessage, TaskiqMiddleware

from dq_client import AsyncQueue, Delivery
from taskiq_dq.connecting import Link, logger

#: Two renewals may get lost.
_PER_TTR = 3
_LOST = "%s on %s was deleted, or another worker has it"
_UNTOLD = "%s on %s has ended, and the server can't be told: it comes again"
#: How soon a renewal that failed in an outage is tried again.
_AGAIN_S = 1.0
#: In one command.
_MOST_AT_ONCE = 10_000


class Held:
    """A message with the lease under which this worker has it."""

    def __init__(
        self, queue: AsyncQueue, delivery: Delivery, task_id: str, data: bytes, leases: Leases
    ):
        self.queue = queue
        self.delivery = delivery
        self.task_id = task_id
        self.data = data
        self.has_begun = False
        self._leases = leases

    async def ack(self) -> None:
        """Ends the message. In an outage it goes on trying for as long as a lease lasts: raised in
        the end is the client's error, and the message comes again. When the worker is told to stop,
        it tries for some seconds, and then cancels taskiq's callback.
        """
        link, ttr = self._leases.link, self._leases.ttr
        try:
            finished = await link.persistently(lambda: self.queue.finish(self.delivery), ttr)
        except Exception as error:
            if not (link.is_stopping and link.passes(error)):
                raise
            logger.warning(_UNTOLD, self.delivery.id, self.queue.name)
            raise asyncio.CancelledError from error
        finally:
            self._leases.drop(self)
        if not finished:
            logger.warning(_LOST, self.delivery.id, self.queue.name)


class Leases:
    """Renews the leases of all messages in hand, with one command for each queue.

    A message is in hand until it is acknowledged, or taskiq's callback for it has ended: one that a
    task with the acknowledgement `manual` forgets comes again when its lease ends.
    """

    def __init__(self, ttr: timedelta, link: Link):
        self.ttr = ttr
        self.link = link
        self._held: dict[Held, None] = {}
        self._renewing: asyncio.Task[None] | None = None

    def add(self, held: Held) -> None:
        self._held[held] = None
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew(), name="dq-leases")

    def begin(self, task_id: str) -> None:
        """In the task that runs the callback for a message."""
        callback = asyncio.current_task()
        begun = (each for each in self._held if each.task_id == task_id and not each.has_begun)
        held = next(begun, None)
        if held is not None and callback is not None:
            held.has_begun = True
            callback.add_done_callback(lambda _: self.drop(held))

    def drop(self, held: Held) -> None:
        self._held.pop(held, None)

    @property
    def count(self) -> int:
        return len(self._held)

    def stop(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()

    async def _renew(self) -> None:
        while self._held:
            interval_s = (self.ttr / _PER_TTR).total_seconds()
            await asyncio.sleep(min(interval_s, _AGAIN_S) if self.link.is_away else interval_s)
            await self._renew_once()

    async def _renew_once(self) -> None:
        for queue, batch in self._batches():
            try:
                pairs = [(each.delivery.id, each.delivery.lease or 0) for each in batch]
                void = set(await queue.renew(self.ttr, timedelta(0), pairs))
            except Exception as error:  # it may be over by the next time
                if self.link.passes(error):
                    await self.link.failed(error)
                else:
                    logger.warning("leases on %s aren't renewed: %s", queue.name, error)
                return
            self.link.answered()
            lost = [each for each in batch if each.delivery.id in void and each in self._held]
            for held in lost:
                self.drop(held)
            if lost:  # one line: a server without its data has lost all of them
                others = f"; {len(lost) - 1} others, too" if lost[1:] else ""
                logger.warning(_LOST + "%s", lost[0].delivery.id, queue.name, others)

    def _batches(self) -> Iterator[tuple[AsyncQueue, list[Held]]]:
        by_queue: defaultdict[AsyncQueue, list[Held]] = defaultdict(list)
        for held in self._held:
            by_queue[held.queue].append(held)
        for queue, all_held in by_queue.items():
            for first in range(0, len(all_held), _MOST_AT_ONCE):
                yield queue, all_held[first : first + _MOST_AT_ONCE]


class Beginning(TaskiqMiddleware):
    """The first of a broker's middlewares: it tells when taskiq's callback for a message begins."""

    def __init__(self, leases: Leases):
        super().__init__()
        self._leases = leases

    def pre_execute(self, message: TaskiqMessage) -> TaskiqMessage:
        self._leases.begin(message.task_id)
        return message
