"""DQ.POP and DQ.MPOP: which jobs were handed out and should have been, with which lease, in which order, and when."""

import itertools
from collections.abc import Iterable
from typing import Any

from . import words as grammar
from .case import Case
from .claims import describe, told_of
from .life import (
    DEAD,
    DELAYED,
    DONE,
    GONE,
    NEVER,
    NOWHERE,
    READY,
    RESERVED,
    UNKNOWN,
    Life,
    Span,
    comes_before,
)
from .model import Effect, Given, Lives, Queue, Slot
from .waiting import judge_service, judge_silence

# A reply ends when it holds this many bytes of bodies.
BYTES_MAX = 16 * 2**20

Item = list[Any]


def deliveries(case: Case) -> tuple[str, list[Item]]:
    """The key, and the jobs that were handed out from it."""
    keys, _ = grammar.pop(case.words)
    if case.is_lost or case.is_refused or not case.told:
        return keys[0], []
    return (keys[0], case.told) if case.verb == "DQ.POP" else (str(case.told[0]), case.told[1])


def was_ambushed(case: Case) -> bool:
    """The client was killed in the turn in which its jobs came: it got no reply, and the jobs are given back."""
    return case.is_lost and case.op.note.get("ambush") in case.findings.ambushes


def ids(case: Case) -> frozenset[str] | None:
    if case.is_lost:
        return (
            frozenset()
            if was_ambushed(case)
            else frozenset(grammar.popped_by_id(case.words)) or None
        )
    return frozenset(str(item[0]) for item in deliveries(case)[1])


def effect(case: Case, id: str, queue: Queue) -> Effect:
    """The life after the delivery; None, if that life can't have been handed out so."""
    ttr, noack = _lasts(case)
    item = _items(case).get(id)
    turn = case.turn
    is_by_id = bool(grammar.popped_by_id(case.words))

    def taken(life: Life, now: Span) -> Lives:
        ready = life.taken(now, turn, life.states(now, queue.settings.dead_keep))
        fitting = [one for one in ready if item is None or _fits(one, item)]
        lease = UNKNOWN if item is None else item[2]
        return [one.popped(now, turn, lease, ttr, noack=noack) for one in fitting]

    def outcomes(life: Life, now: Span) -> Lives:
        if is_by_id:
            return taken(life, now)
        if not life.states(now) & READY:
            return []
        if item is not None and not _fits(life, item):
            return []
        ready = life.ready_at()
        moment = (max(now[0], min(ready[0], now[1])) if ready else now[0], now[1])
        lease = UNKNOWN if item is None else item[2]
        return [life.popped(moment, turn, lease, ttr, noack=noack)]

    return outcomes


def _items(case: Case) -> dict[str, Item]:
    """The jobs that were handed out, by id. Made once, since there may be ten thousand."""
    if case.items is None:
        case.items = {str(item[0]): item for item in deliveries(case)[1]}
    return case.items


def _lasts(case: Case) -> tuple[int | None, bool]:
    """How long the leases last; whether there are none (NOACK)."""
    words = case.words
    return (int(words[words.index("TTR") + 1]) if "TTR" in words else None), "NOACK" in words


def _fits(life: Life, item: Item) -> bool:
    return life.policy.body == str(item[1]) and life.attempt + 1 == item[3]


def judge(case: Case) -> None:
    keys, said = grammar.pop(case.words)
    if case.is_refused or was_ambushed(case):
        return
    if case.is_lost:
        for key in keys:
            _lost_deliveries(case, key, said)
        return
    key, items = deliveries(case)
    case.count("deliveries", len(items))
    if items:
        _judge_items(case, key, items, said)
    for empty in keys[: keys.index(key)] if items else keys:
        _judge_nothing(case, empty)


def _lost_deliveries(case: Case, key: str, said: grammar.Options) -> None:
    """Any job that was ready, or named, may have been handed out with a lease that no client knows."""
    queue = case.queue(key)
    if queue is None or queue.is_wild:
        return
    if case.op.note.get("ambush") in case.findings.cut_ambushes:
        # The jobs may have been given back since, later than they were due.
        queue.is_wild = True
        return
    named = grammar.popped_by_id(case.words)
    at_most = len(named) or said.get("COUNT", 1)
    queue.add_total("total-popped", 0, at_most)
    if "NOACK" in said:
        queue.add_total("total-finished", 0, at_most)
    # How late it was is unknown.
    _note_lateness(case, queue, [(None, 0)])
    if not named:
        queue.may_have_met_phantoms(effect(case, "", queue), (case.window.since_ms, case.now[1]))
    for id, slot in queue.touch_all(case.now):
        if slot.is_wild or (named and id not in named):
            continue
        done, rest = case.split(slot)
        made = [
            new
            for life in rest
            for new in effect(case, id, queue)(life, (case.window.since_ms, case.now[1]))
        ]
        lives = [*rest, *done, *made]
        if set(lives) != set(slot.lives):
            case.store(queue, id, slot, lives)


