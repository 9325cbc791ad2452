"""The backend: tasks as jobs, jobs as results."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from functools import cached_property
from typing import Any, ParamSpec, TypeVar

from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from django.utils.crypto import get_random_string

from django_dq.framework import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
)
from django_dq.options import Options, at_the_primary
from django_dq.record import AnyResult, AnyTask, Record, result_of, to_dq
from django_dq.task import DQTask
from dq_client import Queue
from dq_client.commands import AddOptions

P = ParamSpec("P")
R = TypeVar("R")
#: Django wants the ids of results to be shorter than 64 characters.
_RANDOM_CHARACTERS = 22
_LONGEST_QUEUE_NAME = 63 - 1 - _RANDOM_CHARACTERS
#: How many times a worker may vanish with a task, before the task has failed.
_LOST_ATTEMPTS = 25


class DQBackend(BaseTaskBackend):
    """Keeps tasks in a DQ queue for each of Django's queues. A result's id is the queue's name and
    a random word: `emails:b9Zk…`. It is the job's id, too.
    """

    task_class = DQTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._queues: dict[str, Queue] = {}

    @cached_property
    def settings(self) -> Options:
        """Raises ImproperlyConfigured for OPTIONS that can't be; `manage.py check` tells, too."""
        return Options.of(self.options)

    @cached_property
    def client(self) -> Any:
        """The client of redis-py or valkey-py."""
        return self.settings.connected()

    def queue(self, name: str) -> Queue:
        """The queue of DQ in which the tasks of one of Django's queues are."""
        if name not in self._queues:
            self._queues[name] = Queue(self.client, self.settings.prefix + name)
        return self._queues[name]

    def queue_name(self, queue: str) -> str:
        return queue.removeprefix(self.settings.prefix)

    # ---- Django's ------------------------------------------------------------------------------

    def validate_task(self, task: AnyTask) -> None:
        super().validate_task(task)
        if len(task.queue_name) > _LONGEST_QUEUE_NAME:
            raise InvalidTask(f"Queue names have {_LONGEST_QUEUE_NAME} characters at most.")

    def enqueue(self, task: Task[P, R], args: Any, kwargs: Any) -> TaskResult[P, R]:
        """At once, also inside of a transaction: see `transaction.on_commit`. Raises the errors of
        the client, and of dq-client, such as `Full`.
        """
        self.validate_task(task)
        id = f"{task.queue_name}:{get_random_string(_RANDOM_CHARACTERS)}"
        record = Record.of(task, args, kwargs)
        options: AddOptions = {
            "at": _aware(task.run_after),
            "priority": to_dq(task.priority),
            "attempts": self.retries(task) + _LOST_ATTEMPTS,
            "backoff": self.settings.backoff,
            "keep": self.settings.result_ttl,
        }
        queue = self.queue(task.queue_name)
        at_the_primary(self.client, lambda: queue.add(id, asdict(record), **options))
        result = record.result(id, task, TaskResultStatus.READY)
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> AnyResult:
        """Raises TaskResultDoesNotExist when the result is gone, or has never been."""
        queue_name, _, _ = result_id.rpartition(":")
        job = self.queue(queue_name).get(result_id) if queue_name else None
        if job is None:
            raise TaskResultDoesNotExist(result_id)
        return result_of(job, self.alias, queue_name)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        try:
            Options.of(self.options)
        except (ImproperlyConfigured, TypeError) as error:
            return [Error(str(error), id="django_dq.E001")]
        return []

    # ---- besides -------------------------------------------------------------------------------

    def retries(self, task: AnyTask) -> int:
        """How many more times this task is tried when it raises."""
        own: int | None = getattr(task, "retries", None)
        return self.settings.retries if own is None else own

    def delete(self, result_id: str) -> bool:
        """Removes a task, or its result. Of one that is running the result isn't kept. Returns
        whether it was there.
        """
        queue_name, _, _ = result_id.rpartition(":")
        return bool(queue_name and self.queue(queue_name).delete(result_id))


def _aware(time: datetime | None) -> datetime | None:
    """Without USE_TZ, times are of the default time zone."""
    return timezone.make_aware(time) if time is not None and timezone.is_naive(time) else time
