"""Workers that kill themselves at a step of a chord: all of their processes, by SIGKILL, when the test has
asked for it by a key `die:<step>`. The key is gone with the first that gets there.
"""

import functools
import os
import signal
from collections.abc import Callable
from typing import Any

import redis

#: In the order in which a chord comes to them.
STEPS = ["part", "stored", "settled", "closing", "collected", "committed", "body"]


@functools.cache
def records() -> redis.Redis:
    return redis.Redis.from_url(os.environ["RECORDS_URL"])


def die_at(step: str) -> None:
    if records().delete(f"die:{step}"):
        os.killpg(os.getpgrp(), signal.SIGKILL)


def install() -> None:
    """Has a worker come by the steps that lie in the backend."""
    from kombu_dq import chords
    from kombu_dq.channel import Channel

    between(chords, "settle", "stored", "settled")
    between(Channel, "parts_of", None, "closing")
    between(Channel, "commit", "collected", "committed")


def between(owner: Any, name: str, before: str | None, after: str) -> None:
    function: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if before:
            die_at(before)
        reply = function(*args, **kwargs)
        die_at(after)
        return reply

    setattr(owner, name, wrapped)


if os.environ.get("DYING"):
    install()
