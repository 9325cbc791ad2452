"""DQ.ADD."""

from collections.abc import Callable

from ..resp import Failure
from . import words as grammar
from .case import Case
from .life import GONE, PRESENT, WAITING, Life, Policy, Span
from .model import Effect, Lives, Queue, Settings, Slot

# What the servers of a session are started with.
DEFAULT_TTR, DEFAULT_ATTEMPTS, DEFAULT_PRIORITY = 60_000, 25, 128


def ids(case: Case) -> frozenset[str] | None:
    """The queue was to make an id, and no client got it: then it may be no id that is known."""
    if case.is_refused or (not case.is_lost and case.told is None):
        return frozenset()
    id = str(case.told if not case.is_lost else case.words[2])
    return frozenset() if id == "*" else frozenset([id])


def effect(case: Case, id: str, queue: Queue) -> Effect:
    replaces = "REPLACE" in grammar.add(case.words)

    def outcomes(life: Life, now: Span) -> Lives:
        if replaces or life.states(now, queue.settings.dead_keep) & GONE:
            return [_new(case, now, queue.settings)._replace(applied=life.applied)]
        return []

    return outcomes


def unseen(case: Case) -> Callable[[Queue, Span], Life] | None:
    """The job of an ADD that was to make an id, and whose reply was lost. A crash may come before its end is known."""
    if not case.is_lost or str(case.words[2]) != "*":
        return None
    since = case.now[0]
    return lambda queue, now: _new(case, (since, now[1]), queue.settings)


def _new(case: Case, now: Span, settings: Settings) -> Life:
    said = grammar.add(case.words)
    base, most = said.get("BACKOFF", settings.backoff)
    attempts = said.get("ATTEMPTS", settings.attempts)
    policy = Policy(
        body=str(case.words[3]),
        priority=said.get("PRIORITY", DEFAULT_PRIORITY),
        ttr=said.get("TTR", settings.ttr or DEFAULT_TTR),
        attempts=DEFAULT_ATTEMPTS if attempts is None else attempts,
        base=base,
        most=most,
        ttl=said.get("TTL", 0),
        keep=said.get("KEEP", settings.keep),
        late=said.get("LATE", settings.late),
    )
    due, is_immediate = _due(said, now)
    expires = (now[0] + policy.ttl, now[1] + policy.ttl) if policy.ttl else None
    return Life(WAITING, due, policy, 0, None, expires, case.turn, is_immediate)


def _due(said: grammar.Options, now: Span) -> tuple[Span, bool]:
    if "AT" in said:
        at = said["AT"]
        return (max(at, now[0]), max(at, now[1])), at <= now[0]
    delay = said.get("DELAY", 0)
    return (now[0] + delay, now[1] + delay), delay == 0


def judge(case: Case) -> None:
    key = case.words[1]
    if isinstance(case.told, Failure):
        _judge_refusal(case, case.told)
        return
    if case.told is None:
        _judge_taken(case)
        return
    queue = case.made_queue(key, maybe=case.is_lost and not case.window.is_certain)
    if queue.is_wild:
        return
    if case.is_lost:
        _added_unseen(case, queue)
    else:
        _judge_added(case, queue, str(case.told))


def _judge_added(case: Case, queue: Queue, id: str) -> None:
    slot = queue.touch(id, case.now)
    said, is_calm = grammar.add(case.words), case.is_calm(queue)
    _judge_room(case, queue, slot)
    states = slot.states(case.now, queue.settings.dead_keep)
    may_replace = "REPLACE" in said and bool(states & PRESENT)
    # Of what others did meanwhile it isn't known whether they did it before.
    is_open = "REPLACE" in said and not is_calm
    may_add = bool(states & GONE) or slot.is_wild or not is_calm
    queue.add_total("total-replaced", int(may_replace and not may_add), int(may_replace or is_open))
    queue.add_total("total-added", int(not may_replace and not is_open), int(may_add))
    if slot.is_wild and case.pending is not None:
        # Others may have had it already since it was added.
        return
    done, rest = case.split(slot)
    lives = [*done, *(new for life in rest for new in effect(case, id, queue)(life, case.now))]
    if slot.is_wild:
        lives = [_new(case, case.now, queue.settings)]
        slot.is_wild = False
    if not lives:
        case.violation(
            "lost", "ADD was told that the id is free, but its job has not left", case.words[1], id
        )
        lives = [_new(case, case.now, queue.settings)]
    case.store(queue, id, slot, lives)


def _judge_room(case: Case, queue: Queue, slot: Slot) -> None:
    most, dead_keep = queue.settings.max_jobs, queue.settings.dead_keep
    if not most or not case.is_calm(queue) or slot.states(case.now, dead_keep) & PRESENT:
        return
    least = sum(
        not slot.states(case.now, dead_keep) & GONE for _, slot in queue.touch_all(case.now)
    )
    if least >= most:
        case.violation(
            "count", f"ADD was taken though {least} jobs fill MAXJOBS {most}", case.words[1]
        )


def _added_unseen(case: Case, queue: Queue) -> None:
    """The ADD was carried out; its reply is unknown."""
    id = str(case.words[2])
    if id == "*":
        life = _new(case, case.now, queue.settings)
        queue.phantoms[life.policy.body] = [life]
    else:
        slot = queue.touch(id, case.now)
        if not slot.is_wild:
            made = [new for life in slot.lives for new in effect(case, id, queue)(life, case.now)]
            case.store(queue, id, slot, [*slot.lives, *made])
    queue.add_total("total-added", 0, 1)
    queue.add_total("total-replaced", 0, 1)


def _judge_taken(case: Case) -> None:
    """NX replied that there is such a job."""
    _judge_there(case, "NX was told that the id is taken, but no such job is there")


def _judge_refusal(case: Case, told: Failure) -> None:
    if told.startswith("EXISTS"):
        _judge_there(case, "EXISTS, but no such job is there")
    elif told.startswith("FULL"):
        _judge_full(case)


def _judge_there(case: Case, text: str) -> None:
    queue, id = case.queue(case.words[1]), str(case.words[2])
    if not case.is_calm(queue):
        return
    if queue is None:
        case.violation("ghost", text, case.words[1], id)
        return
    slot = queue.touch(id, case.now)
    if queue.is_wild or slot.is_wild or queue.phantoms:
        return
    there = [life for life in slot.lives if not life.is_absent]
    if not slot.states(case.now, queue.settings.dead_keep) & PRESENT:
        case.violation("ghost", text, case.words[1], id)
        case.lose_sight(queue, id)
    elif len(there) < len(slot.lives):
        case.store(queue, id, slot, [*there])


def _judge_full(case: Case) -> None:
    queue = case.queue(case.words[1])
    if not case.is_calm(queue):
        return
    if queue is None:
        case.violation("count", "FULL, but there is no queue", case.words[1])
        return
    if queue.is_wild:
        return
    most = sum(
        bool(slot.states(case.now, queue.settings.dead_keep) & PRESENT)
        for _, slot in queue.touch_all(case.now)
    )
    if most + len(queue.phantoms) < queue.settings.max_jobs or not queue.settings.max_jobs:
        limit = queue.settings.max_jobs
        case.violation(
            "count", f"FULL, but there are {most} jobs at most and MAXJOBS {limit}", case.words[1]
        )
