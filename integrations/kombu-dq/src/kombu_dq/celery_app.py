"""What Celery knows and kombu can't say. Where a process has no Celery, it is not imported."""

from __future__ import annotations

import importlib
import sys


def register_tasks() -> None:
    """Has every app of this process know the task that ends a chord.

    A worker makes its transport before its pool, so the children know it, too.
    """
    if "celery.app.base" in sys.modules:
        importlib.import_module("kombu_dq.chords")


def is_worker() -> bool:
    """Whether the consumer of this process is Celery's worker."""
    return "celery.worker.consumer.consumer" in sys.modules


def begun_tags() -> set[str] | None:
    """The delivery tags of the tasks that a worker is at; None where there is no worker."""
    state = sys.modules.get("celery.worker.state")
    if state is None:
        return None
    while True:
        try:
            return {request.message.delivery_tag for request in tuple(state.active_requests)}
        except RuntimeError:  # a task was accepted or done while we looked
            continue
