"""Celery with a real worker: what an app relies on, and what goes wrong in production."""

import os
import signal
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
import redis
from celery import chord, group

from conftest import Start
from harness.server import Server, eventually
from workers import RESULTS_DATABASE, producer

TIMEOUT_S = 20


@pytest.fixture
def tasks(one_broker: Server) -> ModuleType:
    return producer(one_broker.port)


@pytest.fixture
def r(one_broker: Server) -> Iterator[redis.Redis]:
    with one_broker.client() as client:
        yield client


@pytest.fixture
def records(one_broker: Server) -> Iterator[redis.Redis]:
    with one_broker.client(db=RESULTS_DATABASE) as client:
        yield client


def counts(r: redis.Redis, key: str = "celery") -> dict[str, int]:
    reply = r.execute_command("DQ.INFO", key)
    fields = dict(zip(reply[::2], reply[1::2], strict=True))
    return {
        state: fields[state] for state in ("delayed", "ready", "reserved", "dead") if fields[state]
    }


def ran(records: redis.Redis, key: str = "runs") -> list[str]:
    return records.lrange(key, 0, -1)  # type: ignore[return-value]


def test_tasks_with_results_countdowns_and_etas_work(
    worker: Start, tasks: ModuleType, r: redis.Redis
) -> None:
    worker("-c", "2")
    assert tasks.add.delay(1, 2).get(timeout=TIMEOUT_S) == 3
    started = time.monotonic()
    later = tasks.add.apply_async((1, 2), countdown=1)
    assert counts(r) == {"delayed": 1}
    assert later.get(timeout=TIMEOUT_S) == 3
    assert 0.9 < time.monotonic() - started < 2
    eta = datetime.now().astimezone() + timedelta(seconds=0.2)
    assert tasks.tell_eta.apply_async(eta=eta).get(timeout=TIMEOUT_S) == eta.isoformat()
    eventually(lambda: counts(r) == {})


def test_retries_are_one_job_at_a_time(worker: Start, tasks: ModuleType, r: redis.Redis) -> None:
    worker("-c", "2")
    result = tasks.fail_twice.delay()
    eventually(lambda: counts(r) == {"delayed": 1})
    assert r.execute_command("DQ.GET", "celery", result.id)
    assert result.get(timeout=TIMEOUT_S) == 2
    eventually(lambda: counts(r) == {})


def test_groups_and_chords_work(worker: Start, tasks: ModuleType) -> None:
    worker("-c", "2")
    assert group(tasks.add.s(n, n) for n in range(10))().get(timeout=TIMEOUT_S) == [
        2 * n for n in range(10)
    ]
    assert (
        chord([tasks.add.s(n, n) for n in range(10)])(tasks.tsum.s()).get(timeout=TIMEOUT_S) == 90
    )


def test_a_rejected_task_is_dead_and_a_requeued_one_comes_again(
    worker: Start, tasks: ModuleType, r: redis.Redis, records: redis.Redis
) -> None:
    worker("-c", "1")
    tasks.reject.delay(requeue=False)
    eventually(lambda: counts(r) == {"dead": 1})
    r.execute_command("DQ.ALTER", "celery", "ATTEMPTS", 3)
    tasks.reject.delay(requeue=True)
    eventually(lambda: counts(r) == {"dead": 2})
    assert len(ran(records, "begun")) == 4


@pytest.mark.parametrize("has_worker", [True, False])
def test_revoking_deletes_the_job(
    has_worker: bool, worker: Start, tasks: ModuleType, r: redis.Redis, records: redis.Redis
) -> None:
    if has_worker:
        worker("-c", "1")
    several = [tasks.record.apply_async((n,), countdown=1) for n in range(3)]
    assert counts(r) == {"delayed": 3}
    several[0].revoke()
    tasks.app.control.revoke([result.id for result in several[1:]])
    assert counts(r) == {}
    tasks.record.apply_async(("last",), countdown=1.2)
    if not has_worker:
        worker("-c", "1")
    eventually(lambda: ran(records) == ["last"])


def test_revoking_a_task_of_a_chord_tells_the_chord(
    worker: Start, tasks: ModuleType, r: redis.Redis
) -> None:
    worker("-c", "1")
    far = tasks.add.s(1, 1).set(countdown=2)
    result = chord([far, tasks.add.s(2, 2)])(tasks.tsum.s())
    eventually(lambda: counts(r) == {"delayed": 1})
    [job_id] = r.execute_command("DQ.SCAN", "celery", 0)[1]
    tasks.app.control.revoke(job_id)
    assert counts(r) == {"delayed": 1}
    with pytest.raises(Exception, match="revoked"):
        result.get(timeout=TIMEOUT_S)


