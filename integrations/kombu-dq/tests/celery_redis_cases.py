"""A plugin for Celery's integration cases. Many skip themselves, or expect to fail, when the result backend's
URL begins with `redis://`. With RESULTS=dq in the environment that is DQ's backend.
"""

import os

from celery.app import backends

if os.environ.get("RESULTS") == "dq":
    backends.BACKEND_ALIASES["redis"] = "kombu_dq.backend:DQBackend"
