"""Due times, to the millisecond: no job comes early, jobs come on time, and states change by time
alone.

"Never early" is exact. The test reads the server's own clock before and after each POP. A nil says
that the POP came before the due time, so the first reading did, too; a job says that the POP came
at or after the due time, so the second reading did.
"""

from typing import Any

import pytest

from harness.clock import unix_ms
from harness.patience import TooSlow, patiently
from harness.server import Server, eventually
from harness.shown import job
from harness.transcript import Session

# How late something may come on a machine that has other things to do. Early knows no such margin.
LATE_MS_MAX = 500


def pop_when_due(session: Session, key: str, due: int) -> tuple[list[Any], int]:
    """Polls until there is a job; that job, and the server's time just before it."""
    while True:
        before = unix_ms(session)
        popped = session.call("DQ.POP", key)
        after = unix_ms(session)
        if popped:
            assert after >= due, f"{due - after} ms early"
            return popped, before
        assert before < due, f"not there {before - due} ms after its time"


@pytest.mark.parametrize("delay", [1, 2, 7, 50, 500])
def test_a_job_with_a_delay_comes_after_it_and_not_before(session: Session, delay: int) -> None:
    before = unix_ms(session)
    session.check(f'> DQ.ADD q a hello DELAY {delay}\n"a"')
    due = job(session, "q", "a")["due"]
    assert before + delay <= due <= unix_ms(session) + delay
    popped, _ = pop_when_due(session, "q", due)
    assert [popped[0][0], popped[0][1], popped[0][3]] == [b"a", b"hello", 1]


def test_a_job_with_an_absolute_time_comes_then_and_not_before(session: Session) -> None:
    due = unix_ms(session) + 200
    session.check(f"""
        > DQ.ADD q a hello AT {due}
        "a"
        > DQ.POP q
        (nil)
    """)
    assert job(session, "q", "a")["due"] == due
    pop_when_due(session, "q", due)


def test_many_jobs_a_millisecond_apart_are_each_on_time(session: Session) -> None:
    def add_all(ahead_ms: int) -> int:
        begin = unix_ms(session) + ahead_ms
        for n in range(300):
            session.call("DQ.ADD", "q", n, "x", "AT", begin + n, "REPLACE")
        if unix_ms(session) >= begin:
            raise TooSlow
        return begin

    begin = patiently(add_all, ahead_ms=250)
    for n in range(300):
        popped, _ = pop_when_due(session, "q", begin + n)
        assert popped[0][0] == str(n).encode()


def test_a_job_comes_back_when_its_lease_ends_and_not_before(session: Session) -> None:
    before = unix_ms(session)
    session.check("""
        > DQ.ADD q b x TTR 200
        "b"
        > DQ.POP q
        [["b", "x", <first>, 1]]
    """)
    end = job(session, "q", "b")["due"]
    assert before + 200 <= end <= unix_ms(session) + 200
    popped, _ = pop_when_due(session, "q", end)
    ((job_id, body, lease, attempt),) = popped
    assert (job_id, body, attempt) == (b"b", b"x", 2)
    assert lease > session["first"]


def test_states_change_at_the_millisecond_they_say(session: Session) -> None:
    """DQ.GET, too, shows nothing early and nothing late."""
    session.check('> DQ.ADD q a x DELAY 100 TTR 100 ATTEMPTS 1\n"a"')
    changes = [(b"delayed", b"ready", "due"), (b"reserved", b"dead", "deadline")]
    for before_state, after_state, moment in changes:
        if before_state == b"reserved":
            session.check('> DQ.POP q\n[["a", "x", <*>, 1]]')
        while True:
            before = unix_ms(session)
            seen = job(session, "q", "a")
            after = unix_ms(session)
            if seen["state"] == after_state:
                assert after >= seen[moment]
                break
            assert seen["state"] == before_state
            assert before < seen[moment]


def test_a_job_is_dead_when_its_last_lease_ends(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x TTR 30 ATTEMPTS 3
        "a"
        > DQ.POP q
        [["a", "x", <first>, 1]]
    """)
    session.eventually('> DQ.POP q\n[["a", "x", <second>, 2]]')
    session.eventually('> DQ.POP q\n[["a", "x", <third>, 3]]')
    session.eventually("> DQ.LEN q STATE dead\n(integer) 1")
    session.check("""
        > DQ.POP q
        (nil)
        > DQ.LEN q
        (integer) 1
        > DQ.DEL q a
        (integer) 1
    """)


def test_a_job_without_a_limit_of_attempts_comes_back_each_time(session: Session) -> None:
    session.check("""
        > CONFIG SET dq.default-attempts 2
        OK
        > DQ.ADD q a x TTR 1 ATTEMPTS 0
        "a"
    """)
    for attempt in range(1, 31):
        session.eventually(f'> DQ.POP q\n[["a", "x", <*>, {attempt}]]')


@pytest.mark.parametrize(
    ("what", "commands"),
    [
        ("delay", '> DQ.ADD q a x DELAY 300\n"a"'),
        ("lease", '> DQ.ADD q a x TTR 300\n"a"\n> DQ.POP q\n[["a", "x", <*>, 1]]'),
        (
            "last lease",
            '> DQ.ADD q a x TTR 300 ATTEMPTS 1\n"a"\n> DQ.POP q\n[["a", "x", <*>, 1]]',
        ),
    ],
)
def test_the_timer_comes_on_time_without_any_command(
    server: Server, session: Session, what: str, commands: str
) -> None:
    with server.client() as client:

        def timer() -> tuple[int, int]:
            info = client.info("dq")
            return info["dq_queues_waiting"], info["dq_timer_runs"]

        session.check(commands)
        told = job(session, "q", "a")
        due = told["deadline"] or told["due"]
        waiting, runs_before = timer()
        assert waiting == 1, what
        # From here on the queue isn't touched.
        eventually(lambda: timer()[0] == 0)
        assert due <= unix_ms(session) <= due + LATE_MS_MAX
        assert timer()[1] > runs_before


def test_an_idle_timer_rests(server: Server, session: Session) -> None:
    """Jobs that are ready, dead or far away don't make it run."""
    session.check("""
        > DQ.ADD q ready x
        "ready"
        > DQ.ADD q far x DELAY 30000
        "far"
        > DQ.ADD q dead x ATTEMPTS 1 PRIORITY 0
        "dead"
        > DQ.POP q TTR 1
        [["dead", "x", <*>, 1]]
    """)
    session.eventually("> DQ.LEN q STATE dead\n(integer) 1")
    with server.client() as client:
        end = unix_ms(session) + 300
        before = client.info("dq")["dq_timer_runs"]
        eventually(lambda: unix_ms(session) >= end)
        # One run may still be due from the lease that ended.
        assert client.info("dq")["dq_timer_runs"] - before <= 1


def test_time_passes_within_a_transaction(session: Session) -> None:
    session.check("""
        > MULTI
        OK
        > DQ.ADD q a x DELAY 10
        QUEUED
        > DQ.POP q
        QUEUED
        > DEBUG SLEEP 0.05
        QUEUED
        > DQ.POP q
        QUEUED
        > EXEC
        ["a", (nil), OK, [["a", "x", <*>, 1]]]
    """)
