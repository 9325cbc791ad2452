"""DQ.POP: how many jobs one call hands out, and for how long."""

from contextlib import closing

import pytest

from harness.clock import unix_ms
from harness.pipelined import Pipelined
from harness.server import Server
from harness.shown import job
from harness.transcript import Session


def test_pop_with_nothing_ready_is_nil_and_makes_no_key(session: Session) -> None:
    session.check("""
        > DQ.POP q
        (nil)
        > DQ.POP q COUNT 10 TTR 1000
        (nil)
        > EXISTS q
        (integer) 0
        > DQ.ADD q a x DELAY 60000
        "a"
        > DQ.POP q COUNT 10
        (nil)
    """)


def test_pop_with_nothing_ready_is_nil_in_resp3(server: Server) -> None:
    session = server.session(protocol=3)
    session.check("""
        > DQ.POP q
        (nil)
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <lease>, 1]]
    """)
    session.close()


def test_pop_without_count_hands_out_one_job(session: Session) -> None:
    session.check("""
        > DQ.ADD q a 1
        "a"
        > DQ.ADD q b 2
        "b"
        > DQ.ADD q c 3
        "c"
        > DQ.POP q
        [["a", "1", <a>, 1]]

        # As many as there are, when COUNT is more.
        > DQ.POP q COUNT 3
        [["b", "2", <b>, 1], ["c", "3", <c>, 1]]
        > DQ.POP q COUNT 3
        (nil)
    """)
    assert session["a"] < session["b"] < session["c"]


def test_pop_with_count_hands_out_that_many_jobs(session: Session) -> None:
    session.check("""
        > DQ.ADD q a 1
        "a"
        > DQ.ADD q b 2
        "b"
        > DQ.ADD q c 3
        "c"
        > DQ.POP q count 2
        [["a", "1", <a>, 1], ["b", "2", <b>, 1]]
        > DQ.LEN q STATE ready
        (integer) 1
        > DQ.LEN q STATE reserved
        (integer) 2
    """)


@pytest.mark.parametrize(
    ("add", "pop", "ttr"),
    [
        ("", "", 60_000),
        ("TTR 5000", "", 5_000),
        ("TTR 5000", "TTR 7000", 7_000),
        ("", "ttr 7000", 7_000),
    ],
)
def test_the_ttr_is_that_of_the_pop_or_the_job_or_the_setting(
    session: Session, add: str, pop: str, ttr: int
) -> None:
    session.check(f'> DQ.ADD q a x {add}\n"a"')
    before = unix_ms(session)
    session.check(f'> DQ.POP q {pop}\n[["a", "x", <lease>, 1]]')
    after = unix_ms(session)
    assert before + ttr <= job(session, "q", "a")["due"] <= after + ttr


def test_the_ttr_of_a_pop_holds_for_that_lease_only(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x TTR 5000
        "a"
        > DQ.POP q TTR 1
        [["a", "x", <first>, 1]]
    """)
    session.eventually('> DQ.POP q\n[["a", "x", <second>, 2]]')
    state = job(session, "q", "a")
    assert state["ttr"] == 5_000
    assert unix_ms(session) < state["due"] <= unix_ms(session) + 5_000


def test_the_longest_ttr_ends_with_the_last_time(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x TTR 281474976710655
        "a"
        > DQ.POP q TTR 281474976710655
        (error) ERR TTR reaches past the last time there is, 281474976710655
        > DQ.LEN q STATE ready
        (integer) 1

        # The job's own is no mistake of this POP: the lease ends when time does.
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > DQ.GET q a
        ["id", "a", "body", "x", "state", "reserved", "due", 281474976710655, <...>, "priority", 128,
         "ttr", 281474976710655, "attempts", 25, "attempt", 1, <...>, "lease", <lease>, "created", <*>, <...>]
    """)


def test_one_pop_hands_out_at_most_ten_thousand_jobs(server: Server, session: Session) -> None:
    with closing(Pipelined(server.port)) as pipe:
        pipe.call_all([("DQ.ADD", "q", n, "x") for n in range(10_001)])
    popped = session.call("DQ.POP", "q", "COUNT", 4_294_967_295)
    assert [int(job_id) for job_id, *_ in popped] == list(range(10_000))
    leases = [lease for _, _, lease, _ in popped]
    assert sorted(set(leases)) == leases
    session.check("""
        > DQ.LEN q STATE ready
        (integer) 1
        > DQ.POP q COUNT 4294967295
        [["10000", "x", <lease>, 1]]
    """)


def test_one_pop_hands_out_about_sixteen_mebibytes(session: Session) -> None:
    body = b"b" * 1_048_576
    for n in range(20):
        session.call("DQ.ADD", "q", n, body)
    popped = session.call("DQ.POP", "q", "COUNT", 20)
    assert 15 <= len(popped) <= 17
    assert all(popped_body == body for _, popped_body, _, _ in popped)
    assert len(popped) + len(session.call("DQ.POP", "q", "COUNT", 20)) == 20


def test_one_pop_hands_out_one_job_however_large(session: Session) -> None:
    session.check("> CONFIG SET dq.max-body-bytes 20000000\nOK")
    body = b"b" * 20_000_000
    for n in range(2):
        session.call("DQ.ADD", "q", n, body)
    for n in range(2):
        ((job_id, popped_body, _, attempt),) = session.call("DQ.POP", "q", "COUNT", 2)
        assert (int(job_id), attempt) == (n, 1)
        assert popped_body == body


def test_the_key_stays_when_its_last_job_has_left(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > DQ.FINISH q a <lease>
        (integer) 1
        > DQ.POP q
        (nil)
        > DQ.LEN q
        (integer) 0
        > EXISTS q
        (integer) 1
        > DEL q
        (integer) 1
    """)
