"""How a worker calls the server: by an asyncio client, or by a blocking one in threads."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from dq_client.commands import Command
from dq_client.outages import passes, pauses
from dq_client.queue import AsyncQueue, Queue
from dq_client.seam import call, call_async, put

T = TypeVar("T")
logger = logging.getLogger("dq_client")


class Threads:
    """Threads that end with the program, whatever they are doing: as many as are needed."""

    def __init__(self, name: str):
        self._name = name
        self._idle = 0
        self._lock = threading.Lock()
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()

    def run(self, function: Callable[[], T]) -> asyncio.Future[T]:
        future: Future[T] = Future()
        with self._lock:
            self._idle -= 1
            is_short = self._idle < 0
        if is_short:
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        self._work.put((future, function))
        return asyncio.wrap_future(future)

    def _serve(self) -> None:
        self._rest()
        while True:
            future, function = self._work.get()
            if future.set_running_or_notify_cancel():
                self._done(future, function)
            else:
                self._rest()
            # What it has worked on isn't kept while it waits for more.
            del future, function

    def _done(self, future: Future[Any], function: Callable[[], Any]) -> None:
        try:
            result = function()
        except BaseException as error:
            self._rest()
            future.set_exception(error)
        else:
            self._rest()
            future.set_result(result)

    def _rest(self) -> None:
        """Before the result is there: who gets it may have more to do for this thread."""
        with self._lock:
            self._idle += 1


class Caller:
    """The client of a worker's queues."""

    def __init__(self, queues: Sequence[Queue | AsyncQueue]):
        client = queues[0].client
        if any(queue.client is not client for queue in queues):
            raise ValueError("the queues of a worker need the same client")
        self.client: Any = client
        self._is_async = isinstance(queues[0], AsyncQueue)
        self._threads = Threads("dq-call")
        self.is_cluster = hasattr(client, "get_random_node")

    async def call(self, command: Command[T]) -> T:
        if self._is_async:
            return await call_async(self.client, command)
        return await self._threads.run(lambda: call(self.client, command))

    async def batch(self, batch: Sequence[Command[Any]]) -> list[Any]:
        """The replies to several commands in one round trip; an error is the reply of its own."""
        pipeline = self.client.pipeline(transaction=False)
        later = [put(command, pipeline) for command in batch]
        if self._is_async:
            replies = await pipeline.execute(raise_on_error=False)
        else:
            replies = await self._threads.run(lambda: pipeline.execute(raise_on_error=False))
        return [_read(each, replies) for each in later]

    async def ask(self, command: Command[T], until: Callable[[], bool]) -> T | None:
        """The reply, as soon as the server gives one. None when it is told to stop before that."""
        for pause_s in pauses():
            try:
                return await self.call(command)
            except Exception as error:
                if not passes(error):
                    raise
                logger.warning("the server doesn't answer: %r", error)
            await self.leave()
            if until():
                return None
            await asyncio.sleep(pause_s)
        return None

    async def leave(self) -> None:
        """The address may lead to another server by now. Clients of clusters see to it by
        themselves.
        """
        pool = getattr(self.client, "connection_pool", None)
        if pool is None:
            return
        if self._is_async:
            await pool.disconnect(inuse_connections=False)
        else:
            pool.disconnect(inuse_connections=False)


def _read(later: Any, replies: list[Any]) -> Any:
    try:
        return later.of(replies)
    except Exception as error:
        return error
