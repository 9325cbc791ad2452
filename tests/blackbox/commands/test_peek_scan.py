"""Looking at a queue: DQ.PEEK, DQ.SCAN, and what DQ.INFO counts and measures."""

import random

import pytest

from harness.clock import unix_ms
from harness.pipelined import Pipelined
from harness.resp import fields
from harness.server import Server, eventually
from harness.shown import info
from harness.states import IN_STATE, bury, make_all_states, peeked
from harness.transcript import Session


@pytest.mark.parametrize("state", IN_STATE)
def test_peek_shows_the_order_in_which_jobs_leave_a_state(session: Session, state: str) -> None:
    make_all_states(session)
    assert peeked(session, state) == IN_STATE[state]
    assert peeked(session, state, count=2) == IN_STATE[state][:2]
    (first,) = session.call("DQ.PEEK", "q", "STATE", state.upper())
    assert first == session.call("DQ.GET", "q", IN_STATE[state][0])


def test_peek_shows_what_is_ready_and_changes_nothing(session: Session) -> None:
    make_all_states(session)
    before = session.call("DEBUG", "DIGEST-VALUE", "q")
    (first,) = session.call("DQ.PEEK", "q")
    assert first == session.call("DQ.GET", "q", "r1")
    assert len(session.call("DQ.PEEK", "q", "COUNT", 4_294_967_295)) == 3
    assert session.call("DEBUG", "DIGEST-VALUE", "q") == before
    assert [handed_out[0] for handed_out in session.call("DQ.POP", "q", "COUNT", 9)] == [
        b"r1",
        b"r2",
        b"r3",
    ]


def test_peek_foretells_what_pop_will_hand_out(session: Session) -> None:
    chance = random.Random(1)
    for n in range(300):
        options = [
            ["PRIORITY", chance.randint(0, 5)],
            ["DELAY", chance.randint(0, 3)],
            ["TTL", 600_000],
        ]
        session.call(
            "DQ.ADD", "q", n, "x", *(word for option in options[: n % 4] for word in option)
        )
    session.eventually("> DQ.LEN q STATE ready\n(integer) 300")
    foretold = peeked(session, "ready", count=300)
    handed_out = session.call("DQ.POP", "q", "COUNT", 300)
    assert [job_id.decode() for job_id, *_ in handed_out] == foretold


def test_peek_shows_a_thousand_at_most(session: Session) -> None:
    for n in range(1_100):
        session.call("DQ.ADD", "q", n, "x")
    assert len(session.call("DQ.PEEK", "q", "COUNT", 1_100)) == 1_000


