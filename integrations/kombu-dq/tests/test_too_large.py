"""What is longer than the server takes has failed: no result is pending for ever."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import redis
from celery import chord, group
from celery.backends.base import BackendStoreError
from celery.exceptions import ChordError
from kombu.exceptions import EncodeError, OperationalError
from redis.exceptions import ResponseError

from conftest import Start
from harness.server import Server, eventually
from kombu_dq.backend import DQBackend
from kombu_dq.too_large import ResultTooLarge
from workers import RESULTS_DATABASE, Worker, producer

TIMEOUT_S = 30
MIB = 1 << 20


@pytest.fixture
def results_url(one_broker: Server) -> str:
    return f"dq://127.0.0.1:{one_broker.port}/8"


@pytest.fixture
def tasks(one_broker: Server, results_url: str) -> ModuleType:
    return producer(one_broker.port, RESULT_URL=results_url)


@pytest.fixture
def queue(one_broker: Server) -> Iterator[redis.Redis]:
    with one_broker.client() as client:
        yield client


@pytest.fixture
def records(one_broker: Server) -> Iterator[redis.Redis]:
    with one_broker.client(db=RESULTS_DATABASE) as client:
        yield client


@pytest.fixture
def one(worker: Start, results_url: str) -> Worker:
    return worker("--without-mingle", "--without-gossip", "-c", "2", RESULT_URL=results_url)


def failure(result: Any) -> Exception:
    with pytest.raises(Exception, match=r".") as caught:
        result.get(timeout=TIMEOUT_S)
    assert not isinstance(caught.value, TimeoutError), "it hangs"
    return caught.value


def is_empty(queue: redis.Redis) -> bool:
    return not any(
        queue.execute_command("DQ.LEN", "celery", "STATE", state)
        for state in ("held", "ready", "reserved", "delayed")
    )


def test_a_result_that_is_too_large_is_a_failure(one: Worker, tasks: ModuleType) -> None:
    assert tasks.give.delay(MIB // 2).get(timeout=TIMEOUT_S) == "x" * (MIB // 2)
    for task in (tasks.give, tasks.fail_long):
        result = task.delay(2 * MIB)
        failure(result)
        assert result.state == "FAILURE"
    assert tasks.add.delay(1, 2).get(timeout=TIMEOUT_S) == 3


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_an_exception_that_is_too_large_is_a_failure_in_each_pool(
    pool: str, worker: Start, results_url: str, tasks: ModuleType
) -> None:
    """Here the worker's process has no parent that stores a failure in its place."""
    worker("--without-mingle", "--without-gossip", "-P", pool, RESULT_URL=results_url)
    result = tasks.fail_long.delay(2 * MIB)
    assert "too large" in str(failure(result))
    assert result.state == "FAILURE"
    assert tasks.add.delay(1, 2).get(timeout=TIMEOUT_S) == 3


@pytest.mark.parametrize("part", ["give", "give_unseen", "fail_long"])
def test_a_chord_with_a_part_that_is_too_large_fails(
    part: str, one: Worker, tasks: ModuleType, records: redis.Redis, queue: redis.Redis
) -> None:
    # Just under the limit, the result is taken, but not with what a chord adds to it.
    for size in (2 * MIB, MIB - 150):
        records.delete("errors")
        header = [tasks.add.s(1, 1), getattr(tasks, part).s(size)]
        result = chord(header, tasks.body.s().on_error(tasks.errback.s())).apply_async()
        eventually(lambda result=result: result.state == "FAILURE", TIMEOUT_S)
        assert isinstance(result.result, ChordError)
        eventually(lambda: records.lrange("errors", 0, -1) == ["ChordError"])
        eventually(lambda: is_empty(queue))
    assert not records.exists("runs")


@pytest.mark.parametrize("several", [False, True])
def test_a_chord_whose_body_is_too_large_fails_and_calls_its_errbacks(
    several: bool, one: Worker, tasks: ModuleType, records: redis.Redis, queue: redis.Redis
) -> None:
    body = tasks.length.s().on_error(tasks.errback.s())
    if several:  # in several queues: in one transaction, not in one command
        body = group(body, tasks.length.s().set(queue="other").on_error(tasks.errback.s()))
    result = chord([tasks.give.s(MIB * 6 // 10) for _ in range(3)], body).apply_async()
    ends = result.results if several else [result]
    for each in ends:
        eventually(lambda each=each: each.state == "FAILURE", TIMEOUT_S)
        assert "dq.max-body-bytes" in str(each.result)
    eventually(lambda: records.llen("errors") == len(ends), TIMEOUT_S)
    eventually(lambda: is_empty(queue))
    assert not records.exists("runs")
    assert queue.execute_command("DQ.LEN", "celery", "STATE", "dead") == 0


def test_a_chord_that_is_refused_leaves_nothing(tasks: ModuleType, queue: redis.Redis) -> None:
    body = tasks.length.s().set(link_error=[tasks.fail.s("x" * 2 * MIB)])
    with pytest.raises((OperationalError, ResponseError), match=r"dq\.max-body-bytes"):
        chord([tasks.add.s(n, n) for n in range(3)], body).apply_async()
    assert queue.execute_command("DQ.LEN", "celery") == 0


def test_errors_of_size_are_those_that_celery_knows() -> None:
    assert issubclass(ResultTooLarge, BackendStoreError)
    assert issubclass(ResultTooLarge, EncodeError)


@pytest.mark.parametrize(
    ("url", "requires"),
    [
        ("dqs://127.0.0.1:1/0", "CERT_REQUIRED"),
        ("dqs://127.0.0.1:1/0?ssl_cert_reqs=none", "CERT_NONE"),
    ],
)
def test_tls_for_results_verifies_unless_it_is_told_otherwise(
    url: str, requires: str, tasks: ModuleType
) -> None:
    backend = DQBackend(app=tasks.app, url=url)
    assert backend.connparams["ssl_cert_reqs"].name == requires
