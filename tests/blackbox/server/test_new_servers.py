"""New features of the latest servers that concern queues: databases in ACLs (Valkey 9.1), eviction
of the keys that were modified least recently (Redis 8.6).
"""

from collections.abc import Callable
from contextlib import closing

import pytest
import redis

from harness.pipelined import Pipelined
from harness.server import Kind, Server, eventually

StartServer = Callable[..., Server]
NO_DATABASE = "permissions to access database"


@pytest.fixture
def lone(fresh_server: StartServer, kind: Kind) -> Server:
    """Its users are its own."""
    if not kind.is_since("valkey", 9, 1):
        pytest.skip(f"{kind} has no databases in ACLs: Valkey 9.1 and later have")
    return fresh_server()


def test_a_user_of_some_databases_reaches_the_queues_of_these_alone(lone: Server) -> None:
    with lone.client() as admin, lone.client(db=1) as elsewhere:
        admin.execute_command("ACL", "SETUSER", "worker", "on", "nopass", "~*", "+@all", "db=0,2")
        elsewhere.execute_command("DQ.ADD", "q", "secret", "x")
        with lone.client(username="worker", password="-") as worker:
            assert worker.execute_command("DQ.ADD", "q", "a", "x") == "a"
            assert len(worker.execute_command("DQ.POP", "q")) == 1
            for command in (
                ("SELECT", 1),
                ("MOVE", "q", 1),
                ("COPY", "q", "q", "DB", 1),
                ("SWAPDB", 0, 1),
            ):
                with pytest.raises(redis.ResponseError, match=NO_DATABASE):
                    worker.execute_command(*command)
        assert queues_in(lone, 0) == queues_in(lone, 1) == {"q"}
        assert elsewhere.execute_command("DQ.LEN", "q", "STATE", "ready") == 1


def test_a_user_of_some_databases_who_waits_there_is_served(lone: Server) -> None:
    with lone.client() as admin, closing(Pipelined(lone.port)) as consumer:
        admin.execute_command("ACL", "SETUSER", "worker", "on", "nopass", "~*", "+@all", "db=2")
        consumer.call_all([("AUTH", "worker", "-"), ("SELECT", 2)])
        consumer.send(("DQ.POP", "q", "BLOCK", 0))
        eventually(lambda: admin.info("clients")["blocked_clients"] == 1)
        admin.execute_command("DQ.ADD", "q", "not-for-it", "x")
        with lone.client(db=2) as producer:
            producer.execute_command("DQ.ADD", "q", "a", "x")
        assert consumer.receive()[0][0] == b"a"
        assert admin.execute_command("DQ.LEN", "q", "STATE", "ready") == 1


def queues_in(server: Server, database: int) -> set[str]:
    with server.client(db=database) as r:
        return set(r.scan_iter(_type="delayq-dq"))


def test_eviction_of_the_least_recently_modified_is_warned_of(
    fresh_server: StartServer, kind: Kind
) -> None:
    if not kind.is_since("redis", 8, 6):
        pytest.skip(f"{kind} has no maxmemory-policy allkeys-lrm: Redis 8.6 and later have")
    server = fresh_server("maxmemory-policy allkeys-lrm")
    assert "<dq> maxmemory-policy is allkeys-" in server.log()
    with server.client() as r:
        assert r.info("dq")["dq_eviction_risk"] == 1
        r.config_set("maxmemory-policy", "volatile-lrm")
        assert r.info("dq")["dq_eviction_risk"] == 0
