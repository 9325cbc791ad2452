"""What one job may be: a possible state of it, and what time and commands make of that state.

The words are those of docs/commands: this is what a user is promised, not how the module does it. All times are
*spans*, `(earliest, latest)` in unix milliseconds, since the time at which the server carried a command out is only
known to lie between the marks before and after it.
"""

from typing import NamedTuple

Span = tuple[int, int]
NEVER = 2**62

# What LEN, GET and PEEK call it; one bit each, so that "ready or reserved" is a number, too.
DELAYED, READY, RESERVED, DEAD, DONE, GONE = 1, 2, 4, 8, 16, 32
BY_NAME = {"delayed": DELAYED, "ready": READY, "reserved": RESERVED, "dead": DEAD, "done": DONE}
PRESENT = DELAYED | READY | RESERVED | DEAD | DONE

# What commands have made of it; the rest is a matter of time.
ABSENT, WAITING, LEASED, BURIED, FINISHED = "absent", "waiting", "leased", "buried", "finished"

# A client has it with a lease that no reply showed.
UNKNOWN = -1


def names(states: int) -> str:
    told = [name for name, bit in BY_NAME.items() if states & bit]
    return " or ".join(told + (["gone"] if states & GONE else []))


class Policy(NamedTuple):
    """The options of the ADD, with the queue's defaults filled in."""

    body: str
    priority: int
    ttr: int
    attempts: int
    base: int
    most: int
    ttl: int
    keep: int
    late: int


class Turn(NamedTuple):
    """When the job was scheduled: between which marks of which epoch, and which readings of the server's clock."""

    epoch: int
    begin: float
    end: float
    since_ms: int
    until_ms: int
    # Of several commands in one transaction, script or write: the how manieth.
    place: int


