"""What a worker may report about a job that it holds: DQ.RELEASE, DQ.TOUCH, DQ.BURY; in time, late,
and too late.
"""

import pytest

from harness.clock import unix_ms
from harness.transcript import Session
from harness.worker import HELD, NO_ATTEMPTS_LEFT, hold, seen


def test_a_released_job_is_ready_at_once(session: Session) -> None:
    session.check(HELD)
    session.check("""
        > DQ.RELEASE q a <lease>
        (integer) 1
        > DQ.GET q a
        [<...>, "state", "ready", "due", <now>, "deadline", (nil), <...>, "attempts", 25, "attempt", 1,
         "attempts-left", 24, "lease", (nil), "created", <*>, "since", <now>, <...>, "reason", (nil), <...>]
        > DQ.POP q
        [["a", "x", <second>, 2]]
        > DQ.FINISH q a <second>
        (integer) 1
    """)
    assert session["second"] > session["lease"]


@pytest.mark.parametrize("claim", ["<lease>", "*"])
@pytest.mark.parametrize("verb", ["FINISH", "RELEASE", "TOUCH", "BURY"])
def test_the_lease_of_a_released_job_is_void(session: Session, verb: str, claim: str) -> None:
    session.check(HELD)
    session.check(f"""
        > DQ.RELEASE q a *
        (integer) 1
        > DQ.{verb} q a {claim}
        (integer) 0
        > DQ.LEN q STATE ready
        (integer) 1
    """)


def test_a_released_job_takes_its_place_by_priority_and_time(session: Session) -> None:
    session.check(HELD)
    session.check("""
        > DQ.ADD q before x
        "before"
        > DQ.RELEASE q a <lease>
        (integer) 1
        > DQ.ADD q after x
        "after"
        > DQ.ADD q urgent x PRIORITY 1
        "urgent"
        > DQ.POP q COUNT 9
        [["urgent", "x", <*>, 1], ["before", "x", <*>, 1], ["a", "x", <*>, 2], ["after", "x", <*>, 1]]
    """)


def test_a_job_released_with_a_delay_comes_when_that_is_over(session: Session) -> None:
    session.check(HELD)
    before = unix_ms(session)
    session.check("""
        > DQ.RELEASE q a <lease> DELAY 100 REASON "busy here"
        (integer) 1
        > DQ.GET q a
        [<...>, "state", "delayed", "due", <due>, "deadline", (nil), <...>, "attempt", 1, <...>,
         "lease", (nil), "created", <*>, "since", (nil), <...>, "reason", "busy here", <...>]
    """)
    assert before + 100 <= session["due"] <= unix_ms(session) + 100
    session.eventually('> DQ.POP q\n[["a", "x", <*>, 2]]')
    assert unix_ms(session) >= session["due"]
    # Why it was released last is still known.
    assert seen(session, "reason") == [b"busy here"]


