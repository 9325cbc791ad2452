"""Random commands of producers, workers and operators. All of them are drawn from the session's seed."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from ..resp import Word

Command = list[Word]
STATES = ("delayed", "ready", "reserved", "dead", "done")
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Lease:
    """What a worker remembers of a delivery."""

    db: int
    key: str
    id: str
    number: int


@dataclass
class Memory:
    """What the clients of a session know together: also deliveries that ended long ago, or were lost."""

    leases: deque[Lease] = field(default_factory=lambda: deque(maxlen=400))
    dumps: deque[str] = field(default_factory=lambda: deque(maxlen=8))
    # Jobs by queue, as far as the last look told: producers hold back where there are many.
    backlog: dict[tuple[int, str], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Habits:
    """How a session's clients behave."""

    queues: int = 10
    dbs: int = 1
    block_ms_max: int = 1_200
    ttr_ms_max: int = 1_500
    delay_ms_max: int = 2_000
    body_bytes_max: int = 2_000
    # Of all jobs with a delay, how many wait for up to an hour: only a clock that jumps makes them due.
    far: float = 0.0
    backlog_max: int = 60
    pace_ms: float = 12.0
    # How much of each kind of client there is.
    producers: int = 6
    workers: int = 9
    operators: int = 2
    observers: int = 2
    movers: int = 1
    keepers: int = 3
    wardens: int = 3
    # Which of actors.MOVES they draw from.
    moves: tuple[str, ...] = ("rename", "park", "copy", "unlink")


