"""Which waiting consumer is served, and when. test_what_serves.py has the commands that serve them;
test_interruptions.py has what servers do to them.
"""

import pytest

from harness.clock import DAY_MS, HOUR_MS, now_ms
from harness.consumers import Room, in_one_go, timed
from harness.server import Server, eventually
from harness.transcript import show

# How late an idle server may be, on a busy machine.
LATE_MS_MAX = 1_500


def test_first_come_first_served_and_one_job_wakes_one_consumer(room: Room) -> None:
    room.play("""
        one> DQ.POP q BLOCK 0
        two> DQ.POP q BLOCK 0
        three> DQ.POP q BLOCK 0
        > DQ.ADD q a x
        "a"
        one< [["a", "x", <one>, 1]]
        two waits
        three waits
        one> DQ.POP q BLOCK 0
        > DQ.ADD q b y
        "b"
        two< [["b", "y", <two>, 1]]
        > DQ.ADD q c z
        "c"
        three< [["c", "z", <three>, 1]]
        one waits
        > DQ.FINISH q a <one> b <two> c <three>
        (integer) 3
        > DQ.LEN q
        (integer) 0
    """)


def test_a_waiting_consumer_is_served_before_a_client_that_asks(room: Room) -> None:
    """Even when the ADD and the POP come in one write."""
    room.play("one> DQ.POP q BLOCK 0")
    added, popped, left = in_one_go(
        room.server.port,
        ("DQ.ADD", "q", "a", "x"),
        ("DQ.POP", "q"),
        ("DQ.LEN", "q", "STATE", "ready"),
    )
    assert (added, popped, left) == (b"a", None, 0)
    room.play('one< [["a", "x", <lease>, 1]]')


def test_mpop_waits_at_several_keys_left_to_right(room: Room) -> None:
    room.play("""
        > DQ.ADD right r x
        "r"
        > DQ.ADD left l x
        "l"
        > DQ.MPOP 3 nothing left right BLOCK 0
        ["left", [["l", "x", <*>, 1]]]
        > DQ.MPOP 3 nothing left right BLOCK 0
        ["right", [["r", "x", <*>, 1]]]
        one> DQ.MPOP 3 left right left BLOCK 0
        two> DQ.MPOP 2 right left BLOCK 0
        three> DQ.POP right BLOCK 0
        > DQ.ADD right r2 x
        "r2"
        one< ["right", [["r2", "x", <*>, 1]]]
        > DQ.ADD left l2 x
        "l2"
        two< ["left", [["l2", "x", <*>, 1]]]
        three waits
        > DQ.ADD left l3 x
        "l3"
        three waits
        > DQ.ADD right r3 x
        "r3"
        three< [["r3", "x", <*>, 1]]
        > DQ.POP left
        [["l3", "x", <*>, 1]]
    """)


def test_two_queues_that_get_jobs_in_one_transaction_serve_their_consumers(room: Room) -> None:
    """One consumer gets one of them; the other job stays for the next."""
    room.play("""
        one> DQ.MPOP 2 left right BLOCK 0
        > MULTI
        OK
        > DQ.ADD right r x
        QUEUED
        > DQ.ADD left l x
        QUEUED
        > EXEC
        ["r", "l"]
        one< [<queue>, [[<id>, "x", <*>, 1]]]
    """)
    left = {"left": "right", "right": "left"}[room["queue"]]
    room.play("two> DQ.POP <queue> BLOCK 0")
    assert room.call("DQ.LEN", left, "STATE", "ready") == 1
    room.check_waits("two")


def test_a_wait_with_count_ends_with_the_jobs_that_are_there(room: Room) -> None:
    room.play("""
        one> DQ.POP q COUNT 3 BLOCK 0
        > DQ.ADD q a x
        "a"
        one< [["a", "x", <*>, 1]]
        one> DQ.POP q COUNT 3 BLOCK 0
        two> DQ.POP q COUNT 3 BLOCK 0
        > MULTI
        OK
        > DQ.ADD q late x PRIORITY 200
        QUEUED
        > DQ.ADD q b x
        QUEUED
        > DQ.ADD q c x
        QUEUED
        > DQ.ADD q d x
        QUEUED
        > EXEC
        ["late", "b", "c", "d"]
        one< [["b", "x", <*>, 1], ["c", "x", <*>, 1], ["d", "x", <*>, 1]]
        two< [["late", "x", <*>, 1]]
    """)


def test_a_waiting_pop_keeps_its_noack_and_ttr(room: Room) -> None:
    room.play("""
        one> DQ.POP q BLOCK 0 NOACK
        two> DQ.POP q NOACK COUNT 9 BLOCK 0
        three> DQ.POP q TTR 60 BLOCK 0
        four> DQ.POP q BLOCK 0
        > DQ.ADD q a x
        "a"
        one< [["a", "x", (nil), 1]]
        > DQ.GET q a
        (nil)
        > DQ.ADD q b x KEEP 60000
        "b"
        two< [["b", "x", (nil), 1]]
        > DQ.LEN q STATE done
        (integer) 1
        # Its lease ends, and it goes to the next.
        > DQ.ADD q c x TTR 86400000
        "c"
        three< [["c", "x", <lost>, 1]]
        four< [["c", "x", <held>, 2]]
        > DQ.FINISH q c <lost>
        (integer) 0
        > DQ.FINISH q c <held>
        (integer) 1
    """)


