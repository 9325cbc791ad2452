"""DQ.PEEK … AFTER id FROM time: all jobs of a state in order, page by page."""

import pytest

from harness.resp import fields
from harness.states import IN_STATE, bury, make_all_states
from harness.transcript import Session

TIME_OF = {"delayed": "due", "reserved": "deadline", "dead": "since", "done": "kept-until"}


def page(session: Session, state: str, *words: str | int) -> list[tuple[str, int]]:
    """The ids, each with its time."""
    jobs = [fields(job) for job in session.call("DQ.PEEK", "q", "STATE", state, *words)]
    return [(job["id"].decode(), job[TIME_OF.get(state, "due")]) for job in jobs]


def ids(shown: list[tuple[str, int]]) -> list[str]:
    return [job_id for job_id, _ in shown]


@pytest.mark.parametrize("state", IN_STATE)
def test_peek_after_a_job_goes_on_with_the_next(session: Session, state: str) -> None:
    make_all_states(session)
    first, second, third = IN_STATE[state]
    assert ids(page(session, state, "AFTER", first, "COUNT", 9)) == [second, third]
    assert ids(page(session, state, "AFTER", first)) == [second]
    assert page(session, state, "AFTER", third, "COUNT", 9) == []


@pytest.mark.parametrize("state", TIME_OF)
def test_peek_from_a_time_begins_there(session: Session, state: str) -> None:
    make_all_states(session)
    shown = page(session, state, "COUNT", 9)
    for n, (job_id, time) in enumerate(shown):
        at_or_later = [job_id for job_id, other in shown if other >= time]
        assert ids(page(session, state, "FROM", time, "COUNT", 9)) == at_or_later
        assert ids(page(session, state, "AFTER", job_id, "FROM", time, "COUNT", 9)) == ids(
            shown[n + 1 :]
        )
    assert page(session, state, "FROM", shown[-1][1] + 1, "COUNT", 9) == []
    session.check(f"""
        > DQ.PEEK none STATE {state} AFTER a FROM 5
        []
        > EXISTS none
        (integer) 0
    """)


@pytest.mark.parametrize("fate", ["DQ.KICKJOB q {}", "DQ.DEL q {}", "DQ.ADD q {} anew REPLACE"])
def test_pages_of_dead_jobs_go_on_when_the_last_job_of_each_has_left(
    session: Session, fate: str
) -> None:
    wanted = [f"x{n:02}" for n in range(30)]
    bury(session, *wanted)
    seen: list[str] = []
    words: list[str | int] = []
    while shown := page(session, "dead", *words, "COUNT", 4):
        seen += [job_id for job_id in ids(shown) if job_id not in seen]
        last, time = shown[-1]
        session.call(*fate.format(last).split())
        words = ["AFTER", last, "FROM", time]
    assert seen == wanted
    assert len(page(session, "dead", "COUNT", 99)) < 30 - 6


def test_pages_of_reserved_jobs_miss_none_when_a_lease_is_extended(session: Session) -> None:
    for n in range(6):
        session.call("DQ.ADD", "q", n, "x")
        session.call("DQ.POP", "q", "TTR", 60_000 * (n + 1))
    (*_, (last, time)) = shown = page(session, "reserved", "COUNT", 2)
    assert ids(shown) == ["0", "1"]
    session.check(f"> DQ.TOUCH q {last} * TTR 3600000\n(integer) 1")
    rest = page(session, "reserved", "AFTER", last, "FROM", time, "COUNT", 9)
    assert ids(rest) == ["2", "3", "4", "5", "1"]


def test_pages_of_delayed_and_reserved_jobs_of_many_priorities_are_in_order(
    session: Session,
) -> None:
    """Of other priorities; some die instead, or a backoff follows; many share a millisecond."""
    due = int(session.call("TIME")[0]) * 1_000 + 3_600_000
    for n in range(60):
        life = ["TTL", 3_000_000 + n] if n % 5 == 0 else []
        session.call("DQ.ADD", "q", f"d{n}", "x", "AT", due + n // 20, "PRIORITY", n % 3, *life)
        session.call(
            "DQ.ADD", "q", f"l{n}", "x", "BACKOFF", n % 2, 5, "ATTEMPTS", n % 3, "PRIORITY", n % 4
        )
        session.call("DQ.POP", "q", "TTR", 600_000)
    for state in "delayed", "reserved":
        every = ids(page(session, state, "COUNT", 99))
        assert len(every) == 60
        for size in 1, 7:
            seen: list[str] = []
            words: list[str] = []
            while shown := ids(page(session, state, *words, "COUNT", size)):
                seen += shown
                words = ["AFTER", shown[-1]]
            assert seen == every


MIB = 1 << 20


@pytest.mark.parametrize("part", ["BODY", "RESULT", "both"])
def test_a_page_ends_with_16_mib_of_what_clients_wrote(session: Session, part: str) -> None:
    large = b"x" * MIB
    body, result = (large if part in (name, "both") else b"x" for name in ("BODY", "RESULT"))
    for n in range(20):
        session.call("DQ.ADD", "q", n, body, "KEEP", 600_000)
        session.call("DQ.POP", "q")
        session.call("DQ.DONE", "q", n, "*", "RESULT", result)
    shown = ids(page(session, "done", "COUNT", 1_000))
    assert len(shown) == (8 if part == "both" else 16)
    seen = list(shown)
    while shown:
        shown = ids(page(session, "done", "COUNT", 1_000, "AFTER", shown[-1]))
        seen += shown
    assert sorted(seen, key=int) == [str(n) for n in range(20)]
