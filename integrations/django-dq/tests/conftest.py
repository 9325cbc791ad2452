"""Fixtures: each server of the module's own tests, a project of Django, and its worker.

backend      the project's backend, on an empty server
start        starts `manage.py`, and ends it after the test
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import django
import pytest

from django_dq.framework import TaskResult, task_backends
from dq_client.testing import DQServer
from harness.failover import failing_over as failing_over
from harness.server import KINDS, MODULE, Kind

os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
django.setup()

from django.conf import settings  # noqa: E402
from django.test import override_settings  # noqa: E402

from django_dq import DQBackend  # noqa: E402
from django_dq import options as options_module  # noqa: E402

# Those tests came with Django 6.
collect_ignore = ["test_django_cases.py"] if django.VERSION < (6, 0) else []

# The backport on one server: it is Django that is another then.
CHOSEN = KINDS if django.VERSION >= (6, 0) else KINDS[:1]

HERE = Path(__file__).resolve().parent
#: For what takes milliseconds, on a machine that is busy.
PATIENCE_S = 60


@pytest.fixture(scope="session", params=CHOSEN, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    chosen: Kind = request.param
    return chosen


@pytest.fixture(scope="session")
def dq_server(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DQServer]:
    server = DQServer(str(kind.binary), str(MODULE), tmp_path_factory.mktemp("dq"))
    yield server
    server.stop()


@pytest.fixture
def configured(dq_url: str) -> Iterator[Callable[..., DQBackend]]:
    """Makes the default backend one with other OPTIONS, on the test's server."""
    changed: list[Any] = []

    def configured(queues: list[str] | None = None, **options: Any) -> DQBackend:
        default = dict(settings.TASKS["default"])
        default["OPTIONS"] = {**default["OPTIONS"], "url": dq_url, **options}
        if queues is not None:
            default["QUEUES"] = queues
        options_module._made.cache_clear()  # the same path, but another server
        changed.append(override_settings(TASKS={**settings.TASKS, "default": default}))
        changed[-1].enable()
        backend = task_backends["default"]
        assert isinstance(backend, DQBackend)
        return backend

    yield configured
    for each in reversed(changed):
        each.disable()


@pytest.fixture
def backend(configured: Callable[..., DQBackend]) -> DQBackend:
    return configured()


class Program:
    """A `manage.py` that runs. What it says goes to a file."""

    def __init__(
        self,
        url: str,
        log: Path,
        words: tuple[str, ...],
        *,
        folder: Path = HERE,
        settings: str = os.environ["DJANGO_SETTINGS_MODULE"],
        input: str = "",
    ):
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", *words],
                cwd=folder,
                env=os.environ
                | {
                    "DQ_URL": url,
                    "PYTHONUNBUFFERED": "1",
                    "DJANGO_SETTINGS_MODULE": settings,
                    "SHOP_DATABASE": str(log.with_suffix(".sqlite")),
                },
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                text=True,
            )
        assert self.process.stdin is not None
        self.process.stdin.write(input)
        self.process.stdin.close()

    @property
    def said(self) -> str:
        return self._log.read_text()

    def ended(self, number: signal.Signals | None = None) -> int:
        """The exit code, after this signal."""
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def start(dq_url: str, tmp_path: Path) -> Iterator[Callable[..., Program]]:
    started: list[Program] = []

    def start(*words: str, **options: Any) -> Program:
        log = tmp_path / f"program-{len(started)}.log"
        started.append(Program(dq_url, log, words, **options))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
        print(each.said)


def until(condition: Callable[[], Any]) -> Any:
    """What the condition says, as soon as that is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
    return found


def finished(result: TaskResult[..., Any]) -> TaskResult[..., Any]:
    """The result, once its task has come to an end."""

    def is_finished() -> bool:
        result.refresh()
        return result.is_finished

    until(is_finished)
    return result
