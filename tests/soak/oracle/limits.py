"""Limits and groups: there are no more leases and deliveries than allowed, groups keep their order and take turns, and
no job or client waits without a reason.

These queues are in a database of their own, where each has one client that sends all commands, the *warden*, and one
that only waits for jobs, its *guest*. So the commands on a queue have an order, except for what the guest was given: it
may have that from the moment on in which it began to wait. If both were served, their leases show which was first. What
a crash or a lost reply leaves open is unknown until DQ.GET shows it.
"""

from dataclasses import replace
from typing import Any

from . import limits_look
from . import words as grammar
from .case import Case
from .life import NEVER, READY, Span
from .limited import NAMES, NO_GROUP, QUEUE, Flow, Held, Job, Paused, Rate, Setting, deliveries
from .model import World
from .waiting import STUCK_MS

DATABASE = 3
# A group that can be served is served in this round or the next; of another's three deliveries, two are in rounds after the first.
PASSED_MAX = 2


def held(case: Case) -> Held:
    return case.world.limits.setdefault(case.place(case.words[1]), Held())


def open(case: Case) -> None:
    """A command with other commands between its marks."""
    if case.verb == "DQ.POP" and not case.is_refused:
        queue = held(case)
        queue.waiting.append(case)


def judge(case: Case) -> None:
    if case.verb == "FLUSHDB":
        case.world.limits.clear()
        return
    if case.is_judged:
        return
    queue = held(case)
    queue.waiting = [other for other in queue.waiting if other.window is not case.window]
    if case.op.lost == "no reply in time":
        case.violation("stuck", f"{case.verb} was never answered", case.words[1])
    if case.is_lost or queue.is_overtaken(case):
        may_have_been_carried_out(case, case.world)
    elif not case.is_refused:
        _JUDGES[case.verb](case, queue)
    if not queue.waiting:
        queue.removed.clear()


def may_have_been_carried_out(case: Case, world: World) -> None:
    """The command was under way when the server crashed, or its reply was lost."""
    if case.verb == "FLUSHDB":
        for queue in world.limits.values():
            queue.blur()
        return
    queue = world.limits.setdefault(case.place(case.words[1]), Held())
    id = str(case.words[2]) if len(case.words) > 2 else ""
    match case.verb:
        case "DQ.ADD":
            queue.jobs[id] = _added(case).blurred()
        case "DQ.POP":
            _may_have_taken(case, queue, (case.now[0], max(case.now[1], world.clock_ms)))
        case "DQ.FINISH" | "DQ.RELEASE" | "DQ.TOUCH" | "DQ.DEL":
            if id in queue.jobs:
                queue.jobs[id] = queue.jobs[id].blurred()
            queue.freed = case.window.end
        case "DQ.ALTER":
            for name in grammar.alter(case.words).keys() & set(NAMES):
                queue.settings[name] = Setting(None, case.window.end)
        case "DQ.PAUSE" | "DQ.RESUME":
            group = grammar.others(case.words, 2).get("GROUP", QUEUE)
            queue.paused[group] = Paused((0, NEVER), case.window.end)


def _may_have_taken(case: Case, queue: Held, now: Span) -> None:
    """The jobs in its reply, if there was one; else any job that it can have had."""
    said, named = grammar.pop(case.words)[1], grammar.popped_by_id(case.words)
    if case.is_lost:
        taken = [id for id, job in queue.jobs.items() if id in named or job.ready[0] <= now[1]]
        most = max(said.get("COUNT", 1), len(named))
    else:
        taken = [str(item[0]) for item in deliveries(case)]
        most = len(taken)
    for id in queue.jobs.keys() & set(taken):
        queue.jobs[id] = queue.jobs[id].blurred()
    queue.passed.clear()
    if rate := queue.settings["RATE"].value:
        queue.flow.may_have_left(rate, now, most)
    if rate := queue.settings["GROUPRATE"].value:
        for flow in queue.flows.values():
            flow.may_have_left(rate, now, most)


# ---- what is said of jobs ----------------------------------------------------------------------------


