"""DQ.ADD: the fields of a job that has been added, and what happens when its id is taken."""

import re

import pytest

from harness.clock import unix_ms
from harness.shown import job
from harness.transcript import Session

TIME_MAX = 2**48 - 1


def test_add_replies_with_the_id(session: Session) -> None:
    session.check("""
        > DQ.ADD q a hello
        "a"
        > DQ.ADD q "b c" "" DELAY 60000
        "b c"
        > DQ.LEN q
        (integer) 2
        > TYPE q
        delayq-dq
    """)


def test_without_options_the_settings_of_this_moment_hold_for_good(session: Session) -> None:
    session.check("""
        > DQ.ADD q a hello
        "a"
        > DQ.GET q a
        ["id", "a", "body", "hello", "state", "ready", "due", <now>, <...>, "priority", 128,
         "ttr", 60000, "attempts", 25, "attempt", 0, <...>, "lease", (nil), "created", <now>, <...>]
        > CONFIG SET dq.default-ttr 1000 dq.default-attempts 0
        OK
        > DQ.ADD q b hello
        "b"
        > DQ.GET q b
        ["id", "b", "body", "hello", "state", "ready", "due", <later>, <...>, "priority", 128,
         "ttr", 1000, "attempts", 0, "attempt", 0, <...>, "lease", (nil), "created", <later>, <...>]

        # The first one keeps what it was told.
        > DQ.GET q a
        ["id", "a", "body", "hello", "state", "ready", "due", <now>, <...>, "priority", 128,
         "ttr", 60000, "attempts", 25, "attempt", 0, <...>, "lease", (nil), "created", <now>, <...>]
    """)


@pytest.mark.parametrize(
    "options",
    [
        "DELAY 60000 TTR 200 PRIORITY 7 ATTEMPTS 3 NX",
        "nx attempts 3 priority 7 ttr 200 delay 60000",
        "Replace Ttr 200 Delay 60000 Attempts 3 Priority 7",
    ],
)
def test_options_come_in_any_order_and_case(session: Session, options: str) -> None:
    session.check(f"""
        > DQ.ADD q a x {options}
        "a"
        > DQ.GET q a
        ["id", "a", "body", "x", "state", "delayed", "due", <due>, <...>, "priority", 7,
         "ttr", 200, "attempts", 3, "attempt", 0, <...>, "lease", (nil), "created", <created>, <...>]
    """)
    assert session["due"] == session["created"] + 60_000


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ("TTR 1", "ttr", 1),
        (f"TTR {TIME_MAX}", "ttr", TIME_MAX),
        ("PRIORITY 0", "priority", 0),
        ("PRIORITY 255", "priority", 255),
        ("ATTEMPTS 0", "attempts", 0),
        ("ATTEMPTS 4294967295", "attempts", 4_294_967_295),
        (f"AT {TIME_MAX}", "due", TIME_MAX),
    ],
)
def test_the_ends_of_the_ranges_are_allowed(
    session: Session, options: str, name: str, value: int
) -> None:
    session.check(f'> DQ.ADD q a x {options}\n"a"')
    assert job(session, "q", "a")[name] == value


def test_the_longest_delay_ends_with_the_last_time(session: Session) -> None:
    left = TIME_MAX - unix_ms(session)
    session.check(f"""
        > DQ.ADD q a x DELAY {left + 1}
        (error) ERR DELAY reaches past the last time there is, 281474976710655
        > DQ.ADD q a x DELAY {TIME_MAX}
        (error) ERR DELAY reaches past the last time there is, 281474976710655
        > EXISTS q
        (integer) 0
        > DQ.ADD q a x DELAY {left - 60_000}
        "a"
        > DQ.GET q a
        ["id", "a", "body", "x", "state", "delayed", "due", <due>, <...>, "priority", 128,
         "ttr", 60000, "attempts", 25, "attempt", 0, <...>, "lease", (nil), "created", <created>, <...>]
    """)
    assert session["due"] == session["created"] + left - 60_000


@pytest.mark.parametrize("due", ["", "DELAY 0", "AT 0", "AT 1"])
def test_a_due_time_in_the_past_is_now(session: Session, due: str) -> None:
    session.check(f"""
        > DQ.ADD q a x {due}
        "a"
        > DQ.GET q a
        ["id", "a", "body", "x", "state", "ready", "due", <now>, <...>, "priority", 128,
         "ttr", 60000, "attempts", 25, "attempt", 0, <...>, "lease", (nil), "created", <now>, <...>]
        > DQ.POP q
        [["a", "x", <lease>, 1]]
    """)


def test_ids_and_bodies_are_any_bytes(session: Session) -> None:
    session.check(r"""
        > DQ.ADD q "\x00\r\n\xff" "\r\n\x00\xfe"
        "\x00\r\n\xff"
        > DQ.ADD q "\x00\r\n" "" DELAY 60000
        "\x00\r\n"
        > DQ.POP q COUNT 2
        [["\x00\r\n\xff", "\r\n\x00\xfe", <lease>, 1]]
        > DQ.FINISH q "\x00\r\n\xff" <lease>
        (integer) 1
        > DQ.LEN q
        (integer) 1
    """)


def test_the_longest_id_and_the_largest_body(session: Session) -> None:
    longest, largest = bytes(range(256)) * 2, b"b" * 1_048_576
    assert session.call("DQ.ADD", "q", longest, largest) == longest
    ((job_id, body, _, _),) = session.call("DQ.POP", "q")
    assert (job_id, body) == (longest, largest)


