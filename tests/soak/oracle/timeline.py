"""A history in the order in which the servers carried it out.

Each marked command lies between two marks, and the data set itself numbers the marks. Two commands with no other's mark
between theirs have a certain order. Lost replies are looked up in the journal: a command whose mark survived was
carried out; a command whose mark didn't survive was not carried out, as far as later commands can see.
"""

import bisect
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..history import Op, Record

OPEN, CLOSE = 0, 1
# Servers whose clocks are so far from each other's have clocks of their own.
APART_MS = 2_000


@dataclass(slots=True)
class Window:
    """An operation, and between which marks it was carried out."""

    op: Op
    begin: float
    end: float
    # By the server's clock, milliseconds.
    since_ms: int
    until_ms: int
    # It was carried out for certain, the reply may be unknown.
    is_certain: bool
    # No other's mark lies between its own.
    is_tight: bool


@dataclass
class Epoch:
    number: int
    server: str
    parent: int | None
    # How many marks of the parent are in it.
    cut: int
    begun_at: int
    # The latest that the server's clock can have shown before.
    clock_ms: int
    why: str
    record: Record
    windows: list[Window] = field(default_factory=list)
    # Cuts at which later epochs go on.
    children: list["Epoch"] = field(default_factory=list)
    # Operations that the journal shows, by mark: what survived.
    journal: dict[int, int] = field(default_factory=dict)
    covered_to: int = 0
    ticks: "Ticks" = field(default_factory=lambda: Ticks([]))

    @property
    def lateness(self) -> tuple[int, int]:
        """What a queue's lateness may be at the beginning of the epoch: a new process has none, another may have
        some.
        """
        return (0, 0) if self.why in ("start", "crash", "restart") else (0, 2**62)


class Ticks:
    """The moments at which the server was seen to be alive: the mark, the server's clock and ours.

    *Active* time counts a silence as a tenth of a second at most. So a consumer doesn't count as stuck when the server,
    or the clients, were stopped or had no processor time.
    """

    SILENCE_US = 100_000

    def __init__(self, seen: Iterable[tuple[float, int, int]]):
        ordered = sorted(seen)
        self.marks = [n for n, _, _ in ordered]
        self.clock_ms = [ms for _, ms, _ in ordered]
        self.at_us: list[int] = []
        self.active_us: list[int] = []
        for _, _, at in ordered:
            latest = self.at_us[-1] if self.at_us else at
            step = min(max(at - latest, 0), self.SILENCE_US)
            self.active_us.append((self.active_us[-1] if self.active_us else 0) + step)
            self.at_us.append(max(at, latest))

    def active_ms(self, n: float, clock_ms: int, until: float) -> int:
        """For how long the server was seen alive between two marks, from when its clock had come to a time."""
        first, last = bisect.bisect_left(self.marks, n), bisect.bisect_right(self.marks, until) - 1
        while first <= last and self.clock_ms[first] < clock_ms:
            first += 1
        return (self.active_us[last] - self.active_us[first]) // 1_000 if first <= last else 0


