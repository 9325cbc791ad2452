"""A schedule as a job, and the message of one of its runs.

The job's id is `schedule:` and the schedule's id. Its body is the schedule in JSON, so that each
run can have a task id of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskiq import ScheduledTask
from taskiq.labels import prepare_label
from taskiq.message import BrokerMessage, TaskiqMessage

from dq_client import Delivery
from dq_client.words import unix_ms

if TYPE_CHECKING:
    from taskiq import AsyncBroker

PREFIX = "schedule:"


def message_of_run(broker: AsyncBroker, delivery: Delivery) -> BrokerMessage:
    """What taskiq's scheduler would send. Raises ValueError for what is no schedule."""
    schedule = ScheduledTask.model_validate_json(delivery.payload)
    given: dict[str, Any] = {**schedule.labels, "schedule_id": schedule.schedule_id}
    labels = {name: prepare_label(value) for name, value in given.items()}
    message = TaskiqMessage(
        task_id=schedule.task_id or _id_of_run(schedule, delivery),
        task_name=schedule.task_name,
        labels={name: text for name, (text, _) in labels.items()},
        labels_types={name: kind for name, (_, kind) in labels.items()},
        args=schedule.args,
        kwargs=schedule.kwargs,
    )
    return broker.formatter.dumps(message)


def _id_of_run(schedule: ScheduledTask, delivery: Delivery) -> str:
    if delivery.due is None:
        raise ValueError("a run without its time")
    return f"{schedule.schedule_id}:{unix_ms(delivery.due)}"
