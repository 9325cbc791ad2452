"""Commands that name jobs and reply how many counted: FINISH, RELEASE, TOUCH, BURY, DEL, KICKJOB."""

from collections.abc import Callable
from typing import Any

from . import words as grammar
from .case import Case
from .life import DEAD, DELAYED, GONE, NEVER, Life, Span, Turn
from .model import Effect, Lives, Queue

# What becomes of a life if the command counts for it, and whether it may as well not count.
Act = Callable[[Life, Span], tuple[Lives, bool]]

ACCEPTED_WRONGLY = {"DQ.DEL": "count", "DQ.KICKJOB": "count", "": "stale"}
REFUSED_WRONGLY = {"DQ.DEL": "lost", "DQ.KICKJOB": "count", "": "refused"}
TOTALS = {
    "DQ.FINISH": "total-finished",
    "DQ.RELEASE": "total-released",
    "DQ.BURY": "total-buried",
    "DQ.DEL": "total-deleted",
    "DQ.KICKJOB": "total-kicked",
}


def named(case: Case, queue: Queue | None) -> dict[str, Act]:
    """The jobs that a command names, and what it asks for each."""
    words, turn = case.words, case.turn
    dead_keep = queue.settings.dead_keep if queue is not None else 0
    match case.verb:
        case "DQ.FINISH":
            acts = {id: _finish(claim) for id, claim in grammar.claims(words)}
        case "DQ.DEL":
            acts = {str(id): _delete for id in words[2:]}
        case "DQ.KICKJOB":
            acts = {str(id): _kick(turn, dead_keep) for id in words[2:]}
        case "DQ.RELEASE":
            said = grammar.release(words)
            delay, is_begun, priority = (
                said.get("DELAY"),
                "UNBEGUN" not in said,
                said.get("PRIORITY"),
            )

            def release(life: Life, now: Span) -> Life:
                return life.prioritised(priority).released(now, turn, delay, is_begun=is_begun)

            acts = _while_alive(words, release)
        case "DQ.TOUCH":
            ttr = grammar.others(words, 4).get("TTR")
            acts = _while_alive(words, lambda life, now: life.touched(now, turn, ttr))
        case "DQ.BURY":
            acts = _while_alive(words, lambda life, now: life.buried(now))
        case verb:
            raise ValueError(verb)
    return {id: _unless_gone(act, turn, dead_keep) for id, act in acts.items()}


def _unless_gone(act: Act, turn: Turn, dead_keep: int) -> Act:
    """A command doesn't count for a job that isn't there, or that the queue removed when its time was over."""

    def checked(life: Life, now: Span) -> tuple[Lives, bool]:
        states = life.states(now, dead_keep)
        if states == GONE:
            return [], True
        made, may_not = act(life, now)
        return [new._replace(turn=turn) for new in made], may_not or bool(states & GONE)

    return checked


def _finish(claim: int | str) -> Act:
    def act(life: Life, now: Span) -> tuple[Lives, bool]:
        return ([life.finished(now)], False) if life.holds(claim) else ([], True)

    return act


def _delete(life: Life, now: Span) -> tuple[Lives, bool]:
    return [life.gone()], False


def _kick(turn: Turn, dead_keep: int) -> Act:
    def act(life: Life, now: Span) -> tuple[Lives, bool]:
        states = life.states(now, dead_keep)
        made: Lives = [life.kicked(now, turn)] if states & DEAD else []
        made += [life.hurried(now, turn)] if states & DELAYED else []
        return made, bool(states & ~(DEAD | DELAYED))

    return act


def _while_alive(words: list[Any], then: Callable[[Life, Span], Life]) -> dict[str, Act]:
    """Counts for the client that holds the lease, while the TTL isn't over."""
    claim = words[3] if words[3] == "*" else int(words[3])

    def act(life: Life, now: Span) -> tuple[Lives, bool]:
        if not life.holds(claim):
            return [], True
        may, must = life.outlives(now)
        return ([then(life, now)] if may else []), not must

    return {str(words[2]): act}


def effect(case: Case, id: str, queue: Queue) -> Effect:
    """The effect of a command that is under way, or whose reply was lost."""
    act = named(case, queue)[id]

    def outcomes(life: Life, now: Span) -> Lives:
        return act(life, now)[0]

    return outcomes


def ids(case: Case) -> frozenset[str]:
    """The jobs that the command may have changed: none, if the reply was that nothing counted."""
    if case.is_refused or (not case.is_lost and case.told == 0):
        return frozenset()
    return frozenset(named(case, None))


