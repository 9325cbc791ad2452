"""What a worker does while its server is away, or a replica, or refuses what came of a message."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dramatiq
import pytest
import redis
from dramatiq import Worker

from conftest import Work
from dramatiq_dq import DQBackend, DQBroker
from harness.address import Address
from harness.failover import fail_over
from harness.server import KINDS, Server, eventually

MakeBroker = Callable[..., DQBroker]


@pytest.fixture
def one_server(tmp_path: Path) -> Iterator[Server]:
    server = Server(KINDS[0], tmp_path, "appendonly yes", "appendfsync always")
    yield server
    server.stop()


def broker_at(port: int, **options: Any) -> DQBroker:
    broker = DQBroker(url=f"redis://127.0.0.1:{port}/0", **options)
    dramatiq.set_broker(broker)
    return broker


def stop_in_time(worker: Worker, broker: DQBroker, within_s: float) -> None:
    def stop() -> None:
        worker.stop()
        broker.close()

    stopping = threading.Thread(target=stop, daemon=True)
    stopping.start()
    stopping.join(within_s)
    assert not stopping.is_alive(), "the worker doesn't end"


def test_a_worker_goes_on_after_a_planned_failover(
    failing_over: tuple[Server, Server, Address], work: Work
) -> None:
    old, new, address = failing_over
    broker = broker_at(address.port)
    begun, go_on = threading.Semaphore(0), threading.Event()
    ran: list[int] = []

    @dramatiq.actor(max_retries=0)
    def record(number: int) -> None:
        ran.append(number)
        begun.release()
        go_on.wait(60)

    for number in range(12):
        record.send(number)
    work(broker, worker_threads=4)
    for _ in range(4):
        assert begun.acquire(timeout=20)
    fail_over(old)
    go_on.set()  # all outcomes meet a replica
    time.sleep(0.5)
    address.lead_to(new.port)
    with new.client() as r:
        eventually(lambda: r.execute_command("DQ.LEN", "dramatiq-dq:default") == 0, 60)
    assert sorted(ran) == list(range(12))
    broker.close()


def test_messages_and_results_find_the_new_primary(
    failing_over: tuple[Server, Server, Address],
) -> None:
    """Of a program that only sends: its connections stay with the old primary."""
    old, new, address = failing_over
    broker = broker_at(address.port)
    results = DQBackend(url=f"redis://127.0.0.1:{address.port}/0")

    @dramatiq.actor
    def nothing() -> None: ...

    nothing.send()
    results.store_result(nothing.message(), 1, 60_000)
    fail_over(old)
    address.lead_to(new.port)
    message = nothing.send()
    results.store_result(message, 2, 60_000)
    assert results.get_result(message) == 2
    with new.client() as r:
        assert r.execute_command("DQ.LEN", "dramatiq-dq:default") == 2
    broker.close()


@pytest.mark.parametrize("how", ["replica", "away"])
def test_a_worker_ends_while_its_server_takes_nothing(
    how: str, one_server: Server, work: Work
) -> None:
    broker = broker_at(one_server.port)
    begun, go_on = threading.Event(), threading.Event()

    @dramatiq.actor
    def slow() -> None:
        begun.set()
        go_on.wait(60)

    slow.send()
    worker = work(broker, worker_threads=2)
    assert begun.wait(20)
    if how == "replica":
        with one_server.client() as r:
            r.replicaof("127.0.0.1", 1)
    else:
        one_server.stop()
    go_on.set()
    time.sleep(0.5)
    stop_in_time(worker, broker, 30)
    if not one_server.is_up():
        one_server.start()


def test_what_ended_in_an_outage_is_told_when_it_is_over_and_holds_up_no_other(
    one_server: Server, work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    """Leases are renewed until the server was told; the log has a line for an outage and its end."""
    broker = broker_at(one_server.port, heartbeat_timeout=6_000)
    begun, go_on = threading.Semaphore(0), threading.Event()
    ran: list[int] = []

    @dramatiq.actor(max_retries=0)
    def record(number: int) -> None:
        begun.release()
        go_on.wait(60)
        ran.append(number)

    for number in range(4):
        record.send(number)
    work(broker, worker_threads=2)
    for _ in range(2):
        assert begun.acquire(timeout=20)
    caplog.clear()
    one_server.stop()
    go_on.set()
    # All that was fetched runs, though nothing of it can be told.
    eventually(lambda: sorted(ran) == [0, 1, 2, 3], 30)
    one_server.start()
    with one_server.client() as r:
        eventually(lambda: r.execute_command("DQ.LEN", "dramatiq-dq:default") == 0, 30)
    assert sorted(ran) == [0, 1, 2, 3]
    warned = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert len([line for line in warned if "doesn't answer" in line]) == 1, warned
    assert len([line for line in warned if "answers again" in line]) == 1, warned
    assert len(warned) == 2, warned
    assert f"127.0.0.1:{one_server.port}" in warned[0]
    broker.close()


def test_one_queue_that_is_out_of_reach_costs_no_other_its_leases(
    one_server: Server, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a node of a cluster that hangs: calls about its queue take long, and fail."""
    broker = broker_at(one_server.port, heartbeat_timeout=900)
    ran: list[str] = []
    renew = broker._renew

    def hang(queue_name: str, pairs: Any) -> Any:
        if queue_name == "ill":
            time.sleep(3)
            raise redis.ConnectionError("no node")
        return renew(queue_name, pairs)

    monkeypatch.setattr(broker._leases, "_renew", hang)
    hold = threading.Event()

    @dramatiq.actor(queue_name="ill")
    def ill() -> None:
        hold.wait(60)

    @dramatiq.actor(queue_name="well", max_retries=0)
    def well() -> None:
        ran.append("well")
        time.sleep(4)

    ill.send()
    work(broker)
    eventually(lambda: broker.queue("ill").len(state="reserved") == 1, 20)
    well.send()
    broker.join("well", timeout=20_000)
    info = broker.queue("well").info()
    assert info is not None
    assert (ran, info.total_timed_out) == (["well"], 0)
    hold.set()


def test_leases_that_are_lost_with_the_server_s_data_are_one_line(
    one_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    broker = broker_at(one_server.port, heartbeat_timeout=600)

    @dramatiq.actor
    def nothing() -> None: ...

    for _ in range(50):
        nothing.send()
    consumer = broker.consume("default", prefetch=50, timeout=1000)
    assert next(consumer) is not None
    with one_server.client() as r:
        r.flushall()
    eventually(lambda: broker._leases.count == 0, 20)
    eventually(lambda: "49 others" in caplog.text, 20)
    assert caplog.text.count("was deleted") == 1
    broker.close()


def test_a_server_without_room_is_waited_for(one_server: Server, work: Work) -> None:
    broker = broker_at(one_server.port)
    ran: list[int] = []

    @dramatiq.actor(max_retries=0)
    def record() -> None:
        with one_server.client() as r:
            r.config_set("min-replicas-to-write", 1)
        ran.append(1)

    record.send()
    work(broker)
    eventually(lambda: ran == [1], 20)
    time.sleep(1)
    with one_server.client() as r:
        r.config_set("min-replicas-to-write", 0)
    broker.join("default", timeout=30_000)
    assert ran == [1]
    broker.close()
