"""Fixtures: servers with DQ, as in tests/blackbox, with a broker and workers in this process.

server      a server with DQ, empty, of each kind in turn
broker      a DQBroker for it, with a result backend
work        starts a worker: await work(broker, max_async_tasks=1)
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from taskiq.receiver import Receiver

from harness.failover import failing_over as failing_over
from harness.fixtures import kind as kind
from harness.fixtures import server as server
from harness.fixtures import shared as shared
from harness.server import Server
from taskiq_dq import DQBroker, DQResultBackend

Work = Callable[..., Awaitable["Working"]]
#: For what takes milliseconds, on a machine that is busy.
PATIENCE_S = 60


class Working:
    """A worker, as `taskiq worker` has it."""

    def __init__(self, broker: DQBroker, **options: Any):
        self._finish = asyncio.Event()
        receiver = Receiver(broker, **{"max_async_tasks": 4, "run_startup": False} | options)
        self._task = asyncio.create_task(receiver.listen(self._finish))

    async def stop(self) -> None:
        self._finish.set()
        await self._task

    async def vanish(self) -> None:
        """As a process that is killed, as far as messages in hand are concerned."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


@pytest.fixture(autouse=True)
def short_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is told to stop waits for its fetch."""
    monkeypatch.setattr("taskiq_dq.broker._BLOCK", timedelta(milliseconds=100))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def make_broker(server: Server) -> AsyncIterator[Callable[..., DQBroker]]:
    made: list[DQBroker] = []

    def make(**options: Any) -> DQBroker:
        broker = DQBroker(url(server), **options)
        made.append(broker.with_result_backend(DQResultBackend(url(server))))
        return broker

    yield make
    for broker in made:
        await broker.shutdown()


@pytest.fixture
async def broker(make_broker: Callable[..., DQBroker]) -> DQBroker:
    return make_broker()


@pytest.fixture
async def work() -> AsyncIterator[Work]:
    started: list[Working] = []

    async def start(broker: DQBroker, **options: Any) -> Working:
        started.append(Working(broker, **options))
        return started[-1]

    yield start
    for worker in started:
        await worker.stop()


def backend_of(broker: DQBroker) -> DQResultBackend[Any]:
    backend = broker.result_backend
    assert isinstance(backend, DQResultBackend)
    return backend


async def result_of(broker: DQBroker, task: Any) -> Any:
    told = await backend_of(broker).wait_result(task.task_id, timedelta(seconds=PATIENCE_S))
    return told.raise_for_error().return_value


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not await condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def is_empty(broker: DQBroker) -> bool:
    return await broker.queue().len() == 0


def url(server: Server) -> str:
    return f"redis://127.0.0.1:{server.port}/0"