def test_a_release_without_a_reason_leaves_the_last_one(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <*>, 1]]
        > DQ.RELEASE q a * REASON "first"
        (integer) 1
        > DQ.POP q
        [["a", "x", <*>, 2]]
        > DQ.RELEASE q a *
        (integer) 1
        > DQ.GET q a
        [<...>, "reason", "first", <...>]
        > DQ.POP q
        [["a", "x", <*>, 3]]
        > DQ.RELEASE q a * REASON "\\x00second"
        (integer) 1
        > DQ.GET q a
        [<...>, "reason", "\\x00second", <...>]
    """)


def test_backoff_doubles_up_to_its_maximum_less_its_jitter(session: Session) -> None:
    session.check('> DQ.ADD q a x BACKOFF 8000 30000\n"a"')
    for attempt, wait in enumerate([8_000, 16_000, 30_000, 30_000], start=1):
        session.check(f'> DQ.POP q\n[["a", "x", <*>, {attempt}]]')
        before = unix_ms(session)
        session.check("> DQ.RELEASE q a *\n(integer) 1")
        state, due = seen(session, "state", "due")
        assert state == b"delayed"
        assert before + 0.75 * wait <= due <= unix_ms(session) + wait
        # It keeps its attempts when somebody doesn't want to wait.
        session.check("> DQ.KICKJOB q a\n(integer) 1")


def test_a_release_with_a_delay_replaces_the_backoff(session: Session) -> None:
    hold(session, "BACKOFF", 8_000, 30_000)
    session.check("""
        > DQ.RELEASE q a * DELAY 0
        (integer) 1
        > DQ.POP q
        [["a", "x", <*>, 2]]
    """)


@pytest.mark.parametrize("attempts", [0, 1, 2])
def test_release_unbegun_does_not_count_the_attempt(session: Session, attempts: int) -> None:
    first = hold(session, "ATTEMPTS", attempts, "BACKOFF", 60_000, 60_000)
    session.check(
        """
        > DQ.RELEASE q a <first> UNBEGUN REASON "shutting down"
        (integer) 1
        > DQ.GET q a
        [<...>, "state", "ready", "due", <*>, "deadline", (nil), <...>, "attempt", 0, <...>,
         "lease", (nil), <...>, "reason", "shutting down", <...>]
        > DQ.FINISH q a <first>
        (integer) 0
        > DQ.POP q
        [["a", "x", <second>, 1]]
        > DQ.FINISH q a <second>
        (integer) 1
        """,
        first=first,
    )
    assert session["second"] > first


def test_a_lease_that_ran_out_is_followed_by_a_backoff(session: Session) -> None:
    hold(session, "BACKOFF", 400, 1_000, ttr=400)
    state, deadline, due = seen(session, "state", "deadline", "due")
    assert state == b"reserved"
    assert deadline + 300 <= due <= deadline + 400
    session.eventually("> DQ.LEN q STATE delayed\n(integer) 1")
    assert unix_ms(session) >= deadline
    assert seen(session, "state", "deadline", "due") == [b"delayed", deadline, due]
    session.eventually('> DQ.POP q\n[["a", "x", <*>, 2]]')
    assert unix_ms(session) >= due


def test_late_work_counts_during_the_backoff(session: Session) -> None:
    lease = hold(session, "BACKOFF", 60_000, 60_000, ttr=1)
    session.eventually("> DQ.LEN q STATE delayed\n(integer) 1")
    session.check("> DQ.FINISH q a <lease>\n(integer) 1\n> DQ.LEN q\n(integer) 0", lease=lease)


@pytest.mark.parametrize("options", ["", "DELAY 5000"])
@pytest.mark.parametrize(
    ("words", "reason"), [("", NO_ATTEMPTS_LEFT), ('REASON "it is broken"', b"it is broken")]
)
def test_a_job_released_after_its_last_attempt_is_dead(
    session: Session, options: str, words: str, reason: bytes
) -> None:
    hold(session, "ATTEMPTS", 1, "BACKOFF", 5, 5)
    session.check(f"> DQ.RELEASE q a * {options} {words}\n(integer) 1")
    session.check("> DQ.POP q\n(nil)\n> DQ.LEN q STATE dead\n(integer) 1")
    names = ("state", "due", "attempt", "attempts-left", "lease", "reason")
    assert seen(session, *names) == [b"dead", None, 1, 0, None, reason]


def test_a_job_out_of_attempts_is_dead(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x ATTEMPTS 2 TTR 1
        "a"
        > DQ.POP q
        [["a", "x", <*>, 1]]
    """)
    session.eventually('> DQ.POP q\n[["a", "x", <last>, 2]]')
    deadline = seen(session, "deadline")[0]
    session.eventually("> DQ.LEN q STATE dead\n(integer) 1")
    assert seen(session, "state", "since", "reason") == [b"dead", deadline, NO_ATTEMPTS_LEFT]
    session.check("> DQ.POP q\n(nil)")


GONE = {
    "deleted": "> DQ.DEL q a\n(integer) 1",
    "finished": "> DQ.FINISH q a <lease>\n(integer) 1",
    "buried": "> DQ.BURY q a <lease>\n(integer) 1",
    "replaced": '> DQ.ADD q a new REPLACE\n"a"',
    "replaced and taken": '> DQ.ADD q a new REPLACE\n"a"\n> DQ.POP q\n[["a", "new", <other>, 1]]',
    "released and taken": '> DQ.RELEASE q a <lease>\n(integer) 1\n> DQ.POP q\n[["a", "x", <other>, 2]]',
    "the queue removed": "> DEL q\n(integer) 1",
}


@pytest.mark.parametrize("how", GONE)
@pytest.mark.parametrize("verb", ["RELEASE", "TOUCH", "BURY", "FINISH"])
def test_a_worker_that_has_lost_its_job_gets_0(session: Session, verb: str, how: str) -> None:
    session.check(HELD)
    session.check(GONE[how])
    before = session.call("DEBUG", "DIGEST-VALUE", "q")
    session.check(f"> DQ.{verb} q a <lease>\n(integer) 0")
    assert session.call("DEBUG", "DIGEST-VALUE", "q") == before


