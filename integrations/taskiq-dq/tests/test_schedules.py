"""Schedules: the cases of taskiq-redis's own tests that the server's can have, and how they run."""

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from taskiq import Context, ScheduledTask, TaskiqDepends, TaskiqScheduler
from taskiq.cli.scheduler.run import get_all_schedules

from conftest import Work, eventually, is_empty
from taskiq_dq import DQBroker, DQScheduleSource

CONTEXT: Any = TaskiqDepends()
SOON = timedelta(milliseconds=200)
pytestmark = pytest.mark.anyio


def schedule(**when: Any) -> ScheduledTask:
    return ScheduledTask(task_name="task", labels={}, args=[1], kwargs={"a": "b"}, **when)


@pytest.mark.parametrize(
    "when",
    [
        {"cron": "30 2 * * *", "cron_offset": "Europe/Berlin"},
        {"cron": "* * * * *", "cron_offset": timedelta(hours=2)},
        {"interval": timedelta(seconds=5)},
        {"interval": 5},
        {"time": datetime(2000, 1, 1)},
        {"time": datetime(2100, 1, 1, tzinfo=timezone.utc), "task_id": "mine"},
    ],
    ids=str,
)
async def test_a_schedule_is_listed_until_it_is_deleted(
    broker: DQBroker, when: dict[str, Any]
) -> None:
    source, wanted = DQScheduleSource(broker), schedule(**when)
    await source.add_schedule(wanted)
    await source.add_schedule(wanted)
    assert await source.get_schedules() == [wanted]
    await source.delete_schedule(wanted.schedule_id)
    assert await source.get_schedules() == []


async def test_the_server_has_the_times_that_taskiq_means(broker: DQBroker) -> None:
    source, queue = DQScheduleSource(broker), broker.queue()
    offset = schedule(cron="0 12 * * *", cron_offset=timedelta(hours=2))
    naive = schedule(time=datetime(2100, 1, 1))
    for each in (offset, naive):
        await source.add_schedule(each)
    job = await queue.get(f"schedule:{offset.schedule_id}")
    assert job is not None and job.due is not None and job.due.hour == 10
    job = await queue.get(f"schedule:{naive.schedule_id}")
    assert job is not None and job.due == datetime(2100, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (schedule(cron="* * * * *", interval=1), "either"),
        (schedule(cron="* * * * *", cron_offset=timedelta(minutes=90)), "whole hours"),
        (schedule(cron="every day"), "CRON can't be read"),
        (
            ScheduledTask(
                task_name="t", labels={"queue_name": "x"}, args=[], kwargs={}, interval=1
            ),
            "'x'",
        ),
    ],
)
async def test_what_the_server_can_not_do_is_refused(
    broker: DQBroker, refused: ScheduledTask, reason: str
) -> None:
    source = DQScheduleSource(broker)
    with pytest.raises(Exception, match=reason):
        await source.add_schedule(refused)
    assert await source.get_schedules() == []


async def test_runs_come_by_themselves_each_with_a_task_id_of_its_own(
    broker: DQBroker, work: Work
) -> None:
    ran: list[str] = []

    @broker.task(color="red")
    async def tick(name: str, context: Context = CONTEXT) -> None:
        assert (name, context.message.labels["color"]) == ("ann", "red")
        assert context.message.labels["schedule_id"] == "heartbeat"
        ran.append(context.message.task_id)

    await work(broker)
    source = DQScheduleSource(broker)
    made = await tick.kicker().with_schedule_id("heartbeat").schedule_by_interval(source, 1, "ann")

    async def has_run_twice() -> bool:
        return len(ran) >= 2

    await eventually(has_run_twice)
    await made.unschedule()
    assert await is_empty(broker)
    assert len(set(ran)) == len(ran) and all(id.startswith("heartbeat:") for id in ran)


async def test_a_time_is_one_run_and_never_early(broker: DQBroker, work: Work) -> None:
    ran: list[tuple[str, datetime]] = []

    @broker.task
    async def once(context: Context = CONTEXT) -> None:
        ran.append((context.message.task_id, datetime.now(timezone.utc)))

    await work(broker)
    at = datetime.now(timezone.utc) + SOON
    kicker: Any = once.kicker().with_task_id("mine")
    await kicker.schedule_by_time(DQScheduleSource(broker), at)
    await eventually(lambda: is_empty(broker))
    ((id, time),) = ran
    assert id == "mine" and time >= at


async def test_a_scheduler_of_taskiq_leaves_them_to_the_server(
    make_broker: Callable[..., DQBroker],
) -> None:
    broker = make_broker()

    @broker.task
    async def nothing() -> None: ...

    source = DQScheduleSource(broker)
    await nothing.schedule_by_interval(source, 3600)
    scheduler = TaskiqScheduler(broker, [source])
    ((_, (found,)),) = await get_all_schedules(scheduler)
    await scheduler.on_ready(source, found)
    assert await broker.queue().len() == 1
