"""A task with what DQ can do besides."""

from dataclasses import dataclass

from django_dq.framework import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class DQTask(Task):  # type: ignore[type-arg]
    """With Django 6.1 and the backport, `@task(retries=3)` says more than the backend's options."""

    #: How many more times the task is tried when it raises; None is what the backend says.
    retries: int | None = None
