"""Tasks and results without a worker: the jobs that they are."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.test import override_settings

from django_dq import DQBackend
from django_dq.framework import InvalidTask, TaskResultDoesNotExist, TaskResultStatus, task_backends
from django_dq.record import to_dq
from dq_client import Full
from shop import tasks

Configured = Callable[..., DQBackend]


def test_a_task_is_a_job_of_its_queue(backend: DQBackend) -> None:
    result = tasks.add.using(queue_name="emails", priority=7).enqueue(1, other=2)
    queue, _, word = result.id.partition(":")
    assert (queue, len(word), len(result.id) < 64) == ("emails", 22, True)
    job = backend.queue("emails").get(result.id)
    assert job is not None
    assert (job.state, job.priority, job.keep) == ("ready", 93, timedelta(days=1))
    assert job.body["task"] == "shop.tasks.add"
    assert (job.body["args"], job.body["kwargs"]) == ([1], {"other": 2})
    assert backend.client.exists("django:emails") == 1


def test_a_result_is_what_enqueue_told(backend: DQBackend) -> None:
    later = tasks.add.using(run_after=datetime(2100, 1, 1, tzinfo=UTC), priority=-100)
    told = later.enqueue(1)
    assert told.task == later
    found = tasks.add.get_result(told.id)
    assert found == told
    assert found.task == later
    assert (found.status, found.attempts, found.errors) == (TaskResultStatus.READY, 0, [])


def test_asyncio(backend: DQBackend) -> None:
    async def session() -> None:
        told = await tasks.add_async.aenqueue(1)
        assert await tasks.add_async.aget_result(told.id) == told
        with pytest.raises(TaskResultDoesNotExist):
            await tasks.add_async.aget_result("default:none")

    asyncio.run(session())


@pytest.mark.parametrize("id", ["default:none", "none", "", ":", "emails:a:b"])
def test_a_result_that_is_not_there(backend: DQBackend, id: str) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result(id)
    assert backend.delete(id) is False


def test_run_after_is_when_the_job_is_due(backend: DQBackend) -> None:
    at = datetime(2100, 1, 1, 12, 30, 0, 1500, tzinfo=UTC)
    job = backend.queue("default").get(tasks.add.using(run_after=at).enqueue(1).id)
    assert job is not None
    assert (job.state, job.due) == ("delayed", at.replace(microsecond=2000))


def test_without_time_zones_a_time_is_of_the_default_one(backend: DQBackend) -> None:
    at = datetime(2100, 1, 1, 12)
    with override_settings(USE_TZ=False, TIME_ZONE="America/New_York"):
        told = tasks.add.using(run_after=at).enqueue(1)
        job = backend.queue("default").get(told.id)
        assert job is not None
        assert job.due == datetime(2100, 1, 1, 17, tzinfo=UTC)
        assert backend.get_result(told.id) == told
        assert told.task.run_after == at


def test_the_highest_priority_is_the_first_in_the_queue(backend: DQBackend) -> None:
    assert [to_dq(each) for each in (100, 1, 0, -100)] == [0, 99, 100, 200]
    for priority in (0, -100, 100, 50):
        tasks.add.using(priority=priority).enqueue(priority)
    taken = backend.queue("default").pop(count=10)
    assert [job.body["args"] for job in taken] == [[100], [50], [0], [-100]]


def test_a_task_can_be_taken_back(backend: DQBackend) -> None:
    told = tasks.add.enqueue(1)
    assert backend.delete(told.id) is True
    assert backend.queue("default").len() == 0
    with pytest.raises(TaskResultDoesNotExist):
        told.refresh()


def test_a_task_waits_for_the_commit_when_it_is_told_to(backend: DQBackend) -> None:
    queue = backend.queue("default")
    with transaction.atomic():
        tasks.add.enqueue(1)
        transaction.on_commit(lambda: tasks.add.enqueue(2))
        assert queue.len() == 1
    assert queue.len() == 2
    with pytest.raises(LookupError), transaction.atomic():
        transaction.on_commit(lambda: tasks.add.enqueue(3))
        raise LookupError
    assert queue.len() == 2


def test_what_the_server_refuses_is_an_exception(backend: DQBackend) -> None:
    backend.queue("default").alter(maxjobs=1)
    tasks.add.enqueue(1)
    with pytest.raises(Full):
        tasks.add.enqueue(2)


@pytest.mark.parametrize("argument", [object(), datetime.now(), {1, 2}])
def test_what_json_has_not_is_refused_at_once(backend: DQBackend, argument: Any) -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        tasks.add.enqueue(argument)
    assert backend.queue("default").len() == 0


def test_the_name_of_a_queue_fits_into_an_id(configured: Configured) -> None:
    configured(queues=[])
    longest = tasks.add.using(queue_name="q" * 40)
    assert len(longest.enqueue(1).id) == 63
    with pytest.raises(InvalidTask, match="40 characters at most"):
        tasks.add.using(queue_name="q" * 41)


def test_a_job_of_a_newer_version_is_read(backend: DQBackend) -> None:
    told = tasks.add.enqueue(1)
    queue = backend.queue("default")
    (job,) = queue.pop()
    assert job.lease is not None
    queue.release(job.id, job.lease, body={**job.body, "colour": "blue"})
    assert backend.get_result(told.id) == told


def test_a_job_whose_task_is_unknown_has_no_result(backend: DQBackend) -> None:
    told = tasks.add.enqueue(1)
    queue = backend.queue("default")
    (job,) = queue.pop()
    for name, error in (("shop.tasks.gone", ImportError), ("shop.tasks.tell", ValueError)):
        assert job.lease is not None
        queue.touch(job.id, job.lease, body={**job.body, "task": name})
        with pytest.raises(error):
            told.refresh()


def test_a_client_of_one_s_own(
    configured: Configured, dq_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DQ_NAMED", dq_url)
    backend = configured(client="shop.clients.named")
    tasks.add.enqueue(1)
    assert backend.client.client_getname() == "ours"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adress": "redis://there"}, "has no option adress"),
        ({"retries": -1}, "must not be negative"),
        ({"result_ttl": timedelta(seconds=-1)}, "must not be negative"),
    ],
)
def test_wrong_options_are_told_by_manage_py_check(
    configured: Configured, options: dict[str, Any], message: str
) -> None:
    backend = configured(**options)
    assert [error.id for error in run_checks() if message in error.msg] == ["django_dq.E001"]
    with pytest.raises(ImproperlyConfigured, match=message):
        _ = backend.settings


def test_right_options_are_nothing_to_tell_of(backend: DQBackend) -> None:
    assert task_backends["default"].check() == []
    assert run_checks() == []
