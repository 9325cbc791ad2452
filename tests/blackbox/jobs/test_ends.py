"""Ends of a job other than a plain FINISH: it is taken with NOACK, its TTL is over, it is kept when
it is done.
"""

import pytest

from harness.clock import unix_ms
from harness.server import eventually
from harness.transcript import Session
from harness.worker import LIFE_IS_OVER, NO_ATTEMPTS_LEFT, hold, seen


def test_a_job_taken_with_noack_is_gone(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b y ATTEMPTS 1 TTR 1
        "b"
        > DQ.ADD q c z
        "c"
        > DQ.POP q NOACK COUNT 2
        [["a", "x", (nil), 1], ["b", "y", (nil), 1]]
        > DQ.FINISH q a *
        (integer) 0
        > DQ.LEN q
        (integer) 1
        > DQ.MPOP 2 none q NOACK
        ["q", [["c", "z", (nil), 1]]]
        > DQ.POP q NOACK
        (nil)
        > DQ.LEN q
        (integer) 0
        > DQ.ADD q a again
        "a"
    """)


def test_a_pop_with_noack_counts_as_another_attempt(session: Session) -> None:
    hold(session)
    session.check("""
        > DQ.RELEASE q a *
        (integer) 1
        > DQ.POP q noack
        [["a", "x", (nil), 2]]
    """)


AT_WORK = '> DQ.POP q TTR 60000\n[["a", "x", <lease>, 1]]'


@pytest.mark.parametrize(
    ("state", "options", "then"),
    [("delayed", "DELAY 60000", ""), ("ready", "", ""), ("reserved", "", AT_WORK)],
)
def test_a_job_dies_when_its_time_to_live_is_over(
    session: Session, state: str, options: str, then: str
) -> None:
    session.check(f'> DQ.ADD q a x TTL 1000 {options}\n"a"')
    session.check(then)
    born, expires, shown = seen(session, "created", "expires", "state")
    assert expires == born + 1_000
    assert shown.decode() == state
    session.eventually("> DQ.LEN q STATE dead\n(integer) 1")
    assert unix_ms(session) >= expires
    assert seen(session, "state", "due", "since", "reason") == [
        b"dead",
        None,
        expires,
        LIFE_IS_OVER,
    ]
    session.check(f"""
        > DQ.LEN q STATE {state}
        (integer) 0
        > DQ.POP q
        (nil)
        > DQ.LEN q
        (integer) 1
    """)


def test_touch_does_not_prolong_a_ttl_that_is_over_but_finish_counts(session: Session) -> None:
    lease = hold(session, "TTL", 300)
    session.eventually("> DQ.LEN q STATE dead\n(integer) 1")
    session.check(
        """
        > DQ.TOUCH q a <lease>
        (integer) 0
        > DQ.RELEASE q a <lease>
        (integer) 0
        > DQ.BURY q a <lease>
        (integer) 0
        > DQ.GET q a
        [<...>, "state", "dead", <...>, "reason", "its time to live is over", <...>]
        > DQ.FINISH q a <lease>
        (integer) 1
        > DQ.LEN q
        (integer) 0
        """,
        lease=lease,
    )


def test_a_job_whose_ttl_is_over_dies_once(session: Session) -> None:
    """What comes first is what it died of."""
    hold(session, "TTL", 1_000, "ATTEMPTS", 1, ttr=50)
    session.eventually("> DQ.LEN q STATE dead\n(integer) 1")
    deadline, expires = seen(session, "deadline", "expires")
    assert deadline < expires
    assert seen(session, "since", "reason") == [deadline, NO_ATTEMPTS_LEFT]
    eventually(lambda: unix_ms(session) > expires)
    assert seen(session, "since", "reason") == [deadline, NO_ATTEMPTS_LEFT]
    session.check("> DQ.LEN q STATE dead\n(integer) 1")


def test_expired_jobs_let_the_others_pass(session: Session) -> None:
    for n in range(50):
        session.call("DQ.ADD", "q", f"mortal-{n}", "x", "TTL", 20, "PRIORITY", n % 3)
    session.check('> DQ.ADD q a x\n"a"')
    session.eventually("> DQ.LEN q STATE dead\n(integer) 50")
    session.check("""
        > DQ.LEN q STATE ready
        (integer) 1
        > DQ.PEEK q
        [["id", "a", <...>, "reason", (nil), <...>]]
        > DQ.POP q COUNT 60
        [["a", "x", <*>, 1]]
    """)


KEPT = """
    > DQ.ADD q a x KEEP 60000
    "a"
    > DQ.POP q
    [["a", "x", <lease>, 1]]
    > DQ.FINISH q a <lease>
    (integer) 1
"""


def test_a_kept_job_holds_its_id(session: Session) -> None:
    before = unix_ms(session)
    session.check(KEPT)
    session.check("""
        > DQ.LEN q STATE done
        (integer) 1
        > DQ.ADD q a again
        (error) EXISTS id is taken in this queue
        > DQ.ADD q a again NX
        (nil)
        > DQ.POP q
        (nil)
        > DQ.FINISH q a <lease>
        (integer) 0
        > DQ.FINISH q a
        (integer) 0
        > DQ.GET q a
        ["id", "a", "body", "x", "state", "done", "due", (nil), "deadline", (nil), <...>, "attempt", 1, <...>,
         "lease", (nil), <...>, "since", <finished>, <...>, "keep", 60000, <...>, "kept-until", <kept>, <...>]
    """)
    assert before <= session["finished"] <= unix_ms(session)
    assert session["kept"] == session["finished"] + 60_000


@pytest.mark.parametrize("how", ['DQ.ADD q a again REPLACE -> "a"', "DQ.DEL q a -> (integer) 1"])
def test_a_kept_job_may_be_replaced_and_deleted(session: Session, how: str) -> None:
    session.check(KEPT)
    session.check("> {}\n{}".format(*how.split(" -> ")))
    session.check("""
        > DQ.LEN q STATE done
        (integer) 0
        > DQ.ADD q a again REPLACE
        "a"
        > DQ.POP q
        [["a", "again", <*>, 1]]
    """)


@pytest.mark.parametrize(
    "finish", ["DQ.FINISH q a *", "DQ.FINISH q a * b *", "DQ.FINISH q b * a *"]
)
def test_jobs_with_and_without_keep_are_finished_together(session: Session, finish: str) -> None:
    hold(session, "KEEP", 60_000)
    session.check('> DQ.ADD q b x\n"b"\n> DQ.POP q\n[["b", "x", <*>, 1]]')
    finished = 2 if "b" in finish else 1
    session.check(f"""
        > {finish}
        (integer) {finished}
        > DQ.LEN q STATE done
        (integer) 1
        > DQ.LEN q
        (integer) {3 - finished}
    """)


def test_a_job_that_was_kept_long_enough_is_gone_and_its_id_free(session: Session) -> None:
    hold(session, "KEEP", 500)
    session.check("> DQ.FINISH q a *\n(integer) 1\n> DQ.LEN q\n(integer) 1")
    (kept_until,) = seen(session, "kept-until")
    # Nobody asks for it: it goes by itself.
    session.eventually("> DQ.LEN q\n(integer) 0")
    assert kept_until <= unix_ms(session) <= kept_until + 1_000
    session.check("""
        > DQ.GET q a
        (nil)
        > DQ.ADD q a again
        "a"
        > DQ.POP q
        [["a", "again", <*>, 1]]
    """)


def test_a_kept_job_that_was_taken_without_a_lease(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x KEEP 60000
        "a"
        > DQ.POP q NOACK
        [["a", "x", (nil), 1]]
        > DQ.LEN q STATE done
        (integer) 1
        > DQ.ADD q a x
        (error) EXISTS id is taken in this queue
    """)
