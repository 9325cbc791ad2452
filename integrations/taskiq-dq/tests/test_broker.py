"""What the broker does, with workers of taskiq."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from taskiq import AckableMessage, Context, TaskiqDepends
from taskiq.message import BrokerMessage
from taskiq.middlewares import SmartRetryMiddleware

from conftest import Work, eventually, is_empty, result_of
from taskiq_dq import DQBroker

MakeBroker = Callable[..., DQBroker]
SHORT = timedelta(milliseconds=300)
CONTEXT: Any = TaskiqDepends()
pytestmark = pytest.mark.anyio


async def taken(broker: DQBroker) -> tuple[Any, AckableMessage]:
    listening = broker.listen()
    return listening, await anext(listening)


async def test_a_task_with_a_delay_waits_in_the_server_and_never_comes_early(
    broker: DQBroker, work: Work
) -> None:
    ran: list[tuple[float, float]] = []

    @broker.task
    async def record(delay: float) -> None:
        ran.append((delay, time.time()))

    begun = time.time()
    await work(broker)
    for delay in (0.3, 0.1, 0.2):
        await record.kicker().with_labels(delay=delay).kiq(delay)
    info = await broker.queue().info()
    assert info is not None and info.reserved == 0
    await eventually(lambda: is_empty(broker))
    assert [delay for delay, _ in ran] == [0.1, 0.2, 0.3]
    assert all(at >= begun + delay for delay, at in ran)


async def test_a_task_runs_once_and_its_result_is_there_before_it_ends(
    broker: DQBroker, work: Work
) -> None:
    @broker.task
    async def double(number: int) -> int:
        return 2 * number

    workers = [await work(broker), await work(broker)]
    sent = [await double.kiq(number) for number in range(20)]
    assert [await result_of(broker, task) for task in sent] == [2 * n for n in range(20)]
    for worker in workers:
        await worker.stop()
    info = await broker.queue().info()
    assert info is not None and (info.total_finished, info.total_timed_out) == (20, 0)


async def test_a_task_is_cancelled_before_and_after_it_is_due(broker: DQBroker, work: Work) -> None:
    ran: list[str] = []

    @broker.task
    async def record(name: str) -> None:
        ran.append(name)

    later = await record.kicker().with_labels(delay=3600).kiq("later")
    ready = await record.kiq("ready")
    assert await broker.cancel(later.task_id) and await broker.cancel(ready.task_id)
    assert not await broker.cancel(ready.task_id)
    await record.kiq("kept")
    await work(broker)
    await eventually(lambda: is_empty(broker))
    assert ran == ["kept"]


async def test_a_message_that_the_client_library_sends_twice_is_there_once(
    broker: DQBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    @broker.task
    async def nothing() -> None: ...

    send = broker.client.execute_command

    async def twice(*words: Any, **options: Any) -> Any:
        await send(*words, **options)
        return await send(*words, **options)

    monkeypatch.setattr(broker.client, "execute_command", twice)
    await nothing.kiq()
    assert await broker.queue().len() == 1


async def test_another_message_with_an_id_that_waits_is_not_lost(
    broker: DQBroker, work: Work
) -> None:
    ran: list[tuple[int, str]] = []

    @broker.task
    async def nothing(number: int, context: Context = CONTEXT) -> None:
        ran.append((number, context.message.task_id))

    for number in (1, 1, 2):
        await nothing.kicker().with_task_id("same").kiq(number)
    assert await broker.queue().len() == 2
    await nothing.kicker().with_task_id("schedule:mine").kiq(3)
    await nothing.kicker().with_task_id("again:mine").kiq(4)
    await work(broker)
    await eventually(lambda: is_empty(broker))
    assert sorted(ran) == [(1, "same"), (2, "same"), (3, "schedule:mine"), (4, "again:mine")]


async def test_labels_say_priority_group_and_queue(broker: DQBroker) -> None:
    @broker.task
    async def nothing(name: str) -> None: ...

    for priority in (200, 0, 100):
        await nothing.kicker().with_labels(priority=priority).kiq(str(priority))
    await nothing.kicker().with_labels(dq_group="ann", queue_name="other").kiq("other")
    assert [job.priority for job in await broker.queue().peek(count=3)] == [0, 100, 200]
    (other,) = await broker.queue("other").peek()
    assert other.group == "ann"


async def test_a_retry_waits_in_the_server_and_is_a_job_of_its_own(
    broker: DQBroker, work: Work
) -> None:
    broker.add_middlewares(SmartRetryMiddleware(default_delay=0.1))
    tries: list[float] = []

    @broker.task(retry_on_error=True, max_retries=3)
    async def third_time() -> str:
        tries.append(time.time())
        if len(tries) < 3:
            raise ValueError("not yet")
        return "done"

    await work(broker)
    task = await third_time.kiq()
    assert await result_of(broker, task) == "done"
    assert tries[1] >= tries[0] + 0.1 and tries[2] >= tries[1] + 0.1
    await eventually(lambda: is_empty(broker))


async def test_the_lease_of_a_long_task_is_renewed(make_broker: MakeBroker, work: Work) -> None:
    broker = make_broker(ttr=SHORT)
    begun: list[str] = []

    @broker.task
    async def long() -> str:
        begun.append("once")
        await asyncio.sleep(5 * SHORT.total_seconds())
        return "done"

    await work(broker)
    await work(broker)
    task = await long.kiq()
    assert await result_of(broker, task) == "done"
    await eventually(lambda: is_empty(broker))
    assert begun == ["once"]


async def test_a_message_that_is_dropped_without_an_acknowledgement_comes_again(
    make_broker: MakeBroker, work: Work
) -> None:
    broker = make_broker(ttr=SHORT)
    ran: list[str] = []

    @broker.task(ack_type="manual")
    async def at_second(context: Context = CONTEXT) -> None:
        ran.append(context.message.task_id)
        if len(ran) == 2:
            await context.ack()

    await work(broker)
    task = await at_second.kiq()

    await eventually(lambda: is_empty(broker))
    assert ran == [task.task_id] * 2


async def test_what_was_fetched_and_not_begun_goes_back_and_costs_no_attempt(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker(prefetch=10)

    @broker.task
    async def nothing(number: int) -> None: ...

    for number in range(3):
        await nothing.kiq(number)
    listening, message = await taken(broker)
    assert await broker.queue().len("reserved") == 3
    await listening.aclose()
    assert await broker.queue().len("ready") == 2
    assert {job.attempt for job in await broker.queue().peek(count=2)} == {0}
    await message.ack()  # type: ignore[misc]
    assert await broker.queue().len() == 2


async def test_a_worker_that_is_told_to_stop_loses_no_message_on_the_way(
    broker: DQBroker, work: Work
) -> None:
    @broker.task
    async def nothing() -> None: ...

    listening = broker.listen()
    waiting = asyncio.ensure_future(anext(listening))

    async def waits() -> bool:
        info = await broker.queue().info()
        return info is not None and info.waiting_consumers == 1

    await nothing.kicker().with_labels(delay=3600).kiq()  # so that there is a queue
    await eventually(waits)
    waiting.cancel()
    await nothing.kiq()  # to the fetch that is under way
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (job,) = await broker.queue().peek()
    assert (job.state, job.attempt) == ("ready", 0)


async def test_a_message_that_was_deleted_or_delivered_again_is_not_ended(
    make_broker: MakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker = make_broker(ttr=SHORT)

    @broker.task
    async def nothing() -> None: ...

    task = await nothing.kiq()
    listening, message = await taken(broker)
    assert await broker.cancel(task.task_id)

    async def is_told() -> bool:
        return "was deleted, or another worker has it" in caplog.text

    await eventually(is_told)
    await message.ack()  # type: ignore[misc]
    await listening.aclose()


async def test_a_job_that_is_no_schedule_is_buried_with_a_reason(
    broker: DQBroker, work: Work
) -> None:
    await broker.queue().add("schedule:broken", b"{}")
    await work(broker)

    async def is_dead() -> bool:
        return await broker.queue().len("dead") == 1

    await eventually(is_dead)
    (dead,) = await broker.queue().peek("dead")
    assert dead.reason == "no schedule of taskiq: ValidationError"


async def test_bytes_of_any_broker_message_arrive(broker: DQBroker) -> None:
    """As taskiq-redis's own tests of brokers have it."""
    body = b"my_msg\x00\xff"
    sent = BrokerMessage(task_id="t", task_name="n", message=body, labels={"label1": "val1"})
    await broker.kick(sent)
    listening, message = await taken(broker)
    assert message.data == body
    await message.ack()  # type: ignore[misc]
    assert await is_empty(broker)
    await listening.aclose()
