"""What may have happened to the jobs of a year, and what may not. The oracle knows which jobs there
were, which faults, what the handlers told, and how each job ended. It names a cause for each run
of a job after its first, and for each job that ended otherwise than it should; what has no cause
is reported.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

# What a handler tells reaches the runner a little later; what a worker tells the server, too.
SLACK_S = 0.5


@dataclass
class Job:
    id: str
    attempts: int
    ends_as: str
    """Its state at the end: `done` or `dead`."""
    is_readable: bool = True
    is_refused: bool = False
    """The server takes no outcome of it: each run is a failed attempt."""
    shown: dict[str, Any] = field(default_factory=dict)
    """What DQ.GET shows at the end."""


@dataclass
class Run:
    """A handler's work on a job, by the runner's clock. It ends when its handler says so."""

    id: str
    worker: int
    attempt: int
    begun: float
    ended: float | None = None
    how: str = ""


@dataclass
class Fault:
    name: str
    begun: float
    ended: float = 0.0

    def overlaps(self, begin: float, end: float) -> bool:
        return self.begun <= end and begin <= self.ended


@dataclass
class Life:
    """All that is known of a year."""

    ttr_s: float
    jobs: list[Job] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def of_job(self, id: str) -> list[Run]:
        return sorted((run for run in self.runs if run.id == id), key=lambda run: run.begun)

    def violations(self) -> Iterator[str]:
        """A sentence for each thing that has no cause."""
        for job in self.jobs:
            runs = self.of_job(job.id)
            for run, following in pairwise(runs):
                if not job.is_refused and self._cause_of_another(run, following) is None:
                    yield f"{job.id} ran again without a cause: {run}, then {following}"
            if job.is_readable and not runs and not self._lost_replies(job):
                yield f"{job.id} never ran: {job.shown}"
            yield from self._wrong_end(job, runs)

    def _cause_of_another(self, run: Run, following: Run) -> str | None:
        """Why a job ran again after this run."""
        if run.how == "raised":
            return "it failed"
        # A run whose end was not seen may have gone on until the next one.
        is_open = run.ended is None or run.how == "cancelled"
        end = following.begun if is_open else run.ended + SLACK_S
        for fault in self.faults:
            if not fault.overlaps(run.begun, end):
                continue
            if fault.name == "kill" and run.worker != following.worker:
                return "its worker was killed"
            if fault.ended - fault.begun > self.ttr_s / 3:
                return f"{fault.name} for longer than its lease could be renewed"
        return None

    def _lost_replies(self, job: Job) -> bool:
        """Whether each delivery of the job may have been lost with a connection."""
        return bool(self.faults) and job.shown.get("timed-out", 0) >= job.attempts > 0

    def _wrong_end(self, job: Job, runs: list[Run]) -> Iterator[str]:
        state = (job.shown.get("state") or b"gone").decode()
        if state == job.ends_as:
            if state == "dead" and not job.shown.get("reason"):
                yield f"{job.id} is dead without a reason"
            return
        failed = sum(run.how == "raised" or job.is_refused for run in runs)
        lost = job.shown.get("timed-out", 0)
        explained = state == "dead" and lost > 0 and failed + lost >= job.attempts
        if not explained or not self._lost_for_a_cause(runs):
            yield f"{job.id} is {state} in place of {job.ends_as}: {job.shown}, {runs}"

    def _lost_for_a_cause(self, runs: list[Run]) -> bool:
        """Whether leases that ran out belong to runs that a fault cut off, or to deliveries that
        were lost with a connection.
        """
        cut_off = [run for run in runs if run.how in ("", "cancelled")]
        without = [
            run
            for run in cut_off
            if not any(fault.overlaps(run.begun, run.begun + self.ttr_s) for fault in self.faults)
        ]
        return not without and bool(self.faults)
