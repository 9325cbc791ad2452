"""A plugin for Celery's integration cases: many skip themselves unless the result backend's URL begins with
`redis`. Here `redis-dq://` is DQ's backend, so that they run.
"""

from celery.app import backends

backends.BACKEND_ALIASES["redis-dq"] = "kombu_dq.backend:DQBackend"
