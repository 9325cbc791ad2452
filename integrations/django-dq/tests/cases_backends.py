"""In place of Django's own backends, for Django's tests of them: see django_cases.py."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from functools import cached_property
from typing import Any

import redis

from django_dq import DQBackend
from django_dq.running import Runner
from dq_client.worker import Worker

_PATIENCE_S = 60


class DummyBackend(DQBackend):
    """As Django's dummy backend, it runs nothing: there is no worker."""

    @cached_property
    def client(self) -> Any:
        return redis.Redis.from_url(os.environ["DQ_URL"])

    @property
    def results(self) -> list[Any]:
        names = (key.decode().removeprefix("django:") for key in self.client.keys("django:*"))
        return [self.get_result(id) for name in names for id in self.queue(name).scan_iter()]

    def clear(self) -> None:
        self.client.flushall()


class ImmediateBackend(DummyBackend):
    """As with Django's immediate backend, the task has run when it is enqueued: by a worker."""

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        id = super().enqueue(task, args, kwargs).id
        worker = Worker(self.queue(task.queue_name), Runner(self), concurrency=1)
        thread = threading.Thread(target=lambda: asyncio.run(worker.serve()))
        thread.start()
        deadline = time.monotonic() + _PATIENCE_S
        while not self.get_result(id).is_finished and time.monotonic() < deadline:
            time.sleep(0.005)
        worker.stop()
        thread.join()
        return self.get_result(id)
