"""Schedules, limits, groups, forecasts and pages."""

from turns.scenes import BATCH, EXPRESSIONS
from turns.scenes.many import HOUR_MS, REPEATS
from turns.scenes.waiters import SOON_MS, WAITERS, crowd
from turns.subject import Subject

SCHEDULES = 100_000
GROUPS = 100_000
BATCH_JOBS = 10_000
FOLLOWED = 1_000
READ_BY_DONE = "each expression is read, and its next time looked for"
# The same second for all; each time another expression, which is not cached.
CRON = "*/{} * * * * *"


def schedules(s: Subject, jobs: int) -> None:
    """All schedules come due in one millisecond; a batch of them is taken, finished and deployed
    again.
    """
    for n in range(REPEATS):
        at = s.now() + SOON_MS + jobs // 20
        rules = {
            "EVERY": ["EVERY", 60_000],
            "CRON": ["CRON", CRON.format(n + 2), "TZ", "Europe/Berlin"],
        }
        for kind, rule in rules.items():
            s.calls([("DQ.ADD", "q", i, "x" * 100, *rule, "AT", at) for i in range(jobs)])
            with s.turn(f"all come due, {kind}"):
                s.until(lambda: s.jobs("q", "ready") == jobs)
            with s.turn("POP, RELEASE, POP, FINISH of one"):
                ((id, _, lease, _),) = s.call("DQ.POP", "q")
                s.call("DQ.RELEASE", "q", id, lease)
                ((id, _, lease, _),) = s.call("DQ.POP", "q")
                assert s.call("DQ.FINISH", "q", id, lease) == 1
            with s.turn(f"POP COUNT 10000, {kind}", BATCH):
                taken = s.call("DQ.POP", "q", "COUNT", BATCH_JOBS)
            words = [word for id, _, lease, _ in taken for word in (id, lease)]
            with s.turn(f"FINISH of {len(taken):,}, {kind}", BATCH):
                assert s.call("DQ.FINISH", "q", *words) == len(taken)
            with s.turn("ENSURE of one, as it is and with another time"):
                s.call("DQ.ADD", "q", 0, "y", *rule, "ENSURE")
                s.call("DQ.ADD", "q", 0, "y", "EVERY", 90_000, "ENSURE")
            s.call("DEL", "q")


