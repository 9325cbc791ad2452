"""Jobs that wait for others: long chains, wide fans, and deaths of many at once."""

from turns.scenes import BATCH
from turns.scenes.many import HOUR_MS, REPEATS
from turns.scenes.time import SOON_MS
from turns.subject import Subject

FAN = 10_000
# How many jobs wait for each of those that die at once.
BEHIND = 10


def chain(s: Subject, jobs: int) -> None:
    """Each job waits for the one before."""
    for _ in range(REPEATS):
        link = (("DQ.ADD", "q", n, "x" * 100, "AFTER", 1, n - 1) for n in range(1, jobs))
        s.call("DQ.ADD", "q", 0, "x" * 100)
        with s.turn("ADD AFTER the last of a chain"):
            s.calls([next(link)])
        s.calls(list(link))
        assert s.jobs("q", "held") == jobs - 1
        with s.turn("POP and FINISH of the first of a chain"):
            for _ in range(100):
                ((id, _, lease, _),) = s.call("DQ.POP", "q", "TTR", HOUR_MS)
                s.call("DQ.FINISH", "q", id, lease)
        with s.turn("DEL of one in the middle of a chain"):
            s.call("DQ.DEL", "q", jobs // 2)
        with s.turn("PEEK STATE held COUNT 1000"):
            s.call("DQ.PEEK", "q", "STATE", "held", "COUNT", 1_000)
        with s.turn("PURGE STATE held"):
            s.call("DQ.PURGE", "q", "STATE", "held")
        with s.turn("UNLINK of the key of a chain"):
            s.call("UNLINK", "q")


def fan_in(s: Subject, jobs: int) -> None:
    """A job waits for as many as it may."""
    ids = [f"of:{n}" for n in range(jobs)]
    ends = {
        "FINISH": lambda leases: s.call("DQ.FINISH", "q", *leases),
        "DEL": lambda _: s.call("DQ.DEL", "q", *ids),
    }
    for _ in range(REPEATS):
        for name, end in ends.items():
            s.calls([("DQ.ADD", "q", id, "x" * 100) for id in ids])
            with s.turn("ADD of a job AFTER 10,000", BATCH):
                s.call("DQ.ADD", "q", "last", "x", "AFTER", jobs, *ids)
            popped = s.call("DQ.POP", "q", "COUNT", jobs, "TTR", HOUR_MS)
            leases = [word for id, _, lease, _ in popped for word in (id, lease)]
            with s.turn(f"{name} of all that a job waits for", BATCH):
                end(leases)
            with s.turn("DEPS COUNT 10000", BATCH):
                s.call("DQ.DEPS", "q", "last", "COUNT", jobs)
            with s.turn("DEL of a job that waited for 10,000"):
                assert s.call("DQ.DEL", "q", "last") == 1
            s.call("DEL", "q")


def fan_out(s: Subject, jobs: int) -> None:
    """As many jobs as may wait for one."""
    ends: dict[str, list[str | int]] = {
        "FINISH": ["DQ.FINISH", "q", "first", "*"],
        "DONE": ["DQ.DONE", "q", "first", "*", "RESULT", "x" * 1_000],
        "BURY": ["DQ.BURY", "q", "first", "*"],
        "DEL": ["DQ.DEL", "q", "first"],
    }
    for _ in range(REPEATS):
        for name, end in ends.items():
            s.call("DQ.ADD", "q", "first", "x")
            s.calls([("DQ.ADD", "q", "*", "x" * 100, "AFTER", 1, "first") for _ in range(jobs)])
            s.call("DQ.POP", "q", "TTR", HOUR_MS)
            with s.turn(f"{name} of a job that 10,000 wait for", BATCH):
                assert s.call(*end) == 1
            if name == "BURY":
                with s.turn("KICKJOB of a dead job that 10,000 wait for", BATCH):
                    assert s.call("DQ.KICKJOB", "q", "first") == 1
            s.call("DEL", "q")
        s.calls([("DQ.ADD", "q", n, "x" * 100, "HOLD") for n in range(jobs)])
        with s.turn("RESUME ID of 10,000", BATCH):
            assert s.call("DQ.RESUME", "q", "ID", *range(jobs)) == jobs
        s.call("DEL", "q")


# fetch <- so many maps <- as many reduces, each of which waits for all maps.
WIDTH = 1_000
LINKS = 100_000


def _flow(s: Subject, width: int) -> list[str]:
    maps, reduces = ([f"{kind}:{n}" for n in range(width)] for kind in ("map", "reduce"))
    s.call("DQ.ADD", "q", "fetch", "x")
    s.calls([("DQ.ADD", "q", id, "x", "AFTER", 1, "fetch") for id in maps])
    s.calls([("DQ.ADD", "q", id, "x", "AFTER", width, *maps) for id in reduces], at_once=100)
    return maps


def _behind_dead(s: Subject) -> int:
    info = s.call("DQ.INFO", "q")
    return info[info.index(b"held-behind-dead") + 1]


def _settled(s: Subject) -> None:
    s.until(lambda: s.jobs("q", "held") == 0)


def flow(s: Subject, width: int) -> None:
    """Each of a thousand jobs waits for a thousand, which wait for one."""
    for _ in range(REPEATS):
        _flow(s, width)
        with s.turn("DEL of a job with 1,000 behind it, each with 1,000"):
            s.call("DQ.DEL", "q", "fetch")
            s.until(lambda: s.jobs("q", "dead") == width and _behind_dead(s) == width)
        with s.turn("KICK COUNT 1000 of these 1,000"):
            assert s.call("DQ.KICK", "q", "COUNT", width) == width
            s.until(lambda: _behind_dead(s) == 0)
        with s.turn("POP COUNT 1000 NOACK of the 1,000"):
            s.call("DQ.POP", "q", "COUNT", width, "NOACK")
            _settled(s)
        with s.turn("POP COUNT 1000 NOACK of the 1,000 behind them"):
            s.call("DQ.POP", "q", "COUNT", width, "NOACK")
        s.call("DEL", "q")
    _maps_at_once(s, width)
    for name, end in (
        ("PURGE STATE dead COUNT 1", ["DQ.PURGE", "q", "STATE", "dead", "COUNT", 1]),
        ("DEADKEEP", ["DQ.ALTER", "q", "DEADKEEP", 1]),
    ):
        for _ in range(REPEATS):
            _flow(s, width)
            s.call("DQ.POP", "q", "TTR", HOUR_MS)
            s.call("DQ.BURY", "q", "fetch", "*")
            with s.turn(f"{name} of a job with 1,000 behind it, each with 1,000"):
                s.call(*end)
                if name == "DEADKEEP":
                    s.until(lambda: s.jobs("q") == 0)
                else:
                    s.until(lambda: _behind_dead(s) == width)
            s.call("DEL", "q")


def _maps_at_once(s: Subject, width: int) -> None:
    """All that a thousand jobs wait for, ended by one command."""
    for _ in range(REPEATS):
        for name in ("FINISH", "DEL", "KICKJOB"):
            maps = _flow(s, width)
            if name == "KICKJOB":
                s.call("DQ.DEL", "q", "fetch")
                s.until(lambda: _behind_dead(s) == width)
            else:
                s.call("DQ.POP", "q", "NOACK")
                s.call("DQ.POP", "q", "COUNT", width, "TTR", HOUR_MS)
            command: list[str | int] = {
                "FINISH": ["DQ.FINISH", "q", *[word for id in maps for word in (id, "*")]],
                "DEL": ["DQ.DEL", "q", *maps],
                "KICKJOB": ["DQ.KICKJOB", "q", *maps],
            }[name]
            with s.turn(f"{name} of 1,000 jobs that 1,000 wait for"):
                assert s.call(*command) == width
                if name == "KICKJOB":
                    s.until(lambda: _behind_dead(s) == 0)
                else:
                    _settled(s)
            if name == "DEL":
                reduces = [f"reduce:{n}" for n in range(width)]
                with s.turn("KICKJOB of 1,000 that waited for 1,000", BATCH):
                    assert s.call("DQ.KICKJOB", "q", *reduces) == width
            s.call("DEL", "q")
        _flow(s, width)
        with s.turn("DEL of 1,000 jobs that wait for 1,000", BATCH):
            s.call("DQ.DEL", "q", *[f"reduce:{n}" for n in range(width)])
        with s.turn("UNLINK of the key"):
            s.call("UNLINK", "q")


def chain_of_deaths(s: Subject, jobs: int) -> None:
    """A chain whose jobs run when the one before dies, and all of them have expired."""
    for _ in range(REPEATS):
        at = s.now() + SOON_MS + jobs // 10
        s.call("DQ.PAUSE", "q")
        s.call("DQ.ADD", "q", 0, "x", "TTL", at - s.now())
        edge = ("ONDEAD", "RUN")
        for first in range(1, jobs, 1_000):
            names = range(first, min(first + 1_000, jobs))
            ttl = at - s.now()
            s.calls([("DQ.ADD", "q", n, "x", "AFTER", 1, n - 1, *edge, "TTL", ttl) for n in names])
        with s.turn("all of a chain of 100,000 expire together"):
            s.until(lambda at=at: s.now() > at + 100 and s.jobs("q", "dead") == jobs)
        s.call("DEL", "q")


def deaths(s: Subject, jobs: int) -> None:
    """Many jobs die in one millisecond, each with jobs behind it that run then."""
    predecessors = jobs // (BEHIND + 1)
    for _ in range(REPEATS):
        at = s.now() + SOON_MS + jobs // 50
        s.call("DQ.PAUSE", "q")
        for n in range(predecessors):
            s.calls(
                [
                    ("DQ.ADD", "q", n, "x", "TTL", at - s.now()),
                    *[
                        ("DQ.ADD", "q", "*", "x", "AFTER", 1, n, "ONDEAD", "RUN")
                        for _ in range(BEHIND)
                    ],
                ]
            )
        with s.turn("all die that others wait for"):
            s.until(lambda: s.jobs("q", "held") == 0)
        s.call("DEL", "q")
