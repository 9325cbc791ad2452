"""Fixtures: servers with DQ, as in tests/blackbox, and Celery workers.

broker     a server with DQ, empty, of each kind in turn
one_broker the same, of one kind: for what depends on Celery rather than on the server
connection a kombu Connection to it
worker     starts Celery workers that use it: worker("-c", "2", TTR="1")
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import kombu
import pytest
import redis

from harness.failover import failing_over as failing_over
from harness.fixtures import kind as kind
from harness.fixtures import shared as shared
from harness.server import KINDS, Server
from workers import Worker

Start = Callable[..., Worker]


@pytest.fixture
def broker(shared: Server) -> Iterator[Server]:
    with shared.client() as client:
        client.flushall()
    yield shared
    assert not shared.has_died()


@pytest.fixture(scope="session")
def shared_one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("one")
    server = Server(KINDS[0], directory, "appendonly yes", "appendfsync everysec")
    yield server
    server.stop()


@pytest.fixture
def one_broker(shared_one: Server) -> Iterator[Server]:
    with shared_one.client() as client:
        client.flushall()
    yield shared_one
    assert not shared_one.has_died()


@pytest.fixture
def r(broker: Server) -> Iterator[redis.Redis]:
    with broker.client() as client:
        yield client


@pytest.fixture
def connection(broker: Server) -> Iterator[kombu.Connection]:
    with kombu.Connection(url(broker), transport_options={"ttr": 1}) as connection:
        yield connection


@pytest.fixture
def worker(one_broker: Server, tmp_path: Path) -> Iterator[Start]:
    started: list[Worker] = []

    def start(*options: str, **environment: str) -> Worker:
        log = tmp_path / f"worker-{len(started)}.log"
        worker = Worker(one_broker.port, log, *options, **environment)
        started.append(worker)
        worker.wait_until_ready()
        return worker

    yield start
    for worker in started:
        worker.kill()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.failed:
        for log in sorted(item.funcargs.get("tmp_path", Path("/nowhere")).glob("worker-*.log")):
            report.sections.append((log.name, log.read_text()[-6000:]))
    return report


def url(server: Server, database: int = 0) -> str:
    return f"dq://127.0.0.1:{server.port}/{database}"
