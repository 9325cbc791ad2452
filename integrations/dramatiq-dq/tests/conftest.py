"""Fixtures: servers with DQ, as in tests/blackbox, with a broker and workers in this process.

server      a server with DQ, empty, of each kind in turn
broker      a DQBroker for it, with short backoffs
work        starts a worker: work(worker_threads=1)
"""

from collections.abc import Callable, Iterator
from typing import Any

import dramatiq
import pytest
from dramatiq import Worker

from dramatiq_dq import DQBackend, DQBroker
from harness.failover import failing_over as failing_over
from harness.fixtures import kind as kind
from harness.fixtures import server as server
from harness.fixtures import shared as shared
from harness.server import Server

Work = Callable[..., Worker]


@pytest.fixture
def make_broker(server: Server) -> Iterator[Callable[..., DQBroker]]:
    made: list[DQBroker] = []

    def make(**options: Any) -> DQBroker:
        broker = DQBroker(url=url(server), **options)
        made.append(broker)
        return broker

    yield make
    for broker in made:
        broker.close()


@pytest.fixture
def broker(make_broker: Callable[..., DQBroker]) -> DQBroker:
    broker = make_broker()
    dramatiq.set_broker(broker)
    return broker


@pytest.fixture
def work() -> Iterator[Work]:
    started: list[Worker] = []

    def start(broker: DQBroker, **options: Any) -> Worker:
        worker = Worker(broker, **{"worker_timeout": 100, "worker_threads": 4} | options)
        started.append(worker)
        worker.start()
        return worker

    yield start
    for worker in started:
        worker.stop()


@pytest.fixture
def results(server: Server) -> Iterator[DQBackend]:
    backend = DQBackend(url=url(server))
    yield backend
    backend.client.close()


def url(server: Server) -> str:
    return f"redis://127.0.0.1:{server.port}/0"
