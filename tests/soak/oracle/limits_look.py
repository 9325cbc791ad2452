"""What shows of queues with limits and groups: LEN, GET, PEEK, GROUPS, INFO. GET settles what was unknown."""

import itertools
from dataclasses import replace
from typing import Any

from . import words as grammar
from .case import Case
from .life import BY_NAME, DELAYED, READY, RESERVED, names
from .limited import NO_GROUP, QUEUE, Held, Job

COUNTED = {"ready": READY, "reserved": RESERVED, "delayed": DELAYED}
Shown = dict[str, Any]


def _fields(flat: list[Any]) -> Shown:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _states(case: Case, queue: Held, id: str, job: Job) -> int:
    return DELAYED | READY | RESERVED if queue.is_open(id) else job.states(case.now)


def _range(case: Case, queue: Held, state: int, group: str | None = None) -> tuple[int, int]:
    """How many jobs must be in a state, and how many may; of one group, or of all."""
    least = most = 0
    for id, job in queue.jobs.items():
        if group is not None and job.group != group:
            continue
        states = _states(case, queue, id, job)
        is_there = not job.is_unknown and not queue.is_open(id)
        least += is_there and not states & ~state
        most += bool(states & state)
    # Deleted, or given back, while nobody could say what somebody who waits has done with them.
    return least, most


def length(case: Case, queue: Held) -> None:
    name = str(grammar.others(case.words, 2).get("STATE", "jobs")).lower()
    _judge_number(case, queue, name, case.told)


def _judge_number(case: Case, queue: Held, name: str, told: int) -> None:
    state = DELAYED | READY | RESERVED if name == "jobs" else BY_NAME[name]
    least, most = _range(case, queue, state)
    if not least <= told <= most:
        case.violation(
            "count", f"{case.verb} {name} says {told}, not {least} to {most}", case.words[1]
        )


def get(case: Case, queue: Held) -> None:
    id = str(case.words[2])
    job = queue.jobs.get(id)
    if queue.is_open(id):
        return
    if case.told is None:
        if job is not None and not job.is_unknown:
            case.violation("lost", f"GET shows nothing of {job}", case.words[1], id)
        queue.jobs.pop(id, None)
        return
    shown = _fields(case.told)
    if job is None:
        case.violation("ghost", "GET shows a job that has left, or never was", case.words[1], id)
    elif not _is_shown_wrongly(case, queue, id, job, shown):
        queue.jobs[id] = _told(case, job, shown)


def _is_shown_wrongly(case: Case, queue: Held, id: str, job: Job, shown: Shown) -> bool:
    wanted: Shown = {"body": job.body, "group": job.group or None, "ttr": job.ttr}
    if not job.is_unknown:
        wanted |= {"priority": job.priority, "attempt": job.attempt}
        wanted |= {"lease": job.lease} if shown["state"] == "reserved" else {}
    wrong = {name: shown.get(name) for name, value in wanted.items() if shown.get(name) != value}
    states = _states(case, queue, id, job)
    if not COUNTED.get(shown["state"], 0) & states:
        wrong["state"] = f"{shown['state']}, not {names(states)}"
    if wrong:
        case.violation("view", f"{case.verb} shows {wrong} of {job}", case.words[1], id)
    return bool(wrong)


def _told(case: Case, job: Job, shown: Shown) -> Job:
    """What was unknown is known from here on."""
    if not job.is_unknown:
        return job
    is_leased = shown["deadline"] is not None
    at = shown["deadline"] if is_leased else shown["due"]
    return replace(
        job,
        priority=shown["priority"],
        attempt=shown["attempt"],
        ready=(at, at),
        lease=shown["lease"] or (-1 if is_leased else None),
        begin=0,
        since=case.window.end,
        is_immediate=False,
        is_unknown=False,
    )


def peek(case: Case, queue: Held) -> None:
    said = grammar.others(case.words, 2)
    name, count = str(said.get("STATE", "ready")).lower(), said.get("COUNT", 1)
    least, most = _range(case, queue, BY_NAME[name])
    if not min(least, count) <= len(case.told) <= min(most, count):
        text = f"PEEK STATE {name} shows {len(case.told)} of {least} to {most}"
        case.violation("count", text, case.words[1])
    seen: list[Job] = []
    for flat in case.told:
        shown = _fields(flat)
        id = str(shown["id"])
        job = queue.jobs.get(id)
        if job is None:
            case.violation(
                "ghost", "PEEK shows a job that has left, or never was", case.words[1], id
            )
        elif not queue.is_open(id) and not _is_shown_wrongly(case, queue, id, job, shown):
            queue.jobs[id] = job = _told(case, job, shown)
            seen.append(job)
    for first, second in itertools.pairwise(seen):
        if name == "ready" and _stands_before(second, first):
            text = f"PEEK shows {first} before {second}"
            case.violation("order", text, case.words[1])


