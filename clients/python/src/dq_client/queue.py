"""A queue: its commands as methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from dq_client import commands, paging
from dq_client.codec import JSON, Codec
from dq_client.commands import Add, Command, Id, Key, State
from dq_client.errors import refusal
from dq_client.flow import Flow, flow_of, starting
from dq_client.outages import passes
from dq_client.replies import Added, Group, Job, Taken
from dq_client.seam import (
    AsyncClient,
    Client,
    Later,
    Pipeline,
    call,
    call_async,
    checked,
    put,
    reply_or_error,
)
from dq_client.words import text

if TYPE_CHECKING:
    from typing_extensions import Self

    from dq_client.tracing import Tracing

P = ParamSpec("P")
T = TypeVar("T")
Build = Callable[Concatenate[Key, P], Command[T]]


class Bound(Generic[P, T]):
    """A command of one queue. `on=pipeline` puts it on a pipeline: its reply comes `Later`."""

    def __init__(self, queue: Queue, build: Build[P, T]):
        self._queue = queue
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> T: ...
    @overload
    def __call__(self, *args: Any, on: Pipeline, **options: Any) -> Later[T]: ...
    def __call__(self, *args: Any, **options: Any) -> Any:
        on = options.pop("on", None)
        command = self._build(self._queue.key, *args, **options)
        return call(self._queue.client, command) if on is None else put(command, on)


class AsyncBound(Generic[P, T]):
    """The same, to be awaited. What is put on a pipeline isn't."""

    def __init__(self, queue: AsyncQueue, build: Build[P, T]):
        self._queue = queue
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> Awaitable[T]: ...
    @overload
    def __call__(self, *args: Any, on: Pipeline, **options: Any) -> Later[T]: ...
    def __call__(self, *args: Any, **options: Any) -> Any:
        on = options.pop("on", None)
        command = self._build(self._queue.key, *args, **options)
        return call_async(self._queue.client, command) if on is None else put(command, on)


class Method(Generic[P, T]):
    def __init__(self, build: Build[P, T]):
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, queue: None, owner: type) -> Self: ...
    @overload
    def __get__(self, queue: Queue, owner: type) -> Bound[P, T]: ...
    def __get__(self, queue: Queue | None, owner: type) -> Self | Bound[P, T]:
        return self if queue is None else Bound(queue, self.build)


class AsyncMethod(Generic[P, T]):
    def __init__(self, build: Build[P, T]):
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, queue: None, owner: type) -> Self: ...
    @overload
    def __get__(self, queue: AsyncQueue, owner: type) -> AsyncBound[P, T]: ...
    def __get__(self, queue: AsyncQueue | None, owner: type) -> Self | AsyncBound[P, T]:
        return self if queue is None else AsyncBound(queue, self.build)


class _Named:
    """What both kinds of queues are made of."""

    def __init__(self, name: str, codec: Codec, tracing: Tracing | None):
        self.key = Key(text(name), codec, tracing)

    @property
    def name(self) -> str:
        return self.key.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class Queue(_Named):
    """A queue, with a client of redis-py or valkey-py that the program made.

    >>> orders = Queue(redis.Redis(), "orders")
    >>> orders.add("order:17", {"cancel": 17}, delay=timedelta(minutes=30), nx=True)
    Added(id='order:17')
    """

    def __init__(
        self,
        client: Client,
        name: str,
        *,
        codec: Codec = JSON,
        tracing: Tracing | None = None,
    ):
        checked(client, is_async=False)
        super().__init__(name, codec, tracing)
        self.client = client

    add = Method(commands.add)
    add_many = Method(commands.add_many)
    pop = Method(commands.pop)
    mpop = Method(commands.mpop)
    finish = Method(commands.finish)
    finish_and_pop = Method(commands.finish_and_pop)
    finish_and_mpop = Method(commands.finish_and_mpop)
    done = Method(commands.done)
    release = Method(commands.release)
    touch = Method(commands.touch)
    renew = Method(commands.renew)
    bury = Method(commands.bury)
    delete = Method(commands.delete)
    kick = Method(commands.kick)
    kickjob = Method(commands.kickjob)
    pause = Method(commands.pause)
    resume = Method(commands.resume)
    purge = Method(commands.purge)
    alter = Method(commands.alter)
    get = Method(commands.get)
    result = Method(commands.result)
    deps = Method(commands.deps)
    peek = Method(commands.peek)
    scan = Method(commands.scan)
    groups = Method(commands.groups)
    len = Method(commands.len_)
    forecast = Method(commands.forecast)
    info = Method(commands.info)
    next = Method(commands.next_)

    def start(self, flow: Flow | Add) -> list[Added | Taken]:
        """Adds all jobs of a flow, or none: see `dq_client.flow`. What the server refuses of one of
        them is raised.
        """
        plan = starting(flow_of(flow), self.key)
        replies: list[Any] | None = None
        try:
            while True:
                replies = self._transaction(plan.send(replies))
        except StopIteration as ended:
            added: list[Added | Taken] = ended.value
            return added

    def _transaction(self, steps: list[Command[Any]]) -> list[Any]:
        """The replies; an error is the reply of its command."""
        if not steps:
            return []
        pipeline = self.client.pipeline(transaction=True)
        later = [put(step, pipeline) for step in steps]
        try:
            replies = pipeline.execute(raise_on_error=False)
        except Exception as error:
            if passes(error):
                raise
            return [refusal(error) or error] * len(steps)  # the transaction was not begun
        return [reply_or_error(each, replies) for each in later]

    def peek_iter(
        self, state: State = "ready", *, from_: datetime | None = None, count: int = 100
    ) -> Iterator[Job]:
        """All jobs in a state, `count` of them at a time."""
        page = paging.Peek(state, from_, count)
        while not page.is_over:
            yield from page.shown(call(self.client, page.command(self.key)))

    def scan_iter(
        self,
        *,
        state: State | None = None,
        match: Id | None = None,
        scheduled: bool = False,
        count: int = 1000,
    ) -> Iterator[str]:
        """The ids of all jobs; `count` is how many one call looks at."""
        cursor: int | None = None
        while cursor != 0:
            page = self.scan(
                cursor or 0, state=state, match=match, scheduled=scheduled, count=count
            )
            cursor = page.cursor
            yield from page.items

    def groups_iter(self, *, count: int = 100) -> Iterator[Group]:
        """All groups."""
        cursor: int | None = None
        while cursor != 0:
            page = self.groups(cursor or 0, count=count)
            cursor = page.cursor
            yield from page.items