def test_a_taken_id_stays_with_its_job(session: Session) -> None:
    session.check("""
        > DQ.ADD q a old DELAY 60000
        "a"
    """)
    before = session.call("DEBUG", "DIGEST-VALUE", "q"), session.call("DQ.INFO", "q")
    session.check("""
        > DQ.ADD q a new
        (error) EXISTS id is taken in this queue
        > DQ.ADD q a new NX
        (nil)
        > DQ.POP q
        (nil)
    """)
    assert before == (session.call("DEBUG", "DIGEST-VALUE", "q"), session.call("DQ.INFO", "q"))


# How to get a job "a", delivered `attempt` times so far, into a state.
STATES = {
    "delayed": '> DQ.ADD q a old DELAY 60000\n"a"',
    "ready": '> DQ.ADD q a old\n"a"',
    "reserved": '> DQ.ADD q a old\n"a"\n> DQ.POP q\n[["a", "old", <lease>, 1]]',
    "dead": '> DQ.ADD q a old ATTEMPTS 1\n"a"\n> DQ.POP q TTR 1\n[["a", "old", <lease>, 1]]',
}


@pytest.mark.parametrize("state", STATES)
def test_an_id_is_taken_in_every_state(session: Session, state: str) -> None:
    session.check(STATES[state])
    session.eventually(f"> DQ.LEN q STATE {state}\n(integer) 1")
    session.check(f"""
        > DQ.ADD q a new
        (error) EXISTS id is taken in this queue
        > DQ.ADD q a new NX
        (nil)
        > DQ.LEN q STATE {state}
        (integer) 1
    """)


@pytest.mark.parametrize("state", STATES)
def test_replace_makes_a_new_job_of_it(session: Session, state: str) -> None:
    session.check(STATES[state])
    session.eventually(f"> DQ.LEN q STATE {state}\n(integer) 1")
    session.check("""
        > DQ.ADD q a new REPLACE DELAY 60000 TTR 5 PRIORITY 1 ATTEMPTS 2
        "a"
        > DQ.GET q a
        ["id", "a", "body", "new", "state", "delayed", "due", <due>, <...>, "priority", 1,
         "ttr", 5, "attempts", 2, "attempt", 0, <...>, "lease", (nil), "created", <created>, <...>]
        > DQ.LEN q
        (integer) 1
        > DQ.POP q
        (nil)
    """)


def test_replace_voids_the_lease(session: Session) -> None:
    session.check("""
        > DQ.ADD q a old
        "a"
        > DQ.POP q
        [["a", "old", <lease>, 1]]
        > DQ.ADD q a new REPLACE
        "a"
        > DQ.FINISH q a <lease>
        (integer) 0
        > DQ.POP q
        [["a", "new", <other>, 1]]
        > DQ.FINISH q a <lease>
        (integer) 0
        > DQ.FINISH q a <other>
        (integer) 1
    """)
    assert session["other"] > session["lease"]


def test_replace_of_nothing_adds(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x REPLACE
        "a"
        > DQ.POP q
        [["a", "x", <lease>, 1]]
    """)


@pytest.mark.parametrize("leave", ["DQ.FINISH q a <lease>", "DQ.DEL q a"])
def test_an_id_is_free_again_when_its_job_is_gone(session: Session, leave: str) -> None:
    session.check(f"""
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > {leave}
        (integer) 1
        > DQ.ADD q a y
        "a"
        > DQ.POP q
        [["a", "y", <other>, 1]]
    """)


def test_the_same_id_in_two_queues_is_two_jobs(session: Session) -> None:
    session.check("""
        > DQ.ADD q a one
        "a"
        > DQ.ADD r a two
        "a"
        > DQ.DEL q a
        (integer) 1
        > DQ.POP r
        [["a", "two", <lease>, 1]]
    """)


def test_made_ids_tell_the_time_and_grow(session: Session) -> None:
    before = unix_ms(session)
    ids = [session.call("DQ.ADD", "q", "*", str(n)).decode() for n in range(3_000)]
    after = unix_ms(session)

    parts = [tuple(map(int, re.fullmatch(r"(\d+)-(\d+)", job_id).groups())) for job_id in ids]
    assert sorted(set(parts)) == parts
    assert all(before <= time <= after for time, _ in parts)
    # They leave in that order, too.
    assert [popped.decode() for popped, *_ in session.call("DQ.POP", "q", "COUNT", 3_000)] == ids


def test_a_made_id_is_never_made_again(session: Session) -> None:
    ids = set()
    for _ in range(200):
        job_id = session.call("DQ.ADD", "q", "*", "x")
        assert session.call("DQ.DEL", "q", job_id) == 1
        ids.add(job_id)
    assert len(ids) == 200


def test_a_made_id_avoids_those_given_by_hand(session: Session) -> None:
    start = unix_ms(session)
    given = {f"{start + n}-0".encode() for n in range(2_000)}
    for job_id in given:
        assert session.call("DQ.ADD", "q", job_id, "x", "DELAY", 60_000) == job_id
    for option in ["NX", "REPLACE", "DELAY 0"]:
        made = session.call("DQ.ADD", "q", "*", "mine", *option.split())
        assert made not in given
    assert session.call("DQ.LEN", "q") == 2_003
    assert unix_ms(session) < start + 2_000, "too slow: the last ids weren't in the way"


def test_a_star_is_no_id(session: Session) -> None:
    session.check("""
        > DQ.ADD q * x
        <id>
        > DQ.GET q *
        (nil)
        > DQ.DEL q *
        (integer) 0
        > DQ.DEL q <id>
        (integer) 1
    """)
