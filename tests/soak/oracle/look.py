"""Commands that only look: LEN, GET, PEEK, SCAN, INFO. What they show must be one of the possible lives."""

import itertools
from collections import Counter
from typing import Any

from . import forecast, walks
from . import words as grammar
from .case import Case, Scan
from .claims import told_of
from .life import (
    BY_NAME,
    DEAD,
    DONE,
    FINISHED,
    GONE,
    LEASED,
    NEVER,
    NOWHERE,
    PRESENT,
    WAITING,
    Life,
    Span,
    comes_before,
)
from .model import Lives, Queue, Slot

PEEK_MAX = 1_000
TOTALS = ("added", "replaced", "finished", "released", "buried", "deleted", "kicked")
# INFO's lateness is to within 1 %.
ROUGHLY = 0.02

Shown = dict[str, Any]


def judge(case: Case) -> None:
    if case.is_lost or case.is_refused:
        return
    queue = case.queue(case.words[1])
    if case.verb == "DQ.SCAN":
        _judge_scan(case, queue)
    if case.verb == "DQ.PEEK":
        walks.judge(case, queue)
    if not case.is_calm(queue) or (queue is not None and queue.is_wild):
        return
    match case.verb:
        case "DQ.LEN":
            _judge_len(case, queue)
        case "DQ.GET":
            _judge_get(case, queue)
        case "DQ.PEEK":
            _judge_peek(case, queue)
        case "DQ.INFO":
            _judge_info(case, queue)
        case "DQ.FORECAST":
            forecast.judge(case, queue)


def _fields(flat: list[Any]) -> Shown:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _states(case: Case, queue: Queue | None) -> Counter[int]:
    """For each possibility, how many jobs have it."""
    if queue is None:
        return Counter()
    dead_keep = queue.settings.dead_keep
    return Counter(slot.states(case.now, dead_keep) for _, slot in queue.touch_all(case.now))


def _range(queue: Queue | None, states: Counter[int], state: int) -> tuple[int, int]:
    """How many jobs must be in a state, and how many may."""
    least = sum(count for states, count in states.items() if not states & ~state)
    most = sum(count for states, count in states.items() if states & state)
    return least, most + (len(queue.phantoms) if queue is not None else 0)


def _judge_len(case: Case, queue: Queue | None) -> None:
    state = grammar.others(case.words, 2).get("STATE")
    _judge_number(
        case, queue, _states(case, queue), str(state).lower() if state else "jobs", case.told
    )


def _judge_number(
    case: Case, queue: Queue | None, states: Counter[int], name: str, told: int
) -> None:
    mask = PRESENT if name == "jobs" else BY_NAME[name]
    least, most = _range(queue, states, mask)
    case.count("counts")
    leaked = _overdue(case, queue, mask) if least < told else 0
    if told > most - leaked and told <= most:
        text = (
            f"{case.verb} {name} says {told}: {leaked} jobs are kept for longer than they should be"
        )
        case.violation("leak", text, case.words[1])
    elif not least <= told <= most:
        case.violation(
            "count", f"{case.verb} {name} says {told}, not {least} to {most}", case.words[1]
        )


def _overdue(case: Case, queue: Queue | None, mask: int) -> int:
    """How many jobs would be kept for longer than they may be."""
    if queue is None or not mask & (DONE | DEAD):
        return 0
    count = 0
    for slot in queue.slots.values():
        if not slot.states(case.now, queue.settings.dead_keep) & mask:
            continue
        there = [life for life in slot.lives if not life.is_absent]
        if there and not slot.is_wild:
            count += all(_is_overdue(case, life, queue) for life in there)
    return count


def _is_overdue(case: Case, life: Life, queue: Queue) -> bool:
    until, epoch = life.kept_until(queue.settings.dead_keep), case.epoch
    if until is None or until[1] >= case.now[0]:
        return False
    since = life.turn.end if life.turn.epoch == epoch.number else epoch.cut
    return (
        epoch.ticks.active_ms(max(since, queue.altered), until[1], case.window.end)
        > case.findings.sweep_ms
    )


def _judge_get(case: Case, queue: Queue | None) -> None:
    id = str(case.words[2])
    if queue is None:
        if case.told is not None:
            case.violation("ghost", "GET shows a job where there is no queue", case.words[1], id)
        return
    slot = queue.touch(id, case.now)
    if case.told is not None:
        _judge_shown(case, queue, id, _fields(case.told))
    elif not slot.is_wild and not slot.states(case.now, queue.settings.dead_keep) & GONE:
        case.violation(
            "lost", f"GET shows nothing: {told_of(queue, id, case.now)}", case.words[1], id
        )
        case.lose_sight(queue, id)
    elif not slot.is_wild:
        dead_keep = queue.settings.dead_keep
        case.store(
            queue,
            id,
            slot,
            [life.gone() for life in slot.lives if life.states(case.now, dead_keep) & GONE],
        )


