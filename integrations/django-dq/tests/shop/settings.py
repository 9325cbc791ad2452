"""Settings of the project. DQ_URL is the server."""

import os
from datetime import timedelta

import django

from dq_client import Backoff

SECRET_KEY = "of a test"
IS_BACKPORT = django.VERSION < (6, 0)
TASKS_OF_DJANGO = "django_tasks" if IS_BACKPORT else "django.tasks"
INSTALLED_APPS = ["django_tasks", "django_dq"] if IS_BACKPORT else ["django_dq"]
DATABASE = os.environ.get("SHOP_DATABASE", ":memory:")
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DATABASE}}
USE_TZ = True
TASKS = {
    "default": {
        "BACKEND": "django_dq.DQBackend",
        "QUEUES": ["default", "emails"],
        "OPTIONS": {
            "url": os.environ.get("DQ_URL", "redis://127.0.0.1:1/0"),
            "client": os.environ.get("DQ_CLIENT"),
            "backoff": Backoff(timedelta(milliseconds=10), timedelta(milliseconds=50)),
        },
    },
    "other": {"BACKEND": f"{TASKS_OF_DJANGO}.backends.dummy.DummyBackend", "QUEUES": []},
}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {TASKS_OF_DJANGO: {"level": "INFO"}},
}
