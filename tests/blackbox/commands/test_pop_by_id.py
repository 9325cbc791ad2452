"""DQ.POP … ID takes the named jobs, whatever they wait for."""

import pytest

from harness.clock import HOUR_MS, now_ms
from harness.shown import info, job
from harness.transcript import Session


def tally(session: Session, job_id: str = "a") -> list[object]:
    shown = job(session, "q", job_id)
    return [shown[name] for name in ("timed-out", "released", "buried", "kicked")]


def test_pop_by_id_takes_jobs_before_their_turn_and_before_their_time(session: Session) -> None:
    session.check("""
        > DQ.ADD q a 1
        "a"
        > DQ.ADD q b 2 PRIORITY 0
        "b"
        > DQ.ADD q c 3 DELAY 3600000
        "c"
        > DQ.POP q ID c a TTR 5000
        [["c", "3", <c>, 1], ["a", "1", <a>, 1]]
        > DQ.POP q
        [["b", "2", <*>, 1]]
        > DQ.POP q ID a b c d
        (nil)
        > DQ.FINISH q c <c>
        (integer) 1
        > DQ.POP q ID c
        (nil)
        > DQ.POP nobody ID c
        (nil)
        > EXISTS nobody
        (integer) 0
    """)


def test_a_job_that_waits_for_a_retry_and_is_taken_by_id_keeps_its_attempts(
    session: Session,
) -> None:
    session.check("""
        > DQ.ADD q a x BACKOFF 3600000 3600000
        "a"
        > DQ.POP q
        [["a", "x", <*>, 1]]
        > DQ.RELEASE q a *
        (integer) 1
        > DQ.POP q ID a
        [["a", "x", <lease>, 2]]
        > DQ.RELEASE q a <lease>
        (integer) 1
        > DQ.LEN q STATE delayed
        (integer) 1
    """)
    assert tally(session) == [0, 2, 0, 0]


def test_pop_by_id_takes_a_dead_job_as_if_it_had_been_kicked(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x ATTEMPTS 2
        "a"
        > DQ.POP q
        [["a", "x", <*>, 1]]
        > DQ.BURY q a * REASON snow
        (integer) 1
        > DQ.POP q ID a
        [["a", "x", <again>, 1]]
    """)
    assert job(session, "q", "a")["reason"] is None
    # But nobody has kicked it.
    assert tally(session) == [0, 0, 1, 0]
    assert info(session)["total-kicked"] == 0


def test_the_due_time_of_a_job_taken_early_by_id_is_now(session: Session) -> None:
    session.call("DQ.ADD", "q", "a", "x", "DELAY", HOUR_MS)
    before = now_ms()
    ((_, _, _, _, due),) = session.call("DQ.POP", "q", "ID", "a", "WITHDUE")
    assert before <= due <= now_ms()


def test_a_schedule_taken_by_id_runs_now_and_goes_on(session: Session) -> None:
    session.call("DQ.ADD", "q", "a", "x", "EVERY", HOUR_MS)
    due = job(session, "q", "a")["due"]
    session.check("""
        > DQ.POP q ID a NOACK
        [["a", "x", (nil), 1]]
    """)
    shown = job(session, "q", "a")
    assert (shown["state"], shown["due"], shown["runs-begun"]) == (b"delayed", due, 1)


def test_limits_and_pauses_hold_back_jobs_taken_by_id(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x DELAY 3600000
        "b"
        > DQ.PAUSE q
        OK
        > DQ.POP q ID a b
        (nil)
        > DQ.RESUME q
        OK
        > DQ.ALTER q CONCURRENCY 1
        OK
        > DQ.POP q ID b a
        [["b", "x", <b>, 1]]
        > DQ.POP q ID a
        (nil)
        > DQ.FINISH q b <b>
        (integer) 1
        > DQ.ALTER q CONCURRENCY 0 RATE 1 86400000
        OK
        > DQ.ADD q c x
        "c"
        > DQ.POP q ID c a
        [["c", "x", <*>, 1]]
        > DQ.POP q ID a
        (nil)
        > DQ.LEN q STATE ready
        (integer) 1
    """)


def test_a_job_whose_id_is_an_option_name_can_be_taken_by_id(session: Session) -> None:
    for name in ("TTR", "noack", "ID", "5", "a"):
        session.call("DQ.ADD", "q", name, "x", "DELAY", HOUR_MS)
    session.check("""
        > DQ.POP q ID TTR ID noack TTR 5000 ID 5 a
        [["TTR", "x", <*>, 1], ["noack", "x", <*>, 1], ["5", "x", <*>, 1], ["a", "x", <*>, 1]]
        > dq.pop q id ID
        [["ID", "x", <*>, 1]]
    """)


@pytest.mark.parametrize("how", ["DELAY 5000", "UNBEGUN", ""])
def test_a_release_may_change_the_priority_of_a_job(session: Session, how: str) -> None:
    session.call("DQ.ADD", "q", "a", "x")
    session.call("DQ.POP", "q")
    session.check(f"> DQ.RELEASE q a * {how} PRIORITY 0 REASON rain\n(integer) 1")
    shown = job(session, "q", "a")
    assert (shown["priority"], shown["reason"]) == (0, b"rain")


def test_a_job_counts_what_happened_to_it(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x TTR 1
        "a"
        > DQ.POP q
        [["a", "x", <*>, 1]]
    """)
    session.eventually('> DQ.POP q TTR 60000\n[["a", "x", <*>, 2]]')
    assert tally(session) == [1, 0, 0, 0]
    session.check("""
        > DQ.RELEASE q a * UNBEGUN
        (integer) 1
        > DQ.POP q TTR 60000
        [["a", "x", <*>, 2]]
        > DQ.RELEASE q a *
        (integer) 1
        > DQ.POP q TTR 60000
        [["a", "x", <*>, 3]]
        > DQ.BURY q a *
        (integer) 1
        > DQ.KICK q
        (integer) 1
        > DQ.KICKJOB q a
        (integer) 0
    """)
    assert tally(session) == [1, 1, 1, 1]
    session.check('> DQ.ADD q a y REPLACE\n"a"')
    assert tally(session) == [0, 0, 0, 0]