def test_a_revoked_task_that_runs_can_be_terminated(
    worker: Start, tasks: ModuleType, r: redis.Redis, records: redis.Redis
) -> None:
    worker("-c", "1")
    result = tasks.record_late.delay("a", 30)
    eventually(lambda: ran(records, "begun") == ["a"])
    result.revoke(terminate=True)
    eventually(lambda: counts(r) == {})
    assert tasks.add.delay(1, 2).get(timeout=TIMEOUT_S) == 3
    assert ran(records) == []


def test_remote_control_works(
    worker: Start, tasks: ModuleType, r: redis.Redis, records: redis.Redis
) -> None:
    worker("-c", "1")
    inspect = tasks.app.control.inspect()
    [(name, pong)] = inspect.ping().items()
    assert pong == {"ok": "pong"}
    assert inspect.active_queues()[name][0]["name"] == "celery"
    tasks.record.apply_async(("a",), queue="extra")
    time.sleep(0.5)
    assert counts(r, "extra") == {"ready": 1}
    tasks.app.control.add_consumer("extra", reply=True)
    eventually(lambda: ran(records) == ["a"])
    tasks.app.control.cancel_consumer("extra", reply=True)
    tasks.record.apply_async(("b",), queue="extra")
    time.sleep(1.5)
    assert counts(r, "extra") == {"ready": 1}
    assert [key for key in r.scan_iter() if "pidbox" in key and not key.startswith("_kombu")] == []


def test_workers_see_each_other(worker: Start, tasks: ModuleType) -> None:
    worker("-c", "1")
    second = worker("-c", "1")
    assert "mingle: sync with 1 nodes" in second.log
    eventually(lambda: len(tasks.app.control.inspect().ping() or ()) == 2)


def test_events_reach_a_monitor(worker: Start, tasks: ModuleType) -> None:
    worker("-c", "1", "-E")
    seen: list[str] = []

    def on_event(event: dict[str, Any]) -> None:
        seen.append(event["type"])
        if event["type"] == "task-succeeded":
            receiver.should_stop = True

    with tasks.app.connection() as connection:
        receiver = tasks.app.events.Receiver(connection, handlers={"*": on_event})
        with receiver.consumer_context():
            pass
        tasks.add.apply_async((1, 2), countdown=0.5)
        receiver.capture(limit=None, timeout=TIMEOUT_S, wakeup=False)
    assert {"task-received", "task-started", "task-succeeded"} <= set(seen)


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_task_may_run_for_many_times_its_ttr(
    pool: str, worker: Start, tasks: ModuleType, r: redis.Redis, records: redis.Redis
) -> None:
    worker("-c", "1", "-P", pool, TTR="0.6")
    other = worker("-c", "1", TTR="0.6")
    result = tasks.record_late.delay("a", 3)
    tasks.record.delay("b")
    assert result.get(timeout=TIMEOUT_S) is False
    eventually(lambda: sorted(ran(records)) == ["a", "b"])
    assert ran(records, "begun") == ["a"]
    other.stop()


def test_a_killed_worker_costs_its_ttr(
    worker: Start, tasks: ModuleType, r: redis.Redis, records: redis.Redis
) -> None:
    victim = worker("-c", "2", TTR="1", PREFETCH="4")
    for n in range(6):
        tasks.record_late.delay(f"{n}", 2)
    eventually(lambda: len(ran(records, "begun")) == 2 and counts(r) == {"reserved": 6})
    killed_at = time.monotonic()
    victim.kill()
    worker("-c", "6", TTR="1")
    eventually(lambda: len(ran(records)) == 6, TIMEOUT_S)
    assert time.monotonic() - killed_at > 1
    # Each was done once, and those that the victim had begun were begun twice.
    assert sorted(ran(records)) == [f"{n}" for n in range(6)]
    assert len(ran(records, "begun")) == 8
    eventually(lambda: counts(r) == {})


