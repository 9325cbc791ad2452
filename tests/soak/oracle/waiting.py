"""Consumers that wait: none is stuck while a job is ready, and the one that came first is served first."""

from .case import Case
from .life import READY, Life
from .model import Pending, Queue

# Of *active* time (timeline.Ticks). README promises a millisecond or two on an idle server; these share it.
STUCK_MS = 1_500


def judge_service(case: Case, queue: Queue, key: str, lives: list[Life | None]) -> None:
    """The consumer was served in the end: how long after it could have been?"""
    waited = [_could_have_ms(case, queue, life) for life in lives if life is not None]
    if waited:
        late = min(waited)
        case.findings.verdict.lateness.append(late)
        if late > STUCK_MS:
            case.violation("stuck", f"served {late} ms after it could have been", key)
    _judge_turn(case, queue, key)


def judge_silence(case: Case, queue: Queue, key: str) -> None:
    """The reply was that there is nothing: is there a job, and for how long?"""
    at_last = (case.window.until_ms, case.now[1])
    for id, slot in queue.touch_all(case.now):
        if slot.states(at_last, queue.settings.dead_keep) != READY:
            continue
        waited = min(_could_have_ms(case, queue, life) for life in slot.lives)
        if waited > STUCK_MS:
            case.violation("stuck", f"waited for {waited} ms beside a job that is ready", key, id)
            return


def _could_have_ms(case: Case, queue: Queue, life: Life) -> int:
    """For how long the consumer waited, the job was ready, and the server was seen alive."""
    ready = life.ready_at()
    if ready is None or life.turn.epoch != case.epoch.number:
        ready = ready or (0, case.now[1])
    known_since = life.turn.end if life.turn.epoch == case.epoch.number else case.epoch.cut
    since = max(case.window.begin, known_since, queue.here_since, queue.resumed)
    return case.epoch.ticks.active_ms(since, max(ready[1], queue.paused_until[1]), case.window.end)


def _judge_turn(case: Case, queue: Queue, key: str) -> None:
    """First come, first served: no consumer that came before, and waits at this key only, still waits."""
    if case.pending is None or case.verb != "DQ.POP" or case.op.shape != "tight":
        return
    for other in queue.pending:
        if _came_before(other, case.pending, case):
            case.violation(
                "unfair", "served before one that has waited for longer", key, also=[other.op.id]
            )
            return


def _came_before(other: Pending, own: Pending, case: Case) -> bool:
    """It came first, waits for nothing else, and wasn't served until later."""
    op = other.op
    words = op.say[0]
    if (
        op.shape != "tight"
        or op.told is None
        or len(op.say) > 1
        or str(words[0]).upper() != "DQ.POP"
    ):
        return False
    if "BLOCK" not in words or not isinstance(op.told[0], list) or other.keys != own.keys:
        return False
    if other.is_torn or own.is_torn:
        return False
    return other.step < own.step and 0 <= _lease(case.told) < _lease(op.told[0])


def _lease(items: list[list[object]]) -> int:
    """The lease of a delivery. A NOACK has none, so nothing can be judged."""
    lease = items[0][2] if items else None
    return lease if isinstance(lease, int) else -1