def _judge_shown(case: Case, queue: Queue, id: str, shown: Shown) -> Slot:
    """Strikes out the lives that look otherwise."""
    slot = queue.touch(id, case.now)
    case.count("views")
    body = str(shown["body"])
    if body in queue.phantoms and slot.lives == [NOWHERE]:
        slot.lives = queue.phantoms.pop(body)
    if slot.is_wild:
        return slot
    lives: Lives = [
        seen
        for life in slot.lives
        if not life.is_absent
        and (seen := _seen(life, shown, case.now, queue.settings.dead_keep)) is not None
    ]
    if lives:
        case.store(queue, id, slot, lives)
        return slot
    told = {
        name: shown[name]
        for name in ("state", "due", "deadline", "attempt", "lease", "since", "expires")
    }
    kind = "ghost" if all(life.is_absent for life in slot.lives) else "view"
    text = f"{case.verb} shows {told} at {case.now}: {told_of(queue, id, case.now)}"
    case.violation(kind, text, case.words[1], id)
    case.lose_sight(queue, id)
    return queue.slot(id)


def _seen(life: Life, shown: Shown, now: Span, dead_keep: int) -> Life | None:
    """The life with what was shown of it; None, if it looks otherwise."""
    policy = life.policy
    fixed = {
        "body": policy.body,
        "priority": policy.priority,
        "ttr": policy.ttr,
        "attempts": policy.attempts,
        "attempt": life.attempt,
        "ttl": policy.ttl,
        "keep": policy.keep,
        "backoff-base": policy.base,
        "backoff-max": policy.most,
    }
    # Histories of before there was LATE don't show it.
    if (
        any(shown[name] != value for name, value in fixed.items())
        or shown.get("late", 0) != policy.late
    ):
        return None
    if not life.states(now, dead_keep) & BY_NAME[shown["state"]]:
        return None
    at = {WAITING: "due", LEASED: "deadline", FINISHED: "kept-until"}.get(life.stage, "since")
    # Of a waiting job whose TTL is over nothing is shown but since when.
    if shown[at] is None and not (life.stage == WAITING and shown["state"] == "dead"):
        return None
    if life.stage == LEASED and life.lease not in (shown["lease"], -1):
        return None
    if life.stage != LEASED and shown["lease"] is not None:
        return None
    if shown[at] is not None:
        if not life.at[0] <= shown[at] <= life.at[1]:
            return None
        life = life._replace(at=(shown[at], shown[at]))
    if life.expires is not None and shown["expires"] is not None:
        if not life.expires[0] <= shown["expires"] <= life.expires[1]:
            return None
        life = life._replace(expires=(shown["expires"], shown["expires"]))
    if life.stage == LEASED and life.lease == -1:
        life = life._replace(lease=shown["lease"])
    return life


def _judge_peek(case: Case, queue: Queue | None) -> None:
    said = grammar.others(case.words, 2)
    name, count = str(said.get("STATE", "ready")).lower(), min(said.get("COUNT", 1), PEEK_MAX)
    shown = [_fields(job) for job in case.told]
    if queue is None:
        if shown:
            case.violation("ghost", "PEEK shows jobs where there is no queue", case.words[1])
        return
    if any(job["state"] != name for job in shown):
        case.violation(
            "view", f"PEEK STATE {name} shows {[job['state'] for job in shown]}", case.words[1]
        )
        return
    if "AFTER" not in case.words:
        _judge_missing(case, queue, name, count, shown)
    slots = [_judge_shown(case, queue, str(job["id"]), job) for job in shown]
    lives = [slot.lives[0] if len(slot.lives) == 1 else None for slot in slots]
    for first, second in itertools.pairwise(lives):
        if first is not None and second is not None and _is_before(second, first, name):
            text = f"PEEK STATE {name} shows {first.policy.body[:16]!r} before {second.policy.body[:16]!r}"
            case.violation("order", text, case.words[1])
            return


def _judge_missing(case: Case, queue: Queue, name: str, count: int, shown: list[Shown]) -> None:
    least, most = _range(queue, _states(case, queue), BY_NAME[name])
    if not min(least, count) <= len(shown) <= most:
        text = f"PEEK STATE {name} COUNT {count} shows {len(shown)} of {least} to {most}"
        case.violation("count", text, case.words[1])


def _is_before(one: Life, other: Life, state: str) -> bool:
    """In the order in which jobs leave that state, certainly."""
    if state == "ready":
        return comes_before(one, other)
    if state == "dead":
        return one.died_at()[1] < other.died_at()[0]
    first, second = _leaves(one, state), _leaves(other, state)
    return first[1] < second[0]


