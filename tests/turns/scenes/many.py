"""A million jobs of 100 bytes."""

from turns.scenes import BATCH, SERVER
from turns.subject import Subject

MANY = 1_000_000
REPEATS = 3
HOUR_MS = 3_600_000
BATCH_JOBS = 10_000
REMOVALS = ["DEL copy", "UNLINK copy", "SET copy x", "RENAME other copy", "PEXPIREAT copy 1"]


def one_by_one(s: Subject, jobs: int) -> None:
    s.fill("q", jobs)
    s.call("DQ.ADD", "q", "taken", "x" * 100)
    for n in range(REPEATS):
        with s.turn("ADD"):
            s.call("DQ.ADD", "q", f"a{n}", "x" * 100)
        with s.turn("ADD NX, ADD REPLACE"):
            s.call("DQ.ADD", "q", "taken", "x", "NX")
            s.call("DQ.ADD", "q", "taken", "x" * 100, "REPLACE")
        with s.turn("POP; TOUCH, RELEASE, FINISH of one job"):
            ((id, _, lease, _),) = s.call("DQ.POP", "q")
            s.call("DQ.TOUCH", "q", id, lease)
            s.call("DQ.RELEASE", "q", id, lease, "DELAY", HOUR_MS)
            ((id, _, lease, _),) = s.call("DQ.POP", "q")
            assert s.call("DQ.FINISH", "q", id, lease) == 1
        with s.turn("BURY, KICK, KICKJOB, DEL of one job"):
            ((id, _, lease, _),) = s.call("DQ.POP", "q")
            assert s.call("DQ.BURY", "q", id, lease) == 1
            assert s.call("DQ.KICK", "q") == 1
            assert s.call("DQ.KICKJOB", "q", id) == 0
            assert s.call("DQ.DEL", "q", id) == 1
        with s.turn("PAUSE, RESUME, ALTER"):
            s.call("DQ.PAUSE", "q")
            s.call("DQ.RESUME", "q")
            s.call("DQ.ALTER", "q", "DEADKEEP", HOUR_MS, "MAXJOBS", 2 * jobs)
        with s.turn("GET, LEN, INFO; MEMORY USAGE, INFO dq"):
            s.call("DQ.GET", "q", "taken")
            for state in "ready", "delayed", "reserved", "dead", "done":
                s.jobs("q", state)
            s.call("DQ.INFO", "q")
            s.call("MEMORY", "USAGE", "q")
        with s.turn("PEEK COUNT 1000, of each state"):
            for state in "ready", "delayed", "reserved", "dead", "done":
                s.call("DQ.PEEK", "q", "STATE", state, "COUNT", 1_000)
        with s.turn("SCAN COUNT 10000, also for a state that no job is in"):
            s.call("DQ.SCAN", "q", 0, "COUNT", BATCH_JOBS)
            s.call("DQ.SCAN", "q", 0, "STATE", "done", "COUNT", BATCH_JOBS)