def judge(case: Case) -> None:
    queue = case.queue(case.words[1])
    acts = named(case, queue)
    if case.is_refused or (queue is not None and queue.is_wild):
        return
    if queue is None:
        if not case.is_lost and case.told != 0 and case.is_calm(None):
            case.violation(
                "ghost", f"{case.verb} counted {case.told} where there is no queue", case.words[1]
            )
        return
    has_twins = len(acts) < len(case.words[2:]) // (2 if case.verb == "DQ.FINISH" else 1)
    told = None if case.is_lost or has_twins else int(case.told)
    verdicts = _verdicts(case, queue, acts, told)
    for id, counts in verdicts.items():
        _settle(case, queue, id, acts[id], counts)
    if case.verb in TOTALS and told is not None:
        queue.add_total(TOTALS[case.verb], told, told)
    elif case.verb in TOTALS:
        queue.add_total(TOTALS[case.verb], 0, len(case.words))


def _verdicts(
    case: Case, queue: Queue, acts: dict[str, Act], told: int | None
) -> dict[str, bool | None]:
    """For each id, whether the command counted for it; None where that can't be known."""
    may = {id: _may_count(case, queue, id, act) for id, act in acts.items()}
    most, least = sum(can for can, _ in may.values()), sum(must for _, must in may.values())
    if told is None:
        return dict.fromkeys(acts)
    if told > most:
        _complain(case, queue, acts, ACCEPTED_WRONGLY, f"of at most {most}")
    elif told < least and case.is_calm(queue):
        _complain(case, queue, acts, REFUSED_WRONGLY, f"of at least {least}")
    elif told == most:
        return {id: can for id, (can, _) in may.items()}
    elif told == least and case.is_calm(queue):
        return {id: must for id, (_, must) in may.items()}
    elif told == 0:
        # Others changed the queue meanwhile: it may have come before what makes it count by now.
        return dict.fromkeys(acts, False)
    else:
        return dict.fromkeys(acts)
    return {}


def _may_count(case: Case, queue: Queue, id: str, act: Act) -> tuple[bool, bool]:
    slot = queue.touch(id, case.now)
    if slot.is_wild:
        return True, False
    done, rest = case.split(slot)
    results = [act(life, case.now) for life in rest]
    can = bool(done) or any(made for made, _ in results)
    must = not done and all(made and not may_not for made, may_not in results)
    return can, must


def _settle(case: Case, queue: Queue, id: str, act: Act, counts: bool | None) -> None:
    """The lives that the job may have from here on."""
    slot = queue.touch(id, case.now)
    if slot.is_wild:
        return
    done, rest = case.split(slot)
    if counts is False and not case.is_calm(queue):
        case.store(queue, id, slot, [*done, *rest])
        return
    lives = [*done] if counts is not False else []
    for life in rest:
        made, may_not = act(life, case.now)
        if counts is not False:
            lives += made
        is_open = may_not or not case.window.is_certain or not case.is_calm(queue)
        if counts is not True and is_open:
            lives.append(life)
    if not lives:
        case.lose_sight(queue, id)
    elif set(lives) != set(slot.lives):
        case.store(queue, id, slot, lives)


def _complain(
    case: Case, queue: Queue, acts: dict[str, Act], kinds: dict[str, str], than: str
) -> None:
    lives = "; ".join(f"{id}: {told_of(queue, id, case.now)}" for id in acts)
    kind = kinds.get(case.verb, kinds[""])
    case.violation(
        kind, f"{case.verb} counted {case.told}, {than}: {lives}", case.words[1], next(iter(acts))
    )
    for id in acts:
        case.lose_sight(queue, id)


def told_of(queue: Queue, id: str, now: Span) -> str:
    return " | ".join(describe(life, now) for life in queue.slot(id).lives) or "unknown"


def describe(life: Life, now: Span) -> str:
    """A life in words, for a violation."""
    if life.is_absent:
        return "not there"
    return (
        f"{life.stage} at {_ago(life.at, now)}, attempt {life.attempt} of {life.policy.attempts}, "
        f"lease {life.lease}" + (f", expires {_ago(life.expires, now)}" if life.expires else "")
    )


def _ago(span: Span, now: Span) -> str:
    if span[1] >= NEVER // 2:
        return f"{span[0] - now[0]:+}..? ms"
    return f"{span[0] - now[0]:+}..{span[1] - now[0]:+} ms"
