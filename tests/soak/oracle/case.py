"""One command that is judged: its words, its reply, when it was carried out, and what the oracle knows of its queue."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..history import Op
from ..resp import Failure
from .life import Span, Turn
from .model import Given, Lives, Pending, Place, Queue, Slot, World, distinct
from .timeline import Epoch, Window
from .verdict import Verdict, Violation


class Lost:
    """Stands in place of a reply that never came."""

    def __repr__(self) -> str:
        return "lost"


LOST = Lost()


@dataclass
class Scan:
    """A whole scan: the jobs that were there when it began, and the jobs that it showed."""

    queue: Queue | None
    there: dict[str, str]
    seen: set[str] = field(default_factory=set)


@dataclass
class Walk:
    """A walk through a state, page by page: the jobs that were there from the beginning, and the jobs that it
    showed.
    """

    queue: Queue | None
    state: str
    there: dict[str, Any]
    seen: set[str] = field(default_factory=set)
    # The one that was shown last, and what it could be then.
    last: str = ""
    lives: list[Any] = field(default_factory=list)


# How long the server may take to remove what was kept long enough: of *active* time (timeline.Ticks). Its
# timer runs on the monotonic clock, and sees up to a minute later that the other clock was set.
SWEEP_MS, SWEEP_AFTER_STEP_MS = 5_000, 65_000
# Among millions of other keys, one that was renamed has to be found first.
SWEEP_AMONG_STRANGERS_MS = 300_000


@dataclass
class Findings:
    """What outlives a data set: leases by key, scans under way, and the verdict."""

    verdict: Verdict = field(default_factory=Verdict)
    leases: dict[Place, dict[int, Given]] = field(default_factory=dict)
    scans: dict[tuple[str, int], Scan] = field(default_factory=dict)
    walks: dict[tuple[str, int], Walk] = field(default_factory=dict)
    # Ambushes that were carried out in one turn, so that their victims were told nothing.
    ambushes: set[str] = field(default_factory=set)
    # Those of which a crash may have kept all, a part or nothing: the deliveries, and what gave the
    # jobs back.
    cut_ambushes: set[str] = field(default_factory=set)
    # By payload: the epoch in which it was made, and the queue.
    dumps: dict[str, tuple[int, Queue]] = field(default_factory=dict)
    sweep_ms: int = SWEEP_MS
    # No clock was set, and none stands apart from the others.
    has_steady_clocks: bool = True


@dataclass
class Case:
    findings: Findings
    world: World
    epoch: Epoch
    window: Window
    words: list[Any]
    told: Any
    now: Span
    step: int
    # Its place among the commands of the operation.
    place_in_op: int = 0
    # Of a POP: its deliveries by id.
    items: dict[str, list[Any]] | None = None
    # Set when others' marks lie between its own.
    pending: Pending | None = None
    # It was judged before its window's end: by then, a later one had shown that it was over (limited.py).
    is_judged: bool = False

    @property
    def op(self) -> Op:
        return self.window.op

    @property
    def verb(self) -> str:
        return str(self.words[0]).upper()

    @property
    def is_lost(self) -> bool:
        return self.told is LOST

    @property
    def is_refused(self) -> bool:
        return isinstance(self.told, Failure)

    @property
    def tag(self) -> int:
        return self.pending.tag if self.pending else -1

    @property
    def turn(self) -> Turn:
        window = self.window
        return Turn(
            self.epoch.number,
            window.begin,
            window.end,
            window.since_ms,
            window.until_ms,
            self.place_in_op,
        )

    @property
    def is_blocking(self) -> bool:
        return self.op.shape in ("tight", "loose", "burst") and "BLOCK" in self.words

    def place(self, key: Any) -> Place:
        return (self.op.db, str(key))

    def queue(self, key: Any) -> Queue | None:
        """The queue at that key now."""
        place = self.place(key)
        self.world.check_expiry(place, self.now, self.window.end)
        return self.world.keys.get(place)

    def made_queue(self, key: Any, *, maybe: bool = False) -> Queue:
        """The queue at that key; a new one if there is none."""
        queue = self.queue(key)
        if queue is not None and not maybe:
            queue.is_maybe = False
        if queue is None:
            queue = Queue()
            queue.is_maybe = maybe
            self.world.put(self.place(key), queue, self.window.end)
            queue.changed = self.step
        return queue

    def is_calm(self, queue: Queue | None) -> bool:
        """Nothing known of the queue was changed since this command may have been carried out."""
        if self.pending is None:
            return True
        if queue is None or self.pending.is_torn:
            return False
        return queue.changed < self.pending.step

    def violation(
        self, kind: str, text: str, key: Any = None, id: Any = None, also: Iterable[int] = ()
    ) -> None:
        self.findings.verdict.violations.append(
            Violation(
                kind,
                text,
                (self.op.id, *also),
                None if key is None else f"{self.op.db}/{key}",
                None if id is None else str(id),
                self.op.got or self.op.sent,
            )
        )

    def count(self, what: str, by: int = 1) -> None:
        self.findings.verdict.counts[what] += by

    # ---- lives ------------------------------------------------------------------------------------

    def split(self, slot: Slot) -> tuple[Lives, Lives]:
        """The lives in which this command has been carried out already, without its tag; and the other lives."""
        done: Lives = []
        rest: Lives = []
        for life in slot.lives:
            if self.tag in life.applied:
                done.append(life._replace(applied=life.applied - {self.tag}))
            else:
                rest.append(life)
        return done, rest

    def store(self, queue: Queue, id: str, slot: Slot, lives: Lives) -> None:
        slot.lives = distinct(lives)
        queue.keep(id, slot)
        queue.changed = self.step

    def lose_sight(self, queue: Queue, id: str) -> None:
        """After a violation, or where nothing can be known, the job may be in any state from here on."""
        slot = queue.slot(id)
        slot.is_wild, slot.lives = True, []
        queue.keep(id, slot)
        queue.changed = self.step
        self.count("lost sight of a job")
