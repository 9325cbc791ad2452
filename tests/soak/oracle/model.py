"""What the oracle knows of the data set: by key a queue, by id the lives that a job may have.

Where the order of commands isn't known, the oracle follows all possibilities: a job has several lives, of which one is
the true one. Each reply strikes out the lives that contradict it; a violation is a reply that strikes out all. Jobs are
followed one by one, and how the possibilities of two jobs depend on each other is not kept: the oracle then knows less
than could be known, and never more.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..history import Op
from .life import GONE, NEVER, NOWHERE, PRESENT, Life, Span

Place = tuple[int, str]
Lives = list[Life]
# What becomes of a life if the command is carried out now: nothing, where it can't have been.
Effect = Callable[[Life, Span], Iterable[Life]]

LIVES_MAX = 24


@dataclass(slots=True, eq=False)
class Slot:
    """All lives that a job of one id may have."""

    lives: Lives
    # Nothing is known of it any more, until a reply tells.
    is_wild: bool = False

    def states(self, now: Span, dead_keep: int) -> int:
        if self.is_wild:
            return PRESENT | GONE
        states = 0
        for life in self.lives:
            states |= life.states(now, dead_keep)
        return states

    def copy(self) -> "Slot":
        return Slot(_without_tags(self.lives), self.is_wild)


def _without_tags(lives: Lives) -> Lives:
    if any(life.applied for life in lives):
        lives = [life._replace(applied=frozenset()) for life in lives]
    return distinct(lives)


def distinct(lives: Iterable[Life]) -> Lives:
    return list(dict.fromkeys(lives))


@dataclass(eq=False)
class Pending:
    """A command that is being carried out, or may be: other commands are between its marks."""

    tag: int
    op: Op
    # Of which ids it can change something; None: of all.
    ids: frozenset[str] | None
    # What it makes of a job of that id, in that queue.
    effect: Callable[[str, "Queue"], Effect]
    since_ms: int
    step: int
    keys: tuple[Place, ...]
    # It makes its queue, if there is none.
    is_maker: bool
    # What it adds, if it does, under an id that no reply told.
    unseen: Callable[["Queue", Span], Life] | None = None
    # Queues that have been at its keys meanwhile, by key.
    queues: dict[Place, list["Queue | None"]] = field(default_factory=dict)
    # The largest lease of each queue that was given before.
    floors: dict[int, int] = field(default_factory=dict)

    # A queue with a past has come to its key, where none was.
    has_seen_arrival: bool = False

    @property
    def is_torn(self) -> bool:
        """The queue at its key went meanwhile. One that was made where none was doesn't matter."""
        return self.has_seen_arrival or any(
            len(queues) > 1 + (queues[0] is None) for queues in self.queues.values()
        )

    def concerns(self, id: str) -> bool:
        return self.ids is None or id in self.ids


@dataclass
class Settings:
    """The values that ALTER set; None stands for the server's configs."""

    ttr: int | None = None
    attempts: int | None = None
    backoff: tuple[int, int] = (0, 0)
    keep: int = 0
    late: int = 0
    max_jobs: int = 0
    dead_keep: int = 0

    def copy(self) -> "Settings":
        return Settings(**vars(self))


class Given(NamedTuple):
    """By which operation a lease was given, and where that ended."""

    op: int
    epoch: int
    end: float


class Lineage:
    """The leases that a queue, and the queue it is a copy of, have given: also those that a crash has lost."""

    def __init__(self, given: dict[int, Given] | None = None):
        self.given: dict[int, Given] = dict(given or {})

    def branch(self) -> "Lineage":
        return Lineage(self.given)