def test_peek_in_resp3_gives_maps(server: Server) -> None:
    session = server.session(protocol=3)
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x
        "b"
        > DQ.PEEK q COUNT 2
        [{"id": "a", "body": "x", <...>, "kicked": 0}, {"id": "b", "body": "x", <...>, "kicked": 0}]
    """)
    session.close()


def scanned(session: Session, *options: str | int) -> list[bytes]:
    """All ids of a whole scan, as often as they are seen."""
    cursor, seen = b"0", []
    while True:
        cursor, ids = session.call("DQ.SCAN", "q", cursor, *options)
        seen += ids
        if cursor == b"0":
            return seen


@pytest.mark.parametrize("count", [1, 7, 1_000])
def test_a_scan_of_a_queue_at_rest_sees_each_job_once(session: Session, count: int) -> None:
    ids = {session.call("DQ.ADD", "q", n, "x", "DELAY", n % 2) for n in range(500)}
    for n in range(0, 500, 3):
        session.call("DQ.DEL", "q", n)
        ids.remove(str(n).encode())
    seen = scanned(session, "COUNT", count)
    assert len(seen) == len(ids)
    assert set(seen) == ids


@pytest.mark.parametrize("state", IN_STATE)
def test_a_scan_with_a_state_shows_jobs_in_that_state(session: Session, state: str) -> None:
    make_all_states(session)
    for count in 1, 4, 100:
        seen = scanned(session, "COUNT", count, "STATE", state)
        assert sorted(seen) == sorted(job_id.encode() for job_id in IN_STATE[state])


def test_a_scan_looks_at_ten_jobs_unless_told_otherwise(session: Session) -> None:
    for n in range(25):
        session.call("DQ.ADD", "q", n, "x")
    sizes, cursor = [], b"0"
    while True:
        cursor, ids = session.call("DQ.SCAN", "q", cursor)
        sizes.append(len(ids))
        if cursor == b"0":
            break
    assert sizes == [10, 10, 5]
    session.check('> DQ.SCAN none 0\n["0", []]\n> EXISTS none\n(integer) 0')


@pytest.mark.parametrize("seed", range(3))
def test_a_scan_sees_every_job_that_stays_while_others_come_and_go(
    session: Session, seed: int
) -> None:
    chance = random.Random(seed)
    stays = {session.call("DQ.ADD", "q", f"stays-{n}", "x") for n in range(300)}
    others = [session.call("DQ.ADD", "q", f"other-{n}", "x") for n in range(300)]
    seen, cursor, made = [], b"0", 0
    while True:
        cursor, ids = session.call("DQ.SCAN", "q", cursor, "COUNT", 5)
        seen += ids
        if cursor == b"0":
            break
        for _ in range(chance.randint(0, 8)):
            if others and chance.random() < 0.6:
                assert session.call("DQ.DEL", "q", others.pop(chance.randrange(len(others)))) == 1
            else:
                made += 1
                others.append(session.call("DQ.ADD", "q", f"new-{made}", "x", "PRIORITY", 1))
        # Those that stay change their states meanwhile.
        for job_id, _, lease, _ in session.call("DQ.POP", "q", "COUNT", 2) or []:
            session.call("DQ.RELEASE", "q", job_id, lease, "DELAY", 60_000)
    assert stays <= set(seen)
    assert len([job_id for job_id in seen if job_id in stays]) == len(stays)


def test_totals_of_a_queue_that_did_everything(session: Session) -> None:
    bury(session, "buried", "kicked")
    session.check("""
        > DQ.KICKJOB q kicked
        (integer) 1
        > DQ.POP q NOACK
        [["kicked", "x", (nil), 1]]
        > DQ.ADD q released x
        "released"
        > DQ.POP q
        [["released", "x", <*>, 1]]
        > DQ.RELEASE q released * DELAY 60000
        (integer) 1
        > DQ.ADD q kept x KEEP 60000
        "kept"
        > DQ.POP q
        [["kept", "x", <*>, 1]]
        > DQ.FINISH q kept
        (integer) 1
        > DQ.ADD q touched x
        "touched"
        > DQ.POP q
        [["touched", "x", <*>, 1]]
        > DQ.TOUCH q touched *
        (integer) 1
        > DQ.ADD q out-of-attempts x ATTEMPTS 1
        "out-of-attempts"
        > DQ.POP q TTR 1
        [["out-of-attempts", "x", <*>, 1]]
        > DQ.ADD q out-of-life x TTL 1 DELAY 60000
        "out-of-life"
        > DQ.ADD q replaced x DELAY 60000
        "replaced"
        > DQ.ADD q replaced x DELAY 60000 REPLACE
        "replaced"
        > DQ.ADD q deleted x
        "deleted"
        > DQ.DEL q deleted
        (integer) 1
        > DQ.ADD q purged x
        "purged"
        > DQ.PURGE q STATE ready
        (integer) 1
    """)
    session.eventually("> DQ.LEN q STATE dead\n(integer) 3")
    told = info(session)
    totals = {
        name.removeprefix("total-"): n for name, n in told.items() if name.startswith("total-")
    }
    assert totals == {
        "added": 10,
        "replaced": 1,
        "popped": 7,
        "finished": 2,
        "released": 1,
        "timed-out": 1,
        "buried": 2,
        "dead": 4,
        "kicked": 1,
        "deleted": 1,
        "purged": 1,
        "missed": 0,
    }
    states = {state: told[state] for state in IN_STATE}
    assert states == {"delayed": 2, "ready": 0, "reserved": 1, "dead": 3, "done": 1}
    assert told["jobs"] == 7


def test_lateness_is_from_the_due_time_to_the_delivery(session: Session) -> None:
    names = [f"lateness-{name}-ms" for name in ("p50", "p90", "p99", "p999", "max")]
    session.check('> DQ.ADD q late x\n"late"')
    assert [info(session)[name] for name in names] == [None] * 5
    due = fields(session.call("DQ.GET", "q", "late"))["due"]
    eventually(lambda: unix_ms(session) >= due + 200)
    before = unix_ms(session)
    session.check('> DQ.POP q\n[["late", "x", <*>, 1]]')
    # One late job of one: every percentile is it, to a hundredth.
    told = [info(session)[name] for name in names]
    assert before - due <= told[-1] <= unix_ms(session) - due + 2 + told[-1] // 100
    assert told == [told[-1]] * 5

    # One of two hundred: it shows from the hundredth part on.
    for n in range(199):
        session.call("DQ.ADD", "q", n, "x")
        assert session.call("DQ.POP", "q")
    p50, p90, p99, p999, most = (info(session)[name] for name in names)
    assert p50 <= p90 <= p99 <= p999 <= most
    assert p90 < 100, "the machine is too slow to tell"
    assert p999 == most == told[-1]


def test_lateness_beyond_a_quarter_of_a_second(session: Session) -> None:
    """0.1 said 2 ms of all that was later than 255."""
    session.check('> DQ.ADD q late x DELAY 10\n"late"')
    due = fields(session.call("DQ.GET", "q", "late"))["due"]
    eventually(lambda: unix_ms(session) >= due + 600)
    session.check('> DQ.POP q\n[["late", "x", <*>, 1]]')
    for name in "p50", "p99", "max":
        assert info(session)[f"lateness-{name}-ms"] >= 600


def test_lateness_of_a_job_that_waited_for_its_lease_or_its_resume(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.PAUSE q FOR 200
        OK
    """)
    due = fields(session.call("DQ.GET", "q", "a"))["due"]
    session.eventually('> DQ.POP q\n[["a", "x", <*>, 1]]')
    assert 199 <= info(session)["lateness-max-ms"] <= (unix_ms(session) - due) * 1.01 + 1


