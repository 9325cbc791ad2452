"""Errors that pass when one waits, and how long to wait between two tries."""

from __future__ import annotations

import random
from collections.abc import Iterator

from dq_client.errors import DQError, refusal

FIRST_S, _LONGEST_S = 0.05, 2.0

# What a person has to put right. Classes of redis-py and valkey-py, by their names.
_MISTAKES = {
    "AuthenticationError",
    "AuthorizationError",
    "ClusterCrossSlotError",
    "NoPermissionError",
}
_OF_A_LIBRARY = {"RedisError", "ValkeyError"}
# How cluster clients of redis-py 8.1 fail when several calls learn of a change of the cluster at
# the same time: a dictionary changes during iteration, a connection has been closed.
_RACES = (RuntimeError, AttributeError)


def passes(error: BaseException) -> bool:
    """Whether the server may take the same command later: it is restarting, failing over, loading,
    out of memory or out of reach.
    """
    if isinstance(error, DQError) or refusal(error) is not None:
        return False
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & _MISTAKES:
        return False
    if isinstance(error, _RACES):
        return _is_raised_by_a_library(error)
    return bool(names & _OF_A_LIBRARY) or isinstance(error, (OSError, TimeoutError))


def _is_raised_by_a_library(error: BaseException) -> bool:
    """And not by the program, say by its codec or its loop."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    module = "" if step is None else str(step.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in ("redis", "valkey")


def is_of_the_server(error: BaseException) -> bool:
    """Whether all commands are refused as this one is: the login is wrong, or there is no DQ."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"AuthenticationError", "NoModule"})


def pauses() -> Iterator[float]:
    """Twice as long each time, up to a limit, with jitter: a thousand workers don't come back in
    the same moment.
    """
    pause_s = FIRST_S
    while True:
        yield random.uniform(pause_s / 2, pause_s)
        pause_s = min(2 * pause_s, _LONGEST_S)
