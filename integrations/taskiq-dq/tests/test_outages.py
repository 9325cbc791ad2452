"""What a worker does while its server is away, or a replica."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from conftest import PATIENCE_S, Work, eventually, is_empty, url
from harness.address import Address
from harness.server import KINDS, Server
from harness.server import eventually as at_last
from taskiq_dq import DQBroker, DQResultBackend
from test_worker import PROGRAM, worker

pytestmark = pytest.mark.anyio


@pytest.fixture
def one_server(tmp_path: Path) -> Iterator[Server]:
    server = Server(KINDS[0], tmp_path, "appendonly yes", "appendfsync always")
    yield server
    server.stop()


@pytest.fixture
async def at() -> AsyncIterator[Callable[..., DQBroker]]:
    made: list[DQBroker] = []

    def broker_at(port: int, **options: Any) -> DQBroker:
        address = f"redis://127.0.0.1:{port}/0"
        made.append(DQBroker(address, **options).with_result_backend(DQResultBackend(address)))
        return made[-1]

    yield broker_at
    for broker in made:
        await broker.shutdown()


async def test_a_worker_goes_on_after_a_planned_failover(
    failing_over: tuple[Server, Server, Address], at: Callable[..., DQBroker], work: Work
) -> None:
    old, new, address = failing_over
    broker = at(address.port)
    begun, go_on = asyncio.Semaphore(0), asyncio.Event()
    ran: list[int] = []

    @broker.task
    async def record(number: int) -> None:
        ran.append(number)
        begun.release()
        await go_on.wait()

    for number in range(12):
        await record.kiq(number)
    await work(broker, max_async_tasks=4)
    for _ in range(4):
        await asyncio.wait_for(begun.acquire(), PATIENCE_S)
    with old.client() as r:
        r.execute_command("FAILOVER")
        await eventually(lambda: said(r.info("replication")["role"] == "slave"))
    go_on.set()  # all outcomes meet a replica
    await asyncio.sleep(0.5)
    address.lead_to(new.port)
    with new.client() as r:
        await eventually(lambda: said(r.execute_command("DQ.LEN", "taskiq") == 0))
    assert sorted(ran) == list(range(12))


async def test_tasks_find_the_new_primary(
    failing_over: tuple[Server, Server, Address], at: Callable[..., DQBroker]
) -> None:
    """Of a program that only sends: its connections stay with the old primary."""
    old, new, address = failing_over
    broker = at(address.port)

    @broker.task
    async def nothing() -> None: ...

    await nothing.kiq()
    with old.client() as r:
        r.execute_command("FAILOVER")
        await eventually(lambda: said(r.info("replication")["role"] == "slave"))
    address.lead_to(new.port)
    await nothing.kiq()
    with new.client() as r:
        assert r.execute_command("DQ.LEN", "taskiq") == 2


async def said(value: bool) -> bool:
    return value


@pytest.mark.parametrize("how", ["away", "replica", "silent", "idle"])
async def test_a_worker_ends_while_its_server_takes_nothing(
    how: str, one_server: Server, at: Callable[..., DQBroker], work: Work
) -> None:
    broker = at(one_server.port)
    begun, go_on = asyncio.Event(), asyncio.Event()

    @broker.task
    async def slow() -> int:
        begun.set()
        await go_on.wait()
        return 1

    working = await work(broker)
    if how != "idle":
        await slow.kiq()
        await asyncio.wait_for(begun.wait(), PATIENCE_S)
    match how:
        case "replica":
            with one_server.client() as r:
                r.replicaof("127.0.0.1", 1)
        case "silent":
            os.kill(one_server.pid, signal.SIGSTOP)
        case _:
            one_server.stop()
    go_on.set()
    await asyncio.sleep(0.3)
    try:
        await asyncio.wait_for(working.stop(), 40)
    finally:
        if how == "silent":
            os.kill(one_server.pid, signal.SIGCONT)
        if not one_server.is_up():
            one_server.start()


def test_taskiq_worker_ends_at_sigterm_while_its_server_is_away(
    one_server: Server, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(url=url(one_server)))
    with one_server.client() as r, worker(tmp_path, "program:broker") as process:
        at_last(lambda: "dq.pop" in str(r.client_list()).lower(), PATIENCE_S)
        one_server.stop()
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    one_server.start()


async def test_an_outage_is_two_lines_of_the_log(
    one_server: Server,
    at: Callable[..., DQBroker],
    work: Work,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = at(one_server.port, ttr=timedelta(seconds=6))
    begun, go_on = asyncio.Semaphore(0), asyncio.Event()
    ran: list[int] = []

    @broker.task
    async def record(number: int) -> None:
        begun.release()
        await go_on.wait()
        ran.append(number)

    for number in range(6):
        await record.kiq(number)
    await work(broker, max_async_tasks=6)
    for _ in range(6):
        await asyncio.wait_for(begun.acquire(), PATIENCE_S)
    caplog.clear()
    await asyncio.to_thread(one_server.stop)
    go_on.set()
    await asyncio.sleep(3)
    await asyncio.to_thread(one_server.start)
    await eventually(lambda: is_empty(broker))
    assert sorted(ran) == list(range(6))
    ours = [each.getMessage() for each in caplog.records if each.name == "taskiq.dq"]
    assert len(ours) <= 4, ours  # of the broker, and of the result backend
    assert sum("doesn't answer" in line for line in ours) == len(ours) / 2, ours
    assert all(f"127.0.0.1:{one_server.port}" in line for line in ours), ours
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]
    info = await broker.queue().info()
    assert info is not None and info.total_timed_out == 0
