"""Queues with limits and groups, as far as they are known: jobs, leases, what a rate has let through, what holds jobs
back.

All that isn't certain is a span, or unknown: then nothing is judged. docs/commands/alter.md and add.md have the rules.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from .case import Case
from .life import DELAYED, NEVER, READY, RESERVED, Span

# The whole queue, where a group could stand.
QUEUE = ""
# No GROUP: these jobs take turns as one group, and no limit of groups holds for them.
NO_GROUP = ""


@dataclass(frozen=True)
class Job:
    body: str
    group: str
    priority: int
    ttr: int
    # From when on it can be had: due, put off, or when its lease ends.
    ready: Span
    # From which mark to which it has been put where it is.
    begin: float
    since: float
    # It was due at the moment at which it was put there.
    is_immediate: bool
    attempt: int = 0
    # The latest, until it is given back: it may have run out.
    lease: int | None = None
    # It may be in any state, or gone.
    is_unknown: bool = False

    def blurred(self) -> "Job":
        return replace(self, is_unknown=True)

    def states(self, now: Span) -> int:
        if self.is_unknown:
            return DELAYED | READY | RESERVED
        before = DELAYED if self.lease is None else RESERVED
        return (READY if self.ready[0] <= now[1] else 0) | (before if self.ready[1] > now[0] else 0)

    def is_live(self, now: Span) -> bool:
        """The job certainly has a lease that has not ended."""
        return self.states(now) == RESERVED

    def comes_before(self, other: "Job", *, by_order: bool) -> bool:
        """Of the same group and priority: by due time, then in the order in which they were put there."""
        if self.ready[1] < other.ready[0]:
            return True
        return by_order and self.is_immediate and other.is_immediate and self.since <= other.begin


@dataclass(frozen=True)
class Rate:
    jobs: int
    per: int
    burst: int

    @property
    def distance(self) -> float:
        return self.per / self.jobs

    @property
    def tolerance(self) -> float:
        return (self.burst - 1) * self.distance


@dataclass
class Flow:
    """What a rate has let through: each delivery, and how far the theoretical arrival time may be."""

    departures: list[Span] = field(default_factory=list)
    least: float = 0
    most: float = 0

    def copy(self) -> "Flow":
        return Flow(list(self.departures), self.least, self.most)

    def is_too_soon(self, rate: Rate, now: Span) -> bool:
        """A job that leaves now does so before its time. Said only where it is certain which jobs left before it."""
        return self.least - rate.tolerance >= now[1] + 1

    def leaves(self, rate: Rate, now: Span, *, is_tight: bool, counts: bool) -> None:
        """A job left now; whether this rate certainly counts it."""
        if counts:
            self.departures.append(now)
        if is_tight:
            self.least = max(self.least, now[0]) + rate.distance
        self.most = max(self.most, now[1]) + rate.distance

    def may_have_left(self, rate: Rate, now: Span, jobs: int) -> None:
        self.most = max(self.most, now[1]) + jobs * rate.distance

    def within(self, rate: Rate) -> int:
        """How many have certainly left in one span of `per`, which ends with the latest."""
        last = max((span[1] for span in self.departures), default=0)
        self.departures = [span for span in self.departures if span[0] > last - rate.per]
        return len(self.departures)

    def opens(self, rate: Rate) -> int:
        """From when on the next job may certainly leave."""
        return ceil(self.most - rate.tolerance)

    def is_replaced(self, rate: Rate, now: Span) -> None:
        """The next job waits for one interval of the new rate at most."""
        self.departures, self.least = [], 0
        self.most = min(self.most, now[1] + rate.tolerance + rate.distance)


@dataclass(frozen=True)
class Setting:
    """The value that the last ALTER set; None where that is unknown."""

    value: Any
    since: float = 0

    def holds(self, case: Case) -> bool:
        """The setting held during all the time in which the command may have been carried out."""
        return bool(self.value) and self.since <= case.window.begin


@dataclass(frozen=True)
class Paused:
    until: Span
    since: float = 0


def deliveries(case: Case) -> list[Any]:
    """The jobs in the reply to a POP."""
    return [] if case.is_lost or case.is_refused else case.told or []


def was_served_before(case: Case, other: Case) -> bool:
    """A queue's leases only grow. A client that takes a job without a lease is the last that has it."""
    theirs, others = deliveries(case), deliveries(other)
    leases, other_leases = [item[2] for item in theirs], [item[2] for item in others]
    if not theirs or not others or None in leases:
        return False
    if None not in other_leases:
        return max(leases) < min(other_leases)
    # Of the same job, told by id and body, the attempts grow.
    return any(one[:2] == two[:2] and one[3] < two[3] for one in theirs for two in others)


