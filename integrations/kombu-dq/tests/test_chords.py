"""Celery's canvas with the result backend `dq://`, and chords whose workers are killed at each step."""

import itertools
import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
import redis
from celery import chain, chord, group
from celery.exceptions import ChordError, TimeoutError
from celery.result import GroupResult, ResultSet

import dying
from conftest import Start
from harness.server import Server, eventually
from workers import RESULTS_DATABASE, Worker, producer

TIMEOUT_S = 30
#: How often a worker is killed. `KILLS=1000 make test-kombu ARGS="-k killed"` takes about 25 minutes.
KILLS = int(os.environ.get("KILLS", "21"))
RESULTS = 8


def results_url(server: Server) -> str:
    return f"dq://127.0.0.1:{server.port}/{RESULTS}"


@pytest.fixture
def tasks(one_broker: Server) -> ModuleType:
    return producer(one_broker.port, RESULT_URL=results_url(one_broker))


@pytest.fixture
def results(one_broker: Server) -> Iterator[redis.Redis]:
    with one_broker.client(db=RESULTS) as client:
        yield client


@pytest.fixture
def queue(one_broker: Server) -> Iterator[redis.Redis]:
    with one_broker.client() as client:
        yield client


@pytest.fixture
def records(one_broker: Server) -> Iterator[redis.Redis]:
    with one_broker.client(db=RESULTS_DATABASE) as client:
        yield client


@pytest.fixture
def start(worker: Start, one_broker: Server) -> Start:
    def start(processes: int = 2, **more: str) -> Worker:
        options = ("--without-mingle", "--without-gossip", "-c", str(processes))
        return worker(*options, RESULT_URL=results_url(one_broker), **more)

    return start


def is_empty(queue: redis.Redis) -> bool:
    return not queue.execute_command("DQ.LEN", "celery")


def test_canvas(start: Start, tasks: ModuleType, queue: redis.Redis) -> None:
    start()
    add, tsum, listed = tasks.add, tasks.tsum, tasks.listed
    pair = group(add.s(1, 1), add.s(2, 2))
    cases: list[tuple[Any, Any]] = [
        (chord([add.s(n, n) for n in range(20)], tsum.s()), 380),
        (chord((add.s(n, n) for n in range(3)), listed.s()), [0, 2, 4]),
        (chord([add.s(1, 1)], tsum.s() | add.s(5)), 7),
        (chord([chain(add.s(1, 1), add.s(1)), add.s(2, 2)], listed.s()), [3, 4]),
        (chord([chord([add.s(1, 1), add.s(2, 2)], tsum.s()), add.s(3, 3)], listed.s()), [6, 6]),
        (chord([pair | group(tsum.s(), listed.s()), add.s(3, 3)], listed.s()), [[6, [2, 4]], 6]),
        (pair | listed.s() | tsum.s(), 6),
        (pair | group(tsum.s(), listed.s()), [6, [2, 4]]),
        (pair | chord([tsum.s(), tsum.s()], listed.s()), [6, 6]),
        (chord([tasks.replaced.s(1), add.s(1, 1)], listed.s()), [3, 2]),
        (chord([tasks.fail_twice.s(), add.s(1, 1)], listed.s()), [2, 2]),
        (chord([tasks.more.s(4), add.s(1, 1)], listed.s()), [4, 2, 8]),
    ]
    for canvas, expected in cases:
        assert canvas.apply_async().get(timeout=TIMEOUT_S) == expected, canvas
    eventually(lambda: is_empty(queue))


def test_chords_of_task_protocol_1(start: Start, tasks: ModuleType, queue: redis.Redis) -> None:
    tasks.app.conf.task_protocol = 1
    start()
    for header in ([tasks.add.s(n, n) for n in range(3)], (tasks.add.s(n, n) for n in range(3))):
        assert chord(header, tasks.tsum.s())().get(timeout=TIMEOUT_S) == 6
    eventually(lambda: is_empty(queue))


def test_a_chord_waits_in_the_queue_of_its_body(tasks: ModuleType, queue: redis.Redis) -> None:
    result = chord([tasks.add.s(n, n) for n in range(3)], tasks.tsum.s()).apply_async()
    assert queue.execute_command("DQ.LEN", "celery", "STATE", "held") == 4
    closing = f"chord:{result.parent.id}"
    _, parts = queue.execute_command("DQ.DEPS", "celery", closing)
    assert [part.split("/")[1] for part, _, _ in parts] == [each.id for each in result.parent]


