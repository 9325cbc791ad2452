"""Jobs assigned to a consumer that disconnects before its reply is sent: they are given back, as by
RELEASE UNBEGUN.
"""

from collections.abc import Callable

import pytest

from harness.consumers import Room, in_one_go
from harness.pipelined import Words
from harness.queues import digests
from harness.server import Server, eventually

ADD: Words = ("DQ.ADD", "q", "a", "x", "TTR", 60_000, "ATTEMPTS", 1)


@pytest.mark.parametrize("jobs", [1, 3])
def test_jobs_of_a_consumer_that_vanishes_are_ready_again(
    fresh_server: Callable[..., Server], jobs: int
) -> None:
    """And none has lost an attempt."""
    server, replica = fresh_server(), fresh_server()
    replica.replicate(server)
    room = Room(server)
    waiting = [room.wait(f"w{n}", "DQ.POP", "q", "BLOCK", 0) for n in range(jobs)]
    adds: list[Words] = [("DQ.ADD", "q", f"j{n}", "x", "ATTEMPTS", 1) for n in range(jobs)]
    kills: list[Words] = [("CLIENT", "KILL", "ID", one.id) for one in reversed(waiting)]
    in_one_go(server.port, *adds, *kills)
    eventually(lambda: room.call("DQ.LEN", "q", "STATE", "ready") == jobs)
    back = room.call("DQ.POP", "q", "COUNT", 9)
    assert [(id, attempt) for id, _, _, attempt in back] == [
        (f"j{n}".encode(), 1) for n in range(jobs)
    ]
    replica.catch_up(server)
    with server.client() as here, replica.client() as there:
        assert digests(here, "q") == digests(there, "q")
    room.close()


def test_the_next_consumer_gets_the_job_of_one_that_vanishes(room: Room) -> None:
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0)
    room.play("two> DQ.POP q BLOCK 0")
    in_one_go(room.server.port, ADD, ("CLIENT", "KILL", "ID", one.id))
    room.play('two< [["a", "x", <*>, 1]]')


def test_a_job_taken_with_noack_by_a_vanished_consumer_is_gone(room: Room) -> None:
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0, "NOACK")
    in_one_go(room.server.port, ADD, ("CLIENT", "KILL", "ID", one.id))
    assert room.call("DQ.LEN", "q") == 0


@pytest.mark.parametrize(
    ("moves", "key"),
    [
        ([("RENAME", "q", "r")], "r"),
        ([("RENAME", "q", "r"), ("DQ.ADD", "q", "b", "y", "DELAY", 60_000)], "r"),
        ([("COPY", "q", "r"), ("RENAME", "r", "q")], "q"),
        ([("DEBUG", "RELOAD")], "q"),
    ],
    ids=["renamed", "renamed, and a new queue there", "replaced by a copy", "reloaded"],
)
def test_the_job_of_a_vanished_consumer_comes_back_after_its_ttr_if_its_queue_moves_in_that_turn(
    room: Room, moves: list[Words], key: str
) -> None:
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0, "TTR", 2_000)
    in_one_go(room.server.port, ("DQ.ADD", "q", "a", "x"), *moves, ("CLIENT", "KILL", "ID", one.id))
    two = room.wait("two", "DQ.POP", key, "BLOCK", 0)
    ((id, _, _, attempt),) = two.hears()
    assert (id, attempt) == (b"a", 2)


def test_a_deleted_job_of_a_vanished_consumer_does_not_come_back(room: Room) -> None:
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0)
    replies = in_one_go(
        room.server.port, ADD, ("DQ.DEL", "q", "a"), ("CLIENT", "KILL", "ID", one.id)
    )
    assert replies[1] == 1
    assert room.call("DQ.LEN", "q") == 0


def test_a_consumer_that_stays_is_told_the_key_at_which_it_waited(room: Room) -> None:
    one = room.wait("one", "DQ.MPOP", 2, "q", "other", "BLOCK", 0)
    in_one_go(room.server.port, ADD, ("RENAME", "q", "r"), ("DQ.LEN", "r"))
    key, ((id, _, lease, _),) = one.hears()
    assert (key, id) == (b"q", b"a")
    assert room.call("DQ.FINISH", "r", "a", lease) == 1