def _added(case: Case) -> Job:
    said = grammar.add(case.words)
    delay = said.get("DELAY", 0)
    return Job(
        body=str(case.words[3]),
        group=str(said.get("GROUP", NO_GROUP)),
        priority=said.get("PRIORITY", 128),
        ttr=said["TTR"],
        ready=(case.now[0] + delay, case.now[1] + delay),
        begin=case.window.begin,
        since=case.window.end,
        is_immediate=delay == 0,
    )


def _add(case: Case, queue: Held) -> None:
    queue.jobs[str(case.words[2])] = _added(case)


def _claim(case: Case, queue: Held) -> Job | None:
    """The job, if the command counted for it. A lease is good until the job is handed out again."""
    id, lease = str(case.words[2]), case.words[3]
    job = queue.jobs.get(id)
    if job is None or not (job.is_unknown or queue.is_open(id)):
        is_its = job is not None and job.lease == lease
        is_held_back = (
            case.verb == "DQ.TOUCH" and job is not None and bool(job.states(case.now) & READY)
        )
        if is_its and not case.told and not is_held_back:
            text = f"{case.verb} with the job's own lease {lease} says 0"
            case.violation("refused", text, case.words[1], id)
        if not is_its and case.told:
            case.violation("stale", f"{case.verb} with lease {lease} counts", case.words[1], id)
    if not case.told:
        return None
    queue.freed = case.window.end
    return job


def _finish(case: Case, queue: Held) -> None:
    if _claim(case, queue) is not None:
        _remove(queue, str(case.words[2]))


def _release(case: Case, queue: Held) -> None:
    job = _claim(case, queue)
    if job is None:
        return
    said = grammar.release(case.words)
    delay = said.get("DELAY", 0)
    _put(
        case,
        queue,
        replace(
            job,
            lease=None,
            priority=said.get("PRIORITY", job.priority),
            attempt=job.attempt - ("UNBEGUN" in said),
            ready=(case.now[0] + delay, case.now[1] + delay),
            is_immediate=delay == 0,
        ),
    )


def _touch(case: Case, queue: Held) -> None:
    job = _claim(case, queue)
    if job is None:
        return
    ttr = grammar.others(case.words, 4).get("TTR", job.ttr)
    had_run_out = not job.states(case.now) & ~READY
    touched = replace(job, ready=(case.now[0] + ttr, case.now[1] + ttr), is_immediate=False)
    _put(case, queue, touched)
    if had_run_out:
        _judge_places(case, queue, [touched])


def _put(case: Case, queue: Held, job: Job) -> None:
    id = str(case.words[2])
    queue.jobs[id] = replace(job, begin=case.window.begin, since=case.window.end)
    queue.passed.pop(id, None)


def _delete(case: Case, queue: Held) -> None:
    id = str(case.words[2])
    job = queue.jobs.get(id)
    if case.told and job is None:
        case.violation("ghost", "DEL finds a job that has left, or never was", case.words[1], id)
    if not case.told and job is not None and not job.is_unknown and not queue.is_open(id):
        case.violation("lost", f"DEL doesn't find {job}", case.words[1], id)
    _remove(queue, id)
    queue.freed = case.window.end


def _remove(queue: Held, id: str) -> None:
    if queue.is_open(id):
        queue.removed.add(id)
    queue.jobs.pop(id, None)
    queue.passed.pop(id, None)


# ---- deliveries ----------------------------------------------------------------------------------------


def _pop(case: Case, queue: Held) -> None:
    for other in queue.served_before(case):
        _pop(other, queue)
    said = grammar.pop(case.words)[1]
    named = grammar.popped_by_id(case.words)
    is_no_ack = "NOACK" in said
    items: list[Any] = case.told or []
    _judge_pauses(case, queue, items)
    given: list[Job] = []
    for item in items:
        job = _judge_item(case, queue, item, is_by_id=bool(named))
        if job is None:
            continue
        if not named and not given and "BLOCK" in said:
            _judge_wait(case, queue, job, no_ack=is_no_ack)
        if case.window.is_tight:
            _judge_turn(case, queue, str(item[0]), job, no_ack=is_no_ack, is_by_id=bool(named))
        given.append(_taken(case, queue, item, job, said))
        _judge_rates(case, queue, given[-1])
    case.count("limited deliveries", len(items))
    if items:
        queue.served = case.window.end
    if items and not case.window.is_tight:
        queue.passed.clear()
    if named:
        _judge_named(case, queue, named, {str(item[0]) for item in items}, no_ack=is_no_ack)
    if not is_no_ack:
        _judge_places(case, queue, given)
        _judge_line(case, queue, items, is_by_id=bool(named))
    if not named and len(items) < said.get("COUNT", 1):
        _judge_silence(case, queue, no_ack=is_no_ack)


