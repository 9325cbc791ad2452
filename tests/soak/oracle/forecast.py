"""DQ.FORECAST: how many jobs come due in each step. The reply must lie between the jobs that certainly do and all that
may.
"""

from . import words as grammar
from .case import Case
from .life import DELAYED, Life, Span
from .model import Queue

# Counting jobs by steps takes its time. And beside so many leases not all that wait for a backoff are counted.
JOBS_MAX = 5_000


def judge(case: Case, queue: Queue | None) -> None:
    begin, step, count = grammar.forecast(case.words)
    if len(case.told) != count:
        case.violation("count", f"FORECAST has {len(case.told)} steps, not {count}", case.words[1])
        return
    case.count("forecasts")
    if queue is None or queue.phantoms or len(queue.slots) > JOBS_MAX:
        if queue is None and any(case.told):
            case.violation("ghost", "FORECAST tells of jobs where there is no queue", case.words[1])
        return
    first = (begin, begin) if begin is not None else case.now
    least, most = [0] * count, [0] * count
    for _, slot in queue.touch_all(case.now):
        if slot.is_wild:
            most = [jobs + 1 for jobs in most]
            continue
        certain = [_steps(life, case.now, first, step) for life in slot.lives]
        for at in range(count):
            places = [steps for steps in certain if steps and steps[0] <= at <= steps[1]]
            most[at] += bool(places)
            least[at] += len(places) == len(certain) and all(
                steps == (at, at, True) for steps in places
            )
    for at, told in enumerate(case.told):
        if not least[at] <= told <= most[at]:
            text = f"FORECAST says {told} in step {at}, not {least[at]} to {most[at]}"
            case.violation("count", text, case.words[1])
            return


def _steps(life: Life, now: Span, first: Span, step: int) -> tuple[int, int, bool] | None:
    """The steps in which the job may come due, if any, and whether it certainly does. Before the first step is below
    0.
    """
    states, due = life.states(now), life.ready_at()
    if not states & DELAYED or due is None:
        return None
    end = life.expires
    if end is not None and end[1] < due[0]:
        return None
    is_sure = states == DELAYED and (end is None or end[0] > due[1])
    return ((due[0] - first[1]) // step, (due[1] - first[0]) // step, is_sure)
