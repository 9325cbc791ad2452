"""Threads that end with the program, whatever they are doing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Threads:
    """As many threads as are needed, up to `most`."""

    def __init__(self, name: str, most: int | None = None):
        self._name = name
        self._most = most
        self._count = 0
        self._idle = 0
        self._lock = threading.Lock()
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()

    def run(self, function: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.wrap_future(self.submit(function))

    def submit(self, function: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            is_short = self._idle <= 0 and (self._most is None or self._count < self._most)
            if is_short:
                # Raises when the system has no more threads: then nothing has changed.
                threading.Thread(target=self._serve, name=self._name, daemon=True).start()
                self._count += 1
                self._idle += 1
            self._idle -= 1
        self._work.put((future, function))
        return future

    def _serve(self) -> None:
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
        except StopIteration as error:
            self._rest()
            # asyncio refuses to pass it on, and would wait for ever.
            future.set_exception(RuntimeError("StopIteration").with_traceback(error.__traceback__))
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


class Executor(ThreadPoolExecutor):
    """What `asyncio.to_thread` uses in a handler. A thread of the standard executor would keep the
    process for as long as it works.
    """

    def __init__(self) -> None:
        super().__init__()
        self._daemons = Threads("dq-to-thread", self._max_workers)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return self._daemons.submit(partial(fn, *args, **kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing to wait for."""