def _judge_items(case: Case, key: str, items: list[Item], said: grammar.Options) -> None:
    queue = _queue_of(case, key, items)
    if queue is None:
        if case.is_calm(None):
            case.violation(
                "ghost", f"{len(items)} jobs handed out where there is no queue", key, items[0][0]
            )
        return
    _judge_leases(case, queue, key, items, said)
    if queue.is_wild:
        return
    if case.is_calm(queue) and queue.paused_until[0] > case.now[1]:
        case.violation("paused", "handed out by a queue that is paused", key, items[0][0])
    named = grammar.popped_by_id(case.words)
    shown = [_judge_item(case, queue, key, item) for item in items]
    queue.add_total("total-popped", len(items), len(items))
    if "NOACK" in said:
        queue.add_total("total-finished", len(items), len(items))
    # One that is taken before its time isn't late.
    _note_lateness(case, queue, [(None, 0)] if named else shown)
    if named:
        _judge_named(case, queue, key, named, items)
    elif case.is_calm(queue):
        _judge_order(
            case, queue, key, [life for life, _ in shown], len(items) < said.get("COUNT", 1)
        )
    elif case.is_blocking:
        judge_service(case, queue, key, [life for life, _ in shown])


def _queue_of(case: Case, key: str, items: list[Item]) -> Queue | None:
    """The queue that the delivery came from. It may be at another key now."""
    here = case.queue(key)
    if case.pending is None:
        return here
    been_here = case.pending.queues.get(case.place(key), [])
    candidates = list(dict.fromkeys(queue for queue in been_here if queue is not None))
    fitting = [queue for queue in candidates if queue.is_wild or _may_give(case, queue, items[0])]
    if len(fitting) > 1:
        for queue in fitting:
            _note_lateness(case, queue, [(None, 0)])
            queue.has_known_totals = False
            for item in items:
                case.lose_sight(queue, str(item[0]))
        return None
    return fitting[0] if fitting else here


def _may_give(case: Case, queue: Queue, item: Item) -> bool:
    slot = queue.touch(str(item[0]), case.now)
    if slot.is_wild or str(item[1]) in queue.phantoms:
        return True
    done, rest = case.split(slot)
    return bool(done) or any(_fits(life, item) for life in rest)


def _judge_item(case: Case, queue: Queue, key: str, item: Item) -> tuple[Life | None, int]:
    """The life that was handed out, if it is known which."""
    id = str(item[0])
    slot = queue.touch(id, case.now)
    if str(item[1]) in queue.phantoms and slot.lives == [NOWHERE]:
        slot.lives = queue.phantoms.pop(str(item[1]))
    if slot.is_wild:
        case.count("deliveries of jobs out of sight")
        return None, 0
    done, rest = case.split(slot)
    window = (case.window.since_ms, case.now[1]) if case.pending else case.now
    act = effect(case, id, queue)
    matched = [life for life in rest if act(life, window)]
    lives = [*done, *(new for life in matched for new in act(life, window))]
    if not lives:
        case.violation(*_explain(case, slot.lives, item), key, id)
        case.lose_sight(queue, id)
        return None, 0
    case.store(queue, id, slot, lives)
    return (matched[0], len(matched)) if len(matched) == 1 else (None, len(matched))


def _explain(case: Case, lives: Iterable[Life], item: Item) -> tuple[str, str]:
    """Why the job can't have been handed out: the reason of the life that comes closest."""
    now = case.now
    told = f"handed out as {item[1][:24]!r}, attempt {item[3]}, lease {item[2]}; it was "
    told += " | ".join(describe(life, now) for life in lives)
    there = [life for life in lives if not life.is_absent]
    if not there:
        return "ghost", told
    same = [life for life in there if life.policy.body == str(item[1])]
    if not same:
        return "body", told
    ready = [life for life in same if life.states(now) & READY]
    if ready:
        return "attempt", told
    states = 0
    for life in same:
        states |= life.states(now)
    if states & RESERVED:
        return "double", told
    if states & DELAYED:
        return "early", told
    return ("ghost", told) if states & (DEAD | DONE | GONE) else ("view", told)


# ---- leases ---------------------------------------------------------------------------------------