def _judge_pauses(case: Case, queue: Held, items: list[Any]) -> None:
    for id, *_ in items:
        job = queue.jobs.get(str(id))
        for group in {QUEUE, job.group if job else QUEUE}:
            paused = queue.paused.get(group)
            if paused and paused.since <= case.window.begin and paused.until[0] > case.now[1]:
                text = f"handed out by {f'group {group}' if group else 'a queue'} that is paused"
                case.violation("paused", text, case.words[1], id)
                return


def _judge_item(case: Case, queue: Held, item: list[Any], *, is_by_id: bool) -> Job | None:
    id, body, _, attempt = str(item[0]), str(item[1]), item[2], item[3]
    job = queue.jobs.get(id)
    if job is None:
        if id not in queue.removed:
            case.violation("ghost", "a job that has left, or never was", case.words[1], id)
        return None
    if body != job.body:
        case.violation(
            "body", f"it has the body {body[:40]!r}, not {job.body[:40]!r}", case.words[1], id
        )
    if job.is_unknown or queue.is_clouded:
        return job
    if job.ready[0] > case.now[1] and not (is_by_id and job.lease is None):
        kind = "double" if job.lease is not None else "early"
        case.violation(kind, f"it can't be had before {job.ready[0]}: {job}", case.words[1], id)
    if attempt != job.attempt + 1:
        case.violation(
            "attempt", f"it is attempt {attempt}, not {job.attempt + 1}", case.words[1], id
        )
    return job


def _taken(case: Case, queue: Held, item: list[Any], job: Job, said: dict[str, Any]) -> Job:
    """The job is handed out now: what is known of it from here on."""
    id, is_tight = str(item[0]), case.window.is_tight
    for name, flow in (("RATE", queue.flow), ("GROUPRATE", queue.flow_of(job.group))):
        rate = queue.settings[name].value
        if rate and (name == "RATE" or job.group != NO_GROUP):
            if is_tight and case.findings.has_steady_clocks and flow.is_too_soon(rate, case.now):
                text = (
                    f"{_whose(name, job)} lets nothing go before {flow.least - rate.tolerance:.0f}"
                )
                case.violation("limit", text, case.words[1], id)
            flow.leaves(rate, case.now, is_tight=is_tight, counts=queue.settings[name].holds(case))
    lasts = said.get("TTR", job.ttr)
    taken = replace(
        job,
        ready=(case.now[0] + lasts, case.now[1] + lasts),
        begin=case.window.begin,
        since=case.window.end,
        is_immediate=False,
        attempt=item[3],
        lease=item[2],
        is_unknown=False,
    )
    queue.passed.pop(id, None)
    if "NOACK" in said:
        queue.jobs.pop(id)
    else:
        queue.jobs[id] = taken
    return taken


def _whose(name: str, job: Job) -> str:
    return f"{name} of group {job.group}" if name.startswith("GROUP") else name


def _judge_places(case: Case, queue: Held, given: list[Job]) -> None:
    """Of all leases that live now, the last one was given while the others lived."""
    for name, groups in (
        ("CONCURRENCY", {QUEUE}),
        ("GROUPCONCURRENCY", {job.group for job in given}),
    ):
        setting = queue.settings[name]
        for group in groups if given and setting.holds(case) else ():
            if name != "CONCURRENCY" and group == NO_GROUP:
                continue
            live = queue.live(case.now, group)
            if live > setting.value:
                of = f" of group {group}" if group else ""
                text = f"{live} leases{of} live, with {name} {setting.value}"
                case.violation("limit", text, case.words[1])


