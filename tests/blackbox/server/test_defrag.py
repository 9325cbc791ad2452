"""Active defragmentation: the server moves a queue's memory while the queue works on, and the queue
stays the same.

Only a server with its own jemalloc can do that; others refuse the setting.
"""

from collections.abc import Callable, Iterator

import pytest
import redis

from harness.queues import digests
from harness.server import Server, eventually

JOBS = 100_000
HOUR_MS = 3_600_000
# As busy as can be.
DEFRAG = {
    "active-defrag-ignore-bytes": "1mb",
    "active-defrag-threshold-lower": 1,
    "active-defrag-threshold-upper": 2,
    "active-defrag-cycle-min": 50,
    "active-defrag-cycle-max": 75,
}

# By the number of a job: of each kind of memory that a queue has.
KINDS: list[tuple[str | int, ...]] = [
    ("DELAY", HOUR_MS),
    ("TTL", HOUR_MS, "PRIORITY", 3),
    ("EVERY", HOUR_MS, "DELAY", HOUR_MS),
    ("KEEP", HOUR_MS, "DELAY", HOUR_MS),
    ("ATTEMPTS", 2, "BACKOFF", 10_000, 20_000),
    ("GROUP", "one", "DELAY", HOUR_MS),
    ("GROUP", "another", "LATE", HOUR_MS),
]


@pytest.fixture
def r(fresh_server: Callable[..., Server]) -> Iterator[redis.Redis]:
    server = fresh_server()
    with server.client() as r:
        for name, value in DEFRAG.items():
            r.config_set(name, value)
        try:
            r.config_set("activedefrag", "yes")
        except redis.ResponseError as error:
            assert "Active defragmentation cannot be enabled" in str(error)
            pytest.skip("this server can't")
        r.config_set("activedefrag", "no")
        yield r


def fill(r: redis.Redis, jobs: int) -> None:
    for begin in range(0, jobs, 5_000):
        pipeline = r.pipeline(transaction=False)
        for n in range(begin, begin + 5_000):
            pipeline.execute_command("DQ.ADD", "q", f"job-{n}", "x" * 100, *KINDS[n % len(KINDS)])
        pipeline.execute()


def hand_out_and_bury(r: redis.Redis) -> None:
    """So that some have leases, some a reason of their own."""
    jobs = r.execute_command("DQ.POP", "q", "COUNT", 5_000, "TTR", HOUR_MS)
    pipeline = r.pipeline(transaction=False)
    for id, _, lease, _ in jobs[::2]:
        pipeline.execute_command("DQ.BURY", "q", id, lease, "REASON", f"the reason of {id}")
    pipeline.execute()


def delete_every_second(r: redis.Redis, jobs: int) -> None:
    for begin in range(0, jobs, 1_000):
        r.execute_command("DQ.DEL", "q", *(f"job-{n}" for n in range(begin, begin + 1_000, 2)))


def test_a_queue_of_which_half_is_gone_gives_its_memory_back(r: redis.Redis) -> None:
    fill(r, JOBS)
    hand_out_and_bury(r)
    delete_every_second(r, JOBS)
    # The server measures its memory ten times a second.
    eventually(lambda: r.info("memory")["allocator_frag_ratio"] > 1.3)
    before, held = digests(r, "q"), r.info("memory")["allocator_active"]
    used = r.memory_usage("q")
    r.config_set("activedefrag", "yes")
    eventually(lambda: r.info("memory")["allocator_frag_ratio"] < 1.15, 60)
    r.config_set("activedefrag", "no")
    assert r.info("memory")["allocator_active"] < 0.8 * held
    assert (digests(r, "q"), r.memory_usage("q")) == (before, used)
    r.execute_command("DEBUG", "RELOAD")
    assert digests(r, "q") == before


def test_a_queue_works_on_while_its_memory_is_moved(
    r: redis.Redis, fresh_server: Callable[..., Server]
) -> None:
    """What is moved is what a replica has, which moves nothing."""
    fill(r, JOBS)
    delete_every_second(r, JOBS)
    replica = fresh_server()
    port = r.connection_pool.connection_kwargs["port"]
    with replica.client() as there:
        there.execute_command("REPLICAOF", "127.0.0.1", port)
        eventually(lambda: there.info("replication")["master_link_status"] == "up", 30)
        # The server looks at its allocator ten times a second.
        eventually(lambda: r.info("memory")["allocator_frag_ratio"] >= 1.2, 30)
        r.config_set("activedefrag", "yes")
        eventually(lambda: r.info("stats")["active_defrag_hits"] > 0, 30)
        turn = 0
        while r.info("memory")["allocator_frag_ratio"] >= 1.15 or turn < 50:
            turn += 1
            assert turn < 5_000, "it doesn't get there"
            work(r, turn)
        r.config_set("activedefrag", "no")
        assert r.info("stats")["active_defrag_hits"] > 1_000
        eventually(lambda: digests(there, "q") == digests(r, "q"), 30)


def work(r: redis.Redis, turn: int) -> None:
    pipeline = r.pipeline(transaction=False)
    for n in range(20):
        pipeline.execute_command("DQ.ADD", "q", f"new-{turn}-{n}", "y" * 90, "PRIORITY", n)
    pipeline.execute_command("DQ.DEL", "q", *(f"job-{turn * 20 + n}" for n in range(20)))
    pipeline.execute()
    jobs = r.execute_command("DQ.POP", "q", "COUNT", 10)
    words = [word for id, _, lease, _ in jobs for word in (id, lease)]
    assert r.execute_command("DQ.FINISH", "q", *words) == len(jobs)
    if turn % 10 == 0:
        r.rename("q", "p")
        r.copy("p", "copy", replace=True)
        r.delete("copy")
        r.rename("p", "q")


def test_the_memory_of_small_queues_is_moved_too(r: redis.Redis) -> None:
    """Of which the server asks for all at once."""
    queues, jobs = 500, 200
    for q in range(queues):
        pipeline = r.pipeline(transaction=False)
        for n in range(jobs):
            pipeline.execute_command("DQ.ADD", f"q{q}", n, "x" * 100, *KINDS[n % len(KINDS)])
        pipeline.execute_command("DQ.DEL", f"q{q}", *range(0, jobs, 2))
        pipeline.execute()
    names = [f"q{q}" for q in range(queues)]
    before = digests(r, *names)
    r.config_set("activedefrag", "yes")
    eventually(lambda: r.info("memory")["allocator_frag_ratio"] < 1.15, 60)
    assert digests(r, *names) == before
