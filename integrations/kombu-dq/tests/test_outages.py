"""What a worker does while its server is away, or a replica: it waits, repeats nothing, and says so
in a line.
"""

import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from celery import Celery
from redis._parsers.base import BaseParser
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, ResponseError
from redis.retry import Retry

from conftest import Start
from harness.address import Address
from harness.failover import fail_over
from harness.server import KINDS, Server, eventually
from kombu_dq.backend import DQBackend
from kombu_dq.leases import FINISH, Lease, Leases
from kombu_dq.wire import in_one_go, in_one_transaction, plain_errors
from workers import RESULTS_DATABASE, producer

REPLIES = {
    "READONLY You can't write against a read only replica.": True,
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.": True,
    "LOADING Redis is loading the dataset in memory": True,
    "CLUSTERDOWN The cluster is down": True,
    "TRYAGAIN Multiple keys request during rehashing of slot": True,
    "OOM command not allowed when used memory > 'maxmemory'.": True,
    "MISCONF Redis is configured to save RDB snapshots": True,
    "NOREPLICAS Not enough good replicas to write.": True,
    "BUSY Redis is busy running a script.": True,
    "UNBLOCKED force unblock from blocking operation": True,
    "ERR body must be at most 1048576 bytes long (dq.max-body-bytes)": False,
    "NOPERM this user has no permissions to run the 'dq.mpop' command": False,
    "WRONGTYPE Operation against a key holding the wrong kind of value": False,
}


@pytest.mark.parametrize(("reply", "passes"), REPLIES.items())
def test_what_passes_is_an_error_of_the_connection(reply: str, passes: bool) -> None:
    for prefix in ("", "Command # 1 (DQ.ADD q a ...) of pipeline caused error: "):
        error = BaseParser.parse_error(reply)
        error.args = (prefix + str(error),)
        with pytest.raises(ConnectionError if passes else ResponseError), plain_errors():
            raise error


def test_a_worker_goes_on_after_a_planned_failover(
    worker: Start, one_broker: Server, failing_over: tuple[Server, Server, Address]
) -> None:
    old, new, address = failing_over
    broker = f"dq://127.0.0.1:{address.port}/0"
    tasks = producer(one_broker.port, BROKER_URL=broker)
    # None is prefetched: one that the pool takes in the moment in which the worker gives it back runs
    # twice (docs/celery.md).
    one = worker("-c", "2", TTR="20", PREFETCH="1", BROKER_URL=broker)
    for n in range(8):
        tasks.record_late.delay(f"{n}", 1)
    with one_broker.client(db=RESULTS_DATABASE) as records:
        eventually(lambda: records.llen("begun") == 2)
        fail_over(old)
        # Old connections and new ones lead to the old primary, until the address has moved.
        eventually(lambda: "read only" in one.log, 20)
        address.lead_to(new.port)
        tasks.record.delay("after")
        eventually(lambda: records.llen("runs") == 9, 40)
        assert sorted(records.lrange("runs", 0, -1)) == [*(f"{n}" for n in range(8)), "after"]
        assert records.llen("begun") == 8
    with new.client() as r:
        eventually(lambda: r.execute_command("DQ.LEN", "celery") == 0, 20)
    assert one.stop() == 0


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[Server]:
    server = Server(KINDS[0], tmp_path, "appendonly yes", "appendfsync always")
    yield server
    server.stop()


def test_leases_are_settled_at_the_new_primary(
    failing_over: tuple[Server, Server, Address], caplog: pytest.LogCaptureFixture
) -> None:
    old, new, address = failing_over
    leases = Leases(
        lambda: redis.Redis(port=address.port, retry=Retry(NoBackoff(), 0)), 20_000, lambda: set()
    )
    with old.client() as r:
        r.execute_command("DQ.ADD", "q", "a", "x")
        [[job_id, _, number, _]] = r.execute_command("DQ.POP", "q", "TTR", 20_000)
        lease = Lease("q", job_id.encode(), number)
        assert leases.renew(lease)  # over a connection that stays with the old primary
        leases.hold("a", lease)
    fail_over(old)
    address.lead_to(new.port)
    leases.settle("a", FINISH)
    with new.client() as r:
        eventually(lambda: r.execute_command("DQ.LEN", "q") == 0, 20)
    leases.close()


def test_results_are_stored_at_the_new_primary(
    failing_over: tuple[Server, Server, Address],
) -> None:
    old, new, address = failing_over
    app = Celery(set_as_current=False)
    app.conf.redis_retry_on_timeout = False
    backend = DQBackend(app=app, url=f"dq://127.0.0.1:{address.port}/0")
    backend.set("before", "x")  # over a connection that stays with the old primary
    fail_over(old)
    address.lead_to(new.port)
    backend.set("after", "y")
    assert backend.mget(["before", "after"]) == [b"x", b"y"]


def test_a_server_that_is_silent_holds_a_worker_up_once(lone: Server) -> None:
    """Not once for each task that ends meanwhile."""
    leases = Leases(
        lambda: redis.Redis(port=lone.port, socket_timeout=1, retry=Retry(NoBackoff(), 0)),
        60_000,
        lambda: set(),
    )
    with lone.client() as r:
        for n in range(20):
            r.execute_command("DQ.ADD", "q", n, "x")
            [[job_id, _, number, _]] = r.execute_command("DQ.POP", "q", "TTR", 60_000)
            leases.hold(job_id, Lease("q", job_id.encode(), number))
    os.kill(lone.pid, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        for tag in list(leases.tags):
            leases.settle(tag, FINISH)
        assert time.monotonic() - begun < 10
    finally:
        os.kill(lone.pid, signal.SIGCONT)
    with lone.client() as r:
        eventually(lambda: r.execute_command("DQ.LEN", "q") == 0, 20)
    leases.close()


def test_an_outage_is_two_lines_of_the_log(lone: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    leases = Leases(
        lambda: redis.Redis(port=lone.port, retry=Retry(NoBackoff(), 0)), 300, lambda: set()
    )
    with lone.client() as r:
        for n in range(20):
            r.execute_command("DQ.ADD", "q", n, "x")
            [[job_id, _, number, _]] = r.execute_command("DQ.POP", "q", "TTR", 60_000)
            leases.hold(job_id, Lease("q", job_id.encode(), number))
    for _ in range(2):
        caplog.clear()
        lone.stop()
        for tag in list(leases.tags)[:8]:
            leases.settle(tag, FINISH)
        time.sleep(1.2)  # several beats, and tries to send
        lone.start()
        eventually(lambda: "answers again" in caplog.text, 20)
        ours = [each.message for each in caplog.records if each.name == "kombu_dq"]
        assert len(ours) == 2, ours
        assert all(
            f"127.0.0.1:{lone.port}" in line or f"localhost:{lone.port}" in line for line in ours
        )
    leases.give_back()
    leases.close()


def test_waiting_for_a_result_knows_the_socket_timeout(one_broker: Server) -> None:
    app = Celery(set_as_current=False)
    app.conf.redis_socket_timeout = 0.3
    backend = DQBackend(app=app, url=f"dq://127.0.0.1:{one_broker.port}/8")
    assert backend.await_result("pending", 1.0) is None


def test_a_pipeline_says_what_a_server_without_room_says(lone: Server) -> None:
    with lone.client() as r:
        r.config_set("min-replicas-to-write", 1)
        with pytest.raises(ConnectionError), plain_errors():
            in_one_transaction(r, [["DQ.ADD", "q", "a", "x"]])
        with pytest.raises(ResponseError, match="NOREPLICAS"):
            in_one_go(r, [["DQ.ADD", "q", "a", "x"]])
