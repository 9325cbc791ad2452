"""What a server may do to consumers that wait: all works as with BLPOP, and no job is lost."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from harness.clock import now_ms
from harness.consumers import Consumer, Room, in_one_go
from harness.pipelined import Pipelined, Words
from harness.queues import digests
from harness.resp import Failure
from harness.server import Server, claimed_port, eventually
from harness.transcript import show

LATE_MS_MAX = 1_500


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    """What is sent meanwhile is there all at once when the server goes on."""
    os.kill(server.pid, signal.SIGSTOP)
    yield
    os.kill(server.pid, signal.SIGCONT)


def check_nobody_waits(room: Room) -> None:
    eventually(lambda: room.server_says("waiting_consumers") == 0)


@pytest.mark.parametrize(
    ("how", "reply"),
    [
        ("", "(nil)"),
        ("TIMEOUT", "(nil)"),
        ("ERROR", "(error) UNBLOCKED client unblocked via CLIENT UNBLOCK"),
    ],
)
@pytest.mark.parametrize("command", ["DQ.POP q BLOCK 0", "DQ.MPOP 2 q other BLOCK 60000"])
def test_client_unblock_ends_a_wait(room: Room, how: str, reply: str, command: str) -> None:
    one = room.wait("one", *command.split())
    room.play("two> DQ.POP q BLOCK 0")
    assert room.call("CLIENT", "UNBLOCK", one.id, *how.split()) == 1
    assert show(one.hears()) == reply
    assert room.call("CLIENT", "UNBLOCK", one.id, *how.split()) == 0
    room.play("""
        > DQ.ADD q a x
        "a"
        two< [["a", "x", <*>, 1]]
    """)
    assert not one.is_told_something()
    assert one.call("PING") == "PONG"
    check_nobody_waits(room)


# In the turn of the event loop in which the job has been assigned to the consumer.
ENDS = {
    "CLIENT UNBLOCK": ("CLIENT", "UNBLOCK", "<id>"),
    "CLIENT UNBLOCK ERROR": ("CLIENT", "UNBLOCK", "<id>", "ERROR"),
    "CLIENT KILL": ("CLIENT", "KILL", "ID", "<id>"),
}


def end_of(consumer: Consumer, end: str) -> Words:
    return tuple(consumer.id if word == "<id>" else word for word in ENDS[end])


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("options", ["", "COUNT 2"])
def test_a_consumer_unblocked_in_the_turn_that_serves_it_gets_one_reply(
    room: Room, end: str, options: str
) -> None:
    """It gets one reply only. A job that it didn't get is ready again, and has lost no attempt."""
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0, *options.split())
    adds = [
        ("DQ.ADD", "q", id, "x", "TTR", 60_000, "KEEP", keep)
        for id, keep in [("a", 0), ("b", 60_000)]
    ]
    replies = in_one_go(room.server.port, adds[0], end_of(one, end), adds[1])
    assert replies == [b"a", 1, b"b"]
    if end == "CLIENT KILL":
        assert one.is_closed()
        got = []
    else:
        reply = one.hears()
        assert one.call("ECHO", "and nothing else") == b"and nothing else"
        got = reply if isinstance(reply, list) else []
    left = [id for id in (b"a", b"b") if id not in [job[0] for job in got]]
    eventually(lambda: room.call("DQ.LEN", "q", "STATE", "ready") == len(left))
    handed_out = room.call("DQ.POP", "q", "COUNT", 9)
    # What was given back stands behind what came due in that turn.
    assert sorted((id, attempt) for id, _, _, attempt in handed_out) == [(id, 1) for id in left]
    check_nobody_waits(room)


def test_a_job_that_is_given_back_has_the_attempts_that_it_had(room: Room) -> None:
    """It comes after the jobs that fell due in that turn."""
    room.play("""
        > DQ.ADD q tried x TTR 60000 ATTEMPTS 2
        "tried"
        > DQ.POP q
        [["tried", "x", <lease>, 1]]
    """)
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0)
    in_one_go(
        room.server.port,
        ("DQ.RELEASE", "q", "tried", room["lease"]),
        ("DQ.ADD", "q", "new", "x"),
        ("CLIENT", "KILL", "ID", one.id),
    )
    assert one.is_closed()
    eventually(lambda: room.call("DQ.LEN", "q", "STATE", "ready") == 2)
    room.play("""
        > DQ.POP q COUNT 9
        [["new", "x", <*>, 1], ["tried", "x", <*>, 2]]
    """)


@pytest.mark.parametrize("end", ["CLIENT UNBLOCK ERROR", "CLIENT KILL"])
def test_the_next_consumer_gets_a_job_that_comes_back(room: Room, end: str) -> None:
    """Without another command."""
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0)
    room.play("two> DQ.POP q BLOCK 0")
    in_one_go(room.server.port, ("DQ.ADD", "q", "a", "x"), end_of(one, end))
    room.play('two< [["a", "x", <*>, 1]]')


