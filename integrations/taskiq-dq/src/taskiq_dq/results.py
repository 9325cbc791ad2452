"""The result backend: a result is a done job that is kept."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, TypeVar

from taskiq import AsyncResultBackend, TaskiqResult
from taskiq.abc.serializer import TaskiqSerializer
from taskiq.depends.progress_tracker import TaskProgress
from taskiq.exceptions import ResultGetError, TaskiqResultTimeoutError

from dq_client import RAW, AsyncQueue, Invalid, Later, Outcome
from dq_client.seam import AsyncClient
from taskiq_dq.connecting import Link, checked, connected

T = TypeVar("T")
#: Of what waited in vain nothing is kept.
_AT_ONCE = timedelta(milliseconds=1)
_PROGRESS = ":progress"
#: Of an error that tells why a result isn't stored, in characters.
_WORDS_AT_MOST = 1_000
#: How long an outage may last until a result is given up.
_PATIENCE = timedelta(minutes=1)


class ResultIsMissing(ResultGetError):
    """There is no result of this task, or not any more."""

    __template__ = "there is no result of this task"


class ResultNotStored(Exception):
    """The task has ended, but what it returned can't be stored: it is too large, or the serializer
    doesn't know its type. It is the error of the result in its place.
    """


class DQResultBackend(AsyncResultBackend[T]):
    """A result backend for DQ.

    A result that isn't stored yet is a held job, which no worker gets. To store a result is to end
    that job.

    Parameters:
      url: of the server, as redis-py has it.
      client: an asyncio client of redis-py or valkey-py, in place of url and parameters.
      queue_name: the key of the queue that has the results.
      result_ttl: how long a result is kept.
      keep_results: whether it stays when it has been read.
      serializer: one of taskiq's; without it, pydantic writes JSON.
      parameters: of redis.asyncio.Redis.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        client: AsyncClient | None = None,
        queue_name: str = "taskiq-results",
        result_ttl: timedelta = timedelta(days=1),
        keep_results: bool = True,
        serializer: TaskiqSerializer | None = None,
        **parameters: Any,
    ):
        checked("result_ttl", result_ttl)
        self.client: Any = client or connected(url, parameters)
        self._is_own_client = client is None
        self.queue = AsyncQueue(self.client, queue_name, codec=RAW)
        self.link = Link(self.client)
        self._result_ttl = result_ttl
        self._keeps = keep_results
        self._serializer = serializer

    async def shutdown(self) -> None:
        await super().shutdown()
        if self._is_own_client:
            await self.client.aclose()

    # ---- results ---------------------------------------------------------------------------------

    async def set_result(self, task_id: str, result: TaskiqResult[T]) -> None:
        """Takes the place of an earlier result. One that can't be stored is an error in its place,
        so that those who wait for it are told.
        """
        try:
            data = self._encoded(result)
        except Exception as error:
            data = self._encoded(_failed(result, error))
        try:
            await self._store(task_id, data)
        except Invalid as error:
            await self._store(task_id, self._encoded(_failed(result, error)))

    async def is_result_ready(self, task_id: str) -> bool:
        outcome = await self.queue.result(task_id)
        return outcome is not None and outcome.is_done

    async def get_result(self, task_id: str, with_logs: bool = False) -> TaskiqResult[T]:
        """Raises ResultIsMissing."""
        return await self._read(task_id, await self.queue.result(task_id), with_logs)

    async def wait_result(
        self, task_id: str, timeout: timedelta, with_logs: bool = False
    ) -> TaskiqResult[T]:
        """Waits for a result in the server, where `task.wait_result()` asks again and again. Raises
        TaskiqResultTimeoutError.
        """
        outcome = await self._awaited(task_id, timeout)
        if outcome is None:
            raise TaskiqResultTimeoutError(timeout=timeout.total_seconds())
        return await self._read(task_id, outcome, with_logs)

    # ---- progress --------------------------------------------------------------------------------

    async def set_progress(self, task_id: str, progress: TaskProgress[Any]) -> None:
        await self._store(task_id + _PROGRESS, progress.model_dump_json().encode())

    async def get_progress(self, task_id: str) -> TaskProgress[Any] | None:
        outcome = await self.queue.result(task_id + _PROGRESS)
        if outcome is None or not outcome.is_done:
            return None
        return TaskProgress[Any].model_validate_json(outcome.value)

    # ---- its parts -------------------------------------------------------------------------------

    def _encoded(self, result: TaskiqResult[Any]) -> bytes:
        if self._serializer is None:
            return result.model_dump_json().encode()
        return self._serializer.dumpb(result.model_dump())

    def _decoded(self, data: bytes) -> TaskiqResult[T]:
        if self._serializer is None:
            return TaskiqResult[Any].model_validate_json(data)
        return TaskiqResult[Any].model_validate(self._serializer.loadb(data))

    async def _read(
        self, task_id: str, outcome: Outcome | None, with_logs: bool
    ) -> TaskiqResult[T]:
        if outcome is None or not outcome.is_done:
            raise ResultIsMissing
        if not self._keeps:
            await self.queue.delete(task_id)
        result = self._decoded(outcome.value)
        if not with_logs:
            result.log = None
        return result

    async def _awaited(self, id: str, timeout: timedelta) -> Outcome | None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout.total_seconds()
        outcome = await self.queue.result(id)
        while outcome is None or not outcome.is_done:
            left = timedelta(milliseconds=int((deadline - loop.time()) * 1000))
            if left <= timedelta(0):
                return None
            if outcome is None:
                await self._expect(id, left)
            outcome = await self.queue.result(id, block=left)
        return outcome

    async def _expect(self, id: str, left: timedelta) -> None:
        """Makes the held job to wait for, unless there is one. It dies with the wait."""
        pipeline = self._pipeline()
        await _executed(
            pipeline,
            self.queue.alter(deadkeep=_AT_ONCE, on=pipeline),
            self.queue.add(id, b"", hold=True, nx=True, ttl=left, on=pipeline),
        )

    async def _store(self, id: str, data: bytes) -> None:
        """Those who wait for this id are told. In an outage it goes on trying for a while: taskiq
        ends a task also when this raises.
        """
        await self.link.persistently(lambda: self._store_once(id, data), _PATIENCE)

    async def _store_once(self, id: str, data: bytes) -> None:
        pipeline, keep = self._pipeline(), self._result_ttl
        await _executed(
            pipeline,
            self.queue.add(id, b"", hold=True, replace=True, ttl=keep, on=pipeline),
            self.queue.done(id, "*", result=data, keep=keep, on=pipeline),
        )

    def _pipeline(self) -> Any:
        """A transaction, where that is possible: with the commands of a module, the asyncio client
        of a cluster has none, as of redis-py 8.1.
        """
        return self.client.pipeline(transaction=not hasattr(self.client, "get_random_node"))


def _failed(result: TaskiqResult[Any], error: Exception) -> TaskiqResult[Any]:
    """What is stored in place of a result that can't be."""
    return TaskiqResult(
        is_err=True,
        return_value=None,
        execution_time=result.execution_time,
        error=ResultNotStored(_words_of(error)),
        labels={},
    )


def _words_of(error: Exception) -> str:
    try:
        said = str(error)
    except Exception as mute:
        said = f"(its text can't be had: {type(mute).__name__})"
    data = f"{type(error).__name__}: {said}"[:_WORDS_AT_MOST].encode("utf-8", "backslashreplace")
    return data.decode()


async def _executed(pipeline: Any, *steps: Later[Any]) -> None:
    replies = await pipeline.execute(raise_on_error=False)
    for step in steps:
        step.of(replies)
