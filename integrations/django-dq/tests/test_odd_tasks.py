"""Tasks that raise, return or do what nobody foresaw, and servers that are away: no worker ends but
by its signal, no task is run without end, and each failure is in the log.
"""

import importlib
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import django
import pytest
import redis.asyncio
from django.core.exceptions import ImproperlyConfigured

from conftest import Program, finished, until
from django_dq import DQBackend, NoOutcome
from django_dq.framework import TaskResultStatus, task_backends
from dq_client import Backoff, Invalid
from harness.address import Address
from harness.failover import fail_over
from harness.server import Server
from shop import tasks

Start = Callable[..., Program]
MIB = 1 << 20


@pytest.fixture
def worker(backend: DQBackend, start: Start) -> Program:
    return start("dq_worker", "--concurrency", "1", "--queue", "default")


@pytest.mark.parametrize("name", tasks.RAISED)
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_a_task_raises_it_has_failed(name: str, is_async: bool, worker: Program) -> None:
    task = tasks.raise_it_async if is_async else tasks.raise_it
    result = finished(task.enqueue(name))
    assert result.status == TaskResultStatus.FAILED
    # Python makes a RuntimeError of a coroutine's StopIteration.
    kinds = {type(tasks.RAISED[name]).__name__, "RuntimeError", "NoOutcome", "CancelledError"}
    assert {error.exception_class_path.rpartition(".")[2] for error in result.errors} <= kinds
    assert tasks.told() == [name, name]
    assert finished(tasks.add.enqueue(1, 2)).return_value == 3
    assert worker.process.poll() is None


def test_a_failure_is_in_the_log_with_its_traceback(worker: Program) -> None:
    result = finished(tasks.refuse_long.enqueue("no such parcel"))
    until(lambda: worker.said.count("raise LookupError(word)") >= 2)
    assert result.id in worker.said
    assert "no backoff" not in worker.said  # each task has one: that of OPTIONS


def is_accepted(size: int) -> bool:
    try:
        result = tasks.refuse_long.using(queue_name="emails").enqueue("x" * size)
    except Invalid:
        return False
    assert isinstance(task_backends["default"], DQBackend)
    return task_backends["default"].delete(result.id)


@pytest.mark.parametrize("spare", [0, 100, 200, 300, 500, 3_000, 60_000])
def test_a_task_whose_record_is_too_long_fails_as_often_as_any(spare: int, worker: Program) -> None:
    """Its arguments leave little room for what becomes of it."""
    longest = next(size for size in range(MIB - 100, 0, -10) if is_accepted(size))
    word = "x" * (longest - spare)
    result = tasks.refuse_long.enqueue(word)
    assert finished(result).status == TaskResultStatus.FAILED
    assert tasks.told() == ["ran", "ran"]
    last = result.errors[-1]
    assert "LookupError" in last.exception_class_path or last.exception_class is NoOutcome
    if last.exception_class is NoOutcome:
        assert last.traceback.startswith("LookupError: xxx")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Callable[[int], Program]]:
    started: list[Program] = []

    def start(port: int) -> Program:
        url = f"redis://127.0.0.1:{port}/0"
        words = ("dq_worker", "--ttr", "1", "--concurrency", "2")
        started.append(Program(url, tmp_path / "elsewhere.log", words))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
        print(each.said)


def test_an_outage_that_is_longer_than_the_ttr_runs_no_waiting_task_twice(
    failing_over: tuple[Server, Server, Address],
    elsewhere: Callable[[int], Program],
    configured: Callable[..., DQBackend],
) -> None:
    server, _, address = failing_over
    worker = elsewhere(address.port)
    configured(url=f"redis://127.0.0.1:{server.port}/0")
    until(lambda: " works on " in worker.said)
    address.cut()
    results = [tasks.begin_and_end.enqueue(str(number)) for number in range(20)]
    until(lambda: "doesn't answer" in worker.said)
    time.sleep(2)  # longer than the TTR
    address.lead_to(server.port)
    for result in results:
        assert finished(result).attempts == 1
    assert sorted(tasks.told()) == sorted(f"began {number}" for number in range(20))


def test_a_worker_goes_on_after_a_planned_failover(
    failing_over: tuple[Server, Server, Address],
    elsewhere: Callable[[int], Program],
    configured: Callable[..., DQBackend],
) -> None:
    old, new, address = failing_over
    worker = elsewhere(address.port)
    backend = configured(url=f"redis://127.0.0.1:{old.port}/0")
    results = [tasks.sleep_for.enqueue(0.2) for _ in range(10)]
    until(lambda: backend.queue("default").len(state="reserved") == 2)
    fail_over(old)
    configured(url=f"redis://127.0.0.1:{new.port}/0")
    address.lead_to(new.port)
    for result in results:
        assert finished(result).status == TaskResultStatus.SUCCESSFUL
    assert worker.ended(signal.SIGTERM) == 0