NAMES = ("CONCURRENCY", "GROUPCONCURRENCY", "RATE", "GROUPRATE")


class Held:
    """A queue with limits."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.settings: dict[str, Setting] = {name: Setting(0) for name in NAMES}
        self.flow = Flow()
        self.flows: dict[str, Flow] = {}
        # By group; of the whole queue, too.
        self.paused: dict[str, Paused] = {}
        # The marks at which a limit or a pause, and a lease, ended or began otherwise than by time.
        self.altered: float = 0
        self.freed: float = 0
        # Consumers that wait, and will be told of these jobs.
        self.waiting: list[Case] = []
        # The mark until which one was served at last.
        self.served: float = 0
        # Deleted while one of those was to be told of them.
        self.removed: set[str] = set()
        # How often each other group was served while this job could have been had, by id.
        self.passed: dict[str, dict[str, int]] = {}

    def copy(self) -> "Held":
        copy = Held()
        copy.jobs = dict(self.jobs)
        copy.settings = dict(self.settings)
        copy.flow = self.flow.copy()
        copy.flows = {group: flow.copy() for group, flow in self.flows.items()}
        copy.paused = dict(self.paused)
        copy.altered, copy.freed = self.altered, self.freed
        copy.passed = {id: dict(groups) for id, groups in self.passed.items()}
        return copy

    def flow_of(self, group: str) -> Flow:
        return self.flows.setdefault(group, Flow())

    @property
    def is_clouded(self) -> bool:
        """A waiting client will never report what it was given."""
        return any(case.is_lost for case in self.waiting)

    def coming(self) -> Iterator[str]:
        """The jobs that a waiting client may have by now."""
        for case in self.waiting:
            yield from (str(item[0]) for item in deliveries(case))

    def served_before(self, case: Case) -> Iterator[Case]:
        """By their marks, which come late or are refused, these clients still wait; their leases show the order."""
        for other in list(self.waiting):
            if not other.is_judged and was_served_before(other, case):
                other.is_judged = True
                self.waiting = [one for one in self.waiting if one is not other]
                window = replace(other.window, end=case.window.end)
                yield replace(other, window=window, now=(window.since_ms, case.now[1]))

    def is_overtaken(self, case: Case) -> bool:
        """Its marks were refused, and another client was served before it or after it: the order is unknown."""
        if case.verb == "DQ.POP" or case.is_refused or case.window.is_tight:
            return False
        return case.window.begin < self.served

    def is_open(self, id: str) -> bool:
        """It is unknown what becomes of a command for this job."""
        return self.is_clouded or id in self.coming()

    def live(self, now: Span, group: str = QUEUE) -> int:
        """How many leases certainly live."""
        jobs = self.jobs.items()
        return sum(
            job.is_live(now)
            for id, job in jobs
            if group in (QUEUE, job.group) and not self.is_open(id)
        )

    def opens(self, job: Job, *, no_ack: bool = False) -> int:
        """From when on nothing holds this job back, as things stand; NEVER, where that isn't certain."""
        opens = [job.ready[1], self._pause_ends(QUEUE)]
        if not no_ack:
            opens.append(self._place_opens("CONCURRENCY", QUEUE, job))
        opens.append(self._rate_opens("RATE", self.flow, QUEUE))
        if job.group != NO_GROUP:
            opens.append(self._pause_ends(job.group))
            opens.append(self._place_opens("GROUPCONCURRENCY", job.group, job))
            opens.append(self._rate_opens("GROUPRATE", self.flow_of(job.group), job.group))
        return NEVER if job.is_unknown or self.is_clouded else max(opens)

    def _pause_ends(self, group: str) -> int:
        paused = self.paused.get(group)
        return paused.until[1] if paused else 0

    def _place_opens(self, name: str, group: str, job: Job) -> int:
        places = self.settings[name].value
        if not places:
            return NEVER if places is None else 0
        ends = [
            NEVER if other.is_unknown else other.ready[1]
            for other in self.jobs.values()
            if other is not job
            and group in (QUEUE, other.group)
            and (other.is_unknown or other.lease)
        ]
        ends += [
            NEVER
            for id in self.coming()
            if id in self.jobs and group in (QUEUE, self.jobs[id].group)
        ]
        return sorted(ends)[len(ends) - places] if len(ends) >= places else 0

    def _rate_opens(self, name: str, flow: Flow, group: str) -> int:
        rate = self.settings[name].value
        if not rate:
            return NEVER if rate is None else 0
        if any(id in self.jobs and group in (QUEUE, self.jobs[id].group) for id in self.coming()):
            return NEVER
        return flow.opens(rate)

    def blur(self) -> None:
        self.jobs = {id: job.blurred() for id, job in self.jobs.items()}
        self.passed.clear()
