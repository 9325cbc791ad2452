"""Messages, results and clients that nobody foresaw: none ends a worker, a place or a lease."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import redis
import redis.asyncio
from taskiq import TaskiqResult

from conftest import PATIENCE_S, Work, backend_of, eventually, is_empty, url
from harness.server import Server
from taskiq_dq import DQBroker, DQResultBackend

pytestmark = pytest.mark.anyio

MESSAGE: dict[str, Any] = {
    "task_id": "t",
    "task_name": "record",
    "labels": {},
    "args": [],
    "kwargs": {},
}
POISON = {
    "bytes": b"\xff\xfe",
    "deep": b"[" * 200_000,
    "list": b"[]",
    "name is a list": json.dumps(MESSAGE | {"task_name": []}).encode(),
    "labels are text": json.dumps(MESSAGE | {"labels": "x"}).encode(),
    "odd label": json.dumps(MESSAGE | {"labels": {"a": "b"}, "labels_types": {"a": 4}}).encode(),
    "unknown task": json.dumps(MESSAGE | {"task_name": "none"}).encode(),
    "schedule:bytes": b"\xff\xfe",
    "schedule:deep": b"[" * 200_000,
    "again:": b"x",
    "surrogateescaped \udcff": b"x",
}


async def test_jobs_that_are_no_messages_end_no_worker(broker: DQBroker, work: Work) -> None:
    ran: list[int] = []

    @broker.task(task_name="record")
    async def record() -> None:
        ran.append(1)

    for id, body in POISON.items():
        await broker.queue().add(id, body)
    await work(broker, max_async_tasks=1)
    await record.kiq()
    await eventually(lambda: is_settled(broker))
    assert ran == [1]
    assert not broker._leases.count


async def is_settled(broker: DQBroker) -> bool:
    info = await broker.queue().info()
    return info is not None and not (info.ready or info.reserved)


async def test_a_message_under_another_id_than_its_task_keeps_no_lease(
    make_broker: Callable[..., DQBroker], work: Work
) -> None:
    """As when an operator has moved it. It ends without an acknowledgement."""
    broker = make_broker(ttr=timedelta(milliseconds=600))
    ran: list[int] = []

    @broker.task(task_name="record", ack_type="manual")
    async def record() -> None:
        ran.append(1)

    message = MESSAGE | {"labels": {"ack_type": "manual"}, "task_id": "another"}
    await broker.queue().alter(attempts=2)
    await broker.queue().add("job", json.dumps(message).encode())
    await work(broker)
    await eventually(lambda: is_settled(broker))
    assert ran == [1, 1]
    assert not broker._leases.count


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("nothing to say")


RAISED: list[BaseException] = [
    Mute(),
    ValueError("\ud800"),
    ValueError("x" * (2 << 20)),
    SystemExit(3),
    KeyboardInterrupt(),
    StopIteration(),
    GeneratorExit(),
]
_NAMES = ["mute", "surrogate", "long", "exit", "int", "stop", "generator"]


@pytest.mark.parametrize("error", RAISED, ids=_NAMES)
@pytest.mark.parametrize("is_async", [False, True])
async def test_whatever_a_task_raises_its_place_is_free_again(
    error: BaseException, is_async: bool, broker: DQBroker, work: Work
) -> None:
    def fail() -> None:
        raise error

    async def fail_async() -> None:
        raise error

    task: Any = broker.task(fail_async if is_async else fail)

    @broker.task
    async def double(number: int) -> int:
        return 2 * number

    with ThreadPoolExecutor(2) as executor:
        working = await work(broker, max_async_tasks=1, executor=executor)
        failed, after = await task.kiq(), await double.kiq(2)
        told = await backend_of(broker).wait_result(failed.task_id, timedelta(seconds=PATIENCE_S))
        assert told.is_err
        told = await backend_of(broker).wait_result(after.task_id, timedelta(seconds=PATIENCE_S))
        assert told.return_value == 4
        await eventually(lambda: is_empty(broker))
        await working.stop()
    assert not broker._leases.count


class Odd:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError("\ud800")


@pytest.mark.parametrize("value", [Odd(), "x" * (2 << 20), "\ud800"], ids=type)
async def test_a_result_that_cannot_be_stored_is_an_error(broker: DQBroker, value: Any) -> None:
    backend = backend_of(broker)
    await backend.set_result(
        "t", TaskiqResult(is_err=False, return_value=value, execution_time=1.0)
    )
    assert (await backend.get_result("t")).is_err


@pytest.mark.parametrize("delay", [float("inf"), 1e30, "1e30", -1, "-inf"])
async def test_a_delay_is_within_what_the_server_takes(broker: DQBroker, delay: Any) -> None:
    @broker.task
    async def nothing() -> None: ...

    await nothing.kicker().with_labels(delay=delay).kiq()
    state: Any = "ready" if float(delay) < 0 else "delayed"
    assert await broker.queue().len(state=state) == 1


async def test_a_client_that_decodes_loses_no_reply(
    make_broker: Callable[..., DQBroker], work: Work
) -> None:
    broker = make_broker(decode_responses=True)
    ran = asyncio.Event()

    @broker.task
    async def record() -> None:
        ran.set()

    await broker.queue().add("bytes", b"\xff\xfe", priority=0)
    await record.kiq()
    await work(broker)
    await asyncio.wait_for(ran.wait(), PATIENCE_S)
    await eventually(lambda: is_empty(broker))


async def test_what_a_broker_refuses_at_once(server: Server) -> None:
    with redis.Redis.from_url(url(server)) as blocking:
        client = redis.asyncio.Redis.from_url(url(server))
        for wrong in (blocking, client.pipeline()):
            for kind in (DQBroker, DQResultBackend):
                with pytest.raises(TypeError, match="client"):
                    kind(client=wrong)
        await client.aclose()
    for options in ({"ttr": timedelta(0)}, {"prefetch": 0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            DQBroker(url(server), **options)
    with pytest.raises(TypeError, match="ttr is a timedelta"):
        DQBroker(url(server), ttr=60)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="result_ttl is a timedelta"):
        DQResultBackend(url(server), result_ttl=60)  # type: ignore[arg-type]
