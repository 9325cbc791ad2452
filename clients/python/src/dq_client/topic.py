"""One topic in several queues, its shards, as docs/scaling.md has it. The id of a job says in which
of them it is, the same in all languages.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from dq_client import commands
from dq_client.codec import JSON, Codec
from dq_client.commands import Command, Id, Key, State
from dq_client.errors import Exists
from dq_client.queue import AsyncQueue, Queue
from dq_client.replies import Added, Job, Outcome, Over, Taken
from dq_client.seam import AsyncClient, Client, call, call_async
from dq_client.slots import SLOTS, slot_of
from dq_client.words import sent, text

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dq_client.commands import AddOptions
    from dq_client.tracing import Tracing

T = TypeVar("T")
#: Commands one after the other, each of which may depend on the replies so far.
Plan = Generator[Command[Any], Any, T]


def even_tags(shards: int) -> list[int]:
    """The first number whose slot is in the first part of all slots, the next one in the second
    part, and so on: such tags give each node of a cluster the same number of shards.
    """
    tags: list[int] = []
    number = 0
    while len(tags) < shards:
        if slot_of(str(number)) * shards // SLOTS == len(tags):
            tags.append(number)
        number += 1
    return tags


class _Shards:
    """The names, and what is asked of which queue."""

    def __init__(self, name: str, shards: int, codec: Codec, tracing: Any, before: _Shards | None):
        if shards < 1:
            raise ValueError("a topic has one shard at least")
        self.name = name
        self.keys = [Key(f"{name}:{{{tag}}}", codec, tracing) for tag in even_tags(shards)]
        self._before = before

    def shard_of(self, id: Id) -> int:
        return zlib.crc32(sent(id)) % len(self.keys)

    def key_of(self, id: Id) -> Key:
        return self.keys[self.shard_of(id)]

    def _places_of(self, id: Id) -> list[Key]:
        """Where a job of this id may be: here, or where the topic was before."""
        return [self.key_of(id), *(self._before._places_of(id) if self._before else ())]

    def _add(self, id: Id, body: Any, options: AddOptions) -> Plan[Added | Taken | Over]:
        if id == "*":
            raise ValueError("in a topic the id chooses the queue: make one")
        here, *earlier = self._places_of(id)
        replaces = options.get("replace") or options.get("ensure")
        if not replaces:
            for key in earlier:
                if (yield commands.get(key, id)) is not None:
                    if options.get("nx"):
                        return Taken(text(id))
                    raise Exists("id is taken in this queue", "EXISTS")
        added: Added | Taken | Over = yield commands.add(here, id, body, **options)
        if replaces:
            # Only now, so that there is a job at any time.
            for key in earlier:
                yield commands.delete(key, id)
        return added

    def _first(self, wanted: list[Command[T]]) -> Plan[T | None]:
        """The first reply that is one."""
        for command in wanted:
            if reply := (yield command):
                found: T = reply
                return found
        return None

    def _cancel(self, id: Id) -> Plan[bool]:
        removed = yield from self._first([commands.delete(key, id) for key in self._places_of(id)])
        return bool(removed)

    def _get(self, id: Id) -> Plan[Job | None]:
        return self._first([commands.get(key, id) for key in self._places_of(id)])

    def _result(self, id: Id, block: timedelta | None) -> Plan[Outcome | None]:
        *earlier, last = reversed(self._places_of(id))
        for key in earlier:
            if (yield commands.result(key, id)) is not None:
                outcome: Outcome | None = yield commands.result(key, id, block)
                return outcome
        return (yield commands.result(last, id, block))  # type: ignore[no-any-return]

    def _length(self, state: State | None) -> Plan[int]:
        total = 0
        for key in self.keys:
            total += yield commands.len_(key, state)
        return total


class Topic(_Shards):
    """A topic with a blocking client.

    All programs must agree on its name and the number of its shards. To change that number, give
    the topic a new name, and to `before` the topic as it was: ids are looked for in both, and
    workers serve both, until the old one is empty.

    >>> mail = Topic(cluster, "mail", shards=12)
    >>> mail.add("order:17:remind", {"to": "ann"}, delay=timedelta(days=1), nx=True)
    """

    def __init__(
        self,
        client: Client,
        name: str,
        shards: int,
        *,
        codec: Codec = JSON,
        tracing: Tracing | None = None,
        before: Topic | None = None,
    ):
        super().__init__(name, shards, codec, tracing, before)
        self.client = client
        #: For what is said to each queue: `pause`, `alter`, `purge`, `kick`, `info`.
        self.queues = [Queue(client, key.name, codec=codec, tracing=tracing) for key in self.keys]
        #: With those of `before`.
        self.all_queues: list[Queue] = self.queues + (before.all_queues if before else [])

    def queue_of(self, id: Id) -> Queue:
        """The queue of a job; or that of a customer, whose jobs keep their order in it."""
        return self.queues[self.shard_of(id)]

    def _run(self, plan: Plan[T]) -> T:
        reply: Any = None
        try:
            while True:
                reply = call(self.client, plan.send(reply))
        except StopIteration as done:
            result: T = done.value
            return result

    def add(self, id: Id, body: Any, **options: Unpack[AddOptions]) -> Added | Taken | Over:
        return self._run(self._add(id, body, options))

    def cancel(self, id: Id) -> bool:
        """Whether there was such a job."""
        return self._run(self._cancel(id))

    def get(self, id: Id) -> Job | None:
        return self._run(self._get(id))

    def result(self, id: Id, block: timedelta | None = None) -> Outcome | None:
        return self._run(self._result(id, block))

    def length(self, state: State | None = None) -> int:
        """The jobs of all shards, without those of `before`."""
        return self._run(self._length(state))


class AsyncTopic(_Shards):
    """The same with an asyncio client."""

    def __init__(
        self,
        client: AsyncClient,
        name: str,
        shards: int,
        *,
        codec: Codec = JSON,
        tracing: Tracing | None = None,
        before: AsyncTopic | None = None,
    ):
        super().__init__(name, shards, codec, tracing, before)
        self.client = client
        #: For what is said to each queue: `pause`, `alter`, `purge`, `kick`, `info`.
        self.queues = [
            AsyncQueue(client, key.name, codec=codec, tracing=tracing) for key in self.keys
        ]
        #: With those of `before`.
        self.all_queues: list[AsyncQueue] = self.queues + (before.all_queues if before else [])

    def queue_of(self, id: Id) -> AsyncQueue:
        """The queue of a job; or that of a customer, whose jobs keep their order in it."""
        return self.queues[self.shard_of(id)]

    async def _run(self, plan: Plan[T]) -> T:
        reply: Any = None
        try:
            while True:
                reply = await call_async(self.client, plan.send(reply))
        except StopIteration as done:
            result: T = done.value
            return result

    async def add(self, id: Id, body: Any, **options: Unpack[AddOptions]) -> Added | Taken | Over:
        return await self._run(self._add(id, body, options))

    async def cancel(self, id: Id) -> bool:
        """Whether there was such a job."""
        return await self._run(self._cancel(id))

    async def get(self, id: Id) -> Job | None:
        return await self._run(self._get(id))

    async def result(self, id: Id, block: timedelta | None = None) -> Outcome | None:
        return await self._run(self._result(id, block))

    async def length(self, state: State | None = None) -> int:
        """The jobs of all shards, without those of `before`."""
        return await self._run(self._length(state))
