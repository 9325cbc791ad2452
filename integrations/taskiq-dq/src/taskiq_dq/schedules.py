"""The schedule source: the server keeps the time, and no scheduler runs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from taskiq import ScheduledTask, ScheduleSource
from taskiq.exceptions import ScheduledTaskCancelledError

from dq_client import Cron
from dq_client.commands import AddOptions
from taskiq_dq.broker import DQBroker
from taskiq_dq.firing import PREFIX

_HOUR = timedelta(hours=1)


class DQScheduleSource(ScheduleSource):
    """Schedules as jobs of a broker's queue. Its workers get each run when it is due.

    >>> source = DQScheduleSource(broker)
    >>> await report.schedule_by_cron(source, "0 6 * * *")

    `taskiq scheduler` isn't needed. Where one runs with this source, for the sake of another one,
    it leaves these schedules to the server.
    """

    def __init__(self, broker: DQBroker):
        self.broker = broker

    async def add_schedule(self, schedule: ScheduledTask) -> None:
        """Adds a schedule, or changes the one with its id. The same once more, as at each start
        of a program, changes nothing.

        Raises ValueError for what the server can't do.
        """
        queue_name = schedule.labels.get("queue_name") or self.broker.queue_name
        if queue_name != self.broker.queue_name:
            raise ValueError(
                f"the source of the queue {self.broker.queue_name!r} has no schedules of the queue "
                f"{queue_name!r}: make one with a broker of that queue"
            )
        await self.broker.queue().add(
            PREFIX + schedule.schedule_id,
            schedule.model_dump_json(),
            **(when(schedule) | self.broker.options(schedule.labels)),
        )

    async def delete_schedule(self, schedule_id: str) -> None:
        """A run that is under way goes on."""
        await self.broker.queue().delete(PREFIX + schedule_id)

    async def get_schedules(self) -> list[ScheduledTask]:
        """All schedules that have a run ahead. It looks at each job of the queue."""
        queue, found = self.broker.queue(), []
        async for id in queue.scan_iter(match=f"{PREFIX}*"):
            job = await queue.get(id)
            if job is not None and job.state != "dead":
                found.append(ScheduledTask.model_validate_json(job.payload))
        return found

    def pre_send(self, task: ScheduledTask) -> None:
        """Keeps a scheduler of taskiq from sending what the server delivers."""
        raise ScheduledTaskCancelledError


def when(schedule: ScheduledTask) -> AddOptions:
    """The time of a schedule as options of DQ.ADD."""
    given = (schedule.cron, schedule.interval, schedule.time)
    if sum(each is not None for each in given) != 1:
        raise ValueError("a schedule has either a cron expression, an interval or a time")
    if schedule.cron is not None:
        return {"cron": Cron(schedule.cron, _zone(schedule.cron_offset)), "ensure": True}
    if schedule.interval is not None:
        return {"every": _duration(schedule.interval), "ensure": True}
    assert schedule.time is not None
    return {"at": _aware(schedule.time), "replace": True}


def _zone(offset: str | timedelta | None) -> str | None:
    """Of a fixed offset: the tz database has those of whole hours, with the sign of POSIX."""
    if not isinstance(offset, timedelta):
        return offset
    hours, rest = divmod(offset, _HOUR)
    if rest:
        raise ValueError("a cron_offset is a time zone's name, or whole hours")
    return f"Etc/GMT{-hours:+d}" if hours else None


def _duration(interval: int | timedelta) -> timedelta:
    return interval if isinstance(interval, timedelta) else timedelta(seconds=interval)


def _aware(time: datetime) -> datetime:
    """A time without a zone is UTC, as taskiq's scheduler has it."""
    return time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)
