"""DQ.DEL removes jobs in any state."""

import pytest

from harness.transcript import Session


def test_a_cancelled_job_never_comes(session: Session) -> None:
    session.check("""
        > DQ.ADD q c x DELAY 60000
        "c"
        > DQ.DEL q c
        (integer) 1
        > DQ.DEL q c
        (integer) 0
        > DQ.GET q c
        (nil)
        > DQ.ADD q d x DELAY 20
        "d"
        > DQ.ADD q e y DELAY 20
        "e"
        > DQ.DEL q d
        (integer) 1
    """)
    session.eventually('> DQ.POP q COUNT 2\n[["e", "y", <lease>, 1]]')


@pytest.mark.parametrize(
    ("state", "attempts", "ttr"), [("ready", 0, 1), ("dead", 1, 1), ("reserved", 0, 60_000)]
)
def test_the_lease_of_a_deleted_job_is_void(
    session: Session, state: str, attempts: int, ttr: int
) -> None:
    session.check(f"""
        > DQ.ADD q a x ATTEMPTS {attempts} TTR {ttr}
        "a"
        > DQ.POP q
        [["a", "x", <lease>, 1]]
    """)
    session.eventually(f"> DQ.LEN q STATE {state}\n(integer) 1")
    session.check("""
        > DQ.DEL q a
        (integer) 1
        > DQ.FINISH q a <lease>
        (integer) 0
        > DQ.ADD q a y
        "a"
        > DQ.FINISH q a <lease>
        (integer) 0
        > DQ.POP q
        [["a", "y", <other>, 1]]
    """)


def test_one_del_takes_several_ids(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x DELAY 60000
        "b"
        > DQ.ADD q c x
        "c"

        # There, twice, unknown, delayed.
        > DQ.DEL q a a nobody b
        (integer) 2
        > DQ.LEN q
        (integer) 1
        > DQ.POP q
        [["c", "x", <lease>, 1]]
    """)


def test_del_leaves_the_key_and_makes_none(session: Session) -> None:
    session.check("""
        > DQ.DEL q a
        (integer) 0
        > EXISTS q
        (integer) 0
        > DQ.ADD q a x
        "a"
        > DQ.DEL q a
        (integer) 1
        > EXISTS q
        (integer) 1
        > DQ.LEN q
        (integer) 0
    """)
