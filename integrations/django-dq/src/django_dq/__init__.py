"""Django's tasks on DQ, the delay queue of Redis and Valkey: a backend, and `manage.py dq_worker`.

TASKS = {"default": {"BACKEND": "django_dq.DQBackend", "OPTIONS": {"url": "redis://localhost:6379/0"}}}

A task may raise `Retry` or `Bury`, as a handler of dq-client may.
"""

from django_dq.backend import DQBackend
from django_dq.errors import NoOutcome
from django_dq.task import DQTask
from dq_client.worker import Bury, Retry

__version__ = "0.1.0"

__all__ = ["Bury", "DQBackend", "DQTask", "NoOutcome", "Retry"]
