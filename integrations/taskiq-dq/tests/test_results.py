"""The result backend: the cases of taskiq-redis's own tests, and what DQ can do besides."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from taskiq import TaskiqResult
from taskiq.depends.progress_tracker import TaskProgress, TaskState
from taskiq.exceptions import TaskiqResultTimeoutError
from taskiq.serializers import PickleSerializer

from conftest import PATIENCE_S, eventually, url
from harness.server import Server
from taskiq_dq import DQResultBackend, ResultIsMissing, ResultNotStored

Backend = DQResultBackend[Any]
LONG = timedelta(seconds=PATIENCE_S)
pytestmark = pytest.mark.anyio


@pytest.fixture
async def make(server: Server) -> AsyncIterator[Callable[..., Backend]]:
    made: list[Backend] = []

    def backend(**options: Any) -> Backend:
        made.append(DQResultBackend(url(server), **options))
        return made[-1]

    yield backend
    for each in made:
        await each.shutdown()


@pytest.fixture
async def results(make: Callable[..., Backend]) -> Backend:
    return make()


def result(value: Any, **options: Any) -> TaskiqResult[Any]:
    given = {"is_err": False, "log": "My Log", "execution_time": 112.2}
    return TaskiqResult(**given | options, return_value=value)


@pytest.mark.parametrize("serializer", [None, PickleSerializer()], ids=["json", "pickle"])
async def test_a_result_is_read_as_it_was_set(
    make: Callable[..., Backend], serializer: Any
) -> None:
    results = make(serializer=serializer)
    set_ = result(11, labels={"label": "value"})
    assert not await results.is_result_ready("task")
    await results.set_result("task", set_)
    assert await results.is_result_ready("task")
    assert await results.get_result("task", with_logs=True) == set_
    assert (await results.get_result("task")).log is None
    await results.set_result("task", result(None, is_err=True, error=ValueError("a", 1)))
    failed = await results.get_result("task")
    with pytest.raises(ValueError) as raised:
        failed.raise_for_error()
    assert raised.value.args == ("a", 1)


async def test_results_go_when_they_are_read_or_stay(make: Callable[..., Backend]) -> None:
    for keeps in (True, False):
        results = make(keep_results=keeps)
        await results.set_result("task", result(1))
        await results.get_result("task")
        assert await results.is_result_ready("task") is keeps
    with pytest.raises(ResultIsMissing):
        await results.get_result("task")


async def test_a_result_is_kept_for_its_time(make: Callable[..., Backend]) -> None:
    results = make(result_ttl=timedelta(milliseconds=100))
    await results.set_result("task", result(1))

    async def is_gone() -> bool:
        return await results.queue.len() == 0

    await eventually(is_gone)
    with pytest.raises(ValueError, match="longer than 0"):
        make(result_ttl=timedelta(0))


async def test_one_connection_serves_many_at_once(make: Callable[..., Backend]) -> None:
    results = make(single_connection_client=True)
    await results.set_result("task", result(1))
    many = await asyncio.gather(*(results.get_result("task") for _ in range(50)))
    assert {each.return_value for each in many} == {1}


async def test_a_result_that_is_too_long_is_an_error_that_says_so(
    results: Backend, server: Server
) -> None:
    with server.client() as client:
        client.config_set("dq.max-body-bytes", 1000)
        try:
            await results.set_result("task", result("x" * 1000))
        finally:
            client.config_set("dq.max-body-bytes", 1 << 20)
    told = await results.get_result("task")
    assert told.is_err and isinstance(told.error, ResultNotStored)
    assert "at most 1000 bytes long (dq.max-body-bytes)" in str(told.error)


async def test_a_result_that_json_does_not_have_is_an_error_that_says_so(results: Backend) -> None:
    await results.set_result("task", result(object()))
    told = await results.get_result("task")
    assert isinstance(told.error, ResultNotStored)
    assert "PydanticSerializationError" in str(told.error)


async def test_a_result_that_comes_later_is_told_to_all_who_wait(results: Backend) -> None:
    waiting = [asyncio.create_task(results.wait_result("task", LONG)) for _ in range(3)]

    async def all_wait() -> bool:
        info = await results.queue.info()
        return info is not None and info.watchers == 3

    await eventually(all_wait)
    await results.set_result("task", result(17))
    assert [each.return_value for each in await asyncio.gather(*waiting)] == [17] * 3


async def test_a_wait_in_vain_ends_in_time_and_leaves_nothing(results: Backend) -> None:
    begun = time.monotonic()
    with pytest.raises(TaskiqResultTimeoutError):
        await results.wait_result("task", timedelta(milliseconds=120))
    assert time.monotonic() >= begun + 0.119

    async def is_gone() -> bool:
        return await results.queue.len() == 0

    await eventually(is_gone)


async def test_progress_is_kept_beside_the_result(results: Backend) -> None:
    assert await results.get_progress("task") is None
    for state in (TaskState.STARTED, "halfway"):
        await results.set_progress("task", TaskProgress(state=state, meta={"done": 5}))
        progress = await results.get_progress("task")
        assert progress == TaskProgress[Any](state=state, meta={"done": 5})
    assert not await results.is_result_ready("task")
