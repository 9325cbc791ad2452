"""Runs Django's own tests of its backends of tasks, on DQ: a program by itself.

django_cases.py SOURCES   the folder of Django's source distribution; DQ_URL is the server

Django's dummy and immediate backends are replaced, by their paths, by those of cases_backends.py:
DQ without a worker and DQ with one. The tests stay as they are. The last line is JSON: what came of
each test.
"""

from __future__ import annotations

import json
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import django
from django.conf import settings

#: Of Django's tests/tasks, those that are about backends that put tasks somewhere.
MODULES = ("test_dummy_backend", "test_immediate_backend", "test_tasks")
_OURS = {
    "django.tasks.backends.dummy": "cases_backends",
    "django.tasks.backends.immediate": "cases_backends",
}


def copied(sources: Path, folder: Path) -> None:
    package = folder / "tasks"
    package.mkdir()
    for name in ("__init__", "tasks", *MODULES):
        text = (sources / "tests/tasks" / f"{name}.py").read_text()
        for theirs, ours in _OURS.items():
            text = text.replace(theirs, ours)
        (package / f"{name}.py").write_text(text)


class Told(unittest.TextTestResult):
    """What came of each test, by its class and name."""

    told: dict[str, str] = {}  # noqa: RUF012

    def stopTest(self, test: unittest.TestCase) -> None:
        self.told.setdefault(_name(test), "passed")
        super().stopTest(test)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.told[_name(test)] = str(err[1])
        super().addFailure(test, err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self.told[_name(test)] = repr(err[1])
        super().addError(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.told[_name(test)] = repr(err[1])
        super().addSubTest(test, subtest, err)


def _name(test: unittest.TestCase) -> str:
    return ".".join(test.id().split(".")[-2:])


def main() -> None:
    settings.configure(
        SECRET_KEY="of a test",
        USE_TZ=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    )
    django.setup()
    from django.test.runner import DiscoverRunner

    class Runner(DiscoverRunner):
        def get_resultclass(self) -> Any:
            return Told

    with tempfile.TemporaryDirectory() as folder:
        copied(Path(sys.argv[1]), Path(folder))
        sys.path.insert(0, folder)
        Runner(verbosity=1, interactive=False).run_tests([f"tasks.{each}" for each in MODULES])
    print(json.dumps(Told.told))


if __name__ == "__main__":
    main()