@pytest.mark.parametrize("how", ["closes", "is killed"])
def test_a_consumer_that_has_gone_gets_nothing(room: Room, how: str) -> None:
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0)
    room.play("two> DQ.POP q BLOCK 0")
    if how == "closes":
        room.leave("one")
    else:
        assert room.call("CLIENT", "KILL", "ID", one.id) == 1
        assert one.is_closed()
    room.play("""
        > DQ.ADD q a x
        "a"
        two< [["a", "x", <*>, 1]]
    """)
    check_nobody_waits(room)


def test_a_consumer_that_goes_away_as_its_job_comes(room: Room) -> None:
    """It is unknown whether the consumer got the job. If not, the lease ends."""
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0)
    adder = room("adder")
    with stopped(room.server):
        one.close()
        adder.send(("DQ.ADD", "q", "a", "x", "TTR", 300))
    assert adder.hears() == b"a"
    (job,) = eventually(lambda: room.call("DQ.POP", "q"))
    assert job[0] == b"a"
    assert job[3] in (1, 2)
    check_nobody_waits(room)


@pytest.mark.parametrize("mode", ["WRITE", "ALL"])
def test_consumers_wait_through_a_client_pause(
    fresh_server: Callable[..., Server], mode: str
) -> None:
    """With a replica, which must be sent nothing. Jobs wait until it is over; so may timeouts."""
    server, replica = fresh_server(), fresh_server()
    replica.replicate(server)
    room = Room(server)
    room.play("one> DQ.POP q BLOCK 0")
    two = room.wait("two", "DQ.POP", "q", "BLOCK", 200)
    due = now_ms() + 200
    room.call("DQ.ADD", "q", "a", "x", "AT", due)
    assert room.call("CLIENT", "PAUSE", 700, mode) == "OK"
    end = now_ms() + 690
    ((id, _, _, attempt),) = room("one").hears()
    assert (id, attempt) == (b"a", 1)
    assert end <= now_ms() < end + LATE_MS_MAX
    assert two.hears() is None
    assert two.call("PING") == "PONG"
    check_replicated(room, server, replica)
    room.close()


def check_replicated(room: Room, server: Server, replica: Server) -> None:
    check_nobody_waits(room)
    replica.catch_up(server)
    with server.client() as here, replica.client() as there:
        assert digests(here, "q", "other") == digests(there, "q", "other")


def test_a_consumer_that_is_killed_with_a_job_before_a_pause(
    fresh_server: Callable[..., Server],
) -> None:
    """Killed in the turn in which it was served, and then there is a pause: the job comes back
    after it.
    """
    server, replica = fresh_server(), fresh_server()
    replica.replicate(server)
    room = Room(server)
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0)
    in_one_go(
        server.port,
        ("DQ.ADD", "q", "a", "x", "TTR", 60_000),
        ("CLIENT", "KILL", "ID", one.id),
        ("CLIENT", "PAUSE", 300, "WRITE"),
    )
    ((id, _, _, attempt),) = eventually(lambda: room.call("DQ.POP", "q"))
    assert (id, attempt) == (b"a", 1)
    check_replicated(room, server, replica)
    room.close()


def test_handing_out_without_acknowledgement_is_the_same_on_a_replica(
    fresh_server: Callable[..., Server],
) -> None:
    """Also the numbers of the leases that ended at once, and the totals."""
    server, replica = fresh_server(), fresh_server()
    replica.replicate(server)
    room = Room(server)
    for key, keep in ("q", 0), ("other", 60_000):
        room.call("DQ.ADD", key, "a", "x", "KEEP", keep)
        assert room.call("DQ.POP", key, "NOACK") == [[b"a", b"x", None, 1]]
        check_replicated(room, server, replica)
        room.wait("one", "DQ.POP", key, "BLOCK", 0, "NOACK")
        room.call("DQ.ADD", key, "b", "x", "KEEP", keep)
        assert room("one").hears() == [[b"b", b"x", None, 1]]
        check_replicated(room, server, replica)
    room.close()


def test_consumers_and_jobs_survive_a_failover(fresh_server: Callable[..., Server]) -> None:
    server, replica = fresh_server(), fresh_server()
    replica.replicate(server)
    room, there = Room(server), Room(replica)
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0)
    room.play('> DQ.ADD other a x DELAY 2000\n"a"')
    two = room.wait("two", "DQ.POP", "other", "BLOCK", 0)
    replica.catch_up(server)
    assert room.call("FAILOVER") == "OK"
    for consumer in one, two:
        reply = consumer.hears()
        assert isinstance(reply, Failure)
        assert reply.startswith("UNBLOCKED ")
        assert consumer.is_closed()
    check_nobody_waits(room)
    with replica.client() as client:
        eventually(lambda: client.info("replication")["role"] == "master")
    there("two").send(("DQ.POP", "other", "BLOCK", 10_000))
    there.play("""
        one> DQ.POP q BLOCK 0
        two< [["a", "x", <*>, 1]]
        > DQ.ADD q b x
        "b"
        one< [["b", "x", <*>, 1]]
    """)
    there.close()
    room.close()