def test_info_tells_the_oldest_ready_job(session: Session) -> None:
    def oldest_ms() -> object:
        return info(session)["oldest-ready-ms"]

    session.check("""
        > DQ.ADD q delayed x DELAY 60000
        "delayed"
    """)
    assert oldest_ms() is None
    begin = unix_ms(session)
    session.check("""
        > DQ.ADD q lazy x PRIORITY 255
        "lazy"
        > DQ.ADD q mortal x TTL 60000 PRIORITY 0
        "mortal"
    """)
    eventually(lambda: unix_ms(session) >= begin + 50)
    due = fields(session.call("DQ.GET", "q", "lazy"))["due"]
    before = unix_ms(session)
    oldest = oldest_ms()
    assert before - due <= oldest <= unix_ms(session) - due
    session.check('> DQ.DEL q lazy\n(integer) 1\n> DQ.POP q\n[["mortal", "x", <*>, 1]]')
    assert oldest_ms() is None


def test_the_oldest_ready_job_is_not_one_that_has_expired(session: Session) -> None:
    session.check('> DQ.ADD q mortal x TTL 1\n"mortal"')
    session.eventually("> DQ.LEN q STATE dead\n(integer) 1")
    assert info(session)["oldest-ready-ms"] is None


def test_a_queue_with_many_jobs_is_looked_at_in_no_time(server: Server, session: Session) -> None:
    pipe = Pipelined(server.port)
    pipe.call_all(
        [("DQ.ADD", "q", n, "x", "DELAY", 60_000 + n, "PRIORITY", n % 8) for n in range(50_000)]
    )
    pipe.close()
    assert peeked(session, "delayed", count=3) == ["0", "1", "2"]
    assert peeked(session, "ready") == []
    assert len(scanned(session, "COUNT", 10_000)) == 50_000
