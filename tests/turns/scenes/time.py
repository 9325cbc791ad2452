"""What time alone does, all at once, and what the timer or the first command has to do then."""

from turns.scenes import BATCH
from turns.scenes.many import HOUR_MS, REPEATS
from turns.subject import Subject

LEASES = 10_000
SOON_MS = 3_000


def due(s: Subject, jobs: int) -> None:
    """All jobs are due in one millisecond."""
    for _ in range(REPEATS):
        at = s.now() + SOON_MS + jobs // 50
        s.fill("q", jobs, "AT", at)
        with s.turn("all fall due"):
            s.until(lambda: s.jobs("q", "ready") == jobs)
        with s.turn("the first POP, PEEK, INFO after they fell due"):
            s.call("DQ.POP", "q")
            s.call("DQ.PEEK", "q", "COUNT", 1_000)
            s.call("DQ.INFO", "q")
        s.call("DEL", "q")


def sunk(s: Subject, jobs: int) -> None:
    """All jobs leave for a stream."""
    for _ in range(REPEATS):
        s.call("DQ.PAUSE", "q")
        s.call("DQ.ALTER", "q", "SINK", "stream")
        s.fill("q", jobs)
        with s.turn("all leave for a stream"):
            s.call("DQ.RESUME", "q")
            s.until(lambda: s.jobs("q", "ready") == 0)
        assert s.call("XLEN", "stream") == jobs
        s.call("DEL", "q", "stream")


def lives(s: Subject, jobs: int) -> None:
    """All jobs expire within a few milliseconds."""
    for _ in range(REPEATS):
        s.call("DQ.PAUSE", "q", "FOR", 1)
        ttl = SOON_MS + jobs // 50
        s.fill("q", jobs, "TTL", ttl)
        with s.turn("all expire"):
            s.until(lambda: s.jobs("q", "dead") == jobs)
        s.call("DQ.ADD", "q", "behind", "x")
        with s.turn("the first POP, PEEK, INFO behind the expired"):
            ((id, *_),) = s.call("DQ.POP", "q")
            assert id == b"behind"
            s.call("DQ.PEEK", "q", "COUNT", 1_000)
            s.call("DQ.INFO", "q")
        with s.turn("PEEK STATE dead COUNT 1000"):
            s.call("DQ.PEEK", "q", "STATE", "dead", "COUNT", 1_000)
        with s.turn("PURGE STATE dead"):
            s.call("DQ.PURGE", "q", "STATE", "dead")
        with s.turn("PURGE STATE dead OLDER 1 COUNT 10000", BATCH):
            s.call("DQ.PURGE", "q", "STATE", "dead", "OLDER", 1, "COUNT", 10_000)
        s.call("DEL", "q")


def leases(s: Subject, jobs: int) -> None:
    """All leases end in one millisecond."""
    for case, options in {
        "leases end, which have attempts left": [],
        "leases end, with BACKOFF": ["BACKOFF", 50, 5_000],
        "leases end, of last attempts": ["ATTEMPTS", 1],
    }.items():
        for _ in range(REPEATS):
            s.fill("q", jobs, *options)
            assert len(s.call("DQ.POP", "q", "COUNT", jobs, "TTR", 1_000)) == jobs
            with s.turn(case):
                s.until(lambda: s.jobs("q", "reserved") == 0)
            with s.turn("the first POP, PEEK, INFO after the leases ended"):
                s.call("DQ.POP", "q")
                s.call("DQ.PEEK", "q", "COUNT", 1_000)
                s.call("DQ.INFO", "q")
            s.call("DEL", "q")


def kept(s: Subject, jobs: int) -> None:
    """A million dead jobs, all of which have been kept for long enough."""
    for _ in range(REPEATS):
        s.fill("q", jobs, "TTL", 1)
        s.until(lambda: s.jobs("q", "dead") == jobs)
        with s.turn("DEADKEEP is over"):
            s.call("DQ.ALTER", "q", "DEADKEEP", 1)
            s.until(lambda: s.jobs("q") == 0, within_s=120)
        s.call("DEL", "q")


def lanes(s: Subject, jobs: int) -> None:
    """256 priorities, with the same number of jobs in each."""
    for _ in range(REPEATS):
        for priority in range(256):
            s.fill("q", jobs // 256, "PRIORITY", priority)
        total = s.jobs("q")
        with s.turn("POP of one job, INFO"):
            s.call("DQ.POP", "q")
            s.call("DQ.INFO", "q")
        with s.turn("PEEK COUNT 1000"):
            s.call("DQ.PEEK", "q", "COUNT", 1_000)
        with s.turn("POP COUNT 10000", BATCH):
            assert len(s.call("DQ.POP", "q", "COUNT", 10_000)) == min(10_000, total - 1)
        s.call("DEL", "q")


def lanes_with_groups(s: Subject, jobs: int) -> None:
    """256 priorities, each with jobs of a group and jobs without: the largest number of lines."""
    begin = s.now() + HOUR_MS
    for n in range(0, jobs, 10_000):
        s.calls(
            [
                (
                    "DQ.ADD",
                    "q",
                    i,
                    "x",
                    "PRIORITY",
                    i % 256,
                    "AT",
                    begin + i,
                    *GROUPED[i // 256 % 2],
                )
                for i in range(n, n + 10_000)
            ],
            at_once=5_000,
        )
    for _ in range(REPEATS):
        with s.turn("PEEK COUNT 1000 of what is delayed, in 512 lines"):
            s.call("DQ.PEEK", "q", "STATE", "delayed", "COUNT", 1_000)
        with s.turn("FORECAST in 1,000 steps, in 512 lines"):
            s.call("DQ.FORECAST", "q", "FROM", begin, "STEP", jobs // 1_000, "COUNT", 1_000)
        with s.turn("FORECAST in 1,000 short steps, in 512 lines"):
            s.call("DQ.FORECAST", "q", "FROM", begin, "STEP", jobs // 10_000, "COUNT", 1_000)


GROUPED = [[], ["GROUP", "g"]]
