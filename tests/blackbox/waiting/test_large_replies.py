"""Replies of a MiB for many clients that wait: each gets its own, and other clients are served
meanwhile. `make turns` measures for how long they hold the server.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from harness.consumers import Consumer, Room, in_one_go
from harness.resp import fields
from harness.server import Server, eventually

CLIENTS = 60
MIB = 1 << 20


def body(n: int) -> bytes:
    return b"%d " % n + b"x" * MIB


@pytest.fixture
def waiting(room: Room) -> Iterator[list[Consumer]]:
    room.call("CONFIG", "SET", "dq.max-body-bytes", 2 * MIB)
    yield [room(f"{n}") for n in range(CLIENTS)]
    room.call("CONFIG", "SET", "dq.max-body-bytes", MIB)


def test_all_clients_that_wait_for_a_large_result_get_it(
    room: Room, waiting: list[Consumer]
) -> None:
    room.call("DQ.ADD", "q", "a", "x")
    room.call("DQ.POP", "q", "TTR", 60_000)
    for client in waiting:
        client.send(("DQ.RESULT", "q", "a", "BLOCK", 0))
    eventually(lambda: room.server_says("watchers") == CLIENTS)
    assert room.call("DQ.DONE", "q", "a", "*", "RESULT", body(7)) == 1
    for client in waiting:
        assert client.hears() == [b"done", body(7)]
    eventually(lambda: room.server_says("watchers") == 0)


def test_each_client_gets_the_large_job_that_it_was_handed_in_their_order(
    room: Room, waiting: list[Consumer]
) -> None:
    room.call("DQ.PAUSE", "q")
    for n in range(CLIENTS):
        room.call("DQ.ADD", "q", n, body(n), "TTR", 60_000)
    for n, client in enumerate(waiting):
        client.send(("DQ.POP", "q", "BLOCK", 0))
        eventually(lambda n=n: room.server_says("waiting_consumers") == n + 1)
    assert room.call("DQ.RESUME", "q") == "OK"
    for n, client in enumerate(waiting):
        ((id, job, _, attempt),) = client.hears()
        assert (int(id), job, attempt) == (n, body(n), 1)
    assert fields(room.call("DQ.INFO", "q"))["reserved"] == CLIENTS


def test_large_jobs_of_clients_that_go_away_come_back_unbegun(
    room: Room, waiting: list[Consumer]
) -> None:
    room.call("DQ.PAUSE", "q")
    for n in range(CLIENTS):
        room.call("DQ.ADD", "q", n, body(n), "TTR", 600_000)
    for client in waiting:
        client.send(("DQ.POP", "q", "BLOCK", 0))
    eventually(lambda: room.server_says("waiting_consumers") == CLIENTS)
    kills = [("CLIENT", "KILL", "ID", client.id) for client in waiting]
    in_one_go(room.server.port, ("DQ.RESUME", "q"), *kills)
    eventually(lambda: room.call("DQ.LEN", "q", "STATE", "ready") == CLIENTS)
    taken = room.call("DQ.POP", "q", "COUNT", 10)
    assert [attempt for _, _, _, attempt in taken] == [1] * 10


def test_clients_that_are_evicted_while_they_wait_lose_no_job(
    fresh_server: Callable[..., Server],
) -> None:
    """With `maxmemory-clients` the server closes clients whose buffers grow, also those that wait."""
    server = fresh_server("maxmemory-clients 2mb")
    added = 0
    with closing(Room(server)) as room:
        assert room.call("CLIENT", "NO-EVICT", "on") == "OK"
        for n in range(100):
            room.call("DQ.ADD", "renewed", n, b"body", "TTR", 600_000)
        leases = [
            word for job in room.call("DQ.POP", "renewed", "COUNT", 100) for word in job[0::2]
        ]

        def evicted() -> int:
            return int(re.search(rb"evicted_clients:(\d+)", room.call("INFO", "stats"))[1])

        waiting: list[Consumer] = []
        while evicted() < 200:
            for words in [
                ("DQ.POP", "q", "BLOCK", 0),
                ("DQ.MPOP", 2, "other", "q", "BLOCK", 0),
                ("DQ.RESULT", "q", added, "BLOCK", 0),
                ("DQ.RENEW", "renewed", 600_000, 600_000, *leases),
            ]:
                client = Consumer(server.port)
                client.send(words)
                waiting.append(client)
            for client in waiting[-12::3]:
                # It stays in the server's buffer while the client waits.
                try:
                    client.send(("ECHO", b"x" * 100_000))
                except OSError:
                    waiting.remove(client)
                    client.close()
            room.call("DQ.ADD", "q", added, b"x" * 1_000, "TTR", 1_000, "ATTEMPTS", 0)
            added += 1
        for client in waiting:
            client.close()
        eventually(lambda: room.server_says("waiting_consumers") == 0)
        eventually(lambda: room.server_says("watchers") == 0)
        left: set[bytes] = set()

        def take_all() -> bool:
            taken = room.call("DQ.POP", "q", "COUNT", 1_000, "TTR", 600_000)
            left.update(id for id, _, _, _ in taken or [])
            return len(left) == added

        eventually(take_all)
        assert room.server_says("bugs") == 0
