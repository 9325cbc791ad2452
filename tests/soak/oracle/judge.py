"""The oracle: goes through a history in the order of its marks, and follows every job from ADD to its end."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..history import Record
from . import (
    claims,
    consume,
    durable,
    errors,
    facts,
    keys,
    limits,
    look,
    manage,
    produce,
    schedules,
)
from .case import LOST, SWEEP_AFTER_STEP_MS, SWEEP_AMONG_STRANGERS_MS, Case, Findings
from .life import Span
from .model import Effect, Pending, Queue, World, distinct
from .timeline import Epoch, Timeline, Window, timeline
from .verdict import Verdict
from .words import pop

CLAIMS = {"DQ.FINISH", "DQ.RELEASE", "DQ.TOUCH", "DQ.BURY", "DQ.DEL", "DQ.KICKJOB"}
LOOKS = {"DQ.LEN", "DQ.GET", "DQ.PEEK", "DQ.SCAN", "DQ.INFO", "DQ.FORECAST"}
# They make their queue, if there is none.
MAKERS = {"DQ.ADD", "DQ.PAUSE", "DQ.ALTER"}
POPS = {"DQ.POP", "DQ.MPOP"}
# Databases of their own, in which each queue has one client that says what there is to be said.
APART: dict[int, Any] = {schedules.DATABASE: schedules, limits.DATABASE: limits}
# Of a transaction or script at most so many commands are told apart.
COMMANDS_MAX = 1_024
FAR = 2**60


def judge(records: Iterable[Record]) -> Verdict:
    """All violations of a history."""
    line = timeline(records)
    findings = Findings()
    _find_ambushes(line, findings)
    if any(record["nemesis"] == "clock" for record in line.nemesis):
        findings.sweep_ms = SWEEP_AFTER_STEP_MS
    findings.has_steady_clocks = line.has_steady_clocks
    if line.session.get("strangers"):
        findings.sweep_ms = SWEEP_AMONG_STRANGERS_MS
    worlds: dict[int, World] = {0: World()}
    for epoch in line.epochs:
        _Course(line, epoch, worlds, findings).run()
    durable.judge(line, findings.verdict)
    facts.judge(line, findings.verdict)
    findings.verdict.counts["operations"] = line.ops
    return findings.verdict


def _find_ambushes(line: Timeline, findings: Findings) -> None:
    for epoch in line.epochs:
        for window in epoch.windows:
            if window.op.shape == "burst" and window.is_tight and "ambush" in window.op.note:
                # What a crash has kept of it may be the deliveries, without what gave the jobs back.
                later = [
                    w.end
                    for w in epoch.windows
                    if w.op.client == window.op.client and w.begin > window.end
                ]
                given_back = min(later, default=FAR)
                is_cut = any(window.begin <= child.cut < given_back for child in epoch.children)
                kind = findings.cut_ambushes if is_cut else findings.ambushes
                kind.add(window.op.note["ambush"])


@dataclass
class _Course:
    """One epoch, from the state in which it began to its end. Other epochs begin with the state at some mark of it."""

    line: Timeline
    epoch: Epoch
    worlds: dict[int, World]
    findings: Findings

    def run(self) -> None:
        self.world = self.worlds.pop(self.epoch.number)
        self.world.clock_ms = max(self.world.clock_ms, self.epoch.clock_ms)
        self.step = 0
        self.open: dict[int, list[Case]] = {}
        children = sorted(self.epoch.children, key=lambda child: child.cut)
        for n, is_close, window in self._events(children):
            while children and children[0].cut < n:
                self._branch(children.pop(0))
            self.step += 1
            if is_close:
                self._close(window)
            else:
                self._open(window)
        for child in children:
            self._branch(child)

    def _events(self, children: list[Epoch]) -> list[tuple[float, int, Window]]:
        cuts = [child.cut for child in children]
        events: list[tuple[float, int, Window]] = []
        for window in self.epoch.windows:
            is_cut = any(window.begin <= cut < window.end for cut in cuts)
            if not window.is_tight or is_cut:
                events.append((window.begin, 0, window))
            if window.end < float("inf"):
                events.append((window.end, 1, window))
        events.sort(key=lambda event: event[:2])
        return events

    def _branch(self, child: Epoch) -> None:
        world = self.world.copy((self.world.clock_ms, max(self.world.clock_ms, child.clock_ms)))
        world.kept_to[self.epoch.number] = child.cut
        for case in (case for cases in self.open.values() for case in cases):
            if case.op.db in APART:
                APART[case.op.db].may_have_been_carried_out(case, world)
            elif case.verb in manage.ALL and not case.is_refused:
                self._leave_open(case, world)
        self.worlds[child.number] = world

    def _leave_open(self, case: Case, world: World) -> None:
        """A command on a whole queue, at whatever key that queue is by now."""
        case = replace(case, now=(case.now[0], max(case.now[1], world.clock_ms)))
        seen = case.pending.queues.values() if case.pending is not None else []
        theirs = {id(queue) for queues in seen for queue in queues if queue is not None}
        for place, queue in self.world.keys.items():
            if id(queue) in theirs:
                manage.may_have_been_carried_out(case, world.keys[place])

    def _now(self, window: Window, until_ms: int, at: int) -> Span:
        """The readings of the clock between which it was carried out. A module's clock may be ahead of the server's."""
        if until_ms < FAR:
            self.world.clock_ms = max(self.world.clock_ms, until_ms)
        return (window.since_ms, max(until_ms, self.world.clock_ms, self.line.latest_clock_ms(at)))

    def _cases(self, window: Window, now: Span) -> list[Case]:
        op = window.op
        told: list[Any] = op.told if op.told is not None else [LOST] * len(op.say)
        return [
            Case(self.findings, self.world, self.epoch, window, words, reply, now, self.step, place)
            for place, (words, reply) in enumerate(zip(op.say, told, strict=True))
        ]

    def _open(self, window: Window) -> None:
        cases = self._cases(window, self._now(window, window.since_ms, window.op.sent))
        for case in cases:
            case.pending = None if case.op.db in APART else _pending(case)
            if case.op.db == limits.DATABASE:
                limits.open(case)
            if case.pending is not None:
                if case.pending.is_maker:
                    case.made_queue(case.words[1], maybe=True)
                self.world.open(case.pending)
        self.open[id(window)] = cases

    def _close(self, window: Window) -> None:
        now = self._now(window, window.until_ms, window.op.got or FAR)
        cases = self.open.pop(id(window), None)
        if cases is None:
            cases = self._cases(window, now)
        for case in cases:
            case.step, case.now = self.step, now
            self._judge(case)
        for case in cases:
            if case.pending is not None:
                _strip(case)
                self.world.close(case.pending)

    def _judge(self, case: Case) -> None:
        case.count(case.verb)
        errors.judge(case)
        if case.op.db in APART:
            APART[case.op.db].judge(case)
            return
        if case.op.lost == "no reply in time":
            case.violation("stuck", f"{case.verb} was never answered", case.words[1])
        if (
            case.pending is not None
            and case.pending.is_torn
            and (case.verb not in POPS or case.is_lost)
        ):
            _spread(case)
        elif case.verb in CLAIMS:
            claims.judge(case)
        elif case.verb in POPS:
            consume.judge(case)
        elif case.verb in LOOKS:
            look.judge(case)
        elif case.verb in manage.ALL:
            manage.judge(case)
        elif case.verb == "DQ.ADD":
            produce.judge(case)
        elif case.verb in keys.VERBS:
            keys.judge(case)


def _pending(case: Case) -> Pending | None:
    """A command with other commands between its marks."""
    verb = case.verb
    effect_of: Any = None
    ids: frozenset[str] | None = frozenset()
    if verb in CLAIMS:
        ids, effect_of = claims.ids(case), claims.effect
    elif verb in POPS:
        ids, effect_of = consume.ids(case), consume.effect
    elif verb == "DQ.ADD":
        ids, effect_of = produce.ids(case), produce.effect
    elif verb not in LOOKS and verb not in manage.ALL:
        return None

    def effect(id: str, queue: Queue) -> Effect:
        return effect_of(case, id, queue)

    names = pop(case.words)[0] if verb in POPS else [case.words[1]]
    return Pending(
        case.op.id * COMMANDS_MAX + case.place_in_op,
        case.op,
        ids,
        effect,
        case.now[0],
        case.step,
        tuple(case.place(name) for name in names),
        verb in MAKERS and not case.is_refused and (case.is_lost or case.told is not None),
        produce.unseen(case) if verb == "DQ.ADD" else None,
    )


def _spread(case: Case) -> None:
    """Its key was moved while it was under way, so it was carried out here or there, and nothing is judged."""
    pending = case.pending
    assert pending is not None
    if case.verb in LOOKS or case.is_refused:
        return
    if pending.is_maker:
        case.made_queue(case.words[1], maybe=True)
    for queues in pending.queues.values():
        for queue in queues:
            if queue is None:
                continue
            queue.changed = case.step
            queue.has_known_totals = False
            if case.verb in manage.ALL:
                queue.is_wild = True
            for id in list(queue.slots) if pending.ids is None else pending.ids:
                queue.touch(id, case.now)


def _strip(case: Case) -> None:
    """The command is over: which lives have seen it needs no longer be known."""
    pending = case.pending
    assert pending is not None
    for queues in pending.queues.values():
        for queue in queues:
            if queue is None:
                continue
            for id in list(queue.slots) if pending.ids is None else pending.ids:
                slot = queue.slots.get(id)
                if slot is not None and not slot.is_wild:
                    slot.lives = [
                        life._replace(applied=life.applied - {pending.tag})
                        if pending.tag in life.applied
                        else life
                        for life in slot.lives
                    ]
                    slot.lives = distinct(slot.lives)
                    queue.keep(id, slot)