class Life(NamedTuple):
    """A possible state of a job. The oracle knows a job as a set of these."""

    stage: str
    # WAITING: due. LEASED: the end of the lease. BURIED: since when. FINISHED: kept until.
    at: Span
    policy: Policy
    attempt: int
    lease: int | None
    expires: Span | None
    turn: Turn
    # It was due at the moment at which it was scheduled.
    is_immediate: bool
    # Commands that may have been carried out by now, and in this life were.
    applied: frozenset[int] = frozenset()

    @property
    def is_absent(self) -> bool:
        return self.stage == ABSENT

    @property
    def is_last_attempt(self) -> bool:
        return 0 < self.policy.attempts <= self.attempt

    def backoff(self, attempt: int) -> Span:
        """The wait, less a jitter of up to a quarter."""
        wait = min(self.policy.base << min(attempt - 1, 40), self.policy.most) if attempt else 0
        return (wait * 3 // 4 - 1 if wait else 0, wait)

    def ready_at(self) -> Span | None:
        """From when on the job is ready if no command comes; None: never by itself."""
        if self.stage == WAITING:
            return self.at
        if self.stage == LEASED and not self.is_last_attempt:
            least, most = self.backoff(self.attempt)
            return (self.at[0] + least, self.at[1] + most)
        return None

    def late_at(self) -> Span | None:
        """From when on the job is dead, since no worker has taken it in time."""
        ready = self.ready_at() if self.policy.late else None
        return ready and (ready[0] + self.policy.late, ready[1] + self.policy.late)

    def states(self, now: Span, dead_keep: int = 0) -> int:
        """The states that the job may be in at a moment within `now`."""
        low, high = now
        if self.stage == ABSENT:
            return GONE
        if self.stage == FINISHED:
            return _kept(DONE, self.at, now)
        if self.stage == BURIED:
            return _dead(self.at, now, dead_keep)
        states = 0
        # Of all that ends it, the first: from then on it is kept as dead.
        died = _first(self._ends())
        if died is not None and died[0] <= high:
            states = _dead(died, now, dead_keep)
            if died[1] <= low:
                return states
        if self.stage == WAITING:
            return states | _from(READY, DELAYED, self.at, now)
        if self.at[1] > low:
            states |= RESERVED
        if self.at[0] <= high:
            ready = self.ready_at()
            if ready is not None:
                states |= READY if ready == self.at else _from(READY, DELAYED, ready, now)
        return states

    def kept_until(self, dead_keep: int) -> Span | None:
        """Until when the job is kept as done or dead; None: it isn't kept, or for ever."""
        if self.stage == FINISHED:
            return self.at
        if not dead_keep or self.stage == ABSENT:
            return None
        died = self.died_at()
        return (died[0] + dead_keep, died[1] + dead_keep)

    def died_at(self) -> Span:
        """For a dead job: since when it is dead."""
        return _first(self._ends()) or (0, NEVER)

    def _ends(self) -> list[Span]:
        """What makes the job dead, or has made it so: its TTL, its last lease, LATE, a command."""
        ends = (
            [self.expires] if self.expires is not None and self.stage in (WAITING, LEASED) else []
        )
        if self.stage == BURIED or (self.stage == LEASED and self.is_last_attempt):
            ends.append(self.at)
        if (late := self.late_at()) is not None:
            ends.append(late)
        return ends

    # ---- what commands make of it -----------------------------------------------------------------

    def popped(
        self, now: Span, turn: Turn, lease: int | None, ttr: int | None, *, noack: bool
    ) -> "Life":
        taken = self._replace(attempt=self.attempt + 1, turn=turn, is_immediate=False)
        if noack:
            return taken.finished(now)
        lasts = ttr or self.policy.ttr
        return taken._replace(stage=LEASED, at=(now[0] + lasts, now[1] + lasts), lease=lease)

    def finished(self, now: Span) -> "Life":
        keep = self.policy.keep
        if not keep:
            return self.gone()
        until = (now[0] + keep, now[1] + keep)
        return self._replace(stage=FINISHED, at=until, lease=None, expires=None)

    def gone(self) -> "Life":
        return NOWHERE._replace(applied=self.applied)

    def released(self, now: Span, turn: Turn, delay: int | None, *, is_begun: bool) -> "Life":
        if is_begun and self.is_last_attempt:
            return self.buried(now)
        wait = (
            (delay, delay)
            if delay is not None
            else self.backoff(self.attempt)
            if is_begun
            else (0, 0)
        )
        return self._replace(
            stage=WAITING,
            at=(now[0] + wait[0], now[1] + wait[1]),
            attempt=self.attempt if is_begun else self.attempt - 1,
            lease=None,
            turn=turn,
            is_immediate=wait[1] == 0,
        )

    def prioritised(self, priority: int | None) -> "Life":
        """With this priority from here on, if one was given."""
        if priority is None:
            return self
        return self._replace(policy=self.policy._replace(priority=priority))

    def touched(self, now: Span, turn: Turn, ttr: int | None) -> "Life":
        lasts = ttr or self.policy.ttr
        return self._replace(at=(now[0] + lasts, now[1] + lasts), turn=turn)

    def buried(self, now: Span) -> "Life":
        """Dead from now on; or since its last lease ran out; or since it was too late."""
        died = self.at if self.is_last_attempt else self.late_at()
        since = now if died is None else (min(died[0], now[0]), now[1])
        return self._replace(stage=BURIED, at=since, lease=None, expires=None)

    def kicked(self, now: Span, turn: Turn) -> "Life":
        """From the dead: attempts and life begin anew."""
        ttl = self.policy.ttl
        return self._replace(
            stage=WAITING,
            at=now,
            attempt=0,
            lease=None,
            expires=(now[0] + ttl, now[1] + ttl) if ttl else None,
            turn=turn,
            is_immediate=True,
        )

    def hurried(self, now: Span, turn: Turn) -> "Life":
        """A delayed job that KICKJOB makes ready. It keeps its attempts and its end."""
        return self._replace(stage=WAITING, at=now, lease=None, turn=turn, is_immediate=True)

    def taken(self, now: Span, turn: Turn, states: int) -> "list[Life]":
        """What the job may be just before a POP by its id hands it out."""
        ways = [(READY, self), (DELAYED, self.hurried(now, turn)), (DEAD, self.kicked(now, turn))]
        return [life for state, life in ways if states & state]

    # ---- what workers may claim -------------------------------------------------------------------

    def holds(self, claim: int | str) -> bool:
        """The claim names the job's latest lease, which may have run out."""
        return self.stage == LEASED and (claim == "*" or claim == self.lease)

    def outlives(self, now: Span) -> tuple[bool, bool]:
        """Whether its TTL may not be over, and whether it certainly isn't. After its end only FINISH counts."""
        if self.expires is None:
            return True, True
        return self.expires[1] > now[0], self.expires[0] > now[1]


# A job that isn't there: the state in which every id is at first.
NOWHERE = Life(
    stage=ABSENT,
    at=(0, 0),
    policy=Policy("", 0, 0, 0, 0, 0, 0, 0, 0),
    attempt=0,
    lease=None,
    expires=None,
    turn=Turn(-1, 0, 0, 0, 0, 0),
    is_immediate=False,
)


def _first(spans: list[Span]) -> Span | None:
    return (min(span[0] for span in spans), min(span[1] for span in spans)) if spans else None


def _from(then: int, before: int, at: Span, now: Span) -> int:
    return (then if at[0] <= now[1] else 0) | (before if at[1] > now[0] else 0)


def _dead(since: Span, now: Span, dead_keep: int) -> int:
    if not dead_keep:
        return DEAD
    return _kept(DEAD, (since[0] + dead_keep, since[1] + dead_keep), now)


def _kept(state: int, until: Span, now: Span) -> int:
    """The job is in this state until that time; from then on the server may remove it at any moment."""
    return state if now[1] < until[0] else state | GONE


def comes_before(one: Life, other: Life) -> bool:
    """The first job certainly leaves before the other: by priority, due time, order of scheduling."""
    if one.policy.priority != other.policy.priority:
        return one.policy.priority < other.policy.priority
    first, second = one.ready_at(), other.ready_at()
    if first is None or second is None:
        return False
    if first[1] < second[0]:
        return True
    if not _scheduled_before(one, other):
        return False
    # Both for the same millisecond; or the first at once, by a clock that wasn't ahead: then no later.
    is_at_once = one.is_immediate and first[1] <= one.turn.until_ms
    return is_at_once or first == second == (first[0], first[0])


def _scheduled_before(one: Life, other: Life) -> bool:
    """Certainly, and while the clock didn't go back. Of two epochs in one life the smaller came first."""
    first, second = one.turn, other.turn
    if first[:3] == second[:3]:
        return first.place < second.place
    if first.epoch == second.epoch:
        return first.end <= second.begin and first.since_ms <= second.since_ms
    return first.epoch < second.epoch and first.until_ms <= second.since_ms