def _judge_rates(case: Case, queue: Held, job: Job) -> None:
    """In any span of `per`, no more than n + burst - 1."""
    if not case.findings.has_steady_clocks:
        return
    for name, flow in (("RATE", queue.flow), ("GROUPRATE", queue.flow_of(job.group))):
        rate = queue.settings[name].value
        if not rate or (name == "GROUPRATE" and job.group == NO_GROUP):
            continue
        left = flow.within(rate)
        if left > rate.jobs + rate.burst - 1:
            text = f"{left} jobs left within {rate.per} ms, with {_whose(name, job)} {rate}"
            case.violation("limit", text, case.words[1])
            flow.departures.clear()


def _judge_line(case: Case, queue: Held, items: list[Any], *, is_by_id: bool) -> None:
    """A client that waits is served first."""
    if case.op.shape != "tight":
        # Inside a transaction no consumer is woken.
        return
    leases = [item[2] for item in items]
    for other in queue.waiting:
        theirs = [item[2] for item in deliveries(other)]
        came_first = other.window.begin < case.window.begin and "BLOCK" in other.words
        if leases and theirs and not is_by_id and came_first and max(leases) < (theirs[0] or 0):
            case.violation(
                "unfair", "served before one that waits", case.words[1], also=[other.op.id]
            )


# ---- order, turns, and what was withheld ---------------------------------------------------------------


def _judge_turn(
    case: Case, queue: Held, id: str, job: Job, *, no_ack: bool, is_by_id: bool
) -> None:
    """Against the jobs that stay: one that could have been had, and comes before it."""
    _judge_group_is_open(case, queue, id, job, no_ack=no_ack)
    if any(queue.settings[name].value for name in ("GROUPRATE", "GROUPCONCURRENCY")):
        # A delivery by id or of another priority may close its group for a while: who is served
        # meanwhile doesn't pass it.
        for other_id, other in queue.jobs.items():
            if other.group == job.group and (is_by_id or other.priority != job.priority):
                queue.passed.pop(other_id, None)
    if is_by_id:
        return
    for other_id, other in queue.jobs.items():
        if other_id == id or queue.is_open(other_id):
            continue
        if queue.opens(other, no_ack=no_ack) > case.now[0]:
            queue.passed.pop(other_id, None)
            continue
        if other.priority < job.priority and not job.is_unknown:
            text = f"of priority {job.priority}, before {other_id} of priority {other.priority}"
            case.violation("order", text, case.words[1], id)
        if other.group == job.group and (job.is_unknown or other.priority == job.priority):
            # Its group has had its turn.
            queue.passed.pop(other_id, None)
        if other.priority != job.priority or job.is_unknown:
            continue
        if other.group == job.group:
            if other.comes_before(job, by_order=case.findings.has_steady_clocks):
                text = (
                    f"handed out before {other_id} of its group, which was ready at {other.ready}"
                )
                case.violation("order", f"{text}: {job.ready}", case.words[1], id)
            continue
        passed = queue.passed.setdefault(other_id, {})
        passed[job.group] = passed.get(job.group, 0) + 1
        if passed[job.group] > PASSED_MAX:
            text = f"group {job.group!r} is served {passed[job.group]} times beside one of {other.group!r}"
            case.violation("unfair", text, case.words[1], other_id)
            passed.clear()


def _judge_group_is_open(case: Case, queue: Held, id: str, job: Job, *, no_ack: bool) -> None:
    """A delivery that takes no place waits until there is one."""
    places = queue.settings["GROUPCONCURRENCY"]
    if no_ack and job.group != NO_GROUP and places.holds(case):
        live = queue.live(case.now, job.group)
        if live >= places.value:
            text = f"handed out while {live} leases of group {job.group} live"
            case.violation("limit", text, case.words[1], id)


def _judge_silence(case: Case, queue: Held, *, no_ack: bool) -> None:
    """Fewer jobs came than were asked for, so no other job can be had."""
    for id, job in queue.jobs.items():
        if queue.is_open(id) or job.is_live(case.now):
            continue
        if case.window.is_tight:
            opens = queue.opens(job, no_ack=no_ack)
            if opens <= case.now[0]:
                case.violation("withheld", f"could be had since {opens}: {job}", case.words[1], id)
                queue.jobs[id] = job.blurred()
                return
        elif not case.told:
            waited = _waited_ms(case, queue, job, no_ack=no_ack)
            if waited > STUCK_MS:
                text = f"waited for {waited} ms beside a job that nothing holds back: {job}"
                case.violation("stuck", text, case.words[1], id)
                return


