"""Jobs with a schedule: each run comes at its time and once, none beside another, and no more than RUNS and UNTIL
allow.

These jobs are in a database of their own, where each queue has one client. So the commands on a queue have an order,
and only what a crash or a lost reply leaves open is unknown, until the next delivery shows it. docs/commands/add.md has
the rules.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .case import Case
from .life import NEVER, Span
from .model import World
from .waiting import STUCK_MS

DATABASE = 2


@dataclass(frozen=True)
class Job:
    """What is known of one job. Times are those of the schedule; spans where they aren't known to the millisecond."""

    body: str
    ttr: int
    every: int
    makes_up: bool
    runs_max: int
    until: int
    # The run that waits or is under way, and how often it was handed out.
    due: Span
    attempt: int = 0
    # From when on it can be had: due, put off, or when its lease ends.
    ready: Span = (0, 0)
    lease: int | None = None
    # Decided when the run was handed out for the first time.
    next: Span = (0, 0)
    # How many runs have begun: at least, at most.
    begun: Span = (0, 0)
    # It may be in any state that comes after this one.
    is_unknown: bool = False
    # A time from which the others lie EVERY apart; None: not known yet, or never to be.
    anchor: int | None = None
    # It was due at once, by an AT in the past, and then by that AT.
    is_off_grid: bool = False

    def blurred(self) -> "Job":
        return replace(self, is_unknown=True, begun=(self.begun[0], NEVER))

    def on_grid(self, due: int) -> bool:
        """If the first time isn't known to the millisecond, the first delivery shows it."""
        return self.anchor is None or (due - self.anchor) % self.every == 0

    def next_after(self, due: int, now: Span) -> Span:
        """The next time, if the run for that one was handed out for the first time then."""
        if self.is_off_grid:
            return (due + 1, max(due, now[1]) + self.every)
        if self.makes_up:
            return (due + self.every, due + self.every)
        return (self._first_after(due, now[0]), self._first_after(due, now[1]))

    def _first_after(self, due: int, now: int) -> int:
        return due + (max(now - due, 0) // self.every + 1) * self.every

    def may_be_over(self) -> bool:
        """Whether the schedule may end when this run is finished."""
        return self.begun[1] >= self.runs_max or self.next[1] > self.until

    def is_surely_over(self) -> bool:
        return self.begun[0] >= self.runs_max or self.next[0] > self.until


Jobs = dict[str, Job]


def judge(case: Case) -> None:
    schedules = case.world.schedules
    if case.verb == "FLUSHDB":
        schedules.clear()
        return
    place = case.place(case.words[1])
    jobs = schedules.setdefault(place, {})
    if case.is_lost:
        may_have_been_carried_out(case, case.world)
    elif not case.is_refused:
        _JUDGES[case.verb](case, jobs)


def may_have_been_carried_out(case: Case, world: World) -> None:
    """The command was under way when the server crashed, or its reply was lost."""
    places = list(world.schedules) if case.verb == "FLUSHDB" else [case.place(case.words[1])]
    for place in places:
        world.schedules[place] = {
            id: job.blurred() for id, job in world.schedules.get(place, {}).items()
        }
    if case.verb == "DQ.ADD":
        id, job = _added(case)
        world.schedules[places[0]][id] = job.blurred()


def _added(case: Case) -> tuple[str, Job]:
    _, _, id, body, *words = case.words
    said = dict(zip(words[::2], words[1::2], strict=True))
    low, high = case.now
    at = said.get("AT")
    is_past = at is not None and at <= high
    if at is None:
        due = (low + said["DELAY"], high + said["DELAY"])
    else:
        due = (at, max(at, high) if is_past else at)
    return str(id), Job(
        str(body),
        said["TTR"],
        said["EVERY"],
        said["MISFIRE"] == "ALL",
        said.get("RUNS", NEVER),
        said.get("UNTIL", NEVER),
        due,
        ready=(max(due[0], low), due[1]),
        anchor=None if is_past else at,
        is_off_grid=is_past,
    )


def _add(case: Case, jobs: Jobs) -> None:
    id, job = _added(case)
    jobs[id] = job


def _pop(case: Case, jobs: Jobs) -> None:
    told: list[Any] = case.told or []
    for id, body, lease, attempt, due in told:
        case.count("runs")
        _judge_run(case, jobs, str(id), str(body), attempt, due)
        if str(id) in jobs:
            jobs[str(id)] = _taken(case, jobs[str(id)], lease, attempt, due)
    words = case.words
    if len(told) < (words[words.index("COUNT") + 1] if "COUNT" in words else 1):
        _judge_silence(case, jobs, {str(item[0]) for item in told})


def _judge_run(case: Case, jobs: Jobs, id: str, body: str, attempt: int, due: int) -> None:
    for kind, text in _wrong(case, jobs.get(id), body, attempt, due):
        case.violation(kind, text, case.words[1], id)


def _wrong(
    case: Case, job: Job | None, body: str, attempt: int, due: int
) -> Iterator[tuple[str, str]]:
    if due > case.now[1]:
        yield "early", f"a run for {due} was handed out at {case.now[1]} at the latest"
    if job is None:
        yield "ghost", "a run of a schedule that is over, or never was"
        return
    if body != job.body:
        yield "body", f"a run has the body {body[:40]!r}, not {job.body[:40]!r}"
    if job.is_unknown:
        if due < job.due[0]:
            yield "schedule", f"a run for {due} comes again, after one for {job.due[0]}"
        elif not job.on_grid(due):
            yield "schedule", f"a run for {due} is none of {job.due[0]} + n * {job.every}"
        return
    if job.ready[0] > case.now[1]:
        yield (
            "double" if job.lease is not None else "early",
            f"it can't be had before {job.ready[0]}",
        )
    if not job.due[0] <= due <= job.due[1] or not job.on_grid(due):
        yield "schedule", f"a run for {due}, not for {job.due[0]}..{job.due[1]}"
    if attempt != job.attempt + 1:
        yield "attempt", f"it is attempt {attempt}, not {job.attempt + 1}"


def _taken(case: Case, job: Job, lease: int, attempt: int, due: int) -> Job:
    low, high = case.now
    ends = (low + job.ttr, high + job.ttr)
    run = replace(job, due=(due, due), attempt=attempt, lease=lease, ready=ends, is_unknown=False)
    if not job.is_off_grid:
        run = replace(run, anchor=due)
    if attempt == 1:
        begun = (job.begun[0] + 1, min(job.begun[1] + 1, NEVER))
        return replace(run, next=run.next_after(due, case.now), begun=begun)
    if job.is_unknown:
        # When it was handed out for the first time isn't known.
        begun = (job.begun[0] + (due > job.due[1]), NEVER)
        return replace(run, next=run.next_after(due, (0, high)), begun=begun)
    return run


def _judge_silence(case: Case, jobs: Jobs, told: set[str]) -> None:
    """Fewer jobs came than were asked for, so no other can be had."""
    for id, job in jobs.items():
        if id in told or job.is_unknown:
            continue
        if "BLOCK" not in case.words:
            if job.ready[1] <= case.now[0]:
                text = (
                    f"nothing comes though a run for {job.due[0]} could be had since {job.ready[1]}"
                )
                case.violation("withheld", text, case.words[1], id)
        elif case.told is None:
            window = case.window
            waited = case.epoch.ticks.active_ms(window.begin, job.ready[1], window.end)
            if waited > STUCK_MS:
                case.violation("stuck", f"waited for {waited} ms beside a run", case.words[1], id)


def _finish(case: Case, jobs: Jobs) -> None:
    id, lease = str(case.words[2]), case.words[3]
    job = jobs.get(id)
    if not _judge_claim(case, job, id, lease) or job is None:
        return
    if job.is_unknown:
        return
    if job.is_surely_over():
        del jobs[id]
    else:
        # What is due already is ready from now on: by a clock that is set back later, it isn't yet.
        ready = (job.next[0], max(job.next[1], case.now[1]))
        later = replace(job, due=job.next, ready=ready, attempt=0, lease=None)
        jobs[id] = replace(later, is_unknown=job.may_be_over())


def _release(case: Case, jobs: Jobs) -> None:
    id, lease = str(case.words[2]), case.words[3]
    job = jobs.get(id)
    if not _judge_claim(case, job, id, lease) or job is None:
        return
    delay = case.words[5] if len(case.words) > 5 else 0
    jobs[id] = replace(job, ready=(case.now[0] + delay, case.now[1] + delay), lease=None)


def _judge_claim(case: Case, job: Job | None, id: str, lease: int) -> bool:
    """Whether the command counted. A lease is good until the job is handed out again."""
    if job is None or not job.is_unknown:
        is_its = job is not None and job.lease == lease
        if is_its and not case.told:
            case.violation(
                "refused", f"{case.verb} with the run's own lease {lease} says 0", case.words[1], id
            )
        if not is_its and case.told:
            case.violation("stale", f"{case.verb} with lease {lease} counts", case.words[1], id)
    return bool(case.told)


def _delete(case: Case, jobs: Jobs) -> None:
    id = str(case.words[2])
    job = jobs.pop(id, None)
    if job is None and case.told:
        case.violation(
            "ghost", "DEL finds a schedule that is over, or never was", case.words[1], id
        )
    if job is not None and not job.is_unknown and not case.told:
        case.violation(
            "lost", f"DEL doesn't find a schedule with a run for {job.due[0]}", case.words[1], id
        )


def _length(case: Case, jobs: Jobs) -> None:
    least, most = sum(not job.is_unknown for job in jobs.values()), len(jobs)
    if not least <= case.told <= most:
        case.violation("count", f"LEN says {case.told}, not {least} to {most}", case.words[1])


def _scan(case: Case, jobs: Jobs) -> None:
    """All jobs, in one page."""
    cursor, told = case.told
    ids = {str(id) for id in told}
    missing = {id for id, job in jobs.items() if not job.is_unknown} - ids
    for id in sorted(missing if cursor == "0" else ()):
        case.violation("lost", "SCAN SCHEDULED doesn't show it", case.words[1], id)
    for id in sorted(ids - jobs.keys()):
        case.violation("ghost", "SCAN SCHEDULED shows a schedule that is over", case.words[1], id)


_JUDGES = {
    "DQ.ADD": _add,
    "DQ.POP": _pop,
    "DQ.FINISH": _finish,
    "DQ.RELEASE": _release,
    "DQ.DEL": _delete,
    "DQ.LEN": _length,
    "DQ.SCAN": _scan,
}
