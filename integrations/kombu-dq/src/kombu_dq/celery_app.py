"""What Celery knows and kombu can't say. Where a process has no Celery, it is not imported."""

from __future__ import annotations

import sys


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
