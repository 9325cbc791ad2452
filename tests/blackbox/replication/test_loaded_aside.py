"""`repl-diskless-load swapdb`: a replica loads its primary's data while it serves its old data.
Then it swaps the new data in, or throws it away when the sync fails.
"""

from collections.abc import Callable
from typing import Any

import pytest
import redis

from harness.clock import HOUR_MS, now_ms
from harness.consumers import in_one_go
from harness.queues import digests, queues_of
from harness.server import Server, eventually

STATES = ["delayed", "ready", "reserved", "dead", "done"]
SUMS = ["queues", "queues_waiting", *(f"jobs_{state}" for state in STATES)]
# Their number says how long a sync takes: the primary waits before each.
KEYS = 100
BETWEEN_KEYS_US = 20_000
BACKLOG = 16_384
NEW_KEYS = 50

Pair = tuple[Server, Server]


def sums(r: redis.Redis) -> dict[str, int]:
    return sums_told(r.info("dq"))


def sums_told(info: dict[str, Any]) -> dict[str, int]:
    return {name: info[f"dq_{name}"] for name in SUMS}


def fill(r: redis.Redis, name: str, queues: int) -> None:
    """Queues with a job in each state but ready."""
    for n in range(queues):
        key = f"{name}{n}"
        for id in "abc":
            r.execute_command("DQ.ADD", key, id, "x" * 9_000, "TTR", HOUR_MS, "KEEP", HOUR_MS)
        a, b, _ = r.execute_command("DQ.POP", key, "COUNT", 3)
        r.execute_command("DQ.FINISH", key, a[0], a[2])
        r.execute_command("DQ.BURY", key, b[0], b[2])
        r.execute_command("DQ.ADD", key, "later", "x", "DELAY", HOUR_MS)


@pytest.fixture
def pair(fresh_server: Callable[..., Server]) -> Pair:
    """A primary, and a replica that has had a first full sync."""
    primary = fresh_server("repl-diskless-sync yes", f"repl-backlog-size {BACKLOG}")
    replica = fresh_server(
        "repl-diskless-load swapdb", "loading-process-events-interval-bytes 1024"
    )
    with primary.client() as r:
        fill(r, "old", KEYS)
        r.execute_command("DQ.ADD", "doomed", "a", "x", "DELAY", HOUR_MS)
        r.execute_command("DQ.ADD", "soon", "a", "x", "AT", now_ms() + 500)
    replica.replicate(primary)
    replica.catch_up(primary)
    with primary.client() as r:
        r.config_set("rdb-key-save-delay", BETWEEN_KEYS_US)
    return primary, replica


def begin_a_full_sync(pair: Pair) -> None:
    """The replica loses its link, and when it is back more has happened than the primary still
    knows.
    """
    primary, replica = pair
    kill = ("CLIENT", "KILL", "TYPE", "replica")
    large = ("SET", "large", "x" * 10 * BACKLOG)
    adds = [("DQ.ADD", f"new{n}", "a", "x", "DELAY", HOUR_MS) for n in range(NEW_KEYS)]
    in_one_go(primary.port, kill, large, ("DEL", "doomed"), *adds)
    with replica.client() as r:
        eventually(lambda: is_loading_aside(r), 20)


def is_loading_aside(replica: redis.Redis) -> bool:
    return replica.info("persistence")["async_loading"] == 1


def looks_while_loading(replica: redis.Redis) -> list[list[Any]]:
    """What it tells in one moment and the next: sums, digests, the length of a queue."""
    looks = []
    while True:
        look = replica.pipeline(transaction=True).info("persistence").info("dq")
        look.execute_command("DEBUG", "DIGEST-VALUE", "old1", "doomed").execute_command(
            "DQ.LEN", "old2"
        )
        persistence, dq, *told = look.execute()
        if not persistence["async_loading"]:
            return looks
        looks.append([sums_told(dq), *told])


def check_the_timer_goes_on(server: Server) -> None:
    """It is a primary now. A job falls due, and no client touches it."""
    with server.client() as r:
        r.execute_command("REPLICAOF", "NO", "ONE")
        eventually(lambda: sums(r)["jobs_ready"] == 1)
        r.execute_command("DQ.ADD", "new here", "a", "x", "DELAY", 100)
        eventually(lambda: sums(r)["jobs_ready"] == 2)


def test_a_replica_serves_what_it_has_until_the_new_data_is_there(pair: Pair) -> None:
    primary, replica = pair
    with primary.client() as there, replica.client() as here:
        before, queues = sums(here), digests(here, "old1", "doomed")
        assert before == sums(there) | {"jobs_ready": 0, "jobs_delayed": before["jobs_delayed"]}
        begin_a_full_sync(pair)
        looks = looks_while_loading(here)
        assert looks
        assert all(look == [before, queues, 4] for look in looks), looks
        eventually(lambda: here.info("replication")["master_link_status"] == "up")
        replica.catch_up(primary)
        assert queues_of(replica) == queues_of(primary)
        after = sums(here)
        assert after["queues"] == sums(there)["queues"] == KEYS + 1 + NEW_KEYS
        assert sum(after[f"jobs_{state}"] for state in STATES) == 4 * KEYS + 1 + NEW_KEYS
        assert after["queues_waiting"] == KEYS + 1 + NEW_KEYS
    assert "Skipping diskless-load" not in replica.log()
    check_the_timer_goes_on(replica)


def test_a_sync_that_comes_to_nothing_leaves_the_old_data(pair: Pair) -> None:
    primary, replica = pair
    with replica.client() as here:
        before, queues = sums(here), queues_of(replica)
        begin_a_full_sync(pair)
        primary.kill9()
        eventually(lambda: not is_loading_aside(here))
        assert sums(here) == before
        assert queues_of(replica) == queues
        assert before["queues"] == before["queues_waiting"] == KEYS + 2
    check_the_timer_goes_on(replica)


def test_a_replica_of_another_primary_has_its_data_only(
    pair: Pair, fresh_server: Callable[..., Server]
) -> None:
    """Of another history: it is loaded aside as well, but nothing is served meanwhile."""
    _, replica = pair
    other = fresh_server("repl-diskless-sync yes")
    with other.client() as there, replica.client() as here:
        fill(there, "other", 3)
        replica.replicate(other)
        replica.catch_up(other)
        assert queues_of(replica) == queues_of(other)
        assert sums(here) == sums(there)
