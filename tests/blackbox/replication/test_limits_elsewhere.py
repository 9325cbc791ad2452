"""Limits, and what a rate has let through, are the same on replicas, in files and after a
failover.
"""

from collections.abc import Callable

import redis

from harness.clock import DAY_MS
from harness.elsewhere import FILES, check_copies_hold, check_files_hold
from harness.pipelined import Pipelined
from harness.queues import binary_client, info, queues_of
from harness.resp import commands_in
from harness.server import Server, eventually

StartServer = Callable[..., Server]
LIMITS = ("concurrency", "rate", "rate-per-ms", "rate-burst", "rate-left", "blocked-until")


def make_limited(r: redis.Redis) -> None:
    """One that CONCURRENCY holds, one that RATE holds, one that was moved on by a part of a
    millisecond.
    """
    r.execute_command("DQ.ALTER", "places", "CONCURRENCY", 2)
    r.execute_command("DQ.ALTER", "rated", "RATE", 3, DAY_MS, "BURST", 4)
    r.execute_command("DQ.ALTER", "parts", "RATE", 7, 1_000, "BURST", 3)
    for key in ("places", "rated", "parts"):
        for n in range(12):
            r.execute_command("DQ.ADD", key, n, "x", "TTR", DAY_MS)
    assert len(r.execute_command("DQ.POP", "places", "COUNT", 9)) == 2
    assert len(r.execute_command("DQ.POP", "rated", "COUNT", 9, "NOACK")) == 4
    assert len(r.execute_command("DQ.POP", "parts", "COUNT", 9)) == 3
    assert r.execute_command("DQ.POP", "rated") is None


def shown(server: Server) -> dict[str, list[int]]:
    with server.client() as r:
        return {key: [info(r, key)[name] for name in LIMITS] for key in ("places", "rated")}


def test_limits_hold_on_a_replica_and_a_new_primary(fresh_server: StartServer) -> None:
    primary, replica = fresh_server("appendonly yes"), fresh_server("appendonly yes")
    replica.replicate(primary)
    with primary.client() as r:
        make_limited(r)
        eventually(lambda: r.execute_command("DQ.POP", "parts"))
    replica.catch_up(primary)
    assert queues_of(replica) == queues_of(primary)
    before = shown(primary)
    assert shown(replica) == before
    primary.kill9()
    with replica.client() as r:
        assert r.info("dq")["dq_diverged"] == 0
        r.replicaof("NO", "ONE")
        assert r.execute_command("DQ.POP", "places") is None
        assert r.execute_command("DQ.POP", "rated") is None
        assert shown(replica) == before
        assert r.execute_command("DQ.FINISH", "places", 0, "*") == 1
        ((id, *_),) = r.execute_command("DQ.POP", "places", "BLOCK", 0)
        assert id == "2"


def test_files_and_copies_hold_limits(fresh_server: StartServer) -> None:
    for config in FILES:
        server = fresh_server(*config)
        with server.client() as r:
            make_limited(r)
        check_files_hold(server, config, shown)
        check_copies_hold(server, "rated")
        with binary_client(server) as r:
            for key in ("copied", "restored"):
                assert r.execute_command("DQ.POP", key) is None


def test_deliveries_to_those_who_wait_are_logged_within_the_limits(
    fresh_server: StartServer,
) -> None:
    primary, replica = fresh_server("appendonly yes"), fresh_server()
    replica.replicate(primary)
    consumers = [Pipelined(primary.port) for _ in range(6)]
    with primary.client() as r:
        r.execute_command("DQ.ALTER", "q", "RATE", 20, 1_000, "CONCURRENCY", 4)
        for consumer in consumers:
            consumer.send(("DQ.POP", "q", "BLOCK", 0, "COUNT", 2))
        eventually(lambda: info(r, "q")["waiting-consumers"] == 6)
        for n in range(6):
            r.execute_command("DQ.ADD", "q", n, "x", "TTR", DAY_MS)
        for consumer in consumers[:4]:
            assert len(consumer.receive()) == 1
        assert info(r, "q")["reserved"] == 4
        replica.catch_up(primary)
        assert queues_of(replica) == queues_of(primary)
        digest = queues_of(primary)
    for consumer in consumers:
        consumer.close()
    with replica.client() as r:
        assert r.info("dq")["dq_diverged"] == 0
    primary.restart()
    assert queues_of(primary) == digest
    (file,) = (primary.directory / "appendonlydir").glob("*.incr.aof")
    pops = [words for words in commands_in(file.read_bytes()) if b"DQ.POP" in words]
    assert len(pops) == 4, "what a limit holds back is not logged"
