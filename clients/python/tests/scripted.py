"""Handlers that do what the body of their job says: clients/contract/README.md lists the steps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from dq_client import Add, LeaseLost
from dq_client.worker import AsyncRunningJob, Bury, Done, Retry, RunningJob

_LOOK_S = 0.005


class Scripts:
    def __init__(
        self, tell: Callable[[dict[str, Any]], None], added: Callable[[dict[str, Any]], Add]
    ):
        self._tell = tell
        self._added = added
        self._gone: set[str] = set()

    def go(self, name: str) -> None:
        self._gone.add(name)

    # ---- hooks -----------------------------------------------------------------------------------

    def before(self, job: RunningJob | AsyncRunningJob) -> None:
        self._tell({"event": "before", "id": job.id})

    def after(self, job: RunningJob | AsyncRunningJob, error: BaseException | None) -> None:
        self._tell({"event": "after", "id": job.id, "failed": error is not None})

    # ---- handlers --------------------------------------------------------------------------------

    def play(self, job: RunningJob) -> Any:
        steps = job.body
        self._begun(job)
        try:
            for verb, *given in steps:
                match verb:
                    case "wait":
                        while given[0] not in self._gone:
                            time.sleep(_LOOK_S)
                            job.check()
                    case "checkpoint":
                        job.checkpoint(given[0], note=given[1])
                        self._noted(job)
                    case "deps":
                        self._ended(job, "returned")
                        return [[dep.id, dep.value] for dep in job.deps()]
                    case _:
                        self._ended(job, "returned" if verb in _RETURNING else "raised")
                        return self._said(verb, given)
        except LeaseLost:
            self._ended(job, "cancelled")
            raise
        self._ended(job, "returned")
        return None

    async def play_async(self, job: AsyncRunningJob) -> Any:
        steps = job.body
        self._begun(job)
        try:
            for verb, *given in steps:
                match verb:
                    case "wait":
                        while given[0] not in self._gone:
                            await asyncio.sleep(_LOOK_S)
                    case "checkpoint":
                        await job.checkpoint(given[0], note=given[1])
                        self._noted(job)
                    case "deps":
                        self._ended(job, "returned")
                        return [[dep.id, dep.value] for dep in await job.deps()]
                    case _:
                        self._ended(job, "returned" if verb in _RETURNING else "raised")
                        return self._said(verb, given)
        except (LeaseLost, asyncio.CancelledError):
            self._ended(job, "cancelled")
            raise
        self._ended(job, "returned")
        return None

    def _said(self, verb: str, given: list[Any]) -> Any:
        """The step that ends a script."""
        match verb:
            case "return":
                return given[0]
            case "repeat":
                return given[0] * given[1]
            case "done":
                return self._done(given[0])
            case "raise":
                raise RuntimeError(given[0])
            case "retry":
                raise Retry(given[1], in_=timedelta(milliseconds=given[0]))
            case "bury":
                raise Bury(given[0])
        raise ValueError(f"no such step: {verb}")

    def _done(self, told: dict[str, Any]) -> Done:
        keep = timedelta(milliseconds=told["keep"]) if "keep" in told else None
        add = [self._added(each) for each in told.get("add", ())]
        return Done(told["result"], keep, add) if "result" in told else Done(keep=keep, add=add)

    # ---- events ----------------------------------------------------------------------------------

    def _begun(self, job: RunningJob | AsyncRunningJob) -> None:
        told = {"event": "begun", "id": job.id, "attempt": job.attempt, "queue": job.queue}
        self._tell(told)

    def _noted(self, job: RunningJob | AsyncRunningJob) -> None:
        self._tell({"event": "noted", "id": job.id})

    def _ended(self, job: RunningJob | AsyncRunningJob, how: str) -> None:
        self._tell({"event": "ended", "id": job.id, "how": how})


_RETURNING = ("return", "repeat", "done")