def _stands_before(one: Job, other: Job) -> bool:
    """By priority; those without a group first; then by due time."""
    first = (one.priority, one.group != NO_GROUP, one.ready[1])
    second = (other.priority, other.group != NO_GROUP, other.ready[0])
    return first < second


def groups(case: Case, queue: Held) -> None:
    """One page of all groups."""
    cursor, told = case.told
    shown = [_fields(group) for group in told]
    seen = [str(group["group"]) for group in shown]
    if len(set(seen)) < len(seen):
        case.violation("view", f"GROUPS shows a group twice: {seen}", case.words[1])
    if cursor == "0":
        for group in sorted({job.group for job in queue.jobs.values()} - {NO_GROUP, *seen}):
            if _range(case, queue, DELAYED | READY | RESERVED, group)[0]:
                case.violation(
                    "lost", f"GROUPS doesn't show {group!r}, which has jobs", case.words[1]
                )
    for group in shown:
        _judge_group(case, queue, str(group["group"]), group)
    case.count("groups", len(shown))


def _judge_group(case: Case, queue: Held, name: str, shown: Shown) -> None:
    for state, bit in COUNTED.items():
        least, most = _range(case, queue, bit, name)
        if not least <= shown[state] <= most:
            text = f"GROUPS says {shown[state]} jobs of {name!r} are {state}, not {least} to {most}"
            case.violation("count", text, case.words[1])
    least, most = _range(case, queue, DELAYED | READY | RESERVED, name)
    if not least <= sum(shown[state] for state in COUNTED) <= most:
        case.violation(
            "count", f"GROUPS says of {name!r} {shown}, not {least} to {most}", case.words[1]
        )
    _judge_paused(case, queue, name, shown["paused"])
    places = queue.settings["GROUPCONCURRENCY"].value
    is_blocked = bool(places) and queue.live(case.now, name) >= places
    if (
        is_blocked
        and shown["ready"]
        and shown["blocked-until"] is None
        and _has_no_end(queue, name)
    ):
        text = f"GROUPS says that {name!r} isn't blocked, with GROUPCONCURRENCY {places}"
        case.violation("view", text, case.words[1])


def _has_no_end(queue: Held, group: str) -> bool:
    """A pause without an end shows as none."""
    return group not in queue.paused


def _judge_paused(case: Case, queue: Held, group: str, told: int) -> None:
    paused = queue.paused.get(group)
    is_certain = paused is None or paused.until[0] > case.now[1] or paused.until[1] <= case.now[0]
    wanted = int(paused is not None and paused.until[0] > case.now[1])
    if is_certain and told != wanted:
        of = f"group {group!r}" if group else "the queue"
        case.violation(
            "view", f"{case.verb} says that {of} is{'' if told else ' not'} paused", case.words[1]
        )


def info(case: Case, queue: Held) -> None:
    if case.told is None:
        if any(not job.is_unknown and not queue.is_open(id) for id, job in queue.jobs.items()):
            case.violation("lost", "INFO says that there is no such queue", case.words[1])
        return
    told = _fields(case.told)
    for name in ("jobs", *COUNTED):
        _judge_number(case, queue, name, told[name])
    _judge_paused(case, queue, QUEUE, told["paused"])
    for setting, field in (
        ("CONCURRENCY", "concurrency"),
        ("GROUPCONCURRENCY", "group-concurrency"),
    ):
        _judge_setting(case, field, told[field], queue.settings[setting].value)
    for setting, field in (("RATE", "rate"), ("GROUPRATE", "group-rate")):
        rate = queue.settings[setting].value
        shown = [told[name] for name in (field, f"{field}-per-ms", f"{field}-burst")]
        if rate:
            _judge_setting(case, field, shown, [rate.jobs, rate.per, rate.burst])
        else:
            _judge_setting(case, field, shown[0], rate)


def _judge_setting(case: Case, field: str, told: Any, wanted: Any) -> None:
    if wanted is not None and told != wanted:
        case.violation("view", f"INFO says {field} {told}, not {wanted}", case.words[1])