def batches(s: Subject, jobs: int) -> None:
    s.fill("q", jobs)
    for n in range(REPEATS):
        s.fill("q", 8 * BATCH_JOBS)
        new = [f"new:{n}:{place}" for place in range(BATCH_JOBS)]
        words = [word for id in new for word in (id, "x" * 100)]
        with s.turn("MADD of 10,000", BATCH):
            s.call("DQ.MADD", "q", BATCH_JOBS, *words)
        s.call("DQ.DEL", "q", *new)
        with s.turn("MADD of 10,000 with DELAYS that are far apart", BATCH):
            delays = [place * 7_919 % HOUR_MS for place in range(BATCH_JOBS)]
            s.call("DQ.MADD", "q", BATCH_JOBS, *words, "DELAYS", *delays)
        s.call("DQ.DEL", "q", *new)
        with s.turn("POP COUNT 10000", BATCH):
            taken = s.call("DQ.POP", "q", "COUNT", BATCH_JOBS)
        with s.turn("FINISH of 10,000", BATCH):
            assert (
                s.call("DQ.FINISH", "q", *(word for job in taken for word in (job[0], job[2])))
                == BATCH_JOBS
            )
        taken = s.call("DQ.POP", "q", "COUNT", BATCH_JOBS)
        claims = [word for job in taken for word in (job[0], job[2])]
        with s.turn("POP COUNT 10000 FINISH of 10,000", BATCH):
            finished, _ = s.call("DQ.POP", "q", "COUNT", BATCH_JOBS, "FINISH", BATCH_JOBS, *claims)
        assert finished == BATCH_JOBS
        with s.turn("POP COUNT 10000 NOACK", BATCH):
            s.call("DQ.POP", "q", "COUNT", BATCH_JOBS, "NOACK")
        taken = s.call("DQ.POP", "q", "COUNT", BATCH_JOBS)
        s.calls([("DQ.BURY", "q", id, lease) for id, _, lease, _ in taken])
        with s.turn("KICK COUNT 10000", BATCH):
            assert s.call("DQ.KICK", "q", "COUNT", BATCH_JOBS) == BATCH_JOBS
        taken = s.call("DQ.POP", "q", "COUNT", BATCH_JOBS)
        s.calls([("DQ.BURY", "q", id, lease) for id, _, lease, _ in taken])
        with s.turn("KICK COUNT 10000 SPREAD 3600000", BATCH):
            kick = ("DQ.KICK", "q", "COUNT", BATCH_JOBS, "SPREAD", HOUR_MS)
            assert s.call(*kick) == BATCH_JOBS
        with s.turn("KICKJOB of 10,000", BATCH):
            # All but the first, which is due.
            assert s.call("DQ.KICKJOB", "q", *(job[0] for job in taken)) >= BATCH_JOBS - 10
        taken = s.call("DQ.POP", "q", "COUNT", BATCH_JOBS)
        later = [f"later:{n}" for n in range(BATCH_JOBS)]
        s.calls([("DQ.ADD", "q", id, "x" * 100, "DELAY", HOUR_MS) for id in later])
        with s.turn("POP ID of 10,000 that are delayed", BATCH):
            assert len(s.call("DQ.POP", "q", "ID", *later)) == BATCH_JOBS
        s.call("DQ.DEL", "q", *later)
        with s.turn("DEL of 10,000 jobs", BATCH):
            assert s.call("DQ.DEL", "q", *(job[0] for job in taken)) == BATCH_JOBS
        with s.turn("PURGE COUNT 1000 (the default)"):
            s.call("DQ.PURGE", "q", "STATE", "ready")
        with s.turn("PURGE COUNT 10000", BATCH):
            assert s.call("DQ.PURGE", "q", "STATE", "ready", "COUNT", BATCH_JOBS) == BATCH_JOBS


def as_a_key(s: Subject, jobs: int) -> None:
    s.fill("q", jobs, "DELAY", HOUR_MS)
    for _ in range(REPEATS):
        with s.turn("RENAME, MOVE, EXPIRE, SWAPDB"):
            s.call("RENAME", "q", "p")
            s.call("RENAME", "p", "q")
            s.call("EXPIRE", "q", HOUR_MS)
            s.call("PERSIST", "q")
            s.call("SWAPDB", 0, 1)
            s.call("SWAPDB", 0, 1)
        with s.turn("COPY", SERVER):
            assert s.call("COPY", "q", "copy", "REPLACE")
        with s.turn("DUMP", SERVER):
            dump = s.call("DUMP", "copy")
        for removal in REMOVALS:
            s.call("COPY", "q", "copy", "REPLACE")
            s.call("SET", "other", "x")
            with s.turn("DEL, UNLINK, SET over it, RENAME over it, expiry"):
                s.call(*removal.split())
                s.until(lambda: s.call("TYPE", "copy") in ("none", "string"))
        s.call("COPY", "q", "copy", "REPLACE")
        with s.turn("RESTORE", SERVER):
            s.call("RESTORE", "copy", 0, dump, "REPLACE")
    for _ in range(REPEATS):
        s.call("COPY", "q", "copy", "DB", 1)
        s.call("SELECT", 1)
        with s.turn("FLUSHDB SYNC"):
            s.call("FLUSHDB", "SYNC")
        s.call("SELECT", 0)