def test_a_chord_whose_header_fails_calls_its_errbacks(
    start: Start, tasks: ModuleType, records: redis.Redis, queue: redis.Redis
) -> None:
    start()
    header = [tasks.add.s(1, 1), tasks.fail.s("no")]
    result = chord(header, tasks.body.s().on_error(tasks.errback.s())).apply_async()
    with pytest.raises(ValueError, match="no"):  # the part's own, before the chord's
        result.get(timeout=TIMEOUT_S)
    eventually(lambda: result.state == "FAILURE")
    assert isinstance(result.result, ChordError)
    assert "ValueError" in str(result.result)
    eventually(lambda: records.lrange("errors", 0, -1) == ["ChordError"])
    eventually(lambda: is_empty(queue))
    assert not records.exists("runs")


def test_a_part_that_never_ends_fails_the_chord_in_the_time_that_is_set(
    start: Start, tasks: ModuleType
) -> None:
    tasks.app.conf.result_chord_expires = 1
    header = [tasks.add.s(1, 1), tasks.add.s(2, 2).set(queue="nobody")]
    result = chord(header, tasks.tsum.s()).apply_async()
    start()
    with pytest.raises(ChordError, match="time to live is over"):
        result.get(timeout=TIMEOUT_S)


def test_states_and_forgetting(
    start: Start, tasks: ModuleType, records: redis.Redis, results: redis.Redis
) -> None:
    result = tasks.tell_state.delay()
    assert result.state == "PENDING"
    with pytest.raises(TimeoutError):
        result.get(timeout=0.2)
    start()
    eventually(lambda: result.state == "PROGRESS")
    assert result.info == {"done": 1}
    records.set("go on", 1)
    assert result.get(timeout=TIMEOUT_S) == "told"
    assert results.execute_command("DQ.RESULT", "celery.results", result.id)[0] == "done"
    result.forget()
    assert results.execute_command("DQ.RESULT", "celery.results", result.id) is None
    failed = tasks.fail.delay("no")
    with pytest.raises(ValueError, match="no"):
        failed.get(timeout=TIMEOUT_S)
    assert failed.state == "FAILURE"


def test_a_group_is_saved_restored_and_iterated(start: Start, tasks: ModuleType) -> None:
    result = group(tasks.add.s(n, n) for n in range(10)).apply_async()
    result.save()
    restored = GroupResult.restore(result.id, app=tasks.app)
    assert restored == result
    start()
    assert restored.join(timeout=TIMEOUT_S) == [2 * n for n in range(10)]
    found = {meta["result"] for _, meta in result.iter_native(timeout=TIMEOUT_S)}
    assert found == set(range(0, 20, 2))
    restored.delete()
    assert GroupResult.restore(result.id, app=tasks.app) is None


def test_results_are_kept_as_long_as_they_are_told_to(
    start: Start, tasks: ModuleType, results: redis.Redis
) -> None:
    start(RESULT_EXPIRES="1")
    result = tasks.add.delay(1, 2)
    assert result.get(timeout=TIMEOUT_S) == 3
    eventually(lambda: results.execute_command("DQ.LEN", "celery.results") == 0)


@pytest.mark.timeout(120 + 10 * KILLS)
def test_the_body_runs_once_when_a_worker_is_killed_at_each_step(
    start: Start, tasks: ModuleType, records: redis.Redis, queue: redis.Redis
) -> None:
    """The acknowledgements are late: what is killed comes back.

    After the commit the body is in the queue. A second process would run it, and be killed with it.
    """
    steps = [step for _, step in zip(range(KILLS), itertools.cycle(dying.STEPS), strict=False)]
    worker = start(TTR="1", DYING="yes")
    for n, step in enumerate(steps):
        records.delete("runs")
        records.set(f"die:{step}", "now")
        result = chord([tasks.part.s(n) for _ in range(3)], tasks.body.s()).apply_async()
        worker.wait(TIMEOUT_S)
        then = steps[n + 1 : n + 2]
        worker = start(1 if then == ["committed"] else 2, TTR="1", DYING="yes")
        assert result.get(timeout=TIMEOUT_S) == 3 * n, step
        eventually(lambda: is_empty(queue))
        assert records.lrange("runs", 0, -1) == [str(3 * n)], step


def test_a_join_looks_at_once_and_sleeps_no_interval(tasks: ModuleType, queue: redis.Redis) -> None:
    pending = ResultSet([tasks.app.AsyncResult(f"pending-{n}") for n in range(3)], app=tasks.app)
    with patch("celery.backends.base.time.sleep") as sleep, pytest.raises(TimeoutError):
        pending.join_native(timeout=0, interval=30)
    assert not sleep.called
