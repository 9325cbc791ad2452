"""Servers that read and write on threads (`io-threads`).

Commands may be carried out after the timers, in the same turn of the event loop. Threads read and
write bodies. In a cluster, servers look for the keys of commands on threads.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from harness.clock import now_ms
from harness.consumers import Consumer, Room
from harness.io_threads import io_threads
from harness.marks import long
from harness.pipelined import Pipelined
from harness.queues import queues_of
from harness.resp import Failure
from harness.server import Kind, Server, claimed_port, eventually

ROUNDS = 20
DELAY_MS = 30
ENDS = {
    "CLIENT UNBLOCK": ("CLIENT", "UNBLOCK", "<id>"),
    "CLIENT UNBLOCK ERROR": ("CLIENT", "UNBLOCK", "<id>", "ERROR"),
    "CLIENT KILL": ("CLIENT", "KILL", "ID", "<id>"),
}


MIB = 1 << 20
WORKERS = 4
LARGE_JOBS = 120
# Of 16 commands, by each of 16 clients.
FLOODS = 800


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    """Commands that are sent meanwhile, and timers that fall due, are all there when the server
    goes on.
    """
    os.kill(server.pid, signal.SIGSTOP)
    yield
    os.kill(server.pid, signal.SIGCONT)


def wake_the_threads(server: Server, crowd: list[Pipelined]) -> None:
    """Redis 7.0 uses its threads only while many clients send commands at once."""
    with stopped(server):
        for one in crowd:
            one.send(("PING",))
    assert [one.receive() for one in crowd] == ["PONG"] * len(crowd)


@pytest.mark.parametrize("end", ENDS)
def test_a_consumer_unblocked_after_the_timer_served_it_gets_one_reply(
    kind: Kind, fresh_server: Callable[..., Server], end: str
) -> None:
    """The client gets one reply. A job that it didn't get is ready again, and has lost no
    attempt.
    """
    if end == "CLIENT KILL" and kind.is_since("redis", 8):
        pytest.skip(
            f"{kind} kills a client of a thread later: when it has unblocked it, with the reply unsent"
        )
    server = fresh_server(*io_threads(kind, 2))
    with closing(Room(server)) as room:
        crowd = [Pipelined(server.port) for _ in range(8)]
        for n in range(ROUNDS):
            one = room.wait(f"c{'x' * n}", "DQ.POP", "q", "BLOCK", 0)
            due = now_ms() + DELAY_MS
            room.call("DQ.ADD", "q", f"a{n}", "x", "AT", due, "TTR", 600_000, "KEEP", 0)
            wake_the_threads(server, crowd)
            with stopped(server):
                crowd[0].send(tuple(one.id if word == "<id>" else word for word in ENDS[end]))
                time.sleep(max(0, due + 2 - now_ms()) / 1_000)
            crowd[0].receive()
            if end == "CLIENT KILL":
                check_killed(room, one, f"a{n}".encode())
            else:
                check_told_one_thing(room, one, f"a{n}".encode())
        for one in crowd:
            one.close()


def check_told_one_thing(room: Room, one: Consumer, id: bytes) -> None:
    reply = one.hears()
    assert one.call("ECHO", "and nothing else") == b"and nothing else"
    if isinstance(reply, list):
        assert reply[0][0] == id
    else:
        assert reply is None or isinstance(reply, Failure)
        check_is_back(room, id)
    assert room.call("DQ.POP", "q") is None


def check_killed(room: Room, one: Consumer, id: bytes) -> None:
    """It has its reply if it was killed after it was unblocked."""
    if one.is_closed():
        check_is_back(room, id)


def check_is_back(room: Room, id: bytes) -> None:
    ((back, _, _, attempt),) = eventually(lambda: room.call("DQ.POP", "q"))
    assert (back, attempt) == (id, 1)


@pytest.mark.alone
def test_large_bodies_reach_consumers_on_io_threads_that_are_killed(
    kind: Kind, fresh_server: Callable[..., Server]
) -> None:
    """Each job is finished by a worker that got its body whole; nothing is left, and the replica has the
    same.
    """
    primary, replica = fresh_server(*io_threads(kind, 4)), fresh_server(*io_threads(kind, 4))
    replica.replicate(primary)
    finished: list[bytes] = []
    is_over = threading.Event()

    def work() -> None:
        """Now and then it is killed, waiting or with jobs on their way to it."""
        while not is_over.is_set():
            with closing(Consumer(primary.port)) as one:
                try:
                    while not is_over.is_set():
                        got = one.call("DQ.POP", "q", "BLOCK", 100, "COUNT", 2, "TTR", 1_500)
                        for id, body, lease, _ in got or []:
                            assert body == body_of(id)
                            if one.call("DQ.FINISH", "q", id, lease):
                                finished.append(id)
                except ConnectionError:
                    pass

    with closing(Room(primary)) as room:
        workers = [threading.Thread(target=work) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        try:
            ids = [b"%d" % n for n in range(LARGE_JOBS)]
            for n, id in enumerate(ids):
                room.call("DQ.ADD", "q", id, body_of(id))
                if n % 10 == 9:
                    room.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            eventually(lambda: room.call("DQ.LEN", "q") == 0, within_s=30)
        finally:
            is_over.set()
            for worker in workers:
                worker.join()
        assert len(finished) == len(set(finished)), "a FINISH counted twice"
        room.call("DQ.ADD", "q", "last", "x")
    replica.catch_up(primary)
    assert queues_of(primary) == queues_of(replica)
    with primary.client() as r:
        assert r.info("dq")["dq_diverged"] == 0


def body_of(id: bytes) -> bytes:
    return (id + b" ") * (MIB // (len(id) + 1))


@pytest.mark.alone
@long
def test_mpop_with_io_threads_works_in_a_cluster(
    kind: Kind, fresh_server: Callable[..., Server]
) -> None:
    """Redis 8 and Valkey asked a command with several keys for these on a thread, and crashed."""
    port, claim = claimed_port()
    cluster = "cluster-enabled yes", f"cluster-port {port}", "appendonly yes"
    server = fresh_server(*cluster, *io_threads(kind, 4))
    with closing(claim), closing(Room(server)) as room:
        room.call("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
        eventually(lambda: b"cluster_state:ok" in room.call("CLUSTER", "INFO"), 20)

        def flood(*words: str | int) -> None:
            with closing(Pipelined(server.port)) as client:
                for _ in range(FLOODS):
                    client.call_all([words] * 16)

        floods = [
            threading.Thread(target=flood, args=("DQ.MPOP", 2, "q", "{q}2")) for _ in range(8)
        ]
        floods += [threading.Thread(target=flood, args=("SET", "text", "x")) for _ in range(8)]
        for one in floods:
            one.start()
        for one in floods:
            one.join()
        assert not server.has_died()
        for n in range(100):
            room.call("DQ.ADD", "q", f"j{n}", "x")
    before = queues_of(server)
    server.restart()
    with closing(Room(server)) as room:
        eventually(lambda: b"cluster_state:ok" in room.call("CLUSTER", "INFO"), 20)
        assert room.call("DQ.LEN", "q") == 100
    assert queues_of(server) == before
