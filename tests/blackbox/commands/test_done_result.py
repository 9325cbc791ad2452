"""DQ.DONE, DQ.RESULT, and what a worker keeps with a job by BODY and NOTE."""

import pytest

from harness.consumers import Room
from harness.resp import Failure
from harness.shown import job
from harness.transcript import Session
from harness.worker import HELD, hold

DAY_MS = 86_400_000


def test_a_done_job_has_its_result_for_as_long_as_it_is_kept(session: Session) -> None:
    hold(session, "KEEP", 50)
    session.check("""
        > DQ.DONE q a * RESULT 42
        (integer) 1
        > DQ.RESULT q a
        ["done", "42"]
    """)
    session.eventually("""
        > DQ.RESULT q a
        (nil)
    """)


def test_a_job_that_is_not_kept_leaves_no_result(session: Session) -> None:
    session.check(HELD)
    session.check("""
        > DQ.DONE q a <lease> RESULT 42
        (integer) 1
        > DQ.RESULT q a
        (nil)
        > DQ.LEN q
        (integer) 0
    """)


@pytest.mark.parametrize(("own", "said", "left"), [(0, 60_000, 1), (60_000, 0, 0)])
def test_the_keep_of_done_goes_before_the_keep_of_the_job(
    session: Session, own: int, said: int, left: int
) -> None:
    hold(session, "KEEP", own)
    session.check(f"""
        > DQ.DONE q a * KEEP {said}
        (integer) 1
        > DQ.LEN q STATE done
        (integer) {left}
    """)


def test_a_job_kept_by_done_shows_since_when_and_until_when(session: Session) -> None:
    hold(session)
    session.call("DQ.DONE", "q", "a", "*", "KEEP", DAY_MS, "RESULT", "r")
    shown = job(session, "q", "a")
    assert shown["kept-until"] - shown["since"] == DAY_MS
    assert (shown["keep"], shown["result"]) == (DAY_MS, b"r")


def test_an_empty_result_is_a_result_and_none_is_nil(session: Session) -> None:
    hold(session, "KEEP", DAY_MS)
    session.check("""
        > DQ.DONE q a * RESULT ""
        (integer) 1
        > DQ.RESULT q a
        ["done", ""]
        > DQ.ADD q b x KEEP 60000
        "b"
        > DQ.POP q
        [["b", "x", <lease>, 1]]
        > DQ.FINISH q b <lease>
        (integer) 1
        > DQ.RESULT q b
        ["done", (nil)]
    """)


def test_a_lost_lease_does_nothing_and_adds_nothing(session: Session) -> None:
    session.check(HELD)
    session.check("""
        > DQ.RELEASE q a <lease>
        (integer) 1
        > DQ.DONE q a <lease> RESULT 42 ADD b y
        (integer) 0
        > DQ.LEN q
        (integer) 1
    """)


@pytest.mark.parametrize(
    ("limit", "adds", "error"),
    [
        (0, "ADD b y ADD c z", "EXISTS id is taken in this queue"),
        (0, "ADD b y ADD b z NX ADD b z", "EXISTS id is taken in this queue"),
        (2, "ADD b y ADD d z", "FULL the queue holds as many jobs as it may"),
        (0, "ADD b y ADD every z EVERY 5 UNTIL 5", "ERR the job would never run: <...>"),
    ],
)
def test_an_add_that_cannot_be_refuses_all(
    session: Session, limit: int, adds: str, error: str
) -> None:
    session.check(HELD)
    session.check(f"""
        > DQ.ADD q c z DELAY 60000
        "c"
        > DQ.ALTER q MAXJOBS {limit}
        OK
        > DQ.DONE q a <lease> RESULT r {adds}
        (error) {error}
        > DQ.LEN q
        (integer) 2
        > DQ.LEN q STATE reserved
        (integer) 1
        > DQ.FINISH q a <lease>
        (integer) 1
    """)


