"""A random workload, the same for the same seed: every command and option, over a few queues."""

import random
from collections.abc import Iterator
from typing import Any

import redis

QUEUES = [f"q{n}" for n in range(6)]
IDS = [f"id-{n}" for n in range(40)]

# Adds, hands out and finishes in one go, in the server's own scripting.
SCRIPT = """
redis.call('DQ.ADD', KEYS[1], '*', ARGV[1], 'TTR', ARGV[2], 'PRIORITY', 1)
local handed_out = redis.call('DQ.POP', KEYS[1], 'COUNT', 2, 'TTR', ARGV[2])
if handed_out then redis.call('DQ.FINISH', KEYS[1], handed_out[1][1], handed_out[1][3]) end
return handed_out
"""


class Workload:
    """Short delays and TTRs, so that jobs fall due, leases end and jobs die all the while."""

    def __init__(self, r: redis.Redis, seed: int, queues: list[str] = QUEUES):
        self._r = r
        self._random = random.Random(seed)
        self._queues = queues
        # Deliveries that somebody got, whether or not they still count.
        self._deliveries: list[tuple[str, str, int]] = []
        self.handed_out = 0

    def run(self, commands: int, at_once: int = 50) -> None:
        """So many commands, in pipelines, some of them in a MULTI."""
        for _ in range(commands // at_once):
            batch = [self._command() for _ in range(at_once)]
            pipeline = self._r.pipeline(transaction=self._random.random() < 0.2)
            for words in batch:
                pipeline.execute_command(*words)
            replies = pipeline.execute(raise_on_error=False)
            for words, reply in zip(batch, replies, strict=True):
                self._take(words, reply)

    def _take(self, words: tuple[Any, ...], reply: Any) -> None:
        if isinstance(reply, redis.ResponseError):
            assert str(reply).startswith("EXISTS"), (words, reply)
        elif words[0] in ("DQ.POP", "EVAL") and reply:
            queue = words[1] if words[0] == "DQ.POP" else words[3]
            self._deliveries += [(queue, id, lease) for id, _, lease, _ in reply]
            self.handed_out += len(reply)

    def _command(self) -> tuple[Any, ...]:
        chance, queue = self._random, self._random.choice(self._queues)
        kind = chance.choices(["add", "pop", "finish", "del", "script", "key"], [50, 25, 20, 3, 2, 0.3])
        match kind[0]:
            case "add":
                return ("DQ.ADD", queue, *self._job())
            case "pop":
                return ("DQ.POP", queue, *self._pop_options())
            case "finish":
                return self._finish(queue)
            case "del":
                return ("DQ.DEL", queue, *chance.sample(IDS, 2))
            case "script":
                return ("EVAL", SCRIPT, 1, queue, "by a script", chance.randint(1, 30))
        other = chance.choice(self._queues)
        return chance.choice(
            [
                ("DEL", queue),
                ("RENAMENX", queue, f"{queue}-renamed"),
                ("COPY", queue, other, "REPLACE") if other != queue else ("DEL", queue),
                ("SET", "a key of another type", "x"),
            ]
        )

    def _job(self) -> Iterator[str | int]:
        chance = self._random
        yield chance.choice([*IDS, *IDS, "*"])
        yield "x" * chance.choice([0, 1, 10, 1000])
        if chance.random() < 0.5:
            yield from ("DELAY", chance.choice([0, 1, 5, 20, 200, 10**9]))
        elif chance.random() < 0.3:
            yield from ("AT", chance.choice([0, 1_000_000, 2**48 - 1]))
        if chance.random() < 0.7:
            yield from ("TTR", chance.choice([1, 2, 10, 30, 60_000]))
        if chance.random() < 0.5:
            yield from ("PRIORITY", chance.choice([0, 1, 128, 255]))
        if chance.random() < 0.5:
            yield from ("ATTEMPTS", chance.choice([0, 1, 2, 3]))
        if chance.random() < 0.6:
            yield chance.choice(["NX", "REPLACE"])

    def _pop_options(self) -> Iterator[str | int]:
        chance = self._random
        if chance.random() < 0.4:
            yield from ("COUNT", chance.choice([1, 2, 5, 100]))
        if chance.random() < 0.5:
            yield from ("TTR", chance.choice([1, 2, 5, 20, 60_000]))

    def _finish(self, queue: str) -> tuple[Any, ...]:
        """By the lease, right, stale or never given; by any lease; several at once."""
        chance = self._random
        if self._deliveries and chance.random() < 0.7:
            at = chance.randrange(max(0, len(self._deliveries) - 50), len(self._deliveries))
            queue, id, lease = self._deliveries[at]
            others = [other for other in self._deliveries[-5:] if other[0] == queue]
            return ("DQ.FINISH", queue, id, lease, *(word for _, *pair in others for word in pair))
        id = chance.choice(IDS)
        return chance.choice(
            [("DQ.FINISH", queue, id), ("DQ.FINISH", queue, id, "*"), ("DQ.FINISH", queue, id, 7)]
        )
