"""The broker: a queue of taskiq is a queue of DQ."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from taskiq import AckableMessage, AsyncBroker
from taskiq.message import BrokerMessage

from dq_client import RAW, AsyncQueue, Delivery
from dq_client.commands import AddOptions
from dq_client.outages import passes, pauses
from dq_client.seam import AsyncClient
from taskiq_dq.connecting import connected
from taskiq_dq.firing import PREFIX, message_of_run
from taskiq_dq.held import Beginning, Held, Leases, logger

#: A worker that is told to stop waits for its fetch, so that no message is lost on the way.
_BLOCK = timedelta(seconds=1)
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
      prefetch: how many messages one fetch takes at most. What is fetched and hasn't begun keeps
        other workers from it.
      parameters: of redis.asyncio.Redis.
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
        self._ttr = ttr
        self._prefetch = prefetch
        self._leases = Leases(ttr)
        self.add_middlewares(Beginning(self._leases))
        self._queues: dict[str, AsyncQueue] = {}

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
            if fetching is not None:
                await asyncio.wait([fetching])
                if not fetching.cancelled() and fetching.exception() is None:
                    fetched.extend(fetching.result())
            for held in fetched:
                await self._give_back(held)

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
                return [held for each in deliveries if (held := await self._held(queue, each))]
            except Exception as error:
                if not passes(error):
                    raise
                logger.warning("no messages from %s: %s", queue.name, error)
                await asyncio.sleep(next(waits))

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
        held = Held(queue, delivery, task_id, data, self._leases)
        self._leases.add(held)
        return held

    async def _give_back(self, held: Held) -> None:
        self._leases.drop(held)
        lease = held.delivery.lease or 0
        with suppress(Exception):  # it comes again when its lease ends
            await held.queue.release(held.delivery.id, lease, unbegun=True)


def _delay(labels: Mapping[str, Any]) -> timedelta | None:
    """A label `delay` is in seconds, as middlewares of taskiq that retry have it."""
    delay = labels.get("delay")
    return None if delay is None else timedelta(seconds=max(float(delay), 0))