class AsyncQueue(_Named):
    """A queue, with an asyncio client of redis-py or valkey-py that the program made.

    >>> orders = AsyncQueue(redis.asyncio.Redis(), "orders")
    >>> await orders.add("order:17", {"cancel": 17}, delay=timedelta(minutes=30), nx=True)
    Added(id='order:17')
    """

    def __init__(
        self,
        client: AsyncClient,
        name: str,
        *,
        codec: Codec = JSON,
        tracing: Tracing | None = None,
    ):
        checked(client, is_async=True)
        super().__init__(name, codec, tracing)
        self.client = client

    add = AsyncMethod(commands.add)
    add_many = AsyncMethod(commands.add_many)
    pop = AsyncMethod(commands.pop)
    mpop = AsyncMethod(commands.mpop)
    finish = AsyncMethod(commands.finish)
    finish_and_pop = AsyncMethod(commands.finish_and_pop)
    finish_and_mpop = AsyncMethod(commands.finish_and_mpop)
    done = AsyncMethod(commands.done)
    release = AsyncMethod(commands.release)
    touch = AsyncMethod(commands.touch)
    renew = AsyncMethod(commands.renew)
    bury = AsyncMethod(commands.bury)
    delete = AsyncMethod(commands.delete)
    kick = AsyncMethod(commands.kick)
    kickjob = AsyncMethod(commands.kickjob)
    pause = AsyncMethod(commands.pause)
    resume = AsyncMethod(commands.resume)
    purge = AsyncMethod(commands.purge)
    alter = AsyncMethod(commands.alter)
    get = AsyncMethod(commands.get)
    result = AsyncMethod(commands.result)
    deps = AsyncMethod(commands.deps)
    peek = AsyncMethod(commands.peek)
    scan = AsyncMethod(commands.scan)
    groups = AsyncMethod(commands.groups)
    len = AsyncMethod(commands.len_)
    forecast = AsyncMethod(commands.forecast)
    info = AsyncMethod(commands.info)
    next = AsyncMethod(commands.next_)

    async def start(self, flow: Flow | Add) -> list[Added | Taken]:
        """Adds all jobs of a flow, or none: see `dq_client.flow`. What the server refuses of one of
        them is raised.
        """
        plan = starting(flow_of(flow), self.key)
        replies: list[Any] | None = None
        try:
            while True:
                replies = await self._transaction(plan.send(replies))
        except StopIteration as ended:
            added: list[Added | Taken] = ended.value
            return added

    async def _transaction(self, steps: list[Command[Any]]) -> list[Any]:
        if not steps:
            return []
        pipeline = self.client.pipeline(transaction=True)
        later = [put(step, pipeline) for step in steps]
        try:
            replies = await pipeline.execute(raise_on_error=False)
        except Exception as error:
            if passes(error):
                raise
            return [refusal(error) or error] * len(steps)  # the transaction was not begun
        return [reply_or_error(each, replies) for each in later]

    async def peek_iter(
        self, state: State = "ready", *, from_: datetime | None = None, count: int = 100
    ) -> AsyncIterator[Job]:
        """All jobs in a state, `count` of them at a time."""
        page = paging.Peek(state, from_, count)
        while not page.is_over:
            for job in page.shown(await call_async(self.client, page.command(self.key))):
                yield job

    async def scan_iter(
        self,
        *,
        state: State | None = None,
        match: Id | None = None,
        scheduled: bool = False,
        count: int = 1000,
    ) -> AsyncIterator[str]:
        """The ids of all jobs; `count` is how many one call looks at."""
        cursor: int | None = None
        while cursor != 0:
            page = await self.scan(
                cursor or 0, state=state, match=match, scheduled=scheduled, count=count
            )
            cursor = page.cursor
            for id in page.items:
                yield id

    async def groups_iter(self, *, count: int = 100) -> AsyncIterator[Group]:
        """All groups."""
        cursor: int | None = None
        while cursor != 0:
            page = await self.groups(cursor or 0, count=count)
            cursor = page.cursor
            for group in page.items:
                yield group