def _judge_named(case: Case, queue: Held, named: list[str], got: set[str], *, no_ack: bool) -> None:
    """No named job that can be had is left out."""
    if not case.window.is_tight:
        return
    for id in named:
        job = queue.jobs.get(id)
        if id in got or job is None or queue.is_open(id) or job.is_live(case.now):
            continue
        asked = replace(job, ready=(0, 0)) if job.lease is None else job
        if queue.opens(asked, no_ack=no_ack) <= case.now[0]:
            case.violation("withheld", f"not handed out by its id: {job}", case.words[1], id)


def _judge_wait(case: Case, queue: Held, job: Job, *, no_ack: bool) -> None:
    """The client was served in the end: how long after it could have been?"""
    if case.window.is_tight:
        return
    waited = _waited_ms(case, queue, job, no_ack=no_ack)
    case.count("limited waits")
    if waited > STUCK_MS:
        case.violation(
            "stuck", f"served {waited} ms after it could have been: {job}", case.words[1]
        )


def _waited_ms(case: Case, queue: Held, job: Job, *, no_ack: bool) -> int:
    opens = queue.opens(job, no_ack=no_ack)
    since = max(case.window.begin, job.since, queue.altered, queue.freed)
    return case.epoch.ticks.active_ms(since, opens, case.window.end) if opens < NEVER else 0


# ---- what is said of queues ----------------------------------------------------------------------------


def _alter(case: Case, queue: Held) -> None:
    said = grammar.alter(case.words)
    for name in said.keys() & set(NAMES):
        value = said[name]
        if name.endswith("RATE"):
            value = _rate(said, name)
            flows = [queue.flow] if name == "RATE" else list(queue.flows.values())
            if value != queue.settings[name].value:
                for flow in flows:
                    _alter_flow(flow, value, queue.settings[name].value, case.now)
            else:
                continue
        queue.settings[name] = Setting(value, case.window.end)
    queue.altered = case.window.end
    queue.passed.clear()


def _rate(said: dict[str, Any], name: str) -> Rate | int:
    jobs, per = said[name]
    # It belongs to the one that it stands behind; a session sets one rate at a time.
    return Rate(jobs, per, said.get("BURST", 1)) if jobs else 0


def _alter_flow(flow: Flow, rate: Rate | int, before: Any, now: Span) -> None:
    if not isinstance(rate, Rate):
        flow.departures, flow.least, flow.most = [], 0, 0
    elif before is None:
        # It may be the same, and what left before may count.
        flow.departures, flow.least, flow.most = [], 0, now[1] + rate.tolerance + rate.distance
    else:
        flow.is_replaced(rate, now)


def _pause(case: Case, queue: Held) -> None:
    said = grammar.others(case.words, 2)
    group, span = str(said.get("GROUP", QUEUE)), said.get("FOR")
    until = (case.now[0] + span, case.now[1] + span) if span else (NEVER, NEVER)
    queue.paused[group] = Paused(until, case.window.end)
    queue.altered = case.window.end
    queue.passed.clear()


def _resume(case: Case, queue: Held) -> None:
    queue.paused.pop(str(grammar.others(case.words, 2).get("GROUP", QUEUE)), None)
    queue.altered = case.window.end


_JUDGES = {
    "DQ.ADD": _add,
    "DQ.POP": _pop,
    "DQ.FINISH": _finish,
    "DQ.RELEASE": _release,
    "DQ.TOUCH": _touch,
    "DQ.DEL": _delete,
    "DQ.ALTER": _alter,
    "DQ.PAUSE": _pause,
    "DQ.RESUME": _resume,
    "DQ.LEN": limits_look.length,
    "DQ.GET": limits_look.get,
    "DQ.PEEK": limits_look.peek,
    "DQ.GROUPS": limits_look.groups,
    "DQ.INFO": limits_look.info,
}
