"""Fixtures of Dramatiq's tests, for its Redis broker and backend or for ours.

SUITE_SIDE  redis or dq
SUITE_PORT  of the server, which is empty when a test begins
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import dramatiq
import pytest
import redis
from dramatiq import Broker, Message, Worker
from dramatiq.brokers.redis import RedisBroker
from dramatiq.brokers.stub import StubBroker
from dramatiq.common import q_name
from dramatiq.rate_limits.backends import RedisBackend as RedisLimits
from dramatiq.results.backends import RedisBackend

from dramatiq_dq import DQBackend, DQBroker
from dramatiq_dq.broker import JOB_ID

PORT = int(os.environ["SUITE_PORT"])
IS_DQ = os.environ["SUITE_SIDE"] == "dq"


def eventually(condition: Callable[[], bool], within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class LooksAtQueues:
    """What the tests read from the lists and sets of their broker, told from DQ's queues."""

    def __init__(self, client: redis.Redis, broker: "SuiteBroker"):
        self._client = client
        self._broker = broker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def lrange(self, key: str, start: int, end: int) -> list[bytes]:
        return self._ids(key, "delayed" if key.endswith(".DQ") else "ready")

    def zrangebyscore(self, key: str, least: Any, most: Any) -> list[bytes]:
        assert key.endswith(".XQ")
        return self._ids(key, "dead")

    def _ids(self, key: str, state: Any) -> list[bytes]:
        queue = self._broker.queue(q_name(key.removeprefix("dramatiq:")))
        return [id.encode() for id in queue.scan_iter(state=state)]


class SuiteBroker(DQBroker):
    """Ours, by the names that the tests know of theirs."""

    def enqueue(self, message: Any, *, delay: int | None = None) -> Message[Any]:
        sent = super().enqueue(message, delay=delay)
        return sent.copy(options={"redis_message_id": sent.options[JOB_ID]})

    def do_qsize(self, queue_name: str) -> int:
        """Theirs also does, by chance, what the server does here by itself."""
        if getattr(self, "maintenance_chance", 0):
            self.do_begin(queue_name)
            eventually(lambda: self.queue(queue_name).len(state="dead") == 0)
        return super().do_qsize(queue_name)


@pytest.fixture(autouse=True)
def default_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """redis.Redis() is a client of the server of this run."""
    original = redis.Connection.__init__

    def init(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **options | {"port": PORT})

    monkeypatch.setattr(redis.Connection, "__init__", init)


@pytest.fixture(autouse=True)
def broker_of_this_side(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if IS_DQ and hasattr(request.module, "RedisBroker"):
        monkeypatch.setattr(request.module, "RedisBroker", SuiteBroker)


@pytest.fixture
def server(default_port: None) -> redis.Redis:
    client = redis.Redis()
    client.flushall()
    return client


def entered(broker: Broker) -> Broker:
    broker.emit_after("process_boot")
    dramatiq.set_broker(broker)
    return broker


@pytest.fixture
def redis_broker(server: redis.Redis) -> Iterator[Broker]:
    broker: Any = SuiteBroker() if IS_DQ else RedisBroker()
    if IS_DQ:
        broker.client = LooksAtQueues(broker.client, broker)
    yield entered(broker)
    broker.flush_all()
    broker.close()


@pytest.fixture
def stub_broker() -> Iterator[Broker]:
    broker = entered(StubBroker())
    yield broker
    broker.flush_all()
    broker.close()


def worked(broker: Broker) -> Iterator[Worker]:
    worker = Worker(broker, worker_timeout=100, worker_threads=32)
    worker.start()
    yield worker
    worker.stop()


@pytest.fixture
def redis_worker(redis_broker: Broker) -> Iterator[Worker]:
    yield from worked(redis_broker)


@pytest.fixture
def stub_worker(stub_broker: Broker) -> Iterator[Worker]:
    yield from worked(stub_broker)


@pytest.fixture
def redis_result_backend(server: redis.Redis) -> Any:
    return DQBackend() if IS_DQ else RedisBackend()


@pytest.fixture
def result_backend(redis_result_backend: Any) -> Any:
    return redis_result_backend


@pytest.fixture
def rate_limiter_backend(server: redis.Redis) -> Any:
    """Redis's on both sides: there is none of DQ's."""
    return RedisLimits()