class Words:
    """Commands, drawn one by one."""

    def __init__(
        self, chance: random.Random, habits: Habits, memory: Memory, now_ms: Callable[[], int]
    ):
        self.chance = chance
        self.habits = habits
        self.memory = memory
        self.now_ms = now_ms
        self._made = 0

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    def queue(self) -> str:
        """A queue; the first ones are drawn more often than the last."""
        return f"q{min(self.chance.randrange(self.habits.queues) for _ in range(2))}"

    def id(self) -> str:
        return f"j{self.chance.randrange(40)}"

    def some_ids(self) -> list[str]:
        return [self.id() for _ in range(self.chance.choice([1, 1, 1, 2, 4]))]

    def body(self) -> str:
        """No two jobs have the same body, so a delivery shows which ADD it comes from."""
        self._made += 1
        size = self.chance.choice([0, 0, 20, self.chance.randrange(self.habits.body_bytes_max + 1)])
        return f"{self.chance.getrandbits(40):x}.{self._made}".ljust(
            size, "\xff\r\n\x00"[self._made % 4]
        )

    def add(self, key: str) -> Command:
        return ["DQ.ADD", key, self._new_id(), self.body(), *self._options()]

    def add_many(self, key: str) -> list[Command]:
        """As one DQ.MADD takes them: no id twice, and taken ones are left out or replaced."""
        ids = [self._new_id() for _ in range(self.chance.choice([1, 2, 3, 10]))]
        ids = [id for at, id in enumerate(ids) if id == "*" or id not in ids[:at]]
        options = [word for word in self._options() if word not in ("NX", "REPLACE")]
        options.append(self.chance.choice(["NX", "REPLACE"]))
        return [["DQ.ADD", key, id, self.body(), *options] for id in ids]

    def _new_id(self) -> str:
        chance = self.chance
        return chance.choice([self.id(), self.id(), f"u{chance.getrandbits(32):x}", "*"])

    def _options(self) -> Command:
        chance, habits = self.chance, self.habits
        options: list[Command] = []
        if self.often(0.45):
            options.append(self._schedule())
        if self.often(0.6):
            options.append(["TTR", 1 + chance.randrange(habits.ttr_ms_max)])
        if self.often(0.3):
            options.append(["PRIORITY", chance.choice([0, 1, 127, 128, 129, 255])])
        if self.often(0.4):
            options.append(["ATTEMPTS", chance.choice([0, 1, 1, 2, 3])])
        if self.often(0.25):
            base = chance.choice([0, 1, 20, 200])
            options.append(["BACKOFF", base, base * chance.choice([1, 4])])
        if self.often(0.2):
            options.append(["TTL", 1 + chance.randrange(2 * habits.delay_ms_max)])
        if self.often(0.2):
            options.append(["KEEP", chance.randrange(habits.delay_ms_max)])
        if self.often(0.15):
            options.append(["LATE", chance.randrange(habits.delay_ms_max)])
        if self.often(0.4):
            options.append([chance.choice(["NX", "REPLACE", "REPLACE"])])
        chance.shuffle(options)
        return [word for option in options for word in option]

    def _schedule(self) -> Command:
        chance, most = self.chance, self.habits.delay_ms_max
        if self.often(self.habits.far):
            return ["DELAY", chance.choice([30_000, 600_000, 3_500_000]) + chance.randrange(most)]
        match chance.randrange(6):
            case 0:
                return ["AT", self.now_ms() - chance.randrange(HOUR_MS)]
            case 1 | 2:
                # Many for one millisecond.
                return ["AT", (self.now_ms() + chance.randrange(most)) // 50 * 50]
            case _:
                return ["DELAY", chance.choice([0, 1, 5, chance.randrange(1, most)])]

    def pop(self, keys: list[str]) -> Command:
        chance, habits = self.chance, self.habits
        words: Command = ["DQ.POP", keys[0]] if len(keys) == 1 else ["DQ.MPOP", len(keys), *keys]
        options: list[Command] = []
        if self.often(0.4):
            options.append(["COUNT", chance.choice([1, 2, 5, 20, 10_000])])
        if self.often(0.6):
            options.append(
                ["BLOCK", chance.choice([0, 1, 30, 1 + chance.randrange(habits.block_ms_max)])]
            )
        if self.often(0.12):
            options.append(["NOACK"])
        elif self.often(0.4):
            options.append(["TTR", 1 + chance.randrange(habits.ttr_ms_max)])
        if len(keys) == 1 and self.often(0.08):
            # Whatever they wait for. Each once: a second time it is reserved.
            names = dict.fromkeys(self.some_ids())
            options = [option for option in options if option[0] not in ("COUNT", "BLOCK")]
            options += [["ID", name] for name in names]
            return words + [word for option in options for word in option]
        chance.shuffle(options)
        return words + [word for option in options for word in option]

    def verdict(self, lease: Lease) -> Command:
        """A worker's report about a job that it has, or once had."""
        chance = self.chance
        number: Word = "*" if self.often(0.06) else lease.number
        match chance.randrange(20):
            case 0 | 1 | 2:
                words: Command = ["DQ.RELEASE", lease.key, lease.id, number]
                if self.often(0.3):
                    words += ["DELAY", chance.randrange(self.habits.delay_ms_max)]
                elif self.often(0.3):
                    words.append("UNBEGUN")
                if self.often(0.2):
                    words += ["PRIORITY", chance.choice([0, 127, 129, 255])]
                return words + self._reason()
            case 3 | 4:
                return ["DQ.BURY", lease.key, lease.id, number, *self._reason()]
            case 5 | 6 | 7:
                ttr: Command = ["TTR", 1 + chance.randrange(self.habits.ttr_ms_max)]
                return ["DQ.TOUCH", lease.key, lease.id, number, *(ttr if self.often(0.6) else [])]
            case _:
                return ["DQ.FINISH", lease.key, lease.id, number]

    def _reason(self) -> Command:
        return ["REASON", f"reason {self.chance.randrange(100)}"] if self.often(0.4) else []

    def finish_many(self, leases: list[Lease]) -> Command:
        return [
            "DQ.FINISH",
            leases[0].key,
            *(word for lease in leases for word in (lease.id, lease.number)),
        ]

    def an_old_lease(self) -> Lease | None:
        return self.chance.choice(self.memory.leases) if self.memory.leases else None

    def operate(self) -> Command:
        chance, key = self.chance, self.queue()
        match chance.randrange(16):
            case 0 | 1 | 2:
                return [
                    "DQ.KICK",
                    key,
                    *(["COUNT", chance.choice([1, 3, 100])] if self.often(0.7) else []),
                ]
            case 3 | 4:
                return ["DQ.KICKJOB", key, *self.some_ids()]
            case 5 | 6 | 7:
                return ["DQ.DEL", key, *self.some_ids()]
            case 8:
                return ["DQ.PAUSE", key, "FOR", 1 + chance.randrange(700)]
            case 9:
                return ["DQ.PAUSE", key]
            case 10 | 11 | 12:
                return ["DQ.RESUME", key]
            case 13:
                return self._purge(key)
            case _:
                return self._alter(key)

    def _purge(self, key: str) -> Command:
        state = self.chance.choice(["dead", "dead", "done", "ready", "delayed", "reserved"])
        words: Command = ["DQ.PURGE", key, "STATE", state]
        if state in ("dead", "done", "ready") and self.often(0.3):
            words += ["OLDER", self.chance.randrange(600)]
        return words + (["COUNT", self.chance.choice([1, 3, 20])] if self.often(0.7) else [])

    def _alter(self, key: str) -> Command:
        chance = self.chance
        options: list[Command] = [
            ["TTR", 1 + chance.randrange(self.habits.ttr_ms_max)],
            ["ATTEMPTS", chance.choice([0, 1, 3, 25])],
            ["BACKOFF", 10, 200] if self.often(0.3) else ["BACKOFF", 0, 0],
            ["KEEP", 0 if self.often(0.8) else chance.randrange(500)],
            ["LATE", 0 if self.often(0.8) else 1 + chance.randrange(700)],
            ["MAXJOBS", 0 if self.often(0.8) else chance.randrange(1, 80)],
            ["DEADKEEP", chance.choice([0, 0, 200, 1_000])],
        ]
        chosen = chance.sample(options, chance.randrange(1, 4))
        return ["DQ.ALTER", key, *(word for option in chosen for word in option)]

    def look(self) -> Command:
        chance, key = self.chance, self.queue()
        state: Command = ["STATE", chance.choice(STATES)] if self.often(0.7) else []
        match chance.randrange(8):
            case 0 | 1:
                return ["DQ.LEN", key, *state]
            case 2 | 3:
                return self._forecast(key) if self.often(0.3) else ["DQ.GET", key, self.id()]
            case 4 | 5:
                return [
                    "DQ.PEEK",
                    key,
                    *state,
                    *(["COUNT", chance.choice([1, 5, 50])] if self.often(0.7) else []),
                ]
            case _:
                return ["DQ.INFO", key]

    def _forecast(self, key: str) -> Command:
        chance, most = self.chance, self.habits.delay_ms_max
        begin: Command = (
            ["FROM", self.now_ms() + chance.randrange(-most, most)] if self.often(0.7) else []
        )
        step = chance.choice([50, 300, 2 * most, HOUR_MS])
        return ["DQ.FORECAST", key, *begin, "STEP", step, "COUNT", chance.choice([1, 7, 50])]