class Queue:
    """A queue, at whatever key it is by now."""

    def __init__(self, lineage: Lineage | None = None):
        self.slots: dict[str, Slot] = {}
        self.settings = Settings()
        # Hands out nothing before this.
        self.paused_until: Span = (0, 0)
        self.lineage = lineage or Lineage()
        # Of the payloads from which it was restored: in which epoch each was made, and in which it was restored.
        self.payloads: frozenset[tuple[int, int]] = frozenset()
        self.last_lease = 0
        self.pending: list[Pending] = []
        # Jobs whose ADD made an id that no reply told, by body.
        self.phantoms: dict[str, Lives] = {}
        self.is_wild = False
        # The command that makes it may not have been carried out.
        self.is_maybe = False
        # The last step that changed anything; since which mark it has been at its key, not paused, and had its DEADKEEP.
        self.changed = 0
        self.here_since: float = 0
        self.resumed: float = 0
        self.altered: float = 0
        self.totals: dict[str, Span] = {}
        self.has_known_totals = True
        # How late jobs were handed out: (at least, at most), by epoch, since no server tells another.
        self.lateness: dict[int, Span] = {}
        self.has_known_lateness = True

    def slot(self, id: str) -> Slot:
        slot = self.slots.get(id)
        return slot if slot is not None else Slot([NOWHERE])

    def keep(self, id: str, slot: Slot) -> None:
        """Puts back what was looked at. Nothing is kept of a job that isn't there."""
        if slot.is_wild or any(life != NOWHERE for life in slot.lives):
            self.slots[id] = slot
        else:
            self.slots.pop(id, None)

    def add_total(self, name: str, least: int, most: int) -> None:
        low, high = self.totals.get(name, (0, 0))
        self.totals[name] = (low + least, high + most)

    def touch(self, id: str, now: Span) -> Slot:
        """The job, with what commands that are under way may have made of it."""
        slot = self.slot(id)
        under_way = [pending for pending in self.pending if pending.concerns(id)]
        # There and back: either of two may have been the first.
        for pending in under_way + under_way[-2::-1]:
            expand(slot, pending, pending.effect(id, self), now)
        if under_way:
            self.keep(id, slot)
        return slot

    def touch_all(self, now: Span) -> Iterator[tuple[str, Slot]]:
        if self.pending:
            ids: set[str] = set()
            for pending in self.pending:
                ids |= self.slots.keys() if pending.ids is None else pending.ids
            for id in ids:
                self.touch(id, now)
        yield from list(self.slots.items())

    def branch(self, now: Span) -> "Queue":
        """As COPY and DUMP see it."""
        copy = self.snapshot(now)
        copy.lineage = self.lineage.branch()
        copy.has_known_lateness = False
        return copy

    def snapshot(self, now: Span) -> "Queue":
        """What survives if all stops here. Commands under way may have been carried out or not."""
        list(self.touch_all(now))
        copy = Queue(self.lineage)
        for id, slot in self.slots.items():
            copy.keep(id, slot.copy())
        copy.settings = self.settings.copy()
        copy.paused_until = self.paused_until
        copy.last_lease = self.last_lease
        copy.payloads = self.payloads
        copy.phantoms = {body: list(lives) for body, lives in self.phantoms.items()}
        for life in [pending.unseen(self, now) for pending in self.pending if pending.unseen]:
            copy.phantoms[life.policy.body] = [life]
        for pending in self.pending:
            for id in () if pending.is_maker else ("",) if pending.ids is None else pending.ids:
                copy.may_have_met_phantoms(pending.effect(id, self), (pending.since_ms, now[1]))
        copy.is_wild = self.is_wild
        copy.is_maybe = self.is_maybe
        copy.totals = dict(self.totals)
        copy.has_known_totals = self.has_known_totals and not self.pending
        copy.lateness = dict(self.lateness)
        copy.has_known_lateness = self.has_known_lateness
        return copy

    def may_have_met_phantoms(self, effect: Effect, now: Span) -> None:
        """A client that was handed such a job got no reply, or one with an id that no other client knew."""
        for body, lives in self.phantoms.items():
            made = [new for life in lives for new in effect(life, now)]
            self.phantoms[body] = distinct([*lives, *made])[:LIVES_MAX]

    def settle(self, now: Span) -> None:
        """Before DEADKEEP changes: a job that may be gone by the old value may be gone for good."""
        dead_keep = self.settings.dead_keep
        if not dead_keep:
            return
        for id, slot in self.touch_all(now):
            lives: Lives = []
            for life in slot.lives:
                states = life.states(now, dead_keep)
                lives += ([life] if states & PRESENT else []) + (
                    [life.gone()] if states & GONE else []
                )
            slot.lives = distinct(lives)
            self.keep(id, slot)