def unread(s: Subject, jobs: int) -> None:
    """Each schedule has an expression of its own, which is no longer cached and has to be read
    again.
    """
    jobs = jobs * 3 // 10
    for _ in range(REPEATS):
        for late in [], ["LATE", 1]:
            at = s.now() + 5 * SOON_MS + jobs // 5
            s.calls([("DQ.ADD", "q", i, "x", *own_cron(i), "AT", at, *late) for i in range(jobs)])
            s.until(lambda: s.jobs("q", "ready") == jobs)
            s.until(lambda at=at: s.now() > at + HOUR_MS // 3_600)
            if late:
                with s.turn(
                    "POP that passes over CRON that is too late, and has to read it", EXPRESSIONS
                ):
                    assert s.call("DQ.POP", "q") is None
            else:
                with s.turn("POP COUNT 10000, CRON that has to be read"):
                    assert s.call("DQ.POP", "q", "COUNT", BATCH_JOBS)
                with s.turn("POP ID of 5,000, CRON that has to be read"):
                    assert s.call("DQ.POP", "q", "ID", *range(1_000, 6_000))
            s.call("DEL", "q")


def followed(s: Subject, jobs: int) -> None:
    """One job is done, and a thousand others follow it, each with an expression of its own that has
    to be read.
    """
    for n in range(REPEATS):
        s.calls([("DQ.ADD", "q", "first", "x")])
        ((_, _, lease, _),) = s.call("DQ.POP", "q")
        numbers = range(n * FOLLOWED, (n + 1) * FOLLOWED)
        adds = [word for i in numbers for word in ("ADD", f"a{i}", "x", *own_cron(i))]
        with s.turn("DONE with 1,000 ADDs, CRON that has to be read", READ_BY_DONE):
            assert len(s.call("DQ.DONE", "q", "first", lease, *adds)) == FOLLOWED
        s.call("DEL", "q")


def own_cron(n: int) -> list[str]:
    """A schedule for every second; a long one, and one under a clock that is changed."""
    minute, hour, second = n % 60, n // 60 % 24, n // 1_440
    days = ",".join(["1-31"] * 10)
    return ["CRON", f"0-59,{second} 0-59,{minute} 0-23,{hour} {days} * *", "TZ", "America/New_York"]


def missed(s: Subject, jobs: int) -> None:
    """A year of missed seconds: far more occurrences than a POP passes over."""
    year_ms = 366 * 24 * HOUR_MS
    for n in range(REPEATS):
        late = ["EVERY", 1_000, "AT", s.now() - year_ms, "MISFIRE", "ALL"]
        s.calls([("DQ.ADD", "q", i, "x", *late) for i in range(1_000)])
        with s.turn("POP of one that missed a year of seconds"):
            assert s.call("DQ.POP", "q")
        with s.turn("POP COUNT 1000 of such", BATCH):
            assert len(s.call("DQ.POP", "q", "COUNT", 1_000)) == 999
        s.call("DEL", "q")
        with s.turn("NEXT COUNT 1000; of an expression that never comes"):
            s.call("DQ.NEXT", f"*/{n + 1} 0-22 * * 1-5", "TZ", "Europe/Berlin", "COUNT", 1_000)
            assert not s.asks("DQ.NEXT", f"{n} 0 31 2 *")


def limits(s: Subject, jobs: int) -> None:
    """A million jobs that a limit holds back."""
    s.fill("q", jobs)
    for _ in range(REPEATS):
        places = s.jobs("q", "reserved") + BATCH_JOBS
        s.call("DQ.ALTER", "q", "CONCURRENCY", places, "RATE", 100_000, 1, "BURST", 100_000)
        with s.turn("POP COUNT 10000, as many as the limit lets go", BATCH):
            taken = s.call("DQ.POP", "q", "COUNT", BATCH_JOBS, "TTR", HOUR_MS)
        with s.turn("POP that is held by CONCURRENCY, INFO"):
            assert s.call("DQ.POP", "q") is None
            s.call("DQ.INFO", "q")
        with crowd_at(s, "q") as lines:
            with s.turn("5,000 wait, and a batch of places becomes free", BATCH):
                s.call("DQ.FINISH", "q", *(word for job in taken for word in (job[0], job[2])))
                s.until(lambda: s.says("waiting_consumers") == 0)
            assert lines[-1].receive()
        s.call("DQ.ALTER", "q", "CONCURRENCY", 0, "RATE", 1, HOUR_MS)
        s.call("DQ.POP", "q")
        with s.turn("POP that is held by RATE, INFO"):
            assert s.call("DQ.POP", "q") is None
            s.call("DQ.INFO", "q")
        with crowd_at(s, "q") as lines:
            with s.turn("5,000 wait, and RATE is lifted"):
                s.call("DQ.ALTER", "q", "RATE", 0, 0)
                s.until(lambda: s.says("waiting_consumers") == 0)
            assert lines[-1].receive()


def crowd_at(s: Subject, key: str):
    return crowd(s, WAITERS, "DQ.POP", key, "BLOCK", 0, "TTR", HOUR_MS, flushes=False)


def groups(s: Subject, count: int) -> None:
    """This many groups, each with one job that is reserved and one that waits."""
    pages = range(0, count, BATCH_JOBS)
    for _ in range(REPEATS):
        s.call("DQ.ALTER", "q", "GROUPRATE", 1, 1)
        for job in "first", "second":
            s.calls(
                [("DQ.ADD", "q", f"{job}:{n}", "x" * 100, "GROUP", n) for n in range(count)],
                at_once=5_000,
            )
        for _ in pages:
            assert s.call("DQ.POP", "q", "COUNT", BATCH_JOBS, "TTR", HOUR_MS)
        with s.turn("ALTER of GROUPCONCURRENCY"):
            s.call("DQ.ALTER", "q", "GROUPCONCURRENCY", 1)
        with s.turn("POP that is held by GROUPCONCURRENCY, INFO"):
            assert s.call("DQ.POP", "q") is None
            s.call("DQ.INFO", "q")
        with s.turn("ALTER of GROUPCONCURRENCY"):
            s.call("DQ.ALTER", "q", "GROUPCONCURRENCY", 2)
        with s.turn("ALTER of GROUPRATE"):
            s.call("DQ.ALTER", "q", "GROUPRATE", 2, HOUR_MS)
        with s.turn("ALTER of GROUPRATE"):
            s.call("DQ.ALTER", "q", "GROUPRATE", 0, 0, "GROUPCONCURRENCY", 0)
        with s.turn("POP; RELEASE, POP, FINISH of one job"):
            ((id, _, lease, _),) = s.call("DQ.POP", "q")
            s.call("DQ.RELEASE", "q", id, lease)
            ((id, _, lease, _),) = s.call("DQ.POP", "q")
            assert s.call("DQ.FINISH", "q", id, lease) == 1
        with s.turn("POP COUNT 10000", BATCH):
            s.call("DQ.POP", "q", "COUNT", BATCH_JOBS)
        with s.turn("GROUPS COUNT 1000"):
            s.call("DQ.GROUPS", "q", 0, "COUNT", 1_000)
        s.call("DEL", "q")


def expired_groups(s: Subject, count: int) -> None:
    """The first job of each group has expired, and the next one is not due yet."""
    for _ in range(REPEATS):
        at = s.now() + 2 * SOON_MS + count // 4
        for n in range(0, count, BATCH_JOBS):
            some, ttl = range(n, min(n + BATCH_JOBS, count)), at - s.now()
            s.calls([("DQ.ADD", "q", f"a{i}", "x", "GROUP", i, "TTL", ttl) for i in some])
            s.calls([("DQ.ADD", "q", f"b{i}", "x", "GROUP", i, "DELAY", HOUR_MS) for i in some])
        s.until(lambda: s.jobs("q", "dead") == count)
        with s.turn("the first POP behind the expired jobs of all groups"):
            assert s.call("DQ.POP", "q") is None
        s.call("DEL", "q")


def one_group(s: Subject, count: int) -> None:
    """A single group with ten times as many jobs, which expire at some time."""
    for _ in range(REPEATS):
        s.fill("q", 10 * count, "GROUP", "big", "TTL", HOUR_MS)
        with s.turn("GROUPS, of one with a million jobs with a TTL"):
            s.call("DQ.GROUPS", "q", 0)
        s.call("DEL", "q")


def looks(s: Subject, jobs: int) -> None:
    """Over a million jobs of different times, and of one time."""
    begin = s.now() + HOUR_MS
    s.calls(
        [("DQ.ADD", "q", n, "x" * 100, "AT", begin + 7 * n) for n in range(jobs // 10)],
        at_once=5_000,
    )
    s.fill("q", jobs - jobs // 10, "AT", begin + jobs)
    for _ in range(REPEATS):
        with s.turn("FORECAST in 1,000 steps"):
            s.call("DQ.FORECAST", "q", "FROM", begin, "STEP", 1_000, "COUNT", 1_000)
        with s.turn("FORECAST whose steps end inside buckets"):
            s.call("DQ.FORECAST", "q", "FROM", begin + 1, "STEP", 3, "COUNT", 1_000)
        with s.turn("PEEK COUNT 1000 AFTER one in the middle"):
            s.call("DQ.PEEK", "q", "STATE", "delayed", "COUNT", 1_000, "AFTER", jobs // 20)
        with s.turn("PEEK COUNT 1000 FROM a time in the middle"):
            s.call("DQ.PEEK", "q", "STATE", "delayed", "COUNT", 1_000, "FROM", begin + jobs // 3)
        (page,) = [s.call("DQ.PEEK", "q", "STATE", "delayed", "COUNT", 1_000, "FROM", begin + jobs)]
        last = dict(zip(page[-1][::2], page[-1][1::2], strict=True))[b"id"]
        with s.turn("PEEK COUNT 1000 AFTER one of a million of its millisecond"):
            s.call("DQ.PEEK", "q", "STATE", "delayed", "COUNT", 1_000, "AFTER", last)
        with s.turn("SCAN COUNT 10000 MATCH"):
            s.call("DQ.SCAN", "q", 0, "COUNT", BATCH_JOBS, "MATCH", "*99*9*x*")


def defragmented(s: Subject, jobs: int) -> None:
    """Every second job is deleted; the server moves the rest together, where it can do that."""
    for _ in range(REPEATS):
        s.calls([("DQ.ADD", "q", n, "x" * 100) for n in range(jobs)], at_once=5_000)
        for n in range(0, jobs, 1_000):
            s.call("DQ.DEL", "q", *range(n, n + 1_000, 2))
        for name, value in DEFRAG.items():
            s.call("CONFIG", "SET", name, value)
        with s.turn("active defragmentation, where there is any"):
            if s.asks("CONFIG", "SET", "activedefrag", "yes"):
                s.until(lambda: fragmentation(s) < 1.1)
        s.asks("CONFIG", "SET", "activedefrag", "no")
        s.call("DEL", "q")


# As busy as can be.
DEFRAG = {
    "active-defrag-ignore-bytes": "1mb",
    "active-defrag-threshold-lower": 1,
    "active-defrag-threshold-upper": 2,
    "active-defrag-cycle-min": 50,
    "active-defrag-cycle-max": 75,
}


def fragmentation(s: Subject) -> float:
    """The bytes that the server's allocator holds, divided by those in use."""
    told = s.call("INFO", "memory").decode()
    return float(told.partition("allocator_frag_ratio:")[2].split()[0])
