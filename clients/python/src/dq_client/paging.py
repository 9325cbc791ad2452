"""All jobs in a state, page by page, as docs/commands/peek.md says."""

from __future__ import annotations

from datetime import datetime

from dq_client import commands
from dq_client.commands import Command, Key, State
from dq_client.replies import Job

# By which of its times jobs are shown in each state. Ready ones have no such time.
TIMES: dict[State, str] = {
    "delayed": "due",
    "reserved": "deadline",
    "dead": "since",
    "done": "kept_until",
}


class Peek:
    """Where a walk through the jobs of a state is."""

    def __init__(self, state: State, from_: datetime | None, count: int):
        self._state: State = state
        self._from = from_
        self._count = count
        self._last: Job | None = None
        self.is_over = False

    def command(self, key: Key) -> Command[list[Job]]:
        after = self._last.id if self._last else None
        return commands.peek(key, self._state, after=after, from_=self._from, count=self._count)

    def shown(self, jobs: list[Job]) -> list[Job]:
        """Notes where the page ends."""
        self.is_over = len(jobs) < self._count
        if jobs:
            self._last = jobs[-1]
            self._from = self._time_of(jobs[-1])
        return jobs

    def _time_of(self, job: Job) -> datetime | None:
        if self._state not in TIMES:
            return None
        time: datetime | None = getattr(job, TIMES[self._state])
        if self._state in ("delayed", "reserved") and job.expires is not None:
            return min(filter(None, (time, job.expires)))
        return time
