"""What a worker does with a job: it runs the task, and notes what came of it."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from django.db import close_old_connections, reset_queries
from django.utils.crypto import get_random_string

from django_dq.backend import DQBackend
from django_dq.framework import TaskContext, TaskResultStatus, task_finished, task_started
from django_dq.record import (
    TRACEBACK_CHARACTERS,
    AnyResult,
    Record,
    change,
    returned,
    succeed,
)
from dq_client import DQError, Invalid, LeaseLost
from dq_client.words import text_of
from dq_client.worker import Bury, Done, Retry, RunningJob

logger = logging.getLogger("django_dq")
#: The longest, in characters: as they are noted, and where the arguments of a task leave less room.
_TRACEBACKS = (TRACEBACK_CHARACTERS, 500, 0)


def made_worker_id() -> str:
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{get_random_string(6)}"


class Runner:
    """The handler of a worker, for the tasks of a backend. Coroutines run in its threads, too, each
    in a loop of its own.
    """

    def __init__(self, backend: DQBackend):
        self._backend = backend
        self.worker_id = made_worker_id()

    def __call__(self, job: RunningJob) -> Done:
        with _connections():
            record = Record.read(job.body)
            task = record.resolved(self._backend.alias, self._backend.queue_name(job.queue))
            record.begin(self.worker_id)
            self._note(job, record)
            result = record.result(job.id, task, TaskResultStatus.RUNNING)
            self._send(task_started, result)
            try:
                told = returned(_called(result))
            except LeaseLost:
                raise
            except BaseException as error:
                raise self._failed(job, record, result, error) from error
            succeed(result, **told)
            self._send(task_finished, result)
            return Done(told, refused=_refused)

    def _failed(
        self, job: RunningJob, record: Record, result: AnyResult, error: BaseException
    ) -> Retry | Bury:
        """What the worker is to tell the server. The error is in the job before that."""
        record.fail(error)
        # Of a job whose record is too long, only the server counts the attempts.
        failed = len(record.errors) if self._note(job, record) else job.attempt
        reason = text_of(error)
        if self._is_tried_again(failed, result, error):
            return error if isinstance(error, Retry) else Retry(reason)
        change(result, **_outcome(record, result))
        self._send(task_finished, result)
        return error if isinstance(error, Bury) else Bury(reason)

    def _is_tried_again(self, failed: int, result: AnyResult, error: BaseException) -> bool:
        if isinstance(error, Retry | Bury):
            return isinstance(error, Retry)
        return failed <= self._backend.retries(result.task)

    def _note(self, job: RunningJob, record: Record) -> bool:
        """Writes the record into the job. Where the arguments leave no room for it, with shorter
        tracebacks, or not at all: a task must come to its end all the same.
        """
        refusal: Exception | None = None
        for characters in _TRACEBACKS:
            record.shorten(characters)
            try:
                job.checkpoint(asdict(record))
            except Invalid as error:
                refusal = error
            else:
                return True
        logger.warning("%s: the attempt can't be noted: %s", job.id, refusal)
        return False

    def _send(self, signal: Any, result: AnyResult) -> None:
        """A receiver that raises is logged by Django, and changes nothing: the task has run."""
        signal.send_robust(type(self._backend), task_result=result)


def _refused(error: Exception) -> Bury:
    """The value is longer than the server takes: it would be at the next attempt, too."""
    told = error.message if isinstance(error, DQError) else text_of(error)
    return Bury(f"the result is refused: {told}")


def _called(result: AnyResult) -> Any:
    task = result.task
    context = (TaskContext(task_result=result),) if task.takes_context else ()
    return task.call(*context, *result.args, **result.kwargs)


def _outcome(record: Record, result: AnyResult) -> dict[str, Any]:
    failed = record.result(result.id, result.task, TaskResultStatus.FAILED)
    return {name: getattr(failed, name) for name in ("status", "errors", "finished_at")}


@contextmanager
def _connections() -> Iterator[None]:
    """To databases, as around a request: those that are too old or broken are closed."""
    reset_queries()
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()
