"""Commands on a whole queue: KICK, PURGE, PAUSE, RESUME, ALTER."""

from collections.abc import Callable

from . import words as grammar
from .case import Case
from .claims import told_of
from .life import BY_NAME, DEAD, FINISHED, NEVER, Life, Span
from .model import Lives, Queue, distinct

CALL_MAX = 10_000
ALL = "DQ.KICK", "DQ.PURGE", "DQ.PAUSE", "DQ.RESUME", "DQ.ALTER"

# When a life left, or will leave, a state: what comes first goes first.
Rank = Callable[[Life], Span]


def judge(case: Case) -> None:
    if case.is_refused:
        return
    queue = case.queue(case.words[1])
    if case.verb in ("DQ.PAUSE", "DQ.ALTER") and (queue is None or case.window.is_certain):
        queue = case.made_queue(case.words[1], maybe=not case.window.is_certain)
    if queue is None:
        if (
            case.verb in ("DQ.KICK", "DQ.PURGE")
            and case.told
            and not case.is_lost
            and case.is_calm(None)
        ):
            case.violation(
                "ghost", f"{case.verb} counted {case.told} where there is no queue", case.words[1]
            )
        return
    if queue.is_wild:
        return
    if case.verb in ("DQ.KICK", "DQ.PURGE"):
        _judge_batch(case, queue)
    elif not case.window.is_certain or not case.is_calm(queue):
        # Others saw the queue before or after it; which is unknown.
        queue.is_wild = True
        case.count("lost sight of a queue")
    elif case.verb == "DQ.ALTER":
        _alter(case, queue)
    else:
        _pause(case, queue)


def may_have_been_carried_out(case: Case, queue: Queue) -> None:
    """The command was under way when the server crashed. The data after the restart may have seen it, or not."""
    if case.verb not in ("DQ.KICK", "DQ.PURGE"):
        queue.is_wild = True
        case.count("lost sight of a queue")
        return
    is_kick = case.verb == "DQ.KICK"
    state = DEAD if is_kick else BY_NAME[str(grammar.others(case.words, 2)["STATE"]).lower()]
    if is_kick:
        _may_have_kicked_phantoms(case, queue)
    for id, slot in list(queue.slots.items()):
        made = [
            life.kicked(case.now, case.turn) if is_kick else life.gone()
            for life in slot.lives
            if life.states(case.now, queue.settings.dead_keep) & state
        ]
        if made and not slot.is_wild:
            slot.lives = distinct([*slot.lives, *made])
            queue.keep(id, slot)


def _may_have_kicked_phantoms(case: Case, queue: Queue) -> None:
    """A job of unknown id may have been among those that were dead."""

    def kicked(life: Life, now: Span) -> list[Life]:
        is_dead = life.states(now, queue.settings.dead_keep) & DEAD
        return [life.kicked(now, case.turn)] if is_dead else []

    queue.may_have_met_phantoms(kicked, case.now)


def _pause(case: Case, queue: Queue) -> None:
    if case.verb == "DQ.RESUME":
        queue.paused_until = (0, 0)
    else:
        span = grammar.others(case.words, 2).get("FOR")
        queue.paused_until = (case.now[0] + span, case.now[1] + span) if span else (NEVER, NEVER)
    queue.resumed = case.window.end
    queue.changed = case.step


def _alter(case: Case, queue: Queue) -> None:
    queue.settle(case.now)
    # An ADD that is under way got the old defaults or will get the new ones.
    list(queue.touch_all(case.now))
    said, settings = grammar.alter(case.words), queue.settings
    settings.ttr = said.get("TTR", settings.ttr)
    settings.attempts = said.get("ATTEMPTS", settings.attempts)
    settings.backoff = said.get("BACKOFF", settings.backoff)
    settings.keep = said.get("KEEP", settings.keep)
    settings.late = said.get("LATE", settings.late)
    settings.max_jobs = said.get("MAXJOBS", settings.max_jobs)
    if "DEADKEEP" in said:
        settings.dead_keep, queue.altered = said["DEADKEEP"], case.window.end
    queue.changed = case.step


def _judge_batch(case: Case, queue: Queue) -> None:
    """The first jobs in a state: kicked, or removed."""
    is_kick = case.verb == "DQ.KICK"
    said = grammar.others(case.words, 2)
    state = DEAD if is_kick else BY_NAME[str(said["STATE"]).lower()]
    limit = min(said.get("COUNT", 1 if is_kick else 1_000), CALL_MAX)
    may, must = _candidates(case, queue, state, said.get("OLDER", 0))
    told = None if case.is_lost else int(case.told)
    if told is not None and case.is_calm(queue):
        _judge_count(case, queue, told, min(limit, len(must)), min(limit, len(may)), must)
    sure = told is not None and case.is_calm(queue)
    if is_kick and told != 0:
        _may_have_kicked_phantoms(case, queue)
    for id in may:
        slot = queue.touch(id, case.now)
        if slot.is_wild:
            continue
        lives: Lives = []
        for life in slot.lives:
            in_state, elsewhere = _parts(life, state, case.now, queue.settings.dead_keep)
            if in_state and told != 0:
                lives.append(life.kicked(case.now, case.turn) if is_kick else life.gone())
            if elsewhere or not (sure and told == len(may)):
                lives.append(life)
        case.store(queue, id, slot, lives)
    name = "total-kicked" if is_kick else "total-purged"
    queue.add_total(name, told or 0, len(may) if told is None else told)


def _parts(life: Life, state: int, now: Span, dead_keep: int) -> tuple[bool, bool]:
    states = life.states(now, dead_keep)
    return bool(states & state), bool(states & ~state)


def _candidates(case: Case, queue: Queue, state: int, older: int) -> tuple[list[str], list[str]]:
    """The jobs that may have been in that state for long enough, and those that certainly have."""
    may, must = [], []
    moment = (case.now[0] - older, case.now[1] - older)
    for id, slot in queue.touch_all(case.now):
        states = slot.states(case.now, queue.settings.dead_keep)
        if not states & state:
            continue
        if slot.is_wild or not older:
            spans: list[Span] = [(0, NEVER if slot.is_wild else 0)]
        else:
            spans = [_since(life, state) for life in slot.lives if not life.is_absent]
        if any(span[0] <= moment[1] for span in spans):
            may.append(id)
        if states == state and all(span[1] <= moment[0] for span in spans):
            must.append(id)
    return may, must


def _since(life: Life, state: int) -> Span:
    """Since when the job is in that state, if it is."""
    if state == DEAD:
        return life.died_at()
    if life.stage == FINISHED:
        return (life.at[0] - life.policy.keep, life.at[1] - life.policy.keep)
    return life.ready_at() or (0, NEVER)


def _judge_count(
    case: Case, queue: Queue, told: int, least: int, most: int, must: list[str]
) -> None:
    most += len(queue.phantoms)
    if not least <= told <= most:
        those = "; ".join(f"{id}: {told_of(queue, id, case.now)}" for id in must[:3])
        case.violation(
            "count", f"{case.verb} counted {told}, not {least} to {most}: {those}", case.words[1]
        )