def test_consumers_of_a_demoted_primary_are_sent_away(fresh_server: Callable[..., Server]) -> None:
    server, other = fresh_server(), fresh_server()
    room = Room(server)
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0)
    two = room.wait("two", "DQ.POP", "q", "BLOCK", 0)
    # One is served and the server demoted in the same turn.
    replies = in_one_go(
        server.port,
        ("DQ.ADD", "q", "a", "x", "TTR", 60_000),
        ("REPLICAOF", "127.0.0.1", other.port),
    )
    assert replies == [b"a", "OK"]
    got = one.hears()
    assert isinstance(got, list | Failure)
    reply = two.hears()
    assert isinstance(reply, Failure)
    assert reply.startswith("UNBLOCKED ")
    assert two.is_closed()
    check_nobody_waits(room)
    room.play("> DQ.POP q BLOCK 0\n(error) READONLY You can't write against a read only replica.")
    assert room.call("REPLICAOF", "NO", "ONE") == "OK"
    room.play("""
        three> DQ.POP later BLOCK 0
        > DQ.ADD later b x DELAY 50
        "b"
        three< [["b", "x", <*>, 1]]
    """)
    room.close()


def test_waiting_on_a_writable_replica_ends_in_time(fresh_server: Callable[..., Server]) -> None:
    """The timer rests there, but no consumer hangs or waits longer than its BLOCK."""
    server, replica = fresh_server(), fresh_server("replica-read-only no")
    replica.replicate(server)
    room = Room(replica)
    begin = now_ms()
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 100)
    assert one.hears() is None
    assert 100 <= now_ms() - begin < 100 + LATE_MS_MAX
    room.play("one> DQ.POP q BLOCK 0")
    room.leave("one")
    check_nobody_waits(room)
    room.close()