def _judge_leases(
    case: Case, queue: Queue, key: str, items: list[Item], said: grammar.Options
) -> None:
    """Law 7: lease numbers only grow, and none comes twice, whatever became of the server or the key."""
    if "NOACK" in said:
        for item in items:
            if item[2] is not None:
                case.violation("view", "a lease for a job that was taken with NOACK", key, item[0])
        return
    by_key = case.findings.leases.setdefault(case.place(key), {})
    floor = queue.last_lease
    if case.pending is not None:
        floor = case.pending.floors.get(id(queue), 0)
    for name, _, lease, *_ in items:
        befores = [leases[lease] for leases in (queue.lineage.given, by_key) if lease in leases]
        before = next((one for one in befores if not _may_come_again(case, queue, one)), None)
        if before is not None:
            case.violation(
                "lease-twice",
                f"lease {lease} was given before, by op {before.op}",
                key,
                name,
                [before.op],
            )
        elif lease <= floor:
            case.violation("lease-order", f"lease {lease} after {floor}", key, name)
        elif not 0 < lease < 2**53:
            case.violation("lease-order", f"lease {lease} is out of range", key, name)
        given = Given(case.op.id, case.epoch.number, case.window.end)
        queue.lineage.given[lease] = by_key[lease] = given
        floor = max(floor, lease)
    queue.last_lease = max(queue.last_lease, floor)


def _may_come_again(case: Case, queue: Queue, before: Given) -> bool:
    """The known limit of law 7: a crash has lost that delivery, and behind it a payload from before it was
    restored. Only where clocks were set or stand apart can its numbers be above those with which a server begins.
    """
    if before.op == case.op.id:
        return True
    is_from_before = any(
        made_in <= before.epoch < restored_in for made_in, restored_in in queue.payloads
    )
    has_lost = case.world.has_lost(before, case.epoch.number)
    return is_from_before and has_lost and not case.findings.has_steady_clocks


# ---- order, and what was withheld ------------------------------------------------------------------


def _judge_order(
    case: Case, queue: Queue, key: str, lives: list[Life | None], is_all: bool
) -> None:
    """Law 6, within a reply and against the jobs that stayed."""
    known = [life for life in lives if life is not None]
    for first, second in itertools.pairwise(known):
        if comes_before(second, first):
            case.violation("order", f"{_ready(second)} was handed out behind {_ready(first)}", key)
            return
    if not known or (case.is_blocking and not case.window.is_tight):
        return
    handed_out = {life.policy.body for life in known}
    for id, slot in queue.touch_all(case.now):
        if slot.states(case.now, queue.settings.dead_keep) != READY:
            continue
        others = slot.lives
        if any(life.policy.body in handed_out for life in others):
            continue
        if all(comes_before(life, known[-1]) for life in others):
            case.violation(
                "order", f"{_ready(known[-1])} was handed out before {_ready(others[0])}", key, id
            )
            return
        if (
            is_all
            and len(known) == len(lives)
            and sum(len(life.policy.body) for life in known) < BYTES_MAX
        ):
            case.violation(
                "withheld", f"not handed out though ready: {told_of(queue, id, case.now)}", key, id
            )
            return


def _ready(life: Life) -> str:
    span = life.ready_at() or (0, 0)
    return (
        f"{life.policy.body[:16]!r} (priority {life.policy.priority}, ready {span[0]}..{span[1]})"
    )


def _judge_nothing(case: Case, key: str) -> None:
    """The queue handed out nothing."""
    queue = case.queue(key)
    if queue is None or queue.is_wild or queue.paused_until[1] > case.now[0]:
        return
    if case.is_blocking:
        judge_silence(case, queue, key)
    if not case.is_calm(queue) or (case.is_blocking and not case.window.is_tight):
        return
    if named := grammar.popped_by_id(case.words):
        _judge_named(case, queue, key, named, [])
        return
    for id, slot in queue.touch_all(case.now):
        if slot.states(case.now, queue.settings.dead_keep) == READY:
            case.violation("withheld", f"nil though ready: {told_of(queue, id, case.now)}", key, id)
            case.lose_sight(queue, id)
            return
    case.count("nils")


def _judge_named(case: Case, queue: Queue, key: str, named: list[str], items: list[Item]) -> None:
    """Jobs are in the order of the ids; none that can be had is left out."""
    got = [str(item[0]) for item in items]
    if got != [id for id in dict.fromkeys(named) if id in got]:
        case.violation("order", f"asked for {named}, and got {got}", key)
    if not case.is_calm(queue):
        return
    for id in named:
        slot = queue.touch(id, case.now)
        states = slot.states(case.now, queue.settings.dead_keep)
        if id not in got and states and not states & ~(READY | DELAYED | DEAD):
            case.violation(
                "withheld", f"not handed out by its id: {told_of(queue, id, case.now)}", key, id
            )
            case.lose_sight(queue, id)
            return


def _note_lateness(case: Case, queue: Queue, shown: list[tuple[Life | None, int]]) -> None:
    """How late jobs were handed out. INFO must agree with it."""
    low, high = queue.lateness.get(case.epoch.number, case.epoch.lateness)
    for life, _ in shown:
        ready = life.ready_at() if life is not None else None
        if ready is None or case.pending is not None:
            high = NEVER
            continue
        low = max(low, case.now[0] - ready[1])
        high = max(high, case.now[1] - ready[0])
    queue.lateness[case.epoch.number] = (low, high)


def slot_is_ready(slot: Slot, queue: Queue, now: Span) -> bool:
    return slot.states(now, queue.settings.dead_keep) == READY
