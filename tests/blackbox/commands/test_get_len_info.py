"""DQ.GET, DQ.LEN, DQ.INFO: what they show, field by field, in both protocols."""

from contextlib import closing

import pytest

from harness.clock import unix_ms
from harness.resp import fields
from harness.server import Server
from harness.shown import job
from harness.transcript import Session


def test_get_len_and_info_of_a_missing_queue(session: Session) -> None:
    session.check("""
        > DQ.GET q a
        (nil)
        > DQ.LEN q
        (integer) 0
        > DQ.LEN q STATE dead
        (integer) 0
        > DQ.INFO q
        (nil)
        > EXISTS q
        (integer) 0
        > DQ.ADD q a x
        "a"
        > DQ.GET q b
        (nil)
    """)


def test_get_follows_a_job_through_its_states(session: Session) -> None:
    session.check("""
        > DQ.ADD q a "hello you" DELAY 100 TTR 100 PRIORITY 9 ATTEMPTS 2
        "a"
        > DQ.GET q a
        ["id", "a", "body", "hello you", "state", "delayed", "due", <due>, "deadline", (nil),
         "priority", 9, "ttr", 100, "attempts", 2, "attempt", 0, "attempts-left", 2, "lease", (nil),
         "created", <created>, "since", (nil), "backoff-base", 0, "backoff-max", 0, "ttl", 0,
         "expires", (nil), "keep", 0, "late", 0, "kept-until", (nil), "reason", (nil),
         "timed-out", 0, "released", 0, "buried", 0, "kicked", 0]
    """)
    assert session["due"] == session["created"] + 100
    session.eventually("""
        > DQ.GET q a
        ["id", "a", "body", "hello you", "state", "ready", "due", <due>, "deadline", (nil),
         "priority", 9, "ttr", 100, "attempts", 2, "attempt", 0, "attempts-left", 2, "lease", (nil),
         "created", <created>, "since", <due>, <...>, "reason", (nil), <...>]
    """)
    session.check("""
        > DQ.POP q TTR 50
        [["a", "hello you", <first>, 1]]
        > DQ.GET q a
        ["id", "a", "body", "hello you", "state", "reserved", "due", <end>, "deadline", <end>,
         "priority", 9, "ttr", 100, "attempts", 2, "attempt", 1, "attempts-left", 1, "lease", <first>,
         "created", <created>, "since", (nil), <...>, "reason", (nil), <...>]
    """)
    # Ready again since the end of its lease, which is still good for something.
    session.eventually("""
        > DQ.GET q a
        ["id", "a", "body", "hello you", "state", "ready", "due", <end>, "deadline", <end>,
         "priority", 9, "ttr", 100, "attempts", 2, "attempt", 1, "attempts-left", 1, "lease", <first>,
         "created", <created>, "since", <end>, <...>, "reason", (nil), <...>]
    """)
    session.check("""
        > DQ.POP q
        [["a", "hello you", <second>, 2]]
        > DQ.GET q a
        ["id", "a", "body", "hello you", "state", "reserved", "due", (nil), "deadline", <death>,
         "priority", 9, "ttr", 100, "attempts", 2, "attempt", 2, "attempts-left", 0, "lease", <second>,
         "created", <created>, "since", (nil), <...>, "reason", (nil), <...>]
    """)
    # Dead since the end of its last lease.
    session.eventually("""
        > DQ.GET q a
        ["id", "a", "body", "hello you", "state", "dead", "due", (nil), "deadline", <death>,
         "priority", 9, "ttr", 100, "attempts", 2, "attempt", 2, "attempts-left", 0, "lease", <second>,
         "created", <created>, "since", <death>, <...>, "reason", "no attempts left", <...>]
    """)
    assert session["created"] + 100 <= session["due"] < session["end"] < session["death"]
    assert session["death"] <= unix_ms(session)


