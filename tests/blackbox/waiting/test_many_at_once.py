"""More consumers and jobs than fit into one turn of the event loop.

A turn unblocks a hundred consumers. Jobs that no consumer got are given back in slices of the
timer's budget. Nothing is lost, doubled or out of order by that.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from harness.clock import now_ms
from harness.consumers import Consumer, Room, in_one_go
from harness.patience import TooSlow, patiently
from harness.queues import queues_of
from harness.server import Server, eventually

CONSUMERS = 350
JOBS = 3_000


@contextmanager
def crowd(room: Room, *options: str | int) -> Iterator[list[Consumer]]:
    """They wait at `q`, in this order."""
    consumers = [Consumer(room.server.port) for _ in range(CONSUMERS)]
    for n, consumer in enumerate(consumers, 1):
        consumer.send(("DQ.POP", "q", "BLOCK", *options))
        if n % 50 == 0:
            eventually(lambda n=n: room.server_says("waiting_consumers") == n)
    yield consumers
    for consumer in consumers:
        consumer.close()


def test_one_pipeline_of_adds_serves_many_consumers(room: Room) -> None:
    with crowd(room, 0) as consumers:
        in_one_go(room.server.port, *[("DQ.ADD", "q", n, "x") for n in range(CONSUMERS)])
        for n, consumer in enumerate(consumers):
            ((id, _, _, attempt),) = consumer.hears()
            assert (id, attempt) == (b"%d" % n, 1)
        assert room.server_says("waiting_consumers") == 0


@pytest.mark.parametrize("end", [("CLIENT", "UNBLOCK"), ("CLIENT", "KILL", "ID")], ids=" ".join)
def test_a_consumer_that_is_served_and_not_yet_unblocked_gets_one_reply(
    room: Room, end: tuple[str, ...]
) -> None:
    with crowd(room, 0) as consumers:
        *others, last = consumers
        adds = [("DQ.ADD", "q", n, "x") for n in range(CONSUMERS)]
        in_one_go(room.server.port, *adds, (*end, last.id))
        for n, consumer in enumerate(others):
            assert [job[0] for job in consumer.hears()] == [b"%d" % n]
        eventually(lambda: room.server_says("waiting_consumers") == 0)
        if end[1] == "KILL":
            assert last.is_closed()
            eventually(lambda: room.call("DQ.LEN", "q", "STATE", "ready") == 1)
        else:
            assert [job[0] for job in last.hears()] == [b"%d" % (CONSUMERS - 1)]
            assert last.call("ECHO", "and nothing else") == b"and nothing else"


def test_many_consumers_time_out_together(room: Room) -> None:
    def time_out(ahead_ms: int) -> None:
        deadline, consumers = now_ms() + ahead_ms, []
        for _ in range(CONSUMERS):
            consumer = Consumer(room.server.port)
            consumer.send(("DQ.POP", "q", "BLOCK", max(1, deadline - now_ms())))
            consumers.append(consumer)
        eventually(lambda: room.server_says("waiting_consumers") > 0)
        too_slow = room.server_says("waiting_consumers") < CONSUMERS or now_ms() >= deadline
        for consumer in consumers:
            assert consumer.hears() is None
            assert now_ms() >= deadline - 1
            consumer.close()
        if too_slow:
            raise TooSlow

    patiently(time_out)
    assert room.server_says("waiting_consumers") == 0


def test_a_large_delivery_of_a_vanished_consumer_comes_back_as_it_was(
    fresh_server: Callable[..., Server],
) -> None:
    server, replica = fresh_server("dq.tick-budget-us 100"), fresh_server()
    replica.replicate(server)
    with closing(Room(server)) as room:
        room.call("DQ.PAUSE", "q")
        one = room.wait("one", "DQ.POP", "q", "BLOCK", 0, "COUNT", JOBS)
        in_one_go(server.port, *[("DQ.ADD", "q", n, "x", "TTR", 60_000) for n in range(JOBS)])
        cut = room.server_says("timer_budget_exceeded")
        in_one_go(server.port, ("DQ.RESUME", "q"), ("CLIENT", "KILL", "ID", one.id))
        assert one.is_closed()
        # A command on the queue would do it all at once.
        eventually(lambda: room.server_says("jobs_ready") == JOBS)
        assert room.server_says("timer_budget_exceeded") > cut + 1
        replica.catch_up(server)
        assert queues_of(server) == queues_of(replica)
        came = room.call("DQ.POP", "q", "COUNT", JOBS)
        assert [(int(id), attempt) for id, _, _, attempt in came] == [(n, 1) for n in range(JOBS)]


def test_a_consumer_that_comes_meanwhile_gets_the_first_job_that_comes_back(
    fresh_server: Callable[..., Server],
) -> None:
    """Though the first job is given back last."""
    server = fresh_server("dq.tick-budget-us 100")
    with closing(Room(server)) as room:
        room.call("DQ.PAUSE", "q")
        one = room.wait("one", "DQ.POP", "q", "BLOCK", 0, "COUNT", JOBS)
        two = room.wait("two", "DQ.POP", "q", "BLOCK", 0)
        in_one_go(server.port, *[("DQ.ADD", "q", n, "x", "TTR", 60_000) for n in range(JOBS)])
        in_one_go(server.port, ("DQ.RESUME", "q"), ("CLIENT", "KILL", "ID", one.id))
        ((id, _, _, attempt),) = two.hears()
        assert (id, attempt) == (b"0", 1)
