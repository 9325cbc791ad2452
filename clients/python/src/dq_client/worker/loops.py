"""A loop for a worker of its own: what a handler does to it doesn't end it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from dq_client.worker.threads import Executor

logger = logging.getLogger("dq_client")

#: For tasks that handlers have left behind.
_CLEAN_UP_S = 1.0


def run(main: Coroutine[Any, Any, None], is_stuck: Callable[[], bool]) -> None:
    """As `asyncio.run`, but for two things. `sys.exit()` in a task, which would end the loop, and
    `loop.stop()`, don't; and at the end nothing is waited for that doesn't end.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.set_default_executor(Executor())
    task = loop.create_task(main)
    try:
        _run_through(loop, task)
    finally:
        if not is_stuck():
            _clean_up(loop)
        asyncio.set_event_loop(None)


def _run_through(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
    while True:
        try:
            return loop.run_until_complete(task)
        except BaseException as error:
            if task.done():
                raise
            logger.error("a handler tried to end the loop of the worker, which goes on: %r", error)


def _clean_up(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    with suppress(BaseException):
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=_CLEAN_UP_S))
        loop.run_until_complete(asyncio.wait_for(loop.shutdown_asyncgens(), _CLEAN_UP_S))
    if all(task.done() for task in tasks):
        loop.close()
