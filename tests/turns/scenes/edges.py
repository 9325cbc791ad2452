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
