"""The broker: a queue of taskiq is a queue of DQ."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from copy import copy
from datetime import timedelta
from typing import Any

from taskiq import AckableMessage, AsyncBroker, AsyncTaskiqDecoratedTask
from taskiq.message import BrokerMessage

from dq_client import RAW, AsyncQueue, Delivery
from dq_client.commands import AddOptions
from dq_client.outages import pauses
from dq_client.seam import AsyncClient
from taskiq_dq.connecting import LAST_WORDS_S, Link, checked, connected, logger
from taskiq_dq.firing import PREFIX, message_of_run
from taskiq_dq.guarding import guarded
from taskiq_dq.held import Beginning, Held, Leases
from taskiq_dq.results import DQResultBackend

#: A worker that is told to stop waits for its fetch, so that no message is lost on the way.
_BLOCK = timedelta(seconds=1)
#: As long as the server knows, less what a clock may reach: 4,000 years.
_LONGEST_S = 2**47 // 1000
#: A job whose id isn't its task's: `again:0a1b2c3d:` and the task's id.
_AGAIN, _TOKEN_BYTES = "again:", 4
_BEFORE_TASK_ID = len(_AGAIN) + 2 * _TOKEN_BYTES + 1
_RESERVED = (PREFIX, _AGAIN)


class DQBroker(AsyncBroker):
    """A broker for DQ.

    >>> DQBroker("redis://127.0.0.1:6379/0")
    >>> DQBroker(client=redis.asyncio.RedisCluster(host="127.0.0.1"))

    Parameters:
      url: of the server, as redis-py has it.
      client: an asyncio client of redis-py or valkey-py, in place of url and parameters.
      queue_name: the key of the queue to which tasks without a label `queue_name` go, and from
        which a worker takes them.
      ttr: so long after a worker's process died, its tasks go to another one.
      prefetch: how many messages one fetch takes, 1 or more. What is fetched and hasn't begun keeps
        other workers from it.
      parameters: of redis.asyncio.Redis.

    Raises TypeError for a pipeline or a blocking client, which would add nothing, and for a ttr
    that is a number; ValueError for a ttr or prefetch of 0 or less.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        client: AsyncClient | None = None,
        queue_name: str = "taskiq",
        ttr: timedelta = timedelta(seconds=60),
        prefetch: int = 1,
        **parameters: Any,
    ):
        super().__init__()
        self.client: Any = client or connected(url, parameters)
        self._is_own_client = client is None
        self.queue_name = queue_name
        if prefetch < 1:
            raise ValueError("prefetch must be 1 or more")
        self._ttr = checked("ttr", ttr)
        self._prefetch = prefetch
        self._link = Link(self.client)
        self._leases = Leases(ttr, self._link)
        self.add_middlewares(Beginning(self._leases))
        self._queues: dict[str, AsyncQueue] = {}
        self._tasks: dict[str, AsyncTaskiqDecoratedTask[Any, Any]] = {}
        self.queue()  # raises for a client that it can't use

    # ---- what every broker can do ----------------------------------------------------------------

    async def shutdown(self) -> None:
        await super().shutdown()
        self._leases.stop()
        if self._is_own_client:
            await self.client.aclose()

    async def kick(self, message: BrokerMessage) -> None:
        """Adds a message to its queue. Its task id is the job's; a message that waits there
        already, with this id and these bytes, isn't added once more.
        """
        await self._link.at_the_primary(lambda: self._kick(message))

    async def _kick(self, message: BrokerMessage) -> None:
        id, body, labels = message.task_id, message.message, message.labels
        queue = self.queue(labels.get("queue_name"))
        options = self.options(labels) | AddOptions(delay=_delay(labels), nx=True)
        if not id.startswith(_RESERVED):
            if await queue.add(id, body, **options):
                return
            job = await queue.get(id)
            if job is not None and job.state in ("delayed", "ready") and job.body == body:
                return
        # The task sends itself again, as middlewares do that retry.
        await queue.add(f"{_AGAIN}{secrets.token_hex(_TOKEN_BYTES)}:{id}", body, **options)

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        fetched: deque[Held] = deque()
        fetching: asyncio.Task[list[Held]] | None = None
        self._link.begin()
        try:
            while True:
                if not fetched:
                    fetching = asyncio.create_task(self._fetch())
                    fetched.extend(await asyncio.shield(fetching))
                    fetching = None
                    continue
                held = fetched.popleft()
                yield AckableMessage(data=held.data, ack=held.ack)
        finally:
            self._stop_trying()
            if fetching is not None:
                await asyncio.wait([fetching], timeout=_BLOCK.total_seconds() + LAST_WORDS_S)
                if not fetching.done():  # what is on the way comes again when its lease ends
                    fetching.cancel()
                elif not fetching.cancelled() and fetching.exception() is None:
                    fetched.extend(fetching.result())
            for held in fetched:
                self._leases.drop(held)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._give_back(*fetched), LAST_WORDS_S)

    def find_task(self, task_name: str) -> AsyncTaskiqDecoratedTask[Any, Any] | None:
        """A task whose function may raise anything."""
        found = super().find_task(task_name) if isinstance(task_name, str) else None
        if found is None:
            return None
        known = self._tasks.get(task_name)
        if known is None or known.labels is not found.labels:
            known = self._tasks[task_name] = copy(found)
            known.original_func = guarded(found.original_func)
        return known

    # ---- what DQ can do besides ------------------------------------------------------------------

    def queue(self, name: str | None = None) -> AsyncQueue:
        """The queue itself, for all other commands: limits, pauses, dead jobs, figures."""
        name = name or self.queue_name
        if name not in self._queues:
            self._queues[name] = AsyncQueue(self.client, name, codec=RAW)
        return self._queues[name]

    async def cancel(self, task_id: str, *, queue_name: str | None = None) -> bool:
        """Removes a task, also while it waits for its delay. One that runs goes on. False when
        it is through, or waits for a retry.
        """
        return await self.queue(queue_name).delete(task_id) == 1

    def options(self, labels: Mapping[str, Any]) -> AddOptions:
        """What the labels of a task say to the server."""
        priority = labels.get("priority")
        return {
            "priority": None if priority is None else int(priority),
            "group": labels.get("dq_group"),
        }

    # ---- its parts -------------------------------------------------------------------------------

    async def _fetch(self) -> list[Held]:
        """The next messages; none when none has come for a while."""
        queue, waits = self.queue(), pauses()
        while True:
            try:
                deliveries = await queue.pop(
                    count=self._prefetch, block=_BLOCK, ttr=self._ttr, withdue=True
                )
            except Exception as error:
                if not self._link.passes(error):
                    raise
                await self._link.failed(error)
                if self._link.is_stopping:
                    return []
                await self._link.pause(next(waits))
            else:
                self._link.answered()
                return [held for each in deliveries if (held := await self._held(queue, each))]

    def _stop_trying(self) -> None:
        """A worker that is told to stop doesn't wait for its server."""
        self._link.stop()
        if isinstance(self.result_backend, DQResultBackend):
            self.result_backend.link.stop()

    async def _held(self, queue: AsyncQueue, delivery: Delivery) -> Held | None:
        task_id, data = delivery.id, delivery.payload
        if task_id.startswith(_AGAIN):
            task_id = task_id[_BEFORE_TASK_ID:]
        elif task_id.startswith(PREFIX):
            try:
                message = message_of_run(self, delivery)
            except Exception as error:
                logger.exception("%s on %s is no schedule", delivery.id, queue.name)
                reason = f"no schedule of taskiq: {type(error).__name__}"
                with suppress(Exception):  # it comes again when its lease ends
                    await queue.bury(delivery.id, delivery.lease or 0, reason=reason)
                return None
            task_id, data = message.task_id, message.message
        if task_id.encode("utf-8", "surrogateescape") not in data:
            task_id = self._task_id_in(data) or task_id
        held = Held(queue, delivery, task_id, data, self._leases)
        self._leases.add(held)
        return held

    def _task_id_in(self, data: bytes) -> str | None:
        """Of a message in a job with another id, as when an operator has moved it."""
        with suppress(Exception):  # taskiq says what is wrong with it
            return self.formatter.loads(data).task_id
        return None

    async def _give_back(self, *held: Held) -> None:
        for each in held:
            with suppress(Exception):  # it comes again when its lease ends
                lease = each.delivery.lease or 0
                await each.queue.release(each.delivery.id, lease, unbegun=True)


def _delay(labels: Mapping[str, Any]) -> timedelta | None:
    """A label `delay` is in seconds, as middlewares of taskiq that retry have it."""
    delay = labels.get("delay")
    return None if delay is None else timedelta(seconds=min(max(float(delay), 0), _LONGEST_S))