def test_the_finished_job_makes_room_and_its_id_is_free(session: Session) -> None:
    session.check(HELD)
    session.check("""
        > DQ.ALTER q MAXJOBS 1
        OK
        > DQ.DONE q a <lease> ADD a "the next step"
        ["a"]
        > DQ.POP q
        [["a", "the next step", <second>, 1]]
        > DQ.ALTER q MAXJOBS 9
        OK
        > DQ.DONE q a <second> KEEP 60000 ADD a x
        (error) EXISTS id is taken in this queue
        > DQ.DONE q a <second> KEEP 60000 ADD a x NX ADD * y ADD a z REPLACE
        [(nil), <*>, "a"]
    """)


def test_a_schedule_keeps_the_result_of_its_last_run(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x EVERY 1 TTR 60000
        "a"
        > DQ.POP q BLOCK 5000
        [["a", "x", <lease>, 1]]
        > DQ.TOUCH q a <lease> NOTE "half of it"
        (integer) 1
        > DQ.DONE q a <lease> RESULT first ADD b y DELAY 60000
        ["b"]
    """)
    shown = job(session, "q", "a")
    assert shown["result"] == b"first" and "note" not in shown
    session.check("""
        > DQ.POP q BLOCK 5000
        [["a", "x", <second>, 1]]
        > DQ.FINISH q a <second>
        (integer) 1
    """)
    assert "result" not in job(session, "q", "a")


@pytest.mark.parametrize("verb", ["TOUCH", "RELEASE"])
def test_a_checkpoint_survives_its_worker(session: Session, verb: str) -> None:
    session.check(HELD)
    session.check(f"""
        > DQ.{verb} q a <lease> BODY "from 17" NOTE "17 of 40"
        (integer) 1
        > DQ.RELEASE q a *
        (integer) {int(verb == "TOUCH")}
        > DQ.POP q
        [["a", "from 17", <second>, 2]]
    """)
    shown = job(session, "q", "a")
    assert (shown["body"], shown["note"]) == (b"from 17", b"17 of 40")
    session.check("""
        > DQ.TOUCH q a <second> NOTE ""
        (integer) 1
    """)
    assert "note" not in job(session, "q", "a")


def test_a_lost_lease_changes_neither_body_nor_note(session: Session) -> None:
    session.check(HELD)
    session.check("""
        > DQ.RELEASE q a <lease>
        (integer) 1
        > DQ.TOUCH q a <lease> BODY other NOTE other
        (integer) 0
        > DQ.RELEASE q a <lease> BODY other NOTE other
        (integer) 0
        > DQ.POP q
        [["a", "x", <*>, 2]]
    """)
    assert "note" not in job(session, "q", "a")


def test_notes_of_512_bytes_are_taken_and_longer_ones_are_not(session: Session) -> None:
    lease = hold(session)
    assert session.call("DQ.TOUCH", "q", "a", lease, "NOTE", b"n" * 512) == 1
    for command in ("DQ.TOUCH", "DQ.RELEASE"):
        refused = session.call(command, "q", "a", lease, "NOTE", b"n" * 513)
        assert refused == Failure("ERR note must be at most 512 bytes long")
    assert job(session, "q", "a")["note"] == b"n" * 512


def test_a_thousand_adds_are_taken_and_more_are_not(session: Session) -> None:
    lease = hold(session)
    adds = [word for number in range(1_001) for word in ("ADD", f"next-{number}", "x")]
    refused = session.call("DQ.DONE", "q", "a", lease, *adds)
    assert refused == Failure("ERR DQ.DONE takes at most 1000 ADDs")
    ids = session.call("DQ.DONE", "q", "a", lease, *adds[:-3])
    assert ids == [f"next-{number}".encode() for number in range(1_000)]
    assert session.call("DQ.LEN", "q") == 1_000


def test_a_waiting_consumer_gets_what_done_adds(room: Room) -> None:
    room.check(HELD)
    waiting = room.wait("next", "DQ.POP", "q", "BLOCK", 0)
    room.check("""
        > DQ.DONE q a <lease> ADD b y
        ["b"]
    """)
    ((name, body, _, attempt),) = waiting.hears()
    assert (name, body, attempt) == (b"b", b"y", 1)
