"""Many queues, many keys."""

import time

from turns.scenes import BATCH
from turns.scenes.many import HOUR_MS, REPEATS
from turns.subject import Subject

QUEUES = 20_000
# The walk takes a hundredth of the time, so it is minutes until it is through.
WALKS_S = 5


def due(s: Subject, queues: int) -> None:
    for _ in range(REPEATS):
        at = s.now() + 2_000 + queues // 10
        s.calls([("DQ.ADD", f"q{n}", "a", "x", "AT", at) for n in range(queues)])
        with s.turn("a job of each queue falls due"):
            s.until(lambda: s.says("queues_waiting") == 0)
        s.call("FLUSHALL")


def swept(s: Subject, keys: int) -> None:
    """The module walks the keyspace for a queue that was renamed."""
    s.call("DEBUG", "POPULATE", keys)
    s.call("DQ.ADD", "q", "a", "x", "DELAY", HOUR_MS)
    for _ in range(REPEATS):
        with s.turn("RENAME, and the walk that follows"):
            s.call("RENAME", "q", "p")
            time.sleep(WALKS_S)
            s.call("RENAME", "p", "q")
            time.sleep(WALKS_S)


def flushed(s: Subject, queues: int) -> None:
    for _ in range(REPEATS):
        s.calls([("DQ.ADD", f"q{n}", "a", "x", "DELAY", HOUR_MS) for n in range(queues)])
        with s.turn("FLUSHALL ASYNC"):
            s.call("FLUSHALL", "ASYNC")
        s.calls([("DQ.ADD", f"q{n}", "a", "x", "DELAY", HOUR_MS) for n in range(queues)])
        with s.turn("DEL of 10,000 queues", BATCH):
            s.call("DEL", *(f"q{n}" for n in range(10_000)))
        s.call("FLUSHALL")
