"""DQ.PEEK page by page: a page goes on after the last job, and a job that stayed in the state all along is shown."""

from typing import Any

from . import words as grammar
from .case import Case, Walk
from .life import BY_NAME, Life
from .model import Queue

# As the runner finds the time of the job after which a page begins.
TIMES = {"delayed": "due", "reserved": "deadline", "dead": "since", "done": "kept-until"}


def judge(case: Case, queue: Queue | None) -> None:
    number = case.op.note.get("walk")
    if number is None:
        return
    said = grammar.others(case.words, 2)
    state, place = str(said["STATE"]), (case.op.client, number)
    if "AFTER" not in said:
        is_known = queue is not None and case.is_calm(queue)
        case.findings.walks[place] = Walk(
            queue, state, _standing(case, queue, state) if is_known else {}
        )
    walk = case.findings.walks.get(place)
    if walk is None:
        return
    if queue is not walk.queue:
        # It goes on in another queue, to which the key belongs by now.
        del case.findings.walks[place]
        return
    if (
        queue is not None
        and state == "ready"
        and "AFTER" in said
        and _lives(queue, walk.last) != walk.lives
    ):
        # It goes on behind another job of that id, which stands elsewhere: a walk through `ready` ends there.
        del case.findings.walks[place]
        return
    _judge_page(case, walk, said.get("AFTER"), said.get("FROM"))
    if queue is not None and case.told:
        walk.last = str(dict(zip(case.told[-1][::2], case.told[-1][1::2], strict=True))["id"])
        walk.lives = _lives(queue, walk.last)
    if len(case.told) < said["COUNT"]:
        _judge_end(case, queue, walk)


def _judge_page(case: Case, walk: Walk, last: Any, begin: int | None) -> None:
    """If the last job has moved, the page begins with the millisecond that it had; the job itself isn't there."""
    ids: set[str] = set()
    for flat in case.told:
        shown = dict(zip(flat[::2], flat[1::2], strict=True))
        id, at = str(shown["id"]), _time(walk.state, shown)
        if id in ids or (id == str(last) and begin in (None, at)):
            case.violation("view", f"PEEK shows it twice as {walk.state}", case.words[1], id)
        if begin is not None and at < begin:
            case.violation("order", f"PEEK FROM {begin} shows one of {at}", case.words[1], id)
        ids.add(id)
    walk.seen |= ids


def _judge_end(case: Case, queue: Queue | None, walk: Walk) -> None:
    if queue is None or queue.is_wild or not walk.there or not case.is_calm(queue):
        return
    still = _standing(case, queue, walk.state)
    for id, life in walk.there.items():
        if still.get(id) == life and id not in walk.seen:
            text = f"no page of PEEK STATE {walk.state} shows it, which stood there all along"
            case.violation("lost", text, case.words[1], id)
    case.count("walks")


def _standing(case: Case, queue: Queue | None, state: str) -> dict[str, Any]:
    """The jobs that are certainly in that state, and would be others if they had moved."""
    there: dict[str, Any] = {}
    for id, slot in queue.touch_all(case.now) if queue is not None else ():
        states = slot.states(case.now, queue.settings.dead_keep) if queue is not None else 0
        if not slot.is_wild and len(slot.lives) == 1 and states == BY_NAME[state]:
            there[id] = _identity(slot.lives[0])
    return there


def _lives(queue: Queue, id: str) -> list[Any]:
    """The lives that a job may have, and that would be others if it had moved."""
    return [_identity(life) for life in queue.slot(id).lives]


def _identity(life: Life) -> Any:
    return life.stage, life.policy.body, life.policy.priority, life.attempt, life.turn


def _time(state: str, shown: dict[str, Any]) -> int:
    """The time by which the job is placed in the order of that state."""
    if state == "ready":
        return 0
    ends = (
        [shown["expires"]]
        if state in ("delayed", "reserved") and shown["expires"] is not None
        else []
    )
    return min([shown[TIMES[state]], *ends])