def test_consumers_wait_through_a_busy_script(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server("busy-reply-threshold 50")
    room = Room(server)
    room.play("one> DQ.POP q BLOCK 0")
    two = room.wait("two", "DQ.POP", "q", "BLOCK", 250)
    three = room.wait("three", "DQ.POP", "q", "BLOCK", 0)
    due = now_ms() + 200
    room.call("DQ.ADD", "q", "a", "x", "AT", due)
    script = room("script")
    script.send(("EVAL", "while true do end", 0))
    eventually(lambda: str(room.call("PING")).startswith("BUSY"))
    three.close()
    eventually(lambda: now_ms() > due + 150)
    assert not room("one").is_told_something()
    assert room.call("SCRIPT", "KILL") == "OK"
    room.play('one< [["a", "x", <*>, 1]]')
    assert two.hears() is None
    room.play("""
        > DQ.ADD q b x
        "b"
        > DQ.POP q
        [["b", "x", <*>, 1]]
    """)
    check_nobody_waits(room)
    room.close()


def test_consumers_of_a_server_that_sleeps_get_one_reply_each(room: Room) -> None:
    """A job and timeouts fall due meanwhile. No consumer gets two replies, and the job is handed
    out once.
    """
    names = [f"c{n}" for n in range(20)]
    for name in names:
        room.wait(name, "DQ.POP", "q", "BLOCK", 400)
    room.call("DQ.ADD", "q", "a", "x", "DELAY", 100)
    room.call("DEBUG", "SLEEP", "0.6")
    replies = [room(name).hears() for name in names]
    got = [reply for reply in replies if reply is not None]
    for name in names:
        assert room(name).call("ECHO", name) == name.encode()
    if not got:
        got.append(eventually(lambda: room.call("DQ.POP", "q")))
    assert [[job[0], job[3]] for (job,) in got] == [[b"a", 1]]
    check_nobody_waits(room)


@pytest.mark.parametrize("end", ["SHUTDOWN", "SIGTERM"])
def test_a_shutdown_ends_every_wait_and_loses_no_job(
    fresh_server: Callable[..., Server], end: str
) -> None:
    server = fresh_server("appendonly yes", "shutdown-timeout 1")
    room = Room(server)
    room.play("""
        > DQ.ADD q a x DELAY 1000
        "a"
        one> DQ.POP q BLOCK 0
        two> DQ.POP q BLOCK 200
        three> DQ.MPOP 2 q other BLOCK 0
        > DQ.ADD other b x
        "b"
        three< ["other", [["b", "x", <b>, 1]]]
    """)
    one, lease = room("one"), room["b"]
    if end == "SHUTDOWN":
        room("operator").send(("SHUTDOWN", "NOSAVE"))
        eventually(server.has_died, 10)
    else:
        server.stop()
    assert one.is_closed()
    room.close()
    server.start()
    room = Room(server)
    room("one").send(("DQ.POP", "q", "BLOCK", 10_000))
    room.play(
        """
        one< [["a", "x", <*>, 1]]
        > DQ.FINISH other b <b>
        (integer) 1
        """,
        b=lease,
    )
    room.close()


def test_consumers_wait_on_after_flushall(room: Room) -> None:
    room.play("""
        one> DQ.POP q BLOCK 0
        > DQ.ADD q a x DELAY 100
        "a"
        > FLUSHALL
        OK
        two> DQ.POP q BLOCK 200
        two< (nil)
        one waits
        > DQ.ADD q b x
        "b"
        one< [["b", "x", <*>, 1]]
    """)


def test_a_user_without_the_right_to_a_key_cannot_wait_at_it(room: Room) -> None:
    """A user that may not take from a key can't wait at it; a user that is deleted while waiting is
    disconnected.
    """
    rules = ["on", "nopass", "~mine", "+dq.pop", "+dq.mpop", "+ping", "+client"]
    assert room.call("ACL", "SETUSER", "worker", *rules) == "OK"
    worker = room("worker")
    assert worker.call("AUTH", "worker", "") == "OK"
    for words in [("DQ.POP", "q", "BLOCK", 0), ("DQ.MPOP", 2, "mine", "q", "BLOCK", 0)]:
        assert worker.call(*words).startswith("NOPERM")
    room.play("worker> DQ.POP mine BLOCK 0")
    assert room.call("ACL", "DELUSER", "worker") == 1
    assert worker.is_closed()
    room.play("""
        > DQ.ADD mine a x
        "a"
        > DQ.POP mine
        [["a", "x", <*>, 1]]
    """)
    check_nobody_waits(room)


@pytest.fixture
def cluster(fresh_server: Callable[..., Server]) -> Iterator[Room]:
    """Of one server, which has all slots."""
    port, claim = claimed_port()
    with (
        closing(claim),
        closing(Room(fresh_server("cluster-enabled yes", f"cluster-port {port}"))) as room,
    ):
        assert room.call("CLUSTER", "ADDSLOTSRANGE", 0, 16383) == "OK"
        eventually(lambda: b"cluster_state:ok" in room.call("CLUSTER", "INFO"), 20)
        yield room


def test_consumers_are_sent_after_a_slot_that_moves_away(cluster: Room) -> None:
    cluster.play("""
        one> DQ.POP q BLOCK 0
        > DQ.ADD q a x
        "a"
        one< [["a", "x", <*>, 1]]
        one> DQ.MPOP 2 {q}1 {q}2 BLOCK 0
    """)
    assert cluster.call("CLUSTER", "DELSLOTS", cluster.call("CLUSTER", "KEYSLOT", "q")) == "OK"
    reply = cluster("one").hears(20)
    assert isinstance(reply, Failure)
    assert reply.startswith("CLUSTERDOWN")
    check_nobody_waits(cluster)


def test_mpop_refuses_to_wait_at_keys_of_two_slots(cluster: Room) -> None:
    assert str(cluster.call("DQ.MPOP", 2, "q", "other", "BLOCK", 50)).startswith("CROSSSLOT")


def test_waiting_consumers_are_served_while_memory_is_full(
    fresh_server: Callable[..., Server],
) -> None:
    """Handing out is what makes room again."""
    room = Room(fresh_server())
    room.play("""
        one> DQ.POP q BLOCK 0
        > DQ.ADD q a x DELAY 100
        "a"
        > CONFIG SET maxmemory 1
        OK
        one< [["a", "x", <*>, 1]]
    """)
    room.close()


def test_many_consumers_close_at_once(room: Room) -> None:
    consumers = [room.wait(f"c{n}", "DQ.POP", "q", "BLOCK", 0) for n in range(50)]
    last = room.wait("last", "DQ.POP", "q", "BLOCK", 0)
    with stopped(room.server):
        for consumer in consumers:
            consumer.close()
    check_only(room, last)


def check_only(room: Room, consumer: Consumer) -> None:
    eventually(lambda: room.server_says("waiting_consumers") == 1)
    with_it = Pipelined(room.server.port)
    assert with_it.call("DQ.ADD", "q", "a", "x") == b"a"
    with_it.close()
    ((id, _, _, attempt),) = consumer.hears()
    assert (id, attempt) == (b"a", 1)
