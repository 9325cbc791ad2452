"""Limits of a queue: purges by command and by time; the defaults that DQ.ALTER gives to jobs, and
the number of jobs that it allows.
"""

from collections.abc import Callable

import pytest

from harness.clock import unix_ms
from harness.server import Server, eventually
from harness.shown import info, job
from harness.states import IN_STATE, bury, make_all_states, peeked
from harness.transcript import Session


@pytest.mark.parametrize("state", IN_STATE)
def test_purge_removes_by_state_in_its_order(session: Session, state: str) -> None:
    make_all_states(session)
    session.check(f"""
        > DQ.PURGE q STATE {state.upper()} COUNT 1
        (integer) 1
        > DQ.LEN q
        (integer) 14
    """)
    assert peeked(session, state) == IN_STATE[state][1:]
    session.check(f"""
        > DQ.PURGE q COUNT 5 STATE {state}
        (integer) 2
        > DQ.PURGE q STATE {state}
        (integer) 0
        > DQ.LEN q STATE {state}
        (integer) 0
        > DQ.LEN q
        (integer) 12
    """)
    assert info(session)["total-purged"] == 3
    session.check(f'> DQ.ADD q {IN_STATE[state][0]} again\n"{IN_STATE[state][0]}"')


def test_a_purged_lease_is_void(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > DQ.PURGE q STATE reserved
        (integer) 1
        > DQ.TOUCH q a <lease>
        (integer) 0
        > DQ.FINISH q a <lease>
        (integer) 0
        > DQ.PURGE none STATE ready
        (integer) 0
        > EXISTS none
        (integer) 0
    """)


def add_in_state(session: Session, state: str, job_id: str) -> None:
    """A job that has come to be in this state just now."""
    if state == "dead":
        bury(session, job_id)
        return
    session.call("DQ.ADD", "q", job_id, "x", "KEEP", 60_000)
    if state == "done":
        assert session.call("DQ.POP", "q", "NOACK") == [[job_id.encode(), b"x", None, 1]]


@pytest.mark.parametrize("state", ["ready", "dead", "done"])
def test_purge_older_takes_only_jobs_that_are_old_enough(session: Session, state: str) -> None:
    add_in_state(session, state, "old")
    since = job(session, "q", "old")["since"]
    session.check(f"> DQ.PURGE q STATE {state} OLDER 3600000\n(integer) 0")
    eventually(lambda: unix_ms(session) >= since + 400)
    add_in_state(session, state, "young")
    removed = session.call("DQ.PURGE", "q", "STATE", state, "OLDER", 400)
    young_since = job(session, "q", "young")["since"]
    assert unix_ms(session) < young_since + 400, "the machine is too slow to tell"
    assert removed == 1
    assert peeked(session, state) == ["young"]
    session.check(f"> DQ.PURGE q STATE {state} OLDER 0\n(integer) 1")


def test_purge_removes_a_thousand_unless_told_otherwise(session: Session) -> None:
    for n in range(1_200):
        session.call("DQ.ADD", "q", n, "x")
    session.check("""
        > DQ.PURGE q STATE ready
        (integer) 1000
        > DQ.PURGE q STATE ready
        (integer) 200
        > DQ.PURGE q STATE ready
        (integer) 0
    """)


def test_altered_defaults_are_for_jobs_that_are_added_later(session: Session) -> None:
    session.check("""
        > DQ.ADD q before x
        "before"
        > DQ.ALTER q TTR 7000 ATTEMPTS 3 BACKOFF 10 100 KEEP 9000
        OK
        > DQ.GET q before
        [<...>, "ttr", 60000, "attempts", 25, <...>, "backoff-base", 0, "backoff-max", 0, <...>, "keep", 0, <...>]
        > DQ.ADD q after x
        "after"
        > DQ.GET q after
        [<...>, "ttr", 7000, "attempts", 3, <...>, "backoff-base", 10, "backoff-max", 100, <...>,
         "keep", 9000, <...>]
        > DQ.ADD q own x TTR 1 ATTEMPTS 0 BACKOFF 0 0 KEEP 0
        "own"
        > DQ.GET q own
        [<...>, "ttr", 1, "attempts", 0, <...>, "backoff-base", 0, "backoff-max", 0, <...>, "keep", 0, <...>]

        # What isn't named stays; the queue goes before the configs, and other queues have their
        # own.
        > DQ.ALTER q TTR 8000
        OK
        > CONFIG SET dq.default-ttr 1 dq.default-attempts 1
        OK
        > DQ.ADD q last x
        "last"
        > DQ.GET q last
        [<...>, "ttr", 8000, "attempts", 3, <...>, "backoff-base", 10, <...>, "keep", 9000, <...>]
        > DQ.ADD other a x
        "a"
        > DQ.GET other a
        [<...>, "ttr", 1, "attempts", 1, <...>, "backoff-base", 0, <...>, "keep", 0, <...>]
        > DQ.GET q before
        [<...>, "ttr", 60000, "attempts", 25, <...>]
    """)
    told = info(session)
    names = (
        "default-ttr",
        "default-attempts",
        "default-backoff-base",
        "default-backoff-max",
        "default-keep",
    )
    assert [told[name] for name in names] == [8_000, 3, 10, 100, 9_000]


def test_a_backoff_is_the_jobs_else_the_queues_else_the_servers(session: Session) -> None:
    session.check("""
        > CONFIG SET dq.default-backoff "1000 600000"
        OK
        > DQ.ADD q servers x
        "servers"
        > DQ.GET q servers
        [<...>, "backoff-base", 1000, "backoff-max", 600000, <...>]
        > DQ.ADD q own x BACKOFF 0 0
        "own"
        > DQ.GET q own
        [<...>, "backoff-base", 0, "backoff-max", 0, <...>]
    """)
    assert [info(session)[f"default-backoff-{end}"] for end in ("base", "max")] == [1_000, 600_000]
    session.check("""
        > DQ.ALTER q BACKOFF 5 6
        OK
        > DQ.ADD q queues x
        "queues"
        > DQ.GET q queues
        [<...>, "backoff-base", 5, "backoff-max", 6, <...>]

        # None is a setting, too.
        > DQ.ALTER q BACKOFF 0 0
        OK
        > DQ.ADD q none x
        "none"
        > DQ.GET q none
        [<...>, "backoff-base", 0, "backoff-max", 0, <...>]

        # What was added before keeps its own.
        > CONFIG SET dq.default-backoff "7 8"
        OK
        > DQ.GET q servers
        [<...>, "backoff-base", 1000, "backoff-max", 600000, <...>]
        > DQ.POP q ID servers
        [["servers", "x", <lease>, 1]]
        > DQ.RELEASE q servers <lease>
        (integer) 1
        > DQ.GET q servers
        [<...>, "state", "delayed", <...>]
    """)
    assert [info(session)[f"default-backoff-{end}"] for end in ("base", "max")] == [0, 0]


def test_a_queue_can_be_altered_before_it_has_jobs(session: Session) -> None:
    session.check("""
        > DQ.ALTER q ATTEMPTS 0
        OK
        > TYPE q
        delayq-dq
        > DQ.ADD q a x
        "a"
        > DQ.GET q a
        [<...>, "attempts", 0, <...>]
    """)


def test_a_full_queue_refuses_jobs_until_there_is_room(session: Session) -> None:
    session.check("""
        > DQ.ALTER q MAXJOBS 2
        OK
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x
        "b"
        > DQ.ADD q c x
        (error) FULL the queue holds as many jobs as it may
        > DQ.ADD q * x NX
        (error) FULL the queue holds as many jobs as it may
        > DQ.ADD q c x REPLACE
        (error) FULL the queue holds as many jobs as it may
        > DQ.ADD q a x
        (error) EXISTS id is taken in this queue
        > DQ.ADD q a x NX
        (nil)
        > DQ.ADD q a new REPLACE
        "a"

        # Whatever their state.
        > DQ.POP q COUNT 2
        [["b", "x", <*>, 1], ["a", "new", <*>, 1]]
        > DQ.ADD q c x
        (error) FULL the queue holds as many jobs as it may
        > DQ.FINISH q a
        (integer) 1
        > DQ.ADD q c x
        "c"

        # Fewer than there are: those stay.
        > DQ.ALTER q MAXJOBS 1
        OK
        > DQ.LEN q
        (integer) 2
        > DQ.RELEASE q b *
        (integer) 1
        > DQ.ADD q d x
        (error) FULL the queue holds as many jobs as it may
        > DQ.ALTER q MAXJOBS 0
        OK
        > DQ.ADD q d x
        "d"
    """)


def test_dead_jobs_leave_when_they_were_kept_long_enough(session: Session) -> None:
    bury(session, "first")
    session.check("> DQ.ALTER q DEADKEEP 400\nOK")
    assert info(session)["dead-keep"] == 400
    died = job(session, "q", "first")["since"]
    # Nobody asks for it: it goes by itself.
    session.eventually("> DQ.LEN q\n(integer) 0")
    assert died + 400 <= unix_ms(session) <= died + 400 + 1_000
    bury(session, "second")
    session.check("""
        > DQ.ALTER q DEADKEEP 0
        OK
        > DQ.ADD q alive x TTL 1 DELAY 60000
        "alive"
    """)
    died = job(session, "q", "second")["since"]
    eventually(lambda: unix_ms(session) >= died + 600)
    session.check("> DQ.LEN q STATE dead\n(integer) 2\n> DQ.ALTER q DEADKEEP 1\nOK")
    session.eventually("> DQ.LEN q\n(integer) 0")
    assert info(session)["total-purged"] == 3


def test_purges_by_deadkeep_reach_the_replica_as_log_entries(
    fresh_server: Callable[..., Server],
) -> None:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    session, there = primary.session(), replica.session()
    session.check("> DQ.ALTER q DEADKEEP 300\nOK")
    bury(session, "buried")
    session.check("""
        > DQ.ADD q done x KEEP 300
        "done"
        > DQ.POP q NOACK
        [["done", "x", (nil), 1]]
        > DQ.ADD q stays x
        "stays"
    """)
    for other in session, there:
        eventually(lambda other=other: other.call("DQ.LEN", "q") == 1)
    replica.catch_up(primary)
    (digest,) = session.call("DEBUG", "DIGEST-VALUE", "q")
    assert there.call("DEBUG", "DIGEST-VALUE", "q") == [digest]
    assert info(there)["total-purged"] == info(session)["total-purged"] == 2


def test_a_replica_purges_nothing_by_itself(fresh_server: Callable[..., Server]) -> None:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    session, there = primary.session(), replica.session()
    session.check("""
        > DQ.ADD q done x KEEP 1
        "done"
        > DQ.POP q NOACK
        [["done", "x", (nil), 1]]
    """)
    session.eventually("> DQ.LEN q\n(integer) 0")
    replica.catch_up(primary)
    bury(session, "buried")
    replica.catch_up(primary)
    # From here on nobody tells the replica anything.
    there.check("> REPLICAOF 127.0.0.1 1\nOK")
    session.check("> DQ.ALTER q DEADKEEP 1\nOK")
    session.eventually("> DQ.LEN q\n(integer) 0")
    there.check("> DQ.LEN q STATE dead\n(integer) 1")