def test_waiting_consumers_are_served_in_resp3(server: Server) -> None:
    room = Room(server, protocol=3)
    room.play("""
        one> DQ.POP q BLOCK 0
        two> DQ.MPOP 1 q BLOCK 0
        three> DQ.POP q BLOCK 100
        > DQ.ADD q a x
        "a"
        one< [["a", "x", <*>, 1]]
        > DQ.ADD q b x
        "b"
        two< ["q", [["b", "x", <*>, 1]]]
        three< (nil)
    """)
    room.close()


@pytest.mark.parametrize("timeout", [1, 7, 40, 133, 305])
@pytest.mark.parametrize("command", ["DQ.POP q BLOCK", "DQ.MPOP 2 other q COUNT 2 BLOCK"])
def test_timeouts_are_not_early_and_hardly_late(room: Room, command: str, timeout: int) -> None:
    for _ in range(3):
        reply, took_ms = timed(room("one"), *command.split(), timeout)
        assert reply is None
        assert timeout <= took_ms < timeout + LATE_MS_MAX
    # Who has given up gets nothing any more.
    room.play("""
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <*>, 1]]
    """)
    assert not room("one").is_told_something()
    assert room.server_says("waiting_consumers") == 0


def test_timeouts_end_in_their_own_order(room: Room) -> None:
    begin = now_ms()
    for name, timeout in [("one", 300), ("two", 150), ("three", 0), ("four", 150)]:
        room("one" if name == "one" else name).send(("DQ.POP", "q", "BLOCK", timeout))
    room.play("two< (nil)\nfour< (nil)")
    assert now_ms() - begin >= 150
    room.play("one< (nil)\nthree waits")
    assert now_ms() - begin >= 300


def test_a_job_that_comes_before_the_timeout_is_handed_out(room: Room) -> None:
    """Then the timeout is over, too: the client can wait again, for longer."""
    room.play("""
        one> DQ.POP q BLOCK 300
        > DQ.ADD q a x
        "a"
        one< [["a", "x", <*>, 1]]
        one> DQ.POP q BLOCK 0
    """)
    until = now_ms() + 450
    eventually(lambda: now_ms() > until)
    room.play("""
        one waits
        > DQ.ADD q b x
        "b"
        one< [["b", "x", <*>, 1]]
    """)


def test_a_waiting_consumer_gets_a_delayed_job_on_time(room: Room) -> None:
    for n in range(10):
        room.wait("one", "DQ.POP", "q", "BLOCK", 0)
        due = now_ms() + 30
        room.call("DQ.ADD", "q", n, "x", "AT", due)
        room("one").hears()
        assert due <= now_ms() < due + LATE_MS_MAX


@pytest.mark.parametrize("pop", ["DQ.POP q BLOCK 0", "DQ.MPOP 1 q BLOCK 60000"])
def test_transactions_and_scripts_do_not_wait(room: Room, pop: str) -> None:
    words = ", ".join(f"'{word}'" for word in pop.split())
    room.play(f"""
        > MULTI
        OK
        > {pop}
        QUEUED
        > EXEC
        [(nil)]
        > EVAL "return redis.call({words})" 0
        (nil)
        > EVAL "return redis.pcall({words})" 0
        (nil)
        > INFO dq
        <info>
    """)
    assert room.server_says("waiting_consumers") == 0


def test_a_transaction_is_served_as_a_whole(room: Room) -> None:
    """A job that is gone when the transaction ends was never there for consumers that wait."""
    room.play("""
        one> DQ.POP q BLOCK 0
        > MULTI
        OK
        > DQ.ADD q a x
        QUEUED
        > DQ.DEL q a
        QUEUED
        > DQ.ADD q b x
        QUEUED
        > DQ.POP q
        QUEUED
        > DQ.ADD q c x PRIORITY 200
        QUEUED
        > DQ.ADD q d x
        QUEUED
        > EXEC
        ["a", 1, "b", [["b", "x", <*>, 1]], "c", "d"]
        one< [["d", "x", <*>, 1]]
        > DQ.DEL q c
        (integer) 1
        one> DQ.POP q BLOCK 0 COUNT 9
        > EVAL "redis.call('DQ.ADD', 'q', 'e', 'x'); return redis.call('DQ.DEL', 'q', 'e')" 1 q
        (integer) 1
        one waits
        > EVAL "redis.call('DQ.ADD', 'q', 'f', 'x'); redis.call('DQ.ADD', 'q', 'g', 'x', 'PRIORITY', 1)" 1 q
        (nil)
        one< [["g", "x", <*>, 1], ["f", "x", <*>, 1]]
    """)


