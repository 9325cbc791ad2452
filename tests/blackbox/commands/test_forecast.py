"""DQ.FORECAST: how many jobs come due in each step of time."""

from harness.clock import unix_ms
from harness.pipelined import Pipelined
from harness.server import Server
from harness.states import make_all_states
from harness.transcript import Session

HOUR = 3_600_000


def test_forecast_counts_delayed_jobs_only(session: Session) -> None:
    make_all_states(session)
    # Delays of one, two and three minutes: each comes due in the midst of a step.
    begin = unix_ms(session) - 30_000
    steps = session.call("DQ.FORECAST", "q", "FROM", begin, "STEP", 60_000, "COUNT", 5)
    assert steps == [0, 1, 1, 1, 0]
    assert session.call("DQ.FORECAST", "q", "STEP", HOUR, "COUNT", 2) == [3, 0]
    # Not what has come due, wherever the first step begins.
    long_ago = unix_ms(session) - 10 * HOUR
    assert (
        session.call("DQ.FORECAST", "q", "COUNT", 12, "FROM", long_ago, "STEP", HOUR)[:10]
        == [0] * 10
    )
    assert session.call("DQ.FORECAST", "q", "FROM", 0, "STEP", 10**13, "COUNT", 1) == [3]
    session.check("""
        > DQ.FORECAST none STEP 1 COUNT 3
        [0, 0, 0]
        > EXISTS none
        (integer) 0
    """)


def test_forecast_counts_each_job_in_the_step_of_its_due_time(
    server: Server, session: Session
) -> None:
    begin = unix_ms(session) // HOUR * HOUR + 2 * HOUR
    jobs = 30_000
    pipe = Pipelined(server.port)
    adds = [
        ("DQ.ADD", "q", n, "x", "AT", begin + n * 7_919 % 50_000, "PRIORITY", n % 5)
        for n in range(jobs)
    ]
    pipe.call_all(adds)
    pipe.close()
    due = [n * 7_919 % 50_000 for n in range(jobs)]
    for first, step, count in [
        (0, 50, 1_000),
        (0, 50_000, 1),
        (-7, 1_000, 60),
        (49_990, 1, 20),
        (123, 777, 9),
    ]:
        expected = [0] * count
        for time in due:
            if 0 <= (time - first) // step < count:
                expected[(time - first) // step] += 1
        words = ["FROM", begin + first, "STEP", step, "COUNT", count]
        assert session.call("DQ.FORECAST", "q", *words) == expected
    # Those that leave.
    session.call("DQ.DEL", "q", *(n for n in range(jobs) if n % 3))
    told = session.call("DQ.FORECAST", "q", "FROM", begin, "STEP", 50_000, "COUNT", 1)
    assert told == [jobs // 3]


def test_forecast_leaves_out_a_job_that_will_be_dead_before_it_is_due(session: Session) -> None:
    session.call("DQ.ADD", "q", "dies", "x", "DELAY", HOUR // 2, "TTL", HOUR // 4)
    session.call("DQ.ADD", "q", "lives", "x", "DELAY", HOUR // 2, "TTL", HOUR)
    assert session.call("DQ.FORECAST", "q", "STEP", HOUR, "COUNT", 2) == [1, 0]


def test_forecast_counts_a_backoff_and_no_lease(session: Session) -> None:
    session.call("DQ.ADD", "q", "a", "x", "BACKOFF", HOUR, HOUR)
    session.call("DQ.ADD", "q", "b", "x", "BACKOFF", HOUR, HOUR)
    session.call("DQ.ADD", "q", "c", "x")
    session.check("""
        > DQ.POP q COUNT 3 TTR 60000
        [["a", "x", <a>, 1], ["b", "x", <b>, 1], ["c", "x", <c>, 1]]
        > DQ.FORECAST q STEP 7200000 COUNT 1
        [0]
        > DQ.RELEASE q a <a>
        (integer) 1
        > DQ.FORECAST q STEP 7200000 COUNT 1
        [1]
        > DQ.TOUCH q b <b> TTR 1
        (integer) 1
    """)
    # Its lease has run out, and it waits.
    session.eventually("> DQ.FORECAST q STEP 7200000 COUNT 1\n[2]")


def test_forecast_counts_a_schedule_once_at_its_next_occurrence(session: Session) -> None:
    at = unix_ms(session) // HOUR * HOUR + 2 * HOUR
    session.call("DQ.ADD", "q", "hourly", "x", "EVERY", HOUR, "AT", at)
    assert session.call("DQ.FORECAST", "q", "FROM", at, "STEP", HOUR, "COUNT", 3) == [1, 0, 0]
