"""A consumer that waits is served before queues without a consumer, however many of those are due.

The timer gets a small budget, so that it is busy with those queues for seconds. The tests don't
compare how long a consumer waited, but how many queues the timer has still to visit by then.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from harness.clock import now_ms
from harness.consumers import Consumer, Room, in_one_go
from harness.patience import TooSlow, patiently
from harness.server import Server, eventually

CROWD = 20_000
AWAITED = 200


@pytest.fixture
def room(fresh_server: Callable[..., Server]) -> Iterator[Room]:
    with closing(Room(fresh_server("dq.tick-budget-us 100"))) as room:
        yield room


@contextmanager
def waiting(room: Room, due: int, *pops: tuple[str | int, ...]) -> Iterator[list[Consumer]]:
    """A consumer for each. Behind its command stands another, which is carried out when it waits no
    more.
    """
    consumers = [Consumer(room.server.port) for _ in pops]
    try:
        for consumer, words in zip(consumers, pops, strict=True):
            consumer.send(words, ("INFO", "dq"))
        eventually(
            lambda: room.server_says("waiting_consumers") == len(pops) or now_ms() >= due, 30
        )
        yield consumers
    finally:
        for consumer in consumers:
            consumer.close()
        eventually(lambda: room.server_says("waiting_consumers") == 0)


def fill(room: Room, due: int) -> None:
    """One job in each of many queues, all due together."""
    room.call("FLUSHALL")
    for first in range(0, CROWD, 1_000):
        adds = [("DQ.ADD", f"crowd-{n}", "j", "x", "AT", due) for n in range(first, first + 1_000)]
        in_one_go(room.server.port, *adds)


def sleep_until(room: Room, due: int) -> None:
    """The server does something else until they all are due."""
    if now_ms() >= due:
        raise TooSlow
    room.call("DEBUG", "SLEEP", f"{(due - now_ms()) / 1_000 + 0.1:.3f}")


def most_were_left(consumer: Consumer) -> bool:
    """When it was served: until we get to ask, the timer may be through."""
    told = re.search(rb"^dq_queues_waiting:(\d+)", consumer.hears(), re.MULTILINE)
    return int(told[1]) > CROWD // 2


def test_waiting_consumers_are_served_before_the_timer_has_visited_all_queues(room: Room) -> None:
    def are_first(ahead_ms: int) -> None:
        due = now_ms() + ahead_ms
        fill(room, due)
        awaited = [f"awaited-{n}" for n in range(AWAITED)]
        with waiting(room, due, *[("DQ.POP", key, "BLOCK", 0) for key in awaited]) as consumers:
            # Their hints are the last.
            in_one_go(
                room.server.port, *[("DQ.ADD", key, key, "x", "AT", due + 1) for key in awaited]
            )
            sleep_until(room, due)
            told = [(consumer.hears(), most_were_left(consumer)) for consumer in consumers]
        for key, (((id, _, _, attempt),), was_first) in zip(awaited, told, strict=True):
            assert (id, attempt, was_first) == (key.encode(), 1, True)

    patiently(are_first)


def test_timeouts_are_sent_before_the_timer_has_visited_all_queues(
    room: Room,
) -> None:
    def is_first(ahead_ms: int) -> None:
        due = now_ms() + ahead_ms
        fill(room, due)
        with waiting(room, due, ("DQ.POP", "awaited", "BLOCK", max(due - now_ms(), 1))) as (
            consumer,
        ):
            sleep_until(room, due)
            assert consumer.hears() is None
            assert most_were_left(consumer)

    patiently(is_first)


def test_a_job_of_a_killed_consumer_is_given_back_before_the_timer_has_visited_all_queues(
    room: Room,
) -> None:
    def is_first(ahead_ms: int) -> None:
        due = now_ms() + ahead_ms
        fill(room, due)
        pops = [("DQ.POP", "awaited", "BLOCK", 0)] * 2
        with waiting(room, due, *pops) as (one, two):
            sleep_until(room, due)
            in_one_go(
                room.server.port, ("DQ.ADD", "awaited", "j", "x"), ("CLIENT", "KILL", "ID", one.id)
            )
            ((id, _, _, attempt),) = two.hears()
            assert most_were_left(two)
            assert (id, attempt) == (b"j", 1)

    patiently(is_first)
