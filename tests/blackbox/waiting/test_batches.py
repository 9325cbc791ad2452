"""DQ.POP … MIN m LINGER ms: jobs are delivered when there are enough of them, or the first of them has
waited for long enough."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
import redis

from harness.consumers import Room
from harness.server import Server, eventually

LINGER_MS = 400
BATCH = ("COUNT", 10, "MIN", 3, "LINGER")


@pytest.fixture
def room(server: Server, r: redis.Redis) -> Iterator[Room]:
    with closing(Room(server)) as room:
        yield room


def add(r: redis.Redis, *ids: str, queue: str = "q", delay: int = 0) -> None:
    r.execute_command(
        "DQ.MADD", queue, len(ids), *(w for id in ids for w in (id, "x")), "DELAY", delay
    )


def shown(r: redis.Redis, id: str) -> dict[str, int]:
    fields = r.execute_command("DQ.GET", "q", id)
    return dict(zip(fields[::2], fields[1::2], strict=True))


def now_ms(r: redis.Redis) -> int:
    seconds, micros = r.time()
    return seconds * 1_000 + micros // 1_000


def test_enough_jobs_are_delivered_at_once(room: Room) -> None:
    room.play("""
        one> DQ.POP q COUNT 10 MIN 3 LINGER 600000 BLOCK 0
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x
        "b"
        one waits
        > DQ.ADD q c x
        "c"
        one< [["a", "x", <a>, 1], ["b", "x", <b>, 1], ["c", "x", <c>, 1]]
        > DQ.LEN q STATE reserved
        (integer) 3
    """)


def test_more_than_the_minimum_goes_if_it_is_there(room: Room) -> None:
    room.play("""
        one> DQ.POP q COUNT 4 MIN 3 LINGER 600000 BLOCK 0
        > DQ.MADD q 5 a x b x c x d x e x
        ["a", "b", "c", "d", "e"]
        one< [["a", "x", <*>, 1], ["b", "x", <*>, 1], ["c", "x", <*>, 1], ["d", "x", <*>, 1]]
        # Without BLOCK: nil while neither holds.
        > DQ.POP q COUNT 4 MIN 2 LINGER 600000
        (nil)
        > DQ.POP q COUNT 4 MIN 1 LINGER 600000
        [["e", "x", <*>, 1]]
    """)


def test_it_lingers_exactly(r: redis.Redis, room: Room) -> None:
    add(r, "a", "b", delay=100)
    due = shown(r, "a")["due"]
    consumer = room.wait("one", "DQ.POP", "q", *BATCH, LINGER_MS, "BLOCK", 0)
    got = consumer.hears()
    late = now_ms(r) - (due + LINGER_MS)
    assert [job[0] for job in got] == [b"a", b"b"]
    assert 0 <= late < 2_000


def test_a_job_that_has_waited_for_long_goes_at_once(r: redis.Redis) -> None:
    add(r, "a")
    # The time counts from when the job became ready, not from when a consumer came.
    eventually(lambda: now_ms(r) > shown(r, "a")["due"] + 150)
    ((id, *_),) = r.execute_command("DQ.POP", "q", *BATCH, 150)
    assert id == "a"


def test_leases_begin_at_delivery(r: redis.Redis, room: Room) -> None:
    add(r, "a")
    due = shown(r, "a")["due"]
    consumer = room.wait("one", "DQ.POP", "q", *BATCH, LINGER_MS, "BLOCK", 0, "TTR", 60_000)
    consumer.hears()
    assert shown(r, "a")["deadline"] >= due + LINGER_MS + 60_000


def test_a_job_goes_to_the_first_client_that_it_satisfies(room: Room) -> None:
    room.play("""
        many> DQ.POP q COUNT 10 MIN 3 LINGER 600000 BLOCK 0
        pair> DQ.POP q COUNT 10 MIN 2 LINGER 600000 BLOCK 0
        one> DQ.POP q BLOCK 0
        > DQ.ADD q a x
        "a"
        one< [["a", "x", <*>, 1]]
        > DQ.ADD q b x
        "b"
        many waits
        pair waits
        > DQ.ADD q c x
        "c"
        pair< [["b", "x", <*>, 1], ["c", "x", <*>, 1]]
        many waits
        > DQ.MADD q 3 d x e x f x
        ["d", "e", "f"]
        many< [["d", "x", <*>, 1], ["e", "x", <*>, 1], ["f", "x", <*>, 1]]
    """)


def test_limits_and_pauses(room: Room, r: redis.Redis) -> None:
    room.play("""
        > DQ.ALTER q CONCURRENCY 2
        OK
        > DQ.MADD q 5 a x b x c x d x e x
        ["a", "b", "c", "d", "e"]
        # Two may go, and not three.
        > DQ.POP q COUNT 5 MIN 3 LINGER 600000
        (nil)
        > DQ.POP q COUNT 5 MIN 2 LINGER 600000
        [["a", "x", <a>, 1], ["b", "x", <b>, 1]]
        one> DQ.POP q COUNT 5 MIN 2 LINGER 600000 BLOCK 0
        > DQ.FINISH q a <a>
        (integer) 1
        one waits
        > DQ.FINISH q b <b>
        (integer) 1
        one< [["c", "x", <c>, 1], ["d", "x", <d>, 1]]
        > DQ.FINISH q c <c> d <d>
        (integer) 2
        > DQ.PAUSE q
        OK
        two> DQ.POP q COUNT 5 MIN 2 LINGER 1 BLOCK 0
        two waits
        > DQ.RESUME q
        OK
        # What may go then, goes.
        two< [["e", "x", <*>, 1]]
    """)


def test_jobs_that_fall_due_one_by_one(r: redis.Redis, room: Room) -> None:
    consumer = room.wait("one", "DQ.POP", "q", *BATCH, 600_000, "BLOCK", 0)
    r.execute_command("DQ.MADD", "q", 3, "a", "x", "b", "x", "c", "x", "DELAYS", 50, 100, 150)
    assert len(consumer.hears()) == 3


def test_of_several_queues(room: Room) -> None:
    room.play("""
        one> DQ.MPOP 2 {t}a {t}b COUNT 5 MIN 2 LINGER 600000 BLOCK 0
        > DQ.ADD {t}a x 1
        "x"
        > DQ.ADD {t}b y 1
        "y"
        one waits
        > DQ.ADD {t}b z 1
        "z"
        one< ["{t}b", [["y", "1", <*>, 1], ["z", "1", <*>, 1]]]
        > DQ.MPOP 2 {t}a {t}b COUNT 5 MIN 2 LINGER 600000
        (nil)
    """)


def test_a_wait_ends_with_nil(room: Room) -> None:
    room.play("""
        > DQ.ADD q a x
        "a"
        > DQ.POP q COUNT 5 MIN 2 LINGER 600000 BLOCK 30
        (nil)
        > MULTI
        OK
        > DQ.POP q COUNT 5 MIN 2 LINGER 600000 BLOCK 0
        QUEUED
        > EXEC
        [(nil)]
    """)


def test_finish_comes_before_it_is_worth_it(room: Room) -> None:
    room.play("""
        > DQ.MADD q 2 a x b x
        ["a", "b"]
        > DQ.POP q
        [["a", "x", <a>, 1]]
        > DQ.POP q COUNT 2 MIN 2 LINGER 600000 FINISH 1 a <a>
        [1, (nil)]
        one> DQ.POP q COUNT 2 MIN 2 LINGER 600000 BLOCK 0 FINISH 1 a <a>
        > DQ.ADD q c x
        "c"
        one< [0, [["b", "x", <*>, 1], ["c", "x", <*>, 1]]]
    """)


def test_it_is_logged_as_what_it_took(fresh_server: Callable[..., Server]) -> None:
    primary, replica = fresh_server("appendonly yes"), fresh_server()
    replica.replicate(primary)
    with primary.client() as r, replica.client() as there, closing(Room(primary)) as room:
        add(r, "a", "b", "c")
        assert len(r.execute_command("DQ.POP", "q", *BATCH, 600_000)) == 3
        consumer = room.wait("one", "DQ.POP", "q", *BATCH, 50, "BLOCK", 0)
        add(r, "d")
        assert len(consumer.hears()) == 1
        replica.catch_up(primary)
        assert there.execute_command("DQ.LEN", "q", "STATE", "reserved") == 4
        assert there.info("dq")["dq_diverged"] == 0
        r.execute_command("DEBUG", "LOADAOF")
        assert r.execute_command("DQ.LEN", "q", "STATE", "reserved") == 4


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("MIN", 1), "option LINGER is missing"),
        (("LINGER", 5), "option MIN is missing"),
        (("MIN", 2, "LINGER", 5), "MIN must be an integer from 1 to 1"),
        (("COUNT", 5, "MIN", 6, "LINGER", 5), "MIN must be an integer from 1 to 5"),
        (("COUNT", 20_000, "MIN", 10_001, "LINGER", 5), "MIN must be an integer from 1 to 10000"),
        (("COUNT", 5, "MIN", 2, "LINGER", 0), "LINGER must be an integer from 1"),
        (("ID", "a", "MIN", 1, "LINGER", 5), "options MIN and ID exclude each other"),
    ],
)
def test_bad_arguments(r: redis.Redis, words: tuple[str | int, ...], error: str) -> None:
    with pytest.raises(redis.ResponseError) as raised:
        r.execute_command("DQ.POP", "q", *words)
    assert error in str(raised.value)
