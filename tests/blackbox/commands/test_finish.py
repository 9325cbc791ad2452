"""DQ.FINISH: for which jobs and leases it counts."""

import pytest

from harness.transcript import Session


@pytest.mark.parametrize("claim", ["<lease>", "*", ""])
def test_a_delivered_job_is_gone_when_finished(session: Session, claim: str) -> None:
    session.check(f"""
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > DQ.FINISH q a {claim}
        (integer) 1
        > DQ.FINISH q a {claim}
        (integer) 0
        > DQ.GET q a
        (nil)
        > DQ.LEN q
        (integer) 0
    """)


@pytest.mark.parametrize("due", ["", "DELAY 60000"])
@pytest.mark.parametrize("claim", ["1", "*", ""])
def test_a_job_that_was_never_delivered_cannot_be_finished(
    session: Session, due: str, claim: str
) -> None:
    session.check(f"""
        > DQ.ADD q a x {due}
        "a"
        > DQ.FINISH q a {claim}
        (integer) 0
        > DQ.LEN q
        (integer) 1
    """)


def test_a_lease_other_than_the_jobs_does_not_count(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b y
        "b"
        > DQ.POP q COUNT 2
        [["a", "x", <a>, 1], ["b", "y", <b>, 1]]
        > DQ.FINISH q a <b>
        (integer) 0
        > DQ.FINISH q b <a>
        (integer) 0
        > DQ.FINISH q a 1
        (integer) 0
        > DQ.FINISH q a 18446744073709551615
        (integer) 0
        > DQ.LEN q STATE reserved
        (integer) 2
    """)


def test_one_finish_takes_several_ids(session: Session) -> None:
    session.check("""
        > DQ.ADD q a 1
        "a"
        > DQ.ADD q b 2
        "b"
        > DQ.ADD q c 3
        "c"
        > DQ.ADD q d 4
        "d"
        > DQ.POP q COUNT 3
        [["a", "1", <a>, 1], ["b", "2", <b>, 1], ["c", "3", <c>, 1]]

        # Good, good by a star, of another job, twice, unknown, not delivered.
        > DQ.FINISH q a <a> b * c <a> a <a> nobody * d *
        (integer) 2
        > DQ.LEN q STATE reserved
        (integer) 1
        > DQ.FINISH q c <c> d *
        (integer) 1
        > DQ.LEN q
        (integer) 1
    """)


def test_one_finish_takes_a_thousand_ids(session: Session) -> None:
    for n in range(1_000):
        session.call("DQ.ADD", "q", n, "x")
    popped = session.call("DQ.POP", "q", "COUNT", 1_000)
    pairs = [word for job_id, _, lease, _ in popped for word in (job_id, lease)]
    assert session.call("DQ.FINISH", "q", *pairs) == 1_000
    assert session.call("DQ.LEN", "q") == 0


def test_late_work_counts_until_the_job_is_delivered_again(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.POP q TTR 1
        [["a", "x", <lease>, 1]]
    """)
    session.eventually("> DQ.LEN q STATE ready\n(integer) 1")
    session.check("""
        > DQ.FINISH q a <lease>
        (integer) 1
        > DQ.POP q
        (nil)
    """)


def test_late_work_counts_for_a_dead_job(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x ATTEMPTS 1
        "a"
        > DQ.POP q TTR 1
        [["a", "x", <lease>, 1]]
    """)
    session.eventually("> DQ.LEN q STATE dead\n(integer) 1")
    session.check("""
        > DQ.FINISH q a <lease>
        (integer) 1
        > DQ.LEN q
        (integer) 0
    """)


def test_finish_without_a_key_finds_no_job_and_makes_no_key(session: Session) -> None:
    session.check("""
        > DQ.FINISH q a
        (integer) 0
        > DQ.FINISH q a 1 b *
        (integer) 0
        > EXISTS q
        (integer) 0
    """)
