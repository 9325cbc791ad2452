"""A random workload of every command and option, over a few queues. The same seed gives the same
commands.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import redis

QUEUES = [f"q{n}" for n in range(6)]
IDS = [f"id-{n}" for n in range(40)]
STATES = ["delayed", "ready", "reserved", "dead", "done"]
FAR = 10**9

# Adds, hands out and finishes in one go, in the server's own scripting.
SCRIPT = """
redis.call('DQ.ADD', KEYS[1], '*', ARGV[1], 'TTR', ARGV[2], 'PRIORITY', 1)
local handed_out = redis.call('DQ.POP', KEYS[1], 'COUNT', 2, 'TTR', ARGV[2])
if handed_out then redis.call('DQ.FINISH', KEYS[1], handed_out[1][1], handed_out[1][3]) end
return handed_out
"""

# How often each kind of command comes, of a hundred or so.
WEIGHTS = {
    "add": 45,
    "madd": 3,
    "pop": 20,
    "mpop": 5,
    "finish": 14,
    "release": 8,
    "touch": 4,
    "bury": 3,
    "del": 2,
    "kick": 1,
    "kickjob": 2,
    "pause": 0.5,
    "resume": 2,
    "purge": 1,
    "alter": 1,
    "look": 2,
    "script": 2,
    "key": 0.3,
}
GROUPS = ["red", "blue", "green"]
Words = tuple[str | int, ...]


class Workload:
    """Random commands with short delays, TTRs and TTLs, so that jobs fall due, leases end and jobs
    die all the time.
    """

    def __init__(
        self, r: redis.Redis, seed: int, queues: list[str] = QUEUES, groups: Sequence[str] = GROUPS
    ):
        self._r = r
        self._random = random.Random(seed)
        self._queues = queues
        self._groups = groups
        # Deliveries that a client got, whether or not they still count.
        self._deliveries: list[tuple[str, str, int]] = []
        self.handed_out = 0

    def run(self, commands: int, at_once: int = 50) -> None:
        """Sends this many commands, in pipelines, some of them in a MULTI."""
        for _ in range(commands // at_once):
            batch = [self._command() for _ in range(at_once)]
            pipeline = self._r.pipeline(transaction=self._random.random() < 0.2)
            for words in batch:
                pipeline.execute_command(*words)
            replies = pipeline.execute(raise_on_error=False)
            for words, reply in zip(batch, replies, strict=True):
                self._take(words, reply)

    def _take(self, words: Words, reply: Any) -> None:
        """Accepts expected errors, and notes deliveries."""
        if isinstance(reply, redis.ResponseError):
            expected = ("EXISTS", "FULL", "no such key")
            is_twice = words[0] == "DQ.MADD" and str(reply).endswith("is given twice")
            assert is_twice or str(reply).startswith(expected), (words, reply)
            return
        match words[0]:
            case "DQ.POP" | "DQ.MPOP":
                taken = reply[1] if "FINISH" in words else reply
                if taken:
                    self._got(*([words[1], taken] if words[0] == "DQ.POP" else taken))
            case "EVAL" if isinstance(reply, list):
                self._got(words[3], reply)

    def _got(self, queue: str, handed_out: list[list[Any]]) -> None:
        self.handed_out += len(handed_out)
        # Without a lease they are finished already.
        self._deliveries += [
            (queue, id, lease) for id, _, lease, _ in handed_out if lease is not None
        ]

    def _command(self) -> Words:
        kind = self._random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        make = getattr(self, f"_{kind}")
        return tuple(make(self._random.choice(self._queues)))

    def _maybe(self, chance: float, option: str, *values: int | str) -> Iterator[str | int]:
        """The option with one of these values, or nothing."""
        if self._random.random() < chance:
            yield option
            if values:
                yield self._random.choice(values)

    def _maybe_group(self, chance: float) -> Iterator[str | int]:
        if self._groups:
            yield from self._maybe(chance, "GROUP", *self._groups)

    def _maybe_backoff(self, chance: float) -> Iterator[str | int]:
        if self._random.random() < chance:
            yield "BACKOFF"
            yield from self._random.choice([(0, 0), (1, 1), (2, 10), (10, 200), (50, FAR)])

    def _add(self, queue: str) -> Iterator[str | int]:
        yield from ("DQ.ADD", queue, *self._new_job(), *self._due(), *self._options())

    def _madd(self, queue: str) -> Iterator[str | int]:
        count = self._random.randint(1, 5)
        yield from ("DQ.MADD", queue, count)
        for _ in range(count):
            yield from self._new_job()
        if self._random.random() < 0.3:
            yield from ("DELAYS", *self._random.choices([0, 1, 5, 20, 200, FAR], k=count))
        else:
            yield from self._due()
            yield from self._maybe(0.4, "SPREAD", 0, 7, 200, FAR)
        yield from self._options()

    def _new_job(self) -> tuple[str, str]:
        chance = self._random
        return chance.choice([*IDS, *IDS, "*"]), "x" * chance.choice([0, 1, 10, 1000])

    def _due(self) -> Iterator[str | int]:
        chance = self._random
        if chance.random() < 0.5:
            yield from ("DELAY", chance.choice([0, 1, 5, 20, 200, FAR]))
        elif chance.random() < 0.3:
            yield from ("AT", chance.choice([0, 1_000_000, 2**48 - 1]))

    def _options(self) -> Iterator[str | int]:
        yield from self._maybe(0.7, "TTR", 1, 2, 10, 30, 60_000)
        yield from self._maybe(0.5, "PRIORITY", 0, 1, 128, 255)
        yield from self._maybe(0.5, "ATTEMPTS", 0, 1, 2, 3)
        yield from self._maybe_backoff(0.3)
        yield from self._maybe(0.25, "TTL", 1, 5, 30, 200, FAR)
        yield from self._maybe(0.25, "KEEP", 0, 1, 20, 200, FAR)
        yield from self._maybe_group(0.4)
        if self._random.random() < 0.6:
            yield self._random.choice(["NX", "REPLACE"])

    def _pop(self, queue: str) -> Iterator[str | int]:
        yield from ("DQ.POP", queue)
        yield from self._terms()
        yield from self._maybe_finish([queue])

    def _mpop(self, queue: str) -> Iterator[str | int]:
        queues = self._random.sample(self._queues, self._random.randint(1, len(self._queues)))
        yield from ("DQ.MPOP", len(queues), *queues)
        yield from self._terms()
        yield from self._maybe_finish(queues, named=True)

    def _maybe_finish(self, queues: list[str], *, named: bool = False) -> Iterator[str | int]:
        last = self._deliveries[-5:] if self._random.random() < 0.3 else []
        claims = [pair for queue, *pair in last if queue == queues[-1]]
        if claims:
            key = queues[-1:] if named else []
            yield from ("FINISH", *key, len(claims), *(word for pair in claims for word in pair))

    def _terms(self) -> Iterator[str | int]:
        """The options of a consumer. It waits briefly: the same connection would have to add the
        jobs.
        """
        yield from self._maybe(0.4, "COUNT", 1, 2, 5, 100)
        yield from self._maybe(0.05, "BLOCK", 1, 2)
        if self._random.random() < 0.1:
            yield "NOACK"
        else:
            yield from self._maybe(0.5, "TTR", 1, 2, 5, 20, 60_000)

    def _delivery(self, queue: str) -> tuple[str, str, int | str]:
        """A job with a lease: the right one, a stale one, one that was never given, or `*`."""
        if self._deliveries and self._random.random() < 0.8:
            at = self._random.randrange(max(0, len(self._deliveries) - 50), len(self._deliveries))
            return self._deliveries[at]
        return queue, self._random.choice(IDS), self._random.choice(["*", "*", 7])

    def _finish(self, queue: str) -> Iterator[str | int]:
        """FINISH of one job, or of several at once."""
        queue, id, lease = self._delivery(queue)
        if self._random.random() < 0.1:
            yield from ("DQ.FINISH", queue, id)
            return
        others = [other for other in self._deliveries[-5:] if other[0] == queue]
        yield from ("DQ.FINISH", queue, id, lease, *(word for _, *pair in others for word in pair))

    def _release(self, queue: str) -> Iterator[str | int]:
        yield from ("DQ.RELEASE", *self._delivery(queue))
        if self._random.random() < 0.3:
            yield "UNBEGUN"
        else:
            yield from self._maybe(0.5, "DELAY", 0, 1, 20, 200, FAR)
        yield from self._maybe(0.4, "REASON", "", "try again", "r" * 512)

    def _touch(self, queue: str) -> Iterator[str | int]:
        yield from ("DQ.TOUCH", *self._delivery(queue))
        yield from self._maybe(0.6, "TTR", 1, 5, 30, 60_000)

    def _bury(self, queue: str) -> Iterator[str | int]:
        yield from ("DQ.BURY", *self._delivery(queue))
        yield from self._maybe(0.5, "REASON", "", "no way", "r" * 512)

    def _del(self, queue: str) -> Words:
        return ("DQ.DEL", queue, *self._random.sample(IDS, 2))

    def _kick(self, queue: str) -> Iterator[str | int]:
        yield from ("DQ.KICK", queue)
        yield from self._maybe(0.5, "COUNT", 1, 3, 100)
        yield from self._maybe(0.3, "SPREAD", 0, 7, 200, FAR)

    def _kickjob(self, queue: str) -> Words:
        return ("DQ.KICKJOB", queue, *self._random.sample(IDS, 3))

    def _pause(self, queue: str) -> Iterator[str | int]:
        yield from ("DQ.PAUSE", queue)
        yield from self._maybe_group(0.5)
        yield from self._maybe(0.8, "FOR", 1, 10, 50)

    def _resume(self, queue: str) -> Iterator[str | int]:
        yield from ("DQ.RESUME", queue)
        yield from self._maybe_group(0.5)

    def _purge(self, queue: str) -> Iterator[str | int]:
        state = self._random.choice([*STATES, "dead", "done"])
        yield from ("DQ.PURGE", queue, "STATE", state)
        if state not in ("delayed", "reserved"):
            yield from self._maybe(0.5, "OLDER", 0, 5, 50)
        yield from self._maybe(0.8, "COUNT", 1, 5)

    def _alter(self, queue: str) -> Iterator[str | int]:
        yield from ("DQ.ALTER", queue)
        yield from self._maybe(1, "TTR", 1, 10, 60_000)
        yield from self._maybe(0.3, "ATTEMPTS", 0, 1, 3)
        yield from self._maybe_backoff(0.3)
        yield from self._maybe(0.3, "KEEP", 0, 5, 100)
        yield from self._maybe(0.3, "MAXJOBS", 0, 0, 30, 60)
        yield from self._maybe(0.3, "DEADKEEP", 0, 1, 20, FAR)
        yield from self._maybe(0.2, "GROUPCONCURRENCY", 0, 1, 3)
        if self._random.random() < 0.2:
            yield from ("GROUPRATE", *self._random.choice([(0, 0), (1, 5), (7, 100)]))

    def _look(self, queue: str) -> Iterator[str | int]:
        """Commands that change nothing, now and then."""
        state = ("STATE", self._random.choice(STATES))
        yield from self._random.choice(
            [
                ("DQ.GET", queue, self._random.choice(IDS)),
                ("DQ.PEEK", queue, *state, "COUNT", 5),
                ("DQ.SCAN", queue, self._random.randint(0, 50), *state, "COUNT", 5),
                ("DQ.LEN", queue, *state),
                ("DQ.INFO", queue),
            ]
        )

    def _script(self, queue: str) -> Words:
        return ("EVAL", SCRIPT, 1, queue, "by a script", self._random.randint(1, 30))

    def _key(self, queue: str) -> Words:
        other = self._random.choice(self._queues)
        return self._random.choice(
            [
                ("DEL", queue),
                ("RENAMENX", queue, f"{queue}-renamed"),
                ("COPY", queue, other, "REPLACE") if other != queue else ("DEL", queue),
                ("SET", "a key of another type", "x"),
            ]
        )