def expand(slot: Slot, pending: Pending, effect: Effect, now: Span) -> None:
    """Adds the lives in which the command has been carried out by now."""
    if slot.is_wild:
        return
    tag, span = pending.tag, (pending.since_ms, now[1])
    made = [
        outcome._replace(applied=life.applied | {tag})
        for life in slot.lives
        if tag not in life.applied
        for outcome in effect(life, span)
    ]
    if made:
        slot.lives = distinct([*slot.lives, *made])
        if len(slot.lives) > LIVES_MAX:
            slot.is_wild, slot.lives = True, []


class World:
    """All queues of one data set."""

    def __init__(self) -> None:
        self.keys: dict[Place, Queue] = {}
        # The first and the last millisecond at which it may be.
        self.expires: dict[Place, Span] = {}
        # On another server, with when they expire there.
        self.away: dict[str, tuple[Queue, Span | None]] = {}
        # Jobs with a schedule, by queue and id: schedules.py.
        self.schedules: dict[Place, Any] = {}
        # Queues with limits: limits.py.
        self.limits: dict[Place, Any] = {}
        # The mark of the last SWAPDB or FLUSHDB.
        self.swept_at: float = 0
        self.pending: list[Pending] = []
        self.clock_ms = 0
        # Of the epochs before: up to which mark each is in it.
        self.kept_to: dict[int, float] = {}

    def copy(self, now: Span) -> "World":
        world = World()
        world.keys = {place: queue.snapshot(now) for place, queue in self.keys.items()}
        world.expires = dict(self.expires)
        world.away = {
            name: (queue.snapshot(now), expires) for name, (queue, expires) in self.away.items()
        }
        world.schedules = {place: dict(jobs) for place, jobs in self.schedules.items()}
        world.limits = {place: queue.copy() for place, queue in self.limits.items()}
        world.swept_at = self.swept_at
        world.clock_ms = self.clock_ms
        world.kept_to = dict(self.kept_to)
        return world

    def has_lost(self, given: Given, epoch: int) -> bool:
        """Whether it may be that this data set doesn't have that delivery, in this epoch."""
        return given.epoch != epoch and given.end > self.kept_to.get(given.epoch, -1)

    def put(self, place: Place, queue: Queue | None, n: float, expires: Span | None = None) -> None:
        """That queue is at that key from now on; None: nothing is, unless a command under way makes it."""
        if queue is None and any(
            place in pending.keys and pending.is_maker for pending in self.pending
        ):
            queue = Queue()
            queue.is_maybe = True
        if queue is None:
            self.keys.pop(place, None)
        else:
            self.keys[place] = queue
            queue.here_since = n
        self.expires.pop(place, None)
        if expires is not None:
            self.expires[place] = expires
        for pending in self.pending:
            if place in pending.keys:
                self._reaches(pending, place, queue)

    def open(self, pending: Pending) -> None:
        self.pending.append(pending)
        for place in pending.keys:
            self._reaches(pending, place, self.keys.get(place))

    @staticmethod
    def _reaches(pending: Pending, place: Place, queue: Queue | None) -> None:
        queues = pending.queues.setdefault(place, [])
        queues.append(queue)
        if len(queues) > 1 and queue is not None and (queue.slots or queue.is_wild):
            pending.has_seen_arrival = True
        if queue is not None and pending not in queue.pending:
            queue.pending.append(pending)
            pending.floors.setdefault(id(queue), queue.last_lease)

    def close(self, pending: Pending) -> None:
        self.pending.remove(pending)
        for queues in pending.queues.values():
            for queue in queues:
                if queue is not None and pending in queue.pending:
                    queue.pending.remove(pending)

    def check_expiry(self, place: Place, now: Span, n: float) -> None:
        """A key whose time has come is gone. Whether it has just come is unknown."""
        first, last = self.expires.get(place, (NEVER, NEVER))
        # It lives through that millisecond, by a clock that the server read a little earlier.
        if last + 1 < now[0]:
            self.put(place, None, n)
        elif first <= now[1]:
            # It is still there, it is gone, or there is a new one by now.
            wild = Queue()
            wild.is_wild = wild.is_maybe = True
            self.put(place, wild, n)
