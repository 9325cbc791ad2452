"""Django's own tests of backends pass, but for those that the README names with their reasons."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent
SOURCES = PACKAGE.parents[1] / "target/frameworks/django-dq/sources"


def named_in_readme() -> set[str]:
    text = (PACKAGE / "README.md").read_text()
    return set(re.findall(r"^\| `(\w+\.test_\w+)` \|", text, re.MULTILINE))


@pytest.mark.timeout(600)
def test_django_s_own_tests(dq_url: str) -> None:
    (sources,) = SOURCES.glob("django-*")
    run = subprocess.run(
        [sys.executable, "django_cases.py", sources],
        cwd=HERE,
        env=os.environ | {"DQ_URL": dq_url, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    print(run.stderr)
    assert run.returncode == 0
    told: dict[str, str] = json.loads(run.stdout.splitlines()[-1])
    failed = {name for name, outcome in told.items() if outcome != "passed"}
    assert failed == named_in_readme()
    readme = (PACKAGE / "README.md").read_text()
    assert f"{len(told) - len(failed)} of {len(told)}" in readme
