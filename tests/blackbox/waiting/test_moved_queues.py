"""Queues that move while consumers wait, beside many other keys: no consumer waits for a walk over
the keyspace, and no client is held up by one.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import redis

from harness.clock import HOUR_MS, now_ms
from harness.consumers import Room
from harness.marks import long
from harness.server import Server, eventually

OTHER_KEYS = 300_000
LATE_MS_MAX = 900

# Where the queue `q` goes, and at which key it is then.
MOVES: dict[str, tuple[Callable[[redis.Redis], object], int, str]] = {
    "RENAME": (lambda r: r.rename("q", "renamed"), 0, "renamed"),
    "MOVE": (lambda r: r.move("q", 3), 3, "q"),
}


@pytest.fixture
def crowded(server: Server) -> Server:
    with server.client() as r:
        r.execute_command("DEBUG", "POPULATE", OTHER_KEYS)
    return server


@contextmanager
def another_queue_that_never_rests(server: Server) -> Iterator[None]:
    """It is renamed again and again."""
    is_over = threading.Event()

    def rename_on() -> None:
        with server.client() as r:
            r.execute_command("DQ.ADD", "restless0", "a", "x", "DELAY", HOUR_MS)
            for n in itertools.count():
                if is_over.wait(0.05):
                    return
                r.rename(f"restless{n}", f"restless{n + 1}")

    thread = threading.Thread(target=rename_on)
    thread.start()
    yield
    is_over.set()
    thread.join()


@pytest.mark.parametrize("comes", ["before", "after"])
@pytest.mark.parametrize("moved_by", MOVES)
def test_a_consumer_at_the_new_key_of_a_moved_queue_is_served_in_time(
    crowded: Server, moved_by: str, comes: str
) -> None:
    move, database, key = MOVES[moved_by]
    room, there = Room(crowded), Room(crowded)
    there.call("SELECT", database)
    assert there("one").call("SELECT", database) == "OK"
    with another_queue_that_never_rests(crowded), crowded.client() as r:
        due = now_ms() + 500
        room.call("DQ.ADD", "q", "a", "x", "AT", due)
        if comes == "before":
            there.wait("one", "DQ.POP", key, "BLOCK", 0)
        move(r)
        if comes == "after":
            there.wait("one", "DQ.POP", key, "BLOCK", 0)
        ((id, _, _, attempt),) = there("one").hears()
        assert (id, attempt) == (b"a", 1)
        assert due <= now_ms() < due + LATE_MS_MAX
    there.close()
    room.close()


@pytest.mark.parametrize(
    "look", ["DQ.LEN renamed", "DQ.POP renamed", "DQ.PEEK renamed", "DQ.DEL renamed b"]
)
def test_any_command_on_a_moved_queue_makes_it_known_to_the_timer(
    crowded: Server, look: str
) -> None:
    """Its timer goes on from then on. Asked of INFO, which touches none."""
    with crowded.client() as r:
        r.execute_command("DQ.ADD", "q", "a", "x", "DELAY", HOUR_MS)
        assert r.info("dq")["dq_queues_waiting"] == 1
        r.rename("q", "renamed")
        assert r.info("dq")["dq_queues_waiting"] == 0
        r.execute_command(*look.split())
        assert r.info("dq")["dq_queues_waiting"] == 1


def runs_without_an_end(r: redis.Redis) -> int:
    """Runs of the timer that took their whole time."""
    return r.info("dq")["dq_timer_budget_exceeded"]


@long
def test_the_search_for_an_untouched_moved_queue_takes_no_whole_timer_runs(crowded: Server) -> None:
    with crowded.client() as r:
        before = runs_without_an_end(r)
        r.execute_command("DQ.ADD", "q", "a", "x", "DELAY", 10)
        r.rename("q", "renamed")
        eventually(lambda: r.info("dq")["dq_jobs_ready"] == 1, 300)
        assert runs_without_an_end(r) - before < 20


def test_queues_that_are_deleted_are_not_looked_for(crowded: Server) -> None:
    """Even many queues in a short time: more than the timer once told apart."""
    queues = 5_000
    with crowded.client() as r:
        adding = r.pipeline(transaction=False)
        for n in range(queues):
            adding.execute_command("DQ.ADD", f"q{n}", "a", "x", "DELAY", HOUR_MS)
        adding.execute()
        before = r.info("dq")
        deleting = r.pipeline(transaction=False)
        for n in range(queues):
            deleting.delete(f"q{n}")
        deleting.execute()
        r.execute_command("DQ.ADD", "last", "a", "x", "DELAY", 1_000)
        eventually(lambda: r.info("dq")["dq_queues_waiting"] == 0)
        after = r.info("dq")
        assert after["dq_timer_budget_exceeded"] - before["dq_timer_budget_exceeded"] < 20
        assert after["dq_timer_runs"] - before["dq_timer_runs"] < 100
