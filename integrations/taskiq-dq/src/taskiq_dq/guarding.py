"""Functions that are run in taskiq's executor."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


class Guarded:
    """A function that may raise StopIteration, as `next()` does of what is empty. Before Python
    3.11.8 and 3.12.2 a future that gets one never ends, and with it the task's place. A
    GeneratorExit ends taskiq's callback without a result. Both are a RuntimeError here. A class, so
    that a pool of processes can pickle it.
    """

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._function(*args, **kwargs)
        except (StopIteration, GeneratorExit) as error:
            raise RuntimeError(f"the task raised {type(error).__name__}") from error


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    return function if inspect.iscoroutinefunction(function) else Guarded(function)