def test_tasks_find_the_new_primary(
    failing_over: tuple[Server, Server, Address], configured: Callable[..., DQBackend]
) -> None:
    """Of a program that only enqueues: its connections stay with the old primary."""
    old, new, address = failing_over
    configured(url=f"redis://127.0.0.1:{address.port}/0")
    tasks.add.enqueue(1)
    fail_over(old)
    address.lead_to(new.port)
    tasks.add.enqueue(1)
    with new.client() as r:
        assert r.execute_command("DQ.LEN", "django:default") == 2


def test_a_second_signal_ends_a_worker_whatever_its_tasks_do(
    backend: DQBackend, start: Start
) -> None:
    worker = start("dq_worker", "--grace", "600")
    running = [tasks.hang_in_a_thread.enqueue(), tasks.work_until_told.enqueue("a")]
    until(lambda: len(tasks.told()) == 2)
    worker.process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    worker.process.send_signal(signal.SIGTERM)
    worker.process.wait(30)
    for result in running:
        result.refresh()
        assert result.status == TaskResultStatus.READY


def test_a_thread_of_a_task_keeps_no_worker_after_its_grace(
    backend: DQBackend, start: Start
) -> None:
    worker = start("dq_worker", "--grace", "0.5")
    result = tasks.hang_in_a_thread.enqueue()
    until(lambda: tasks.told() == ["hangs"])
    worker.process.send_signal(signal.SIGTERM)
    worker.process.wait(30)
    result.refresh()
    assert result.status == TaskResultStatus.READY


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--concurrency", "0"], "'0' isn't a number of tasks: 1 at least"),
        (["--concurrency", "-1"], "'-1' isn't a number of tasks: 1 at least"),
        (["--ttr", "0"], "'0' isn't a time: more than 0 seconds"),
        (["--ttr", "-5"], "'-5' isn't a time: more than 0 seconds"),
        (["--ttr", "nan"], "'nan' isn't a number of seconds"),
        (["--grace", "-1"], "'-1' isn't a number of seconds"),
    ],
)
def test_what_the_worker_refuses(start: Start, words: list[str], message: str) -> None:
    name, value = words
    worker = start("dq_worker", f"{name}={value}")
    assert worker.ended() != 0
    assert message in worker.said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"result_ttl": 86_400}, "result_ttl of django_dq.DQBackend must be a timedelta"),
        ({"retries": "3"}, "retries of django_dq.DQBackend must be an integer"),
        ({"retries": True}, "retries of django_dq.DQBackend must be an integer"),
        ({"retries": -1}, "retries of django_dq.DQBackend must not be negative"),
        ({"backoff": 5}, "backoff of django_dq.DQBackend must be a Backoff"),
        ({"backoff": Backoff(1, 2)}, "backoff of django_dq.DQBackend must have timedeltas"),  # type: ignore[arg-type]
        ({"prefix": None}, "prefix of django_dq.DQBackend must be a str"),
    ],
)
def test_options_of_the_wrong_kind_are_said(
    configured: Callable[..., DQBackend], options: dict[str, Any], message: str
) -> None:
    backend = configured(**options)
    assert [error.msg for error in backend.check()] == [message]
    with pytest.raises(ImproperlyConfigured, match=message):
        _ = backend.settings


def asyncio_client() -> redis.asyncio.Redis:
    return redis.asyncio.Redis()


def test_an_asyncio_client_is_refused(configured: Callable[..., DQBackend]) -> None:
    """It would enqueue nothing."""
    backend = configured(client=f"{__name__}.asyncio_client")
    with pytest.raises(TypeError, match="asyncio client"):
        tasks.add.enqueue(1)
    assert backend.settings.retries == 0


@pytest.mark.skipif(django.VERSION >= (6, 0), reason="of the backport")
def test_either_name_of_an_error_of_the_backport(monkeypatch: pytest.MonkeyPatch) -> None:
    from django_tasks import exceptions

    from django_dq import framework

    known: Any = framework.InvalidTask
    for name, other in (
        ("InvalidTaskError", "InvalidTask"),
        ("InvalidTask", "InvalidTaskError"),
    ):
        monkeypatch.setattr(exceptions, name, known, raising=False)
        monkeypatch.delattr(exceptions, other, raising=False)
        assert importlib.reload(framework).InvalidTask is known
        monkeypatch.undo()
    importlib.reload(framework)