def test_get_shows_the_options_that_a_job_was_added_with(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x ATTEMPTS 0 BACKOFF 1000 60000 TTL 7200000 KEEP 3600000
        "a"
        > DQ.GET q a
        ["id", "a", "body", "x", "state", "ready", "due", <due>, "deadline", (nil), "priority", 128,
         "ttr", 60000, "attempts", 0, "attempt", 0, "attempts-left", (nil), "lease", (nil),
         "created", <due>, "since", <due>, "backoff-base", 1000, "backoff-max", 60000, "ttl", 7200000,
         "expires", <expires>, "keep", 3600000, "late", 0, "kept-until", (nil), "reason", (nil), <...>]
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > DQ.GET q a
        [<...>, "state", "reserved", "due", <back>, "deadline", <deadline>, <...>, "lease", <lease>, <...>]
        > DQ.FINISH q a <lease>
        (integer) 1
        > DQ.GET q a
        ["id", "a", "body", "x", "state", "done", "due", (nil), "deadline", (nil), "priority", 128,
         "ttr", 60000, "attempts", 0, "attempt", 1, "attempts-left", (nil), "lease", (nil),
         "created", <due>, "since", <finished>, "backoff-base", 1000, "backoff-max", 60000, "ttl", 7200000,
         "expires", (nil), "keep", 3600000, "late", 0, "kept-until", <kept>, "reason", (nil), <...>]
    """)
    assert session["expires"] == session["due"] + 7_200_000
    assert session["kept"] == session["finished"] + 3_600_000
    # A reserved job comes back when its lease and its backoff are over, jitter taken off.
    assert 750 < session["back"] - session["deadline"] <= 1_000


def test_get_in_resp3_is_a_map(server: Server) -> None:
    with closing(server.session(protocol=3)) as session:
        session.check("""
            > DQ.ADD q a x DELAY 60000
            "a"
            > DQ.GET q a
            {"id": "a", "body": "x", "state": "delayed", "due": <due>, "deadline": (nil), "priority": 128,
             "ttr": 60000, "attempts": 25, "attempt": 0, "attempts-left": 25, "lease": (nil),
             "created": <created>, "since": (nil), "backoff-base": 0, "backoff-max": 0, "ttl": 0,
             "expires": (nil), "keep": 0, "late": 0, "kept-until": (nil), "reason": (nil), <...>}
            > DQ.GET q b
            (nil)
        """)


def test_len_counts_by_state(session: Session) -> None:
    session.check("""
        > DQ.ADD q dead x ATTEMPTS 1
        "dead"
        > DQ.POP q TTR 1
        [["dead", "x", <*>, 1]]
        > DQ.ADD q r1 x
        "r1"
        > DQ.ADD q r2 x
        "r2"
        > DQ.POP q COUNT 2
        [["r1", "x", <*>, 1], ["r2", "x", <*>, 1]]
        > DQ.ADD q 1 x
        "1"
        > DQ.ADD q 2 x
        "2"
        > DQ.ADD q 3 x
        "3"
        > DQ.ADD q d1 x DELAY 60000
        "d1"
        > DQ.ADD q d2 x AT 281474976710655
        "d2"
        > DQ.ADD q d3 x DELAY 60000 PRIORITY 0
        "d3"
        > DQ.ADD q d4 x DELAY 60000 PRIORITY 255
        "d4"
        > DQ.ADD q done x KEEP 60000 PRIORITY 0
        "done"
        > DQ.POP q NOACK
        [["done", "x", (nil), 1]]
    """)
    session.eventually("> DQ.LEN q STATE dead\n(integer) 1")
    session.check("""
        > DQ.LEN q state Reserved
        (integer) 2
        > DQ.LEN q STATE READY
        (integer) 3
        > DQ.LEN q State delayed
        (integer) 4
        > DQ.LEN q STATE done
        (integer) 1
        > DQ.LEN q
        (integer) 11
    """)


def test_info_of_a_queue_that_did_everything(session: Session) -> None:
    session.check("""
        > CONFIG SET dq.default-ttr 7000 dq.default-attempts 3
        OK
        > DQ.ADD q finished x
        "finished"
        > DQ.POP q
        [["finished", "x", <*>, 1]]
        > DQ.FINISH q finished
        (integer) 1
        > DQ.ADD q deleted x
        "deleted"
        > DQ.DEL q deleted
        (integer) 1
        > DQ.ADD q late x
        "late"
        > DQ.POP q TTR 1
        [["late", "x", <*>, 1]]
    """)
    session.eventually('> DQ.POP q\n[["late", "x", <*>, 2]]')
    session.check("""
        > DQ.ADD q dead x ATTEMPTS 1
        "dead"
        > DQ.POP q TTR 1
        [["dead", "x", <last>, 1]]
        > DQ.ADD q ready x
        "ready"
        > DQ.ADD q delayed x
        "delayed"
        > DQ.ADD q delayed x DELAY 5000 REPLACE
        "delayed"

        # What is refused isn't counted.
        > DQ.ADD q delayed x NX
        (nil)
        > DQ.ADD q delayed x
        (error) EXISTS id is taken in this queue
        > DQ.FINISH q ready *
        (integer) 0
        > DQ.DEL q nobody
        (integer) 0
    """)
    session.eventually("> DQ.LEN q STATE dead\n(integer) 1")
    session.check("""
        > DQ.INFO q
        ["default-ttr", 7000, "default-attempts", 3, "default-backoff-base", 0, "default-backoff-max", 0,
         "default-keep", 0, "default-late", 0, "max-jobs", 0, "dead-keep", 0, "concurrency", 0, "rate", 0,
         "rate-per-ms", 0, "rate-burst", 0, "group-concurrency", 0, "group-rate", 0,
         "group-rate-per-ms", 0, "group-rate-burst", 0, "paused", 0, "paused-until", (nil),
         "rate-left", (nil), "blocked-until", (nil),
         "jobs", 4, "delayed", 1, "ready", 1, "reserved", 1, "dead", 1, "done", 0, "held", 0, "held-behind-dead", 0, "groups", 0,
         "waiting-consumers", 0,
         "oldest-ready-ms", <oldest>, "next-due", <due>, "last-lease", <last>, "memory", <*>,
         "total-added", 6, "total-replaced", 1, "total-popped", 4, "total-finished", 1,
         "total-released", 0, "total-timed-out", 2, "total-buried", 0, "total-dead", 1,
         "total-kicked", 0, "total-deleted", 1, "total-purged", 0,
         "lateness-p50-ms", <*>, "lateness-p90-ms", <*>, "lateness-p99-ms", <*>,
         "lateness-p999-ms", <*>, "lateness-max-ms", <*>,
         "schedules", 0, "total-missed", 0,
         "lateness-within-1-ms", <*>, "lateness-within-10-ms", <*>, "lateness-within-100-ms", <*>,
         "lateness-within-1000-ms", <*>, "lateness-within-10000-ms", <*>, "lateness-within-60000-ms", <*>,
         "lateness-within-600000-ms", <*>, "lateness-within-3600000-ms", <*>,
         "lateness-count", <*>, "lateness-sum-ms", <*>,
         "watchers", 0, "sink", (nil), "sink-maxlen", 0, "sink-error", (nil)]
        > DQ.GET q delayed
        [<...>, "state", "delayed", "due", <due>, <...>]
    """)
    assert 0 <= session["oldest"] <= unix_ms(session) - job(session, "q", "ready")["due"]


def test_info_of_an_empty_queue_in_resp3(server: Server) -> None:
    with closing(server.session(protocol=3)) as session:
        session.check("""
            > DQ.ADD q a x
            "a"
            > DQ.DEL q a
            (integer) 1
            > DQ.INFO q
            {"default-ttr": 60000, "default-attempts": 25, "default-backoff-base": 0,
             "default-backoff-max": 0, "default-keep": 0, "default-late": 0, "max-jobs": 0, "dead-keep": 0,
             "concurrency": 0, "rate": 0, "rate-per-ms": 0, "rate-burst": 0,
             "group-concurrency": 0, "group-rate": 0, "group-rate-per-ms": 0, "group-rate-burst": 0,
             "paused": 0, "paused-until": (nil), "rate-left": (nil), "blocked-until": (nil), "jobs": 0,
             "delayed": 0, "ready": 0, "reserved": 0, "dead": 0,
             "done": 0, "held": 0, "held-behind-dead": 0, "groups": 0, "waiting-consumers": 0, "oldest-ready-ms": (nil), "next-due": (nil),
             "last-lease": (nil), "memory": <*>, "total-added": 1, "total-replaced": 0, "total-popped": 0,
             "total-finished": 0, "total-released": 0, "total-timed-out": 0, "total-buried": 0,
             "total-dead": 0, "total-kicked": 0, "total-deleted": 1, "total-purged": 0,
             "lateness-p50-ms": (nil), "lateness-p90-ms": (nil), "lateness-p99-ms": (nil),
             "lateness-p999-ms": (nil), "lateness-max-ms": (nil),
             "schedules": 0, "total-missed": 0,
             "lateness-within-1-ms": 0, "lateness-within-10-ms": 0, "lateness-within-100-ms": 0,
             "lateness-within-1000-ms": 0, "lateness-within-10000-ms": 0, "lateness-within-60000-ms": 0,
             "lateness-within-600000-ms": 0, "lateness-within-3600000-ms": 0,
             "lateness-count": 0, "lateness-sum-ms": 0,
             "watchers": 0, "sink": (nil), "sink-maxlen": 0, "sink-error": (nil)}
            > DQ.INFO none
            (nil)
        """)


def test_next_due_is_the_time_of_the_next_change(session: Session) -> None:
    def next_due() -> object:
        return fields(session.call("DQ.INFO", "q"))["next-due"]

    session.check("""
        > DQ.ADD q ready x TTR 30000
        "ready"
    """)
    # A ready job waits for nothing.
    assert next_due() is None
    session.check("""
        > DQ.ADD q a x AT 281474976710000
        "a"
        > DQ.ADD q b x AT 281474976000000 PRIORITY 3
        "b"
    """)
    assert next_due() == 281_474_976_000_000
    session.check('> DQ.POP q\n[["ready", "x", <lease>, 1]]')
    lease_end = fields(session.call("DQ.GET", "q", "ready"))["due"]
    assert next_due() == lease_end
    session.check("> DQ.FINISH q ready <lease>\n(integer) 1")
    assert next_due() == 281_474_976_000_000
    session.check("> DQ.DEL q b\n(integer) 1")
    assert next_due() == 281_474_976_710_000


def test_memory_grows_and_shrinks_with_the_jobs_of_a_queue(session: Session) -> None:
    def memory() -> tuple[int, int]:
        own = fields(session.call("DQ.INFO", "q"))["memory"]
        return own, session.call("MEMORY", "USAGE", "q", "SAMPLES", 0)

    session.check("> DQ.ADD q * x\n<*>")
    (own_empty, server_empty) = memory()
    for _ in range(1_000):
        session.call("DQ.ADD", "q", "*", b"b" * 1_000, "DELAY", 60_000)
    (own, server) = memory()
    # A thousand bytes of body and about a hundred of ours.
    assert 1_000_000 < own - own_empty < 1_300_000
    assert 1_000_000 < server - server_empty < 1_300_000


@pytest.mark.parametrize(
    "command", ["DQ.GET q a", "DQ.LEN q", "DQ.INFO q", "DQ.PEEK q STATE ready", "DQ.SCAN q 0"]
)
def test_get_len_and_info_write_nothing_to_the_log(
    session: Session, server: Server, command: str
) -> None:
    session.check('> DQ.ADD q a x DELAY 1\n"a"')
    session.eventually("> DQ.LEN q STATE ready\n(integer) 1")
    with server.client() as client:
        before = client.info("persistence")["rdb_changes_since_last_save"]
        session.call(*command.split())
        assert client.info("persistence")["rdb_changes_since_last_save"] == before
