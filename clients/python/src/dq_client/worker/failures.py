"""Failures that can be seen: a line for each, the program's own `on_error`, and a hint where jobs
are tried again without a pause.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from dq_client import commands
from dq_client.commands import Command, Key
from dq_client.outages import passes
from dq_client.replies import Job
from dq_client.worker import reporting
from dq_client.worker.calling import Caller
from dq_client.worker.outcomes import Bury, Retry, Settlement
from dq_client.worker.threads import Threads

logger = logging.getLogger("dq_client")

#: A job with a longer body isn't fetched again for the sake of a line.
_LOOKED_AT_BYTES = 65_536

OnError = Callable[[Any, BaseException], Any]


class Failures:
    def __init__(self, keys: Sequence[Key], caller: Caller, on_error: OnError | None):
        self._keys = {key.name: key for key in keys}
        self._caller = caller
        self._on_error = on_error
        self._threads = Threads("dq-on-error", most=1)
        self._calls: set[asyncio.Task[None]] = set()
        self._may_look = True
        self._hinted: set[str] = set()

    def look(self, settlement: Settlement) -> Command[Any] | None:
        """What is sent after a failure, to know what comes next."""
        job = settlement.job
        if not self._may_look or len(job.payload) > _LOOKED_AT_BYTES:
            return None
        return commands.get(self._keys[job.key], job.id)

    def told(self, settlement: Settlement, is_mine: bool, shown: Any) -> None:
        """The server knows of a failure; `shown` is its reply to `look`, or None."""
        if isinstance(shown, Exception) and not passes(shown):
            self._may_look = False  # the user has no right to DQ.GET
        job = shown if isinstance(shown, Job) else None
        error = settlement.error
        is_own_word = isinstance(error, (Retry, Bury))
        reporting.failure(
            settlement.job,
            how="gives up" if isinstance(error, Bury) else "failed",
            reason=settlement.reason or "without a reason",
            next_=_next_of(settlement, is_mine, job),
            # A handler's own word needs no traceback, unless something else was behind it.
            error=None if is_own_word and error and error.__cause__ is None else error,
            of=reporting.attempts_of(job) if job else "",
        )
        if job and settlement.name == "released" and not (is_own_word and error.delay):  # type: ignore[union-attr]
            self._hint(settlement.job.key, job.backoff_base)
        if self._on_error and error is not None and settlement.hand is not None:
            call = asyncio.create_task(self._call(settlement.hand.job, error))
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)

    async def _call(self, job: Any, error: BaseException) -> None:
        on_error = self._on_error
        assert on_error is not None
        try:
            if inspect.iscoroutinefunction(on_error):
                await on_error(job, error)
            else:
                await self._threads.run(lambda: on_error(job, error))
        except BaseException:
            logger.exception("on_error failed at job %r", job.id)

    async def hint_at_start(self) -> None:
        """Of queues that are there, whether their jobs get a backoff."""
        with suppress(Exception):
            for name, key in self._keys.items():
                info = await self._caller.call(commands.info(key))
                if info is not None:
                    self._hint(name, info.default_backoff_base)

    def _hint(self, queue: str, backoff: timedelta) -> None:
        if not backoff and queue not in self._hinted:
            self._hinted.add(queue)
            reporting.without_backoff(queue)


def _next_of(settlement: Settlement, is_mine: bool, job: Job | None) -> str:
    if not is_mine:
        return "and isn't this worker's any more"
    if settlement.name == "buried":
        return "dead"
    return reporting.next_of(job) if job else "given back"
