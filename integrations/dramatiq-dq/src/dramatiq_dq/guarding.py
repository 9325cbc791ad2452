"""Coroutines that are run in the event loop of Dramatiq's AsyncIO middleware."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from dramatiq import Actor
from dramatiq.asyncio import async_to_sync

from dramatiq_dq.message import reason_of

Async = Callable[..., Coroutine[Any, Any, Any]]


def guard(actor: Actor[..., Any]) -> None:
    """`sys.exit()` in a coroutine would end the loop, and with it all such actors."""
    function = getattr(actor.fn, "__wrapped__", None)
    if inspect.iscoroutinefunction(function):
        actor.fn = async_to_sync(_guarded(function))


def _guarded(function: Async) -> Async:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        except (SystemExit, KeyboardInterrupt) as error:
            raise RuntimeError(f"the actor raised {reason_of(error)}") from error

    return call