def test_a_task_of_a_killed_worker_is_redelivered(
    worker: Start, tasks: ModuleType, records: redis.Redis
) -> None:
    victim = worker("-c", "1", TTR="1")
    result = tasks.record_late.delay("a", 1.5)
    eventually(lambda: ran(records, "begun") == ["a"])
    victim.kill()
    worker("-c", "1", TTR="1")
    assert result.get(timeout=TIMEOUT_S) is True


def test_a_task_whose_process_is_killed_is_requeued_when_it_says_so(
    worker: Start, tasks: ModuleType, records: redis.Redis
) -> None:
    """A child of prefork, as when memory runs out: with task_reject_on_worker_lost."""
    worker("-c", "1")
    result = tasks.record_late.delay("a", 4)
    eventually(lambda: ran(records, "begun") == ["a"])
    [active] = tasks.app.control.inspect().active().values()
    os.kill(active[0]["worker_pid"], signal.SIGKILL)
    assert result.get(timeout=TIMEOUT_S) is True


def test_a_warm_shutdown_finishes_begun_tasks_and_gives_back_the_rest(
    worker: Start, tasks: ModuleType, r: redis.Redis, records: redis.Redis
) -> None:
    first = worker("-c", "1", TTR="60", PREFETCH="4")
    for n in range(4):
        tasks.record_late.delay(f"{n}", 1)
    eventually(lambda: counts(r) == {"reserved": 4} and len(ran(records, "begun")) == 1)
    first.stop()
    assert ran(records) == ran(records, "begun")
    done = len(ran(records))
    assert done < 4
    assert counts(r) == {"ready": 4 - done}
    worker("-c", "4")
    eventually(lambda: len(ran(records)) == 4, TIMEOUT_S)
    # What was given back had not been begun: it has lost no attempt.
    assert sorted(ran(records)) == sorted(ran(records, "begun")) == ["0", "1", "2", "3"]


def test_a_cold_shutdown_gives_back_begun_tasks_too(
    worker: Start, tasks: ModuleType, r: redis.Redis, records: redis.Redis
) -> None:
    first = worker("-c", "1", TTR="60", PREFETCH="4")
    for n in range(3):
        tasks.record_late.delay(f"{n}", 8)
    eventually(lambda: counts(r) == {"reserved": 3} and len(ran(records, "begun")) == 1)
    first.signal(signal.SIGQUIT)
    first.wait()
    assert ran(records) == []
    assert counts(r) == {"ready": 3}


def test_a_restart_of_the_broker_loses_and_repeats_no_task(
    one_broker: Server, worker: Start, tasks: ModuleType, r: redis.Redis, records: redis.Redis
) -> None:
    one = worker("-c", "2", TTR="5", PREFETCH="2")
    for n in range(8):
        tasks.record_late.delay(f"{n}", 1.5)
    tasks.record.apply_async(("eta",), countdown=4)
    eventually(lambda: len(ran(records, "begun")) == 2)
    one_broker.restart()
    eventually(lambda: len(ran(records)) == 9, 40)
    time.sleep(1)
    # Those that ran meanwhile have kept their leases, and were acknowledged on a new connection.
    assert sorted(ran(records)) == [*(f"{n}" for n in range(8)), "eta"]
    assert len(ran(records, "begun")) == 8
    eventually(lambda: counts(r) == {})
    assert one.stop() == 0


def test_a_broken_connection_repeats_no_task(
    worker: Start, tasks: ModuleType, r: redis.Redis, records: redis.Redis
) -> None:
    worker("-c", "2", TTR="3")
    for n in range(6):
        tasks.record_late.delay(f"{n}", 1)
    eventually(lambda: len(ran(records, "begun")) == 2)
    r.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    r.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
    eventually(lambda: len(ran(records)) == 6, TIMEOUT_S)
    time.sleep(1)
    assert sorted(ran(records)) == sorted(ran(records, "begun")) == [f"{n}" for n in range(6)]
    eventually(lambda: counts(r) == {})


def test_without_prefetching_a_worker_takes_no_more_tasks_than_it_runs(
    worker: Start, tasks: ModuleType, r: redis.Redis, records: redis.Redis
) -> None:
    worker("-c", "2", "--disable-prefetch")
    for n in range(6):
        tasks.record_late.delay(f"{n}", 1)
    eventually(lambda: len(ran(records, "begun")) == 2)
    time.sleep(0.3)
    assert counts(r) == {"reserved": 2, "ready": 4}
    eventually(lambda: len(ran(records)) == 6, TIMEOUT_S)
