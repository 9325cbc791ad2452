"""A task as the body of a job, and what a job tells of its task.

The body has the call and, attempt by attempt, what became of it: when a worker begins it adds an
attempt, and when the task fails the error. The result of the job has the value that the task
returned. Times are those of the machines that note them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from traceback import format_exception
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from django.utils import timezone
from django.utils.module_loading import import_string

from django_dq.errors import NoOutcome
from django_dq.framework import (
    TASK_MAX_PRIORITY,
    Task,
    TaskError,
    TaskResult,
    TaskResultStatus,
    normalize_json,
)
from dq_client import Job

P = ParamSpec("P")
R = TypeVar("R")
#: Of a longer traceback, the end is kept.
TRACEBACK_CHARACTERS = 20_000
_STATUS = {
    "done": TaskResultStatus.SUCCESSFUL,
    "dead": TaskResultStatus.FAILED,
    "reserved": TaskResultStatus.RUNNING,
}
# Generic for type checkers alone: Django's own classes aren't.
if TYPE_CHECKING:
    AnyTask: TypeAlias = Task[..., Any]
    AnyResult: TypeAlias = TaskResult[..., Any]
else:
    AnyTask, AnyResult = Task, TaskResult


def to_dq(priority: int) -> int:
    """Django's priorities, 100 … -100, as DQ's: 0 … 200, of which the lowest is the first."""
    return TASK_MAX_PRIORITY - priority


@dataclass(frozen=True)
class Record:
    """The body of a job."""

    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    priority: int
    run_after: str | None
    enqueued_at: str
    attempts: list[dict[str, Any]]

    @classmethod
    def of(cls, task: AnyTask, args: Any, kwargs: Any) -> Record:
        """Raises TypeError for what JSON doesn't have."""
        return cls(
            task=task.module_path,
            args=list(normalize_json(args)),  # type: ignore[arg-type]
            kwargs=dict(normalize_json(kwargs)),  # type: ignore[arg-type]
            priority=task.priority,
            run_after=task.run_after.isoformat() if task.run_after else None,
            enqueued_at=timezone.now().isoformat(),
            attempts=[],
        )

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Record:
        """What a newer version may have added is left out."""
        return cls(**{each.name: body[each.name] for each in fields(cls)})

    def resolved(self, backend: str, queue_name: str) -> AnyTask:
        """The task, as it was enqueued. Raises ImportError or ValueError where this program has
        none of that name.
        """
        found = import_string(self.task)
        if not isinstance(found, Task):
            raise ValueError(f"{self.task} is no task")
        return found.using(
            priority=self.priority,
            queue_name=queue_name,
            run_after=_time(self.run_after),
            backend=backend,
        )

    # ---- attempts --------------------------------------------------------------------------------

    def begin(self, worker_id: str) -> None:
        self.attempts.append({"worker": worker_id, "began": now()})

    def fail(self, error: BaseException) -> None:
        kind = type(error)
        self.attempts[-1] |= {
            "ended": now(),
            "error": {
                "class": f"{kind.__module__}.{kind.__qualname__}",
                "traceback": "".join(format_exception(error))[-TRACEBACK_CHARACTERS:],
            },
        }

    def shorten(self, characters: int) -> None:
        """Keeps no more than so many characters, the last ones, of each traceback."""
        for each in self.attempts:
            if "error" in each:
                told = each["error"]["traceback"]
                each["error"]["traceback"] = told[max(len(told) - characters, 0) :]

    @property
    def errors(self) -> list[TaskError]:
        told = (each["error"] for each in self.attempts if "error" in each)
        return [
            TaskError(exception_class_path=each["class"], traceback=each["traceback"])
            for each in told
        ]

    def result(self, id: str, task: Task[P, R], status: TaskResultStatus) -> TaskResult[P, R]:
        began = [_time(each["began"]) for each in self.attempts]
        return TaskResult(
            task=task,
            id=id,
            status=status,
            enqueued_at=_time(self.enqueued_at),
            started_at=began[0] if began else None,
            last_attempted_at=began[-1] if began else None,
            finished_at=self._ended if status == TaskResultStatus.FAILED else None,
            args=self.args,
            kwargs=self.kwargs,
            backend=task.backend,
            errors=self.errors,
            worker_ids=[each["worker"] for each in self.attempts],
        )

    @property
    def _ended(self) -> datetime | None:
        return _time(self.attempts[-1].get("ended")) if self.attempts else None


def result_of(job: Job, backend: str, queue_name: str) -> AnyResult:
    """What a job that is in its queue tells of its task."""
    record = Record.read(job.body)
    status = _STATUS.get(job.state, TaskResultStatus.READY)
    result = record.result(job.id, record.resolved(backend, queue_name), status)
    if job.state == "done":
        succeed(result, **job.result)
    elif job.state == "dead" and result.finished_at is None:
        result.errors.append(
            TaskError(
                exception_class_path=f"{NoOutcome.__module__}.{NoOutcome.__qualname__}",
                traceback=job.reason or "",
            )
        )
        change(result, finished_at=job.since)
    return result


def returned(value: Any) -> dict[str, Any]:
    """The result of a job. Raises TypeError for what JSON doesn't have."""
    return {"value": normalize_json(value), "ended": now()}


def succeed(result: AnyResult, value: Any, ended: str) -> None:
    change(
        result,
        status=TaskResultStatus.SUCCESSFUL,
        finished_at=_time(ended),
        _return_value=value,
    )


def change(result: AnyResult, **values: Any) -> None:
    """Django's results are frozen, also for the backends that make them."""
    for name, value in values.items():
        object.__setattr__(result, name, value)


def now() -> str:
    return timezone.now().isoformat()


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
