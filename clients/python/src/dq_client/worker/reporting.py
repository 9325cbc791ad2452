"""What a worker writes to the log: an outage once, a failure of a job with what comes next."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from dq_client.outages import FIRST_S
from dq_client.replies import Delivery, Job

logger = logging.getLogger("dq_client")

#: An outage begins in the log this long after the one before at the soonest.
_QUIET_S = 10.0
#: So many ids stand in a line.
_IDS = 5


class Outages:
    """One line when an outage begins, and one when it is over. In a cluster each queue has its own:
    nodes fail one by one.
    """

    def __init__(self, address: str, is_cluster: bool):
        self._address = address
        self._is_cluster = is_cluster
        self._since: dict[str, float] = {}
        self._told_at: dict[str, float] = {}
        self._told: set[str] = set()
        #: How many are over. Schedules are declared again after each.
        self.count = 0
        self._end = asyncio.Event()

    def failed(self, queue: str, error: BaseException) -> None:
        where, now = self._where(queue), time.monotonic()
        if self._since.setdefault(where, now) != now:
            return
        if now - self._told_at.get(where, -_QUIET_S) >= _QUIET_S:
            self._told_at[where] = now
            self._told.add(where)
            logger.warning("%s doesn't answer: %s: %s", where, type(error).__name__, error)

    def answered(self, queue: str) -> None:
        if not self._since:
            return
        where = self._where(queue)
        since = self._since.pop(where, None)
        if since is None:
            return
        self.count += 1
        self._end.set()
        self._end = asyncio.Event()
        if where in self._told:
            self._told.remove(where)
            logger.warning("%s answers again, after %.1f s", where, time.monotonic() - since)

    async def pause(self, pause_s: float) -> None:
        """Waits so long, or until an outage ends: what could not be sent is sent at once then. Not
        less than the first pause, lest a server that answers only others is asked all the time.
        """
        end = self._end
        least_s = min(pause_s, FIRST_S)
        await asyncio.sleep(least_s)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(end.wait(), pause_s - least_s)

    def _where(self, queue: str) -> str:
        if self._is_cluster:
            return f"the node of queue {queue!r}"
        return f"the server at {self._address}"


def failure(
    job: Delivery, how: str, reason: str, next_: str, error: BaseException | None, of: str = ""
) -> None:
    """The line of a job that failed, with the traceback where there is one."""
    exc_info = None
    if error is not None and error.__traceback__ is not None:
        exc_info = (type(error), error, error.__traceback__)
    logger.warning(
        "queue %r: job %r %s, attempt %d%s, %s: %s",
        *(job.key, job.id, how, job.attempt, of, next_, reason),
        exc_info=exc_info,
    )


def attempts_of(shown: Job) -> str:
    return f" of {shown.attempts}" if shown.attempts else ""


def next_of(shown: Job) -> str:
    """What comes next for a job that has failed, as DQ.GET shows it."""
    if shown.state == "dead":
        return "dead"
    if shown.state == "delayed" and shown.due is not None:
        left_s = max(0.0, (shown.due - datetime.now(timezone.utc)).total_seconds())
        return f"again in {left_s:.1f} s"
    return "again at once"


def without_backoff(queue: str) -> None:
    """The cure for jobs that use their attempts up in a moment."""
    logger.warning(
        "queue %r: jobs that fail are tried again at once, as they get no backoff. To give one to "
        "jobs that are added from then on: DQ.ALTER %s BACKOFF 1000 600000",
        *(queue, queue),
    )


def few_connections(most: int, needed: int) -> None:
    logger.warning(
        "the client's pool has %d connections, and this worker needs %d: to take jobs, to say what "
        "came of them, and one for each queue to keep leases. It will be slow, and may lose leases",
        *(most, needed),
    )


def stood_still(late_s: float, ids: list[str]) -> None:
    shown = ", ".join(map(repr, ids[:_IDS])) + (", …" if len(ids) > _IDS else "")
    logger.warning(
        "the event loop stood still for %.1f s: one of these jobs blocks it, and the leases of all "
        "of them may have run out: %s",
        *(late_s, shown),
    )


def lost(job: Delivery, why: Any) -> None:
    logger.info("queue %r: job %r lost, attempt %d: %s", job.key, job.id, job.attempt, why)
