"""DQ.POP … FINISH and DQ.MPOP … FINISH: what is done and what is next, in one command."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
import redis

from harness.consumers import Room
from harness.queues import digests
from harness.resp import commands_in
from harness.server import Server, eventually


@pytest.fixture
def room(server: Server, r: redis.Redis) -> Iterator[Room]:
    with closing(Room(server)) as room:
        yield room


def test_it_finishes_and_takes(room: Room) -> None:
    room.play("""
        > DQ.MADD q 3 a x b y c z
        ["a", "b", "c"]
        > DQ.POP q COUNT 2
        [["a", "x", <a>, 1], ["b", "y", <b>, 1]]
        > DQ.POP q COUNT 2 FINISH 2 a <a> b <b> WITHDUE TTR 50000
        [2, [["c", "z", <c>, 1, <due>]]]
        > DQ.POP q FINISH 1 c <c>
        [1, (nil)]
        # A lease that is void, and a job that isn't there, count nothing.
        > DQ.POP q finish 2 c <c> nobody *
        [0, (nil)]
        > DQ.POP nothing FINISH 1 a 5
        [0, (nil)]
        > EXISTS nothing
        (integer) 0
        > DQ.ADD q d x
        "d"
        > DQ.POP q NOACK FINISH 1 c <c>
        [0, [["d", "x", (nil), 1]]]
    """)


def test_what_the_finish_makes_ready_is_taken(room: Room) -> None:
    room.play("""
        > DQ.ADD q fetch x
        "fetch"
        > DQ.ADD q parse y AFTER 1 fetch
        "parse"
        > DQ.POP q
        [["fetch", "x", <lease>, 1]]
        > DQ.POP q FINISH 1 fetch <lease>
        [1, [["parse", "y", <next>, 1]]]
    """)


def test_a_place_that_is_freed_goes_to_who_waited_before(room: Room) -> None:
    room.play("""
        > DQ.ALTER q CONCURRENCY 1
        OK
        > DQ.MADD q 3 a x b y c z
        ["a", "b", "c"]
        > DQ.POP q
        [["a", "x", <a>, 1]]
        one> DQ.POP q BLOCK 0
        two> DQ.POP q BLOCK 0 FINISH 1 a <a>
        one< [["b", "y", <b>, 1]]
        two waits
        > DQ.FINISH q b <b>
        (integer) 1
        two< [1, [["c", "z", <c>, 1]]]
    """)


def test_its_own_place_is_its_own_again(room: Room) -> None:
    room.play("""
        > DQ.ALTER q CONCURRENCY 1
        OK
        > DQ.MADD q 2 a x b y
        ["a", "b"]
        > DQ.POP q
        [["a", "x", <a>, 1]]
        > DQ.POP q
        (nil)
        > DQ.POP q BLOCK 0 FINISH 1 a <a>
        [1, [["b", "y", <b>, 1]]]
    """)


def test_the_finish_stands_before_the_wait(room: Room) -> None:
    room.play(
        """
        > DQ.ADD q a x KEEP 60000
        "a"
        > DQ.POP q
        [["a", "x", <a>, 1]]
        watcher> DQ.RENEW q 50000 60000 a <a>
        asker> DQ.RESULT q a BLOCK 0
        worker> DQ.POP q BLOCK 0 FINISH 1 a <a>
        asker< ["done", (nil)]
        watcher< ["a"]
        worker waits
        > DQ.LEN q STATE done
        (integer) 1
        > CLIENT UNBLOCK <id>
        (integer) 1
        worker< [1, (nil)]
    """,
        id=room("worker").id,
    )


def test_a_wait_that_times_out_says_how_many(room: Room) -> None:
    room.play("""
        > DQ.MADD q 2 a x b y
        ["a", "b"]
        > DQ.POP q COUNT 2
        [["a", "x", <a>, 1], ["b", "y", <b>, 1]]
        > DQ.POP q BLOCK 20 FINISH 2 b <b> a <a>
        [2, (nil)]
        > DQ.MPOP 2 q p BLOCK 20 FINISH q 1 a <a>
        [0, (nil)]
    """)


def test_of_several_queues_one_is_named(room: Room) -> None:
    room.play("""
        > DQ.ADD {t}low a x
        "a"
        > DQ.MPOP 2 {t}high {t}low
        ["{t}low", [["a", "x", <a>, 1]]]
        > DQ.ADD {t}high b y
        "b"
        > DQ.MPOP 2 {t}high {t}low FINISH {t}low 1 a <a> COUNT 5
        [1, ["{t}high", [["b", "y", <b>, 1]]]]
        worker> DQ.MPOP 2 {t}high {t}low BLOCK 0 FINISH {t}high 1 b <b>
        > DQ.ADD {t}low c z
        "c"
        worker< [1, ["{t}low", [["c", "z", <c>, 1]]]]
        > DQ.LEN {t}high
        (integer) 0
    """)


def test_nothing_happens_where_a_key_is_no_queue(room: Room) -> None:
    room.play("""
        > DQ.ADD {t}q a x
        "a"
        > DQ.POP {t}q
        [["a", "x", <a>, 1]]
        > SET {t}text "no queue"
        OK
        > DQ.MPOP 2 {t}q {t}text FINISH {t}q 1 a <a>
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > DQ.MPOP 2 {t}text {t}q FINISH {t}q 1 a <a>
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > DQ.POP {t}text FINISH 1 a <a>
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > DQ.LEN {t}q STATE reserved
        (integer) 1
    """)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("FINISH",), "option FINISH needs a value"),
        (("FINISH", 0, "a", 1), "FINISH must be an integer from 1 to 10000"),
        (("FINISH", 10_001), "FINISH must be an integer from 1 to 10000"),
        (("FINISH", 2, "a", 1, "b"), "option FINISH 2 needs an id and a lease, 2 times"),
        (("FINISH", 1, "", 1), "id must be 1 to 512 bytes long"),
        (("FINISH", 1, "a", "x"), "lease must be"),
        (("FINISH", 1, "a", 1, "b", 2), "unknown option 'b'"),
        (("FINISH", 1, "a", 1, "FINISH", 1, "b", 2), "option FINISH is given twice"),
        (("FINISH", 1, "a", 1, "ID", "b"), "options FINISH and ID exclude each other"),
        (("ID", "b", "FINISH", 1, "a", 1), "options FINISH and ID exclude each other"),
    ],
)
def test_bad_arguments(r: redis.Redis, words: tuple[str | int, ...], error: str) -> None:
    with pytest.raises(redis.ResponseError) as raised:
        r.execute_command("DQ.POP", "q", *words)
    assert error in str(raised.value)


def test_bad_keys(r: redis.Redis) -> None:
    for words, error in (
        (("FINISH", "other", 1, "a", 1), "the key of FINISH must be one of the command's keys"),
        (("FINISH", "q"), "option FINISH needs a value"),
        (("FINISH",), "option FINISH needs a value"),
        (("FINISH", "q", 1, "a"), "option FINISH 1 needs an id and a lease, 1 times"),
    ):
        with pytest.raises(redis.ResponseError) as raised:
            r.execute_command("DQ.MPOP", 1, "q", *words)
        assert error in str(raised.value)


def test_in_a_transaction_and_in_a_script(r: redis.Redis) -> None:
    r.execute_command("DQ.MADD", "q", 3, "a", "x", "b", "y", "c", "z")
    ((_, _, lease, _),) = r.execute_command("DQ.POP", "q")
    with r.pipeline() as transaction:
        transaction.execute_command("DQ.POP", "q", "BLOCK", 0, "FINISH", 1, "a", lease)
        transaction.execute_command("DQ.POP", "p", "BLOCK", 0, "FINISH", 1, "a", lease)
        (finished, ((id, _, lease, _),)), nothing = transaction.execute()
    assert (finished, id, nothing) == (1, "b", [0, None])
    script = "return redis.call('DQ.POP', KEYS[1], 'BLOCK', 0, 'FINISH', 1, 'b', ARGV[1])"
    finished, ((id, _, lease, _),) = r.eval(script, 1, "q", lease)
    assert (finished, id) == (1, "c")
    assert r.execute_command("DQ.LEN", "q") == 1


def test_it_is_one_entry_of_the_log(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server("appendonly yes", "appendfsync always")
    with server.client() as r, closing(Room(server)) as room:
        r.execute_command("DQ.MADD", "q", 3, "a", "x", "b", "y", "c", "z")
        ((_, _, a, _),) = r.execute_command("DQ.POP", "q")
        _, ((_, _, b, *_),) = r.execute_command("DQ.POP", "q", "FINISH", 1, "a", a, "WITHDUE")
        r.execute_command("DQ.ALTER", "q", "CONCURRENCY", 1)
        room.wait("one", "DQ.POP", "q", "BLOCK", 0)
        # What is freed goes to who waits: that is two changes, and a delivery between them.
        r.execute_command("DQ.POP", "q", "FINISH", 1, "b", b, "COUNT", 3)
        room("one").hears()
        before = digests(r, "q")
        r.execute_command("DEBUG", "LOADAOF")
        assert digests(r, "q") == before
    (file,) = (server.directory / "appendonlydir").glob("*.incr.aof")
    commands = (b"DQ.POP", b"DQ.FINISH", b"MULTI", b"EXEC")
    entries = [e for e in commands_in(file.read_bytes()) if set(e) & set(commands)]
    names = [next(word for word in entry if word in commands) for entry in entries]
    assert names[:2] == [b"DQ.POP", b"DQ.POP"] and b"FINISH" in entries[1]
    assert names[2:] == [b"MULTI", b"DQ.FINISH", b"DQ.POP", b"EXEC"]


def test_a_replica_holds_the_same(fresh_server: Callable[..., Server]) -> None:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    with primary.client() as r, replica.client() as there:
        r.execute_command("DQ.MADD", "q", 50, *(w for n in range(50) for w in (f"job-{n}", "x")))
        r.execute_command("DQ.ADD", "q", "last", "x", "AFTER", 1, "job-3")
        r.execute_command("DQ.ADD", "q", "cron", "x", "CRON", "* * * * *")
        done: list[str | int] = []
        for _ in range(12):
            words = ["FINISH", len(done) // 2, *done] if done else []
            popped = r.execute_command("DQ.POP", "q", "COUNT", 5, *words)
            jobs = popped[1] if words else popped
            done = [w for id, _, lease, _ in jobs or [] for w in (id, lease)]
        replica.catch_up(primary)
        assert digests(r, "q") == digests(there, "q")
        assert there.info("dq")["dq_diverged"] == 0


def test_a_client_that_goes_while_it_waits_has_finished(server: Server, r: redis.Redis) -> None:
    r.execute_command("DQ.ADD", "q", "a", "x")
    ((_, _, lease, _),) = r.execute_command("DQ.POP", "q")
    with closing(Room(server)) as room:
        room.wait("worker", "DQ.POP", "q", "BLOCK", 0, "FINISH", 1, "a", lease)
        room.leave("worker")
    eventually(lambda: r.info("dq")["dq_waiting_consumers"] == 0)
    # The worker's connection broke: it says so again, and 0 is fine.
    assert r.execute_command("DQ.POP", "q", "FINISH", 1, "a", lease) == [0, None]