@pytest.mark.parametrize("verb", ["RELEASE", "TOUCH", "BURY"])
def test_a_worker_that_was_too_slow_gets_0_once_the_job_is_delivered_again(
    session: Session, verb: str
) -> None:
    lease = hold(session, ttr=1)
    session.eventually('> DQ.POP q TTR 60000\n[["a", "x", <other>, 2]]')
    session.check(
        f"""
        > DQ.{verb} q a <lease>
        (integer) 0
        > DQ.LEN q STATE reserved
        (integer) 1
        > DQ.{verb} q a <other>
        (integer) 1
        """,
        lease=lease,
    )


@pytest.mark.parametrize(
    ("verb", "state"),
    [("RELEASE DELAY 60000", "delayed"), ("TOUCH TTR 60000", "reserved"), ("BURY", "dead")],
)
@pytest.mark.parametrize("attempts", [0, 1])
def test_late_reports_count_until_the_job_is_delivered_again(
    session: Session, verb: str, state: str, attempts: int
) -> None:
    lease = hold(session, "ATTEMPTS", attempts, ttr=1)
    session.eventually("> DQ.LEN q STATE reserved\n(integer) 0")
    name, *options = verb.split()
    assert session.call(f"DQ.{name}", "q", "a", lease, *options) == 1
    # After the last attempt there is no next one.
    is_over = name == "RELEASE" and attempts == 1
    assert seen(session, "state")[0].decode() == ("dead" if is_over else state)


@pytest.mark.parametrize("verb", ["RELEASE", "TOUCH", "BURY"])
@pytest.mark.parametrize("claim", ["1", "*"])
@pytest.mark.parametrize("due", ["", "DELAY 60000"])
def test_release_touch_and_bury_of_a_job_without_a_lease_change_nothing(
    session: Session, verb: str, claim: str, due: str
) -> None:
    session.check(f"""
        > DQ.ADD q a x {due}
        "a"
        > DQ.{verb} q a {claim}
        (integer) 0
        > DQ.{verb} q nobody {claim}
        (integer) 0
        > DQ.{verb} none a {claim}
        (integer) 0
        > EXISTS none
        (integer) 0
    """)


def test_touch_makes_the_lease_last_from_now(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x TTR 5000
        "a"
        > DQ.POP q TTR 100
        [["a", "x", <lease>, 1]]
    """)
    for options, lasts in [("", 5_000), ("TTR 2000", 2_000), ("TTR 30000", 30_000)]:
        before = unix_ms(session)
        session.check(f"""
            > DQ.TOUCH q a <lease> {options}
            (integer) 1
            > DQ.GET q a
            [<...>, "state", "reserved", <...>, "attempt", 1, <...>, "lease", <lease>, <...>]
        """)
        (deadline,) = seen(session, "deadline")
        assert before + lasts <= deadline <= unix_ms(session) + lasts
    session.check("> DQ.FINISH q a <lease>\n(integer) 1")


def test_a_lease_that_is_touched_in_time_never_runs_out(session: Session) -> None:
    lease = hold(session, ttr=1_000)
    end = unix_ms(session) + 1_300
    while unix_ms(session) < end:
        assert session.call("DQ.TOUCH", "q", "a", lease, "TTR", 1_000) == 1
        session.check("> DQ.POP q\n(nil)")
    assert session.call("DQ.FINISH", "q", "a", lease) == 1


def test_a_touched_lease_runs_out_in_the_end(session: Session) -> None:
    lease = hold(session)
    assert session.call("DQ.TOUCH", "q", "a", lease, "TTR", 50) == 1
    (deadline,) = seen(session, "deadline")
    session.eventually('> DQ.POP q\n[["a", "x", <*>, 2]]')
    assert unix_ms(session) >= deadline


def test_a_buried_job_is_dead(session: Session) -> None:
    session.check(HELD)
    before = unix_ms(session)
    session.check("""
        > DQ.BURY q a <lease> REASON "no such \\"customer\\""
        (integer) 1
        > DQ.GET q a
        [<...>, "state", "dead", "due", (nil), "deadline", (nil), <...>, "attempt", 1, "attempts-left", 24,
         "lease", (nil), "created", <*>, "since", <death>, <...>, "reason", "no such \\"customer\\"", <...>]
        > DQ.POP q
        (nil)
        > DQ.LEN q STATE dead
        (integer) 1
        > DQ.ADD q a x
        (error) EXISTS id is taken in this queue
    """)
    assert before <= session["death"] <= unix_ms(session)


def test_bury_without_a_reason_gives_one_and_a_reason_may_be_empty(session: Session) -> None:
    for words, shown in [("", b"buried"), ('REASON ""', b"")]:
        session.call("FLUSHALL")
        hold(session)
        session.check(f"> DQ.BURY q a * {words}\n(integer) 1")
        assert seen(session, "state", "reason") == [b"dead", shown]