def test_serving_a_consumer_breaks_a_watch_and_waiting_does_not(room: Room) -> None:
    """Being served is a change of the queue, waiting is none."""
    room.play("""
        > DQ.ADD q b x DELAY 86400000
        "b"
        > WATCH q
        OK
        one> DQ.POP q BLOCK 0
        two> DQ.POP q BLOCK 50
        two< (nil)
        > MULTI
        OK
        > PING
        QUEUED
        > EXEC
        [PONG]
        > WATCH q
        OK
    """)
    other = room("other")
    assert other.call("DQ.KICKJOB", "q", "b") == 1
    room.play("""
        one< [["b", "x", <*>, 1]]
        > MULTI
        OK
        > PING
        QUEUED
        > EXEC
        (nil)
    """)


def test_commands_behind_one_that_waits_run_after_it_in_order(room: Room) -> None:
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0)
    one.send(
        ("DQ.LEN", "q", "STATE", "reserved"),
        ("ECHO", "one"),
        ("DQ.POP", "q", "BLOCK", 0),
        ("ECHO", "two"),
    )
    two = room("two")
    two.send(("DQ.POP", "q", "BLOCK", 40), ("ECHO", "after the timeout"))
    assert [two.hears(), two.hears()] == [None, b"after the timeout"]
    room.play("""
        one waits
        > DQ.ADD q a x
        "a"
        one< [["a", "x", <*>, 1]]
        one< (integer) 1
        one< "one"
    """)
    eventually(lambda: room.is_blocked(one))
    room.play("""
        one waits
        > DQ.ADD q b x
        "b"
        one< [["b", "x", <*>, 1]]
        one< "two"
    """)


def test_waiting_makes_no_key_and_says_so(room: Room) -> None:
    room.play("""
        one> DQ.MPOP 2 q other BLOCK 0
        two> DQ.POP q BLOCK 0
        > DBSIZE
        (integer) 0
        > DQ.ADD q a x DELAY 86400000
        "a"
    """)
    assert room.server_says("waiting_consumers") == 2
    told = room.call("DQ.INFO", "q")
    assert told[told.index(b"waiting-consumers") + 1] == 2
    room.leave("one")
    room.leave("two")
    assert room.server_says("waiting_consumers") == 0


def test_errors_of_a_waiting_command_come_at_once(room: Room) -> None:
    room.play("""
        > SET string x
        OK
        > DQ.POP string BLOCK 0
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > DQ.MPOP 2 q string BLOCK 0
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
    """)
    for words in [
        "DQ.POP q BLOCK",
        "DQ.POP q BLOCK -1",
        "DQ.POP q BLOCK x",
        "DQ.POP q BLOCK 281474976710656",
        "DQ.POP q BLOCK 0 BLOCK 0",
        "DQ.MPOP 0 BLOCK 0",
        "DQ.MPOP 1 q BLOCK",
    ]:
        assert show(room.call(*words.split())).startswith("(error) ERR"), words
    assert room.server_says("waiting_consumers") == 0


def test_the_longest_block_and_ttr_work(room: Room) -> None:
    longest = 2**48 - 1
    room.wait("one", "DQ.POP", "q", "BLOCK", longest)
    room.wait("two", "DQ.POP", "q", "BLOCK", longest - 1, "TTR", longest - now_ms() - HOUR_MS)
    room.wait("three", "DQ.POP", "q", "BLOCK", DAY_MS * 60)
    room.play("""
        > DQ.ADD q a x
        "a"
        one< [["a", "x", <*>, 1]]
        > DQ.ADD q b x
        "b"
        two< [["b", "x", <*>, 1]]
        three waits
    """)


def test_consumers_of_other_databases_wait_at_other_keys(room: Room) -> None:
    assert room("one").call("SELECT", 3) == "OK"
    room.play("""
        one> DQ.POP q BLOCK 0
        two> DQ.POP q BLOCK 0
        > SELECT 3
        OK
        > DQ.ADD q a x
        "a"
        one< [["a", "x", <*>, 1]]
        two waits
    """)


@pytest.mark.parametrize("jobs", [300, 310])
def test_a_long_line_is_served_in_its_order_however_short_the_turns(room: Room, jobs: int) -> None:
    """The turn is over before all are served: a consumer that comes meanwhile is served after them."""
    assert room.call("CONFIG", "SET", "dq.tick-budget-us", 100) == "OK"
    assert room.call("DQ.PAUSE", "q") == "OK"
    line = [room.wait(f"c{n}", "DQ.POP", "q", "BLOCK", 0) for n in range(300)]
    for n in range(jobs):
        room.call("DQ.ADD", "q", n, "x")
    late = room("late")
    late.send(("DQ.RESUME", "q"), ("DQ.POP", "q", "BLOCK", 0))
    assert late.hears() == "OK"
    assert [int(consumer.hears()[0][0]) for consumer in line] == list(range(300))
    if jobs == 300:
        eventually(lambda: room.is_blocked(late))
        room.call("DQ.ADD", "q", 300, "x")
    assert late.hears()[0][0] == b"300"
