"""A thousand jobs of 1 MiB."""

from turns.scenes import BATCH, SERVER
from turns.scenes.many import HOUR_MS, REMOVALS, REPEATS
from turns.subject import Subject

LARGE = 1_000
BODY = b"x" * (1 << 20)


def in_commands(s: Subject, jobs: int) -> None:
    for _ in range(REPEATS):
        s.fill("q", jobs, body=BODY)
        with s.turn("ADD"):
            s.call("DQ.ADD", "q", "one", BODY)
        with s.turn("ADD REPLACE"):
            s.call("DQ.ADD", "q", "one", BODY, "REPLACE")
        with s.turn("PEEK COUNT 1000 (16 of them)", BATCH):
            ids = s.call("DQ.PEEK", "q", "COUNT", 1_000)
        with s.turn("POP COUNT 1000 (16 of them)", BATCH):
            taken = s.call("DQ.POP", "q", "COUNT", 1_000)
        with s.turn("FINISH of 16"):
            assert (
                s.call("DQ.FINISH", "q", *(word for job in taken for word in (job[0], job[2])))
                == 16
            )
        with s.turn("POP COUNT 1000 NOACK (16 of them)", BATCH):
            s.call("DQ.POP", "q", "COUNT", 1_000, "NOACK")
        _, ids = s.call("DQ.SCAN", "q", 0, "COUNT", jobs * 4 // 10)
        with s.turn("DEL of 400"):
            assert s.call("DQ.DEL", "q", *ids) == len(ids)
        with s.turn("PURGE of the others"):
            assert s.call("DQ.PURGE", "q", "STATE", "ready", "COUNT", 10_000) > jobs // 2


def as_a_key(s: Subject, jobs: int) -> None:
    s.fill("q", jobs // 4, "DELAY", HOUR_MS, body=BODY)
    for _ in range(REPEATS):
        with s.turn("COPY of 250", SERVER):
            s.call("COPY", "q", "copy", "REPLACE")
        with s.turn("DUMP of 250", SERVER):
            dump = s.call("DUMP", "copy")
        with s.turn("DEL of 250"):
            s.call("DEL", "copy")
        with s.turn("RESTORE of 250", SERVER):
            s.call("RESTORE", "copy", 0, dump)
        s.call("DQ.ADD", "small", "a", "x", "REPLACE")
        small = s.call("DUMP", "small")
        with s.turn("RESTORE REPLACE of 250 by a small one"):
            s.call("RESTORE", "copy", 0, small, "REPLACE")
        for removal in REMOVALS:
            s.call("COPY", "q", "copy", "REPLACE")
            s.call("SET", "other", "x")
            with s.turn("DEL, UNLINK, SET over it, RENAME over it, expiry, of 250"):
                s.call(*removal.split())
                s.until(lambda: s.call("TYPE", "copy") in ("none", "string"))
        s.call("COPY", "q", "copy", "DB", 1)
        s.call("SELECT", 1)
        with s.turn("FLUSHDB SYNC of 250"):
            s.call("FLUSHDB", "SYNC")
        s.call("SELECT", 0)


def forgotten(s: Subject, jobs: int) -> None:
    """The timer forgets the jobs."""
    for _ in range(REPEATS):
        s.call("DQ.ALTER", "q", "DEADKEEP", 0)
        s.fill("q", jobs, "TTL", 1, body=BODY)
        s.until(lambda: s.jobs("q", "dead") == jobs)
        with s.turn("DEADKEEP is over"):
            s.call("DQ.ALTER", "q", "DEADKEEP", 1)
            s.until(lambda: s.jobs("q") == 0)
        s.fill("q", jobs, "KEEP", 3_000, body=BODY)
        while s.call("DQ.POP", "q", "NOACK", "COUNT", 16):
            pass
        with s.turn("KEEP is over"):
            s.until(lambda: s.jobs("q") == 0)


def shown(s: Subject, jobs: int) -> None:
    """Small jobs with results of 1 MiB, some of which another job waited for."""
    ids = range(jobs // 10)
    s.call("DQ.ALTER", "q", "KEEP", HOUR_MS)
    s.calls([("DQ.ADD", "q", n, "x") for n in ids])
    s.call("DQ.ADD", "q", "last", "x", "AFTER", len(ids), *ids)
    for n in ids:
        s.call("DQ.POP", "q")
        s.call("DQ.DONE", "q", n, "*", "RESULT", BODY)
    for _ in range(REPEATS):
        with s.turn("PEEK COUNT 1000 of small jobs with such results (16 of them)", BATCH):
            s.call("DQ.PEEK", "q", "STATE", "done", "COUNT", 1_000)
        with s.turn("DEPS COUNT 10000 with such results (16 of them)", BATCH):
            s.call("DQ.DEPS", "q", "last", "COUNT", 10_000)