@dataclass
class Timeline:
    session: Record
    epochs: list[Epoch]
    facts: list[Record]
    nemesis: list[Record]
    # When which clock had shown what, at the latest: (at, milliseconds), sorted.
    clocks: list[tuple[int, int]]
    ops: int

    @property
    def has_steady_clocks(self) -> bool:
        """No clock was set, and no server's clock differs from the others'."""
        if any(record["nemesis"] == "clock" for record in self.nemesis):
            return False
        ahead = [epoch.clock_ms - epoch.begun_at // 1_000 for epoch in self.epochs]
        return max(ahead) - min(ahead) < APART_MS

    def latest_clock_ms(self, at: int) -> int:
        """The latest time that any clock had shown by that instant, even if no client saw it."""
        place = bisect.bisect_right(self.clocks, (at, 2**62)) - 1
        return self.clocks[place][1] if place >= 0 else 0


def timeline(records: Iterable[Record]) -> Timeline:
    session: Record = {}
    epochs: list[Epoch] = []
    facts: list[Record] = []
    nemesis: list[Record] = []
    ops: dict[int, list[Op]] = defaultdict(list)
    for record in records:
        if "op" in record:
            ops[record["epoch"]].append(Op.of(record))
        elif "fact" in record:
            facts.append(record)
        elif "nemesis" in record:
            nemesis.append(record)
        elif "server" in record:
            epochs.append(_epoch(record, epochs))
        elif "end" in record:
            _take_journal(epochs[record["end"]], record)
        elif "session" in record:
            session = record
    for epoch in epochs:
        _place(epoch, ops[epoch.number])
    clocks = [(record["at"], record["clock"]) for record in nemesis if record["nemesis"] == "clock"]
    clocks += [(epoch.begun_at, epoch.clock_ms) for epoch in epochs]
    return Timeline(
        session, epochs, facts, nemesis, _running_max(clocks), sum(map(len, ops.values()))
    )


def _running_max(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    most, out = 0, []
    for at, value in sorted(pairs):
        most = max(most, value)
        out.append((at, most))
    return out


def _epoch(record: Record, epochs: list[Epoch]) -> Epoch:
    epoch = Epoch(
        record["epoch"],
        record["server"],
        record["parent"],
        record["cut"],
        record["at"],
        record["clock"],
        record["why"],
        record,
    )
    if epoch.parent is not None:
        parent = epochs[epoch.parent]
        parent.children.append(epoch)
        _take_journal(parent, record)
    return epoch


def _take_journal(epoch: Epoch, record: Record) -> None:
    if record["cut"] >= epoch.covered_to:
        first = record["cut"] - len(record["journal"]) + 1
        epoch.journal = {entry: first + place for place, entry in enumerate(record["journal"])}
        epoch.covered_to = record["cut"]


def _place(epoch: Epoch, ops: list[Op]) -> None:
    """Finds each operation's marks, and sorts."""
    by_sent = sorted((op.sent, op.before[0]) for op in ops if op.before is not None)
    by_got = sorted(
        (op.got, op.after[0]) for op in ops if op.after is not None and op.got is not None
    )
    sents, gots = [sent for sent, _ in by_sent], [got for got, _ in by_got]
    # The first mark of anything that was sent from then on; the last of what had been told by then.
    least_after = [0.0] * len(by_sent) + [float("inf")]
    for place in range(len(by_sent) - 1, -1, -1):
        least_after[place] = min(least_after[place + 1], by_sent[place][1])
    most_before: list[float] = [epoch.cut]
    for _, n in by_got:
        most_before.append(max(most_before[-1], n))

    seen = [
        (op.after[0], op.after[1] // 1_000, op.got or op.sent) for op in ops if op.after is not None
    ]
    epoch.ticks = Ticks(seen)
    for op in ops:
        begin, end, is_certain = _marks_of(epoch, op)
        if (
            begin is None
            and op.told is None
            and op.lost is not None
            and epoch.covered_to >= most_before[-1]
        ):
            continue  # it isn't in the journal, which has all: it was never carried out
        if begin is None:
            begin = most_before[bisect.bisect_right(gots, op.sent)] + 0.5
        if end is None:
            end = least_after[bisect.bisect_left(sents, op.got or 2**62)] - 0.5
        is_tight = end == begin + 1 and begin == int(begin)
        window = Window(
            op, begin, max(end, begin), *_clock(epoch, op, begin, end), is_certain, is_tight
        )
        epoch.windows.append(window)


def _marks_of(epoch: Epoch, op: Op) -> tuple[float | None, float | None, bool]:
    begin: float | None = op.before[0] if op.before else epoch.journal.get(2 * op.id)
    end: float | None = op.after[0] if op.after else epoch.journal.get(2 * op.id + 1)
    return begin, end, op.told is not None or (begin is not None and end is not None)


def _clock(epoch: Epoch, op: Op, begin: float, end: float) -> tuple[int, int]:
    """The readings of the server's clock between which it was carried out."""
    ticks = epoch.ticks
    since = op.before[1] // 1_000 if op.before else None
    until = op.after[1] // 1_000 if op.after else None
    if since is None:
        place = bisect.bisect_right(ticks.marks, begin) - 1
        since = ticks.clock_ms[place] if place >= 0 else 0
    if until is None:
        place = bisect.bisect_left(ticks.marks, end)
        until = ticks.clock_ms[place] if place < len(ticks.marks) else 2**61
    between = ticks.clock_ms[
        bisect.bisect_left(ticks.marks, begin) : bisect.bisect_right(ticks.marks, end)
    ]
    least = min(since, until, *between)
    if least < since and op.got is not None:
        # The clock was set back meanwhile, and has gone on since.
        least -= (op.got - op.sent) // 1_000
    return least, max(since, until)