def _leaves(life: Life, state: str) -> Span:
    """When it is due, or its lease or its time as done is over; earlier, if its TTL is over before. (LATE is later.)"""
    at = (life.ready_at() or life.at) if state == "delayed" else life.at
    end = life.expires or (NEVER, NEVER)
    return (min(at[0], end[0]), min(at[1], end[1]))


def _judge_scan(case: Case, queue: Queue | None) -> None:
    number = case.op.note.get("scan")
    if number is None:
        return
    cursor, ids = case.told
    if "SCHEDULED" in case.words:
        for id in ids:
            case.violation(
                "ghost", "SCAN SCHEDULED shows a job without a schedule", case.words[1], id
            )
        return
    # Under a name that only this scan has: another one of the same client begins anew.
    place = (case.op.client, number)
    has_state = "STATE" in case.words
    if str(case.words[2]) == "0":
        is_known = queue is not None and not has_state and case.is_calm(queue)
        there = _certainly_there(case, queue) if is_known else {}
        case.findings.scans[place] = Scan(queue, there)
    scan = case.findings.scans.get(place)
    if scan is None:
        return
    scan.seen.update(map(str, ids))
    if queue is not scan.queue or queue is None or queue.is_wild:
        return
    if case.is_calm(queue):
        _judge_ids(case, queue, [str(id) for id in ids])
    if cursor == "0":
        still = _certainly_there(case, queue)
        for id, body in scan.there.items():
            if still.get(id) == body and id not in scan.seen:
                case.violation(
                    "lost", f"no SCAN sees it: {told_of(queue, id, case.now)}", case.words[1], id
                )
        case.count("scans")


def _certainly_there(case: Case, queue: Queue) -> dict[str, str]:
    there = {}
    for id, slot in queue.touch_all(case.now):
        bodies = {life.policy.body for life in slot.lives if not life.is_absent}
        if (
            not slot.is_wild
            and len(bodies) == 1
            and not slot.states(case.now, queue.settings.dead_keep) & GONE
        ):
            there[id] = bodies.pop()
    return there


def _judge_ids(case: Case, queue: Queue, ids: list[str]) -> None:
    for id in ids:
        slot = queue.touch(id, case.now)
        if not slot.states(case.now, queue.settings.dead_keep) & PRESENT and not queue.phantoms:
            case.violation(
                "ghost", f"SCAN shows it: {told_of(queue, id, case.now)}", case.words[1], id
            )


def _judge_info(case: Case, queue: Queue | None) -> None:
    key = case.words[1]
    if queue is None:
        if case.told is not None:
            case.violation("ghost", "INFO shows a queue where there is none", key)
        return
    if case.told is None:
        if not queue.is_maybe:
            case.violation("lost", "INFO says that there is no such queue", key)
        return
    told, states = _fields(case.told), _states(case, queue)
    for name in ("jobs", *BY_NAME):
        _judge_number(case, queue, states, name, told[name])
    for name in TOTALS:
        least, most = queue.totals.get(f"total-{name}", (0, 0))
        if not queue.has_known_totals or queue.pending or least <= told[f"total-{name}"] <= most:
            continue
        case.violation(
            "count", f"INFO says total-{name} {told[f'total-{name}']}, not {least} to {most}", key
        )
        queue.has_known_totals = False
    _judge_settings(case, queue, told)
    _judge_lateness(case, queue, told)


def _judge_settings(case: Case, queue: Queue, told: Shown) -> None:
    settings = queue.settings
    wanted = {
        "max-jobs": settings.max_jobs,
        "dead-keep": settings.dead_keep,
        "default-keep": settings.keep,
        "default-backoff-base": settings.backoff[0],
        "default-backoff-max": settings.backoff[1],
    }
    if queue.paused_until[0] > case.now[1] or queue.paused_until[1] <= case.now[0]:
        wanted["paused"] = int(queue.paused_until[0] > case.now[1])
    for name, value in wanted.items():
        if told[name] != value:
            case.violation("view", f"INFO says {name} {told[name]}, not {value}", case.words[1])
    if not queue.pending and (told["last-lease"] or 0) < queue.last_lease:
        text = f"INFO says last-lease {told['last-lease']}, but {queue.last_lease} was given"
        case.violation("lease-order", text, case.words[1])
    if told["oldest-ready-ms"] is None and told["ready"]:
        case.violation("view", "INFO says that no job is ready", case.words[1])


def _judge_lateness(case: Case, queue: Queue, told: Shown) -> None:
    if not queue.has_known_lateness or queue.pending:
        return
    low, high = queue.lateness.get(case.epoch.number, case.epoch.lateness)
    shown = told["lateness-max-ms"] or 0
    if not low * (1 - ROUGHLY) - 2 <= shown <= high * (1 + ROUGHLY) + 2:
        text = f"INFO says lateness-max-ms {shown}, not {low} to {high if high < NEVER else '?'}"
        case.violation("lateness", text, case.words[1])
        queue.has_known_lateness = False
