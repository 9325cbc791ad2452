"""Dramatiq's own tests, with their fixtures for Redis pointed at DQ (suite/conftest.py).

All that pass with Dramatiq's Redis broker and result backend pass with ours, but for those that
README.md names.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.paths import TARGET
from harness.server import KINDS, Server

HERE = Path(__file__).resolve().parent
(SOURCES,) = (TARGET / "frameworks/dramatiq-dq/sources").glob("dramatiq-*")
# Those that take a broker or a result backend of Redis. Rate limiters and barriers have none of ours.
FILES = ("test_redis.py", "test_results.py", "test_composition.py")
AT_LEAST = 59
# Some race with the worker, on Redis too: they send a message, and then patch what ends it.
TRIES = 3
# One of them fails 16,000 messages.
WITHIN_S = 600


def named_in_the_readme() -> set[str]:
    return set(re.findall(r"^\| `(test_\w+)` \|", (HERE.parent / "README.md").read_text(), re.M))


def outcomes(server: Server, side: str, directory: Path) -> dict[str, bool]:
    """Whether each test has passed. One that was skipped hasn't."""
    tests = directory / "tests"
    shutil.copytree(SOURCES / "tests", tests)
    (tests / "__init__.py").touch()
    for own in ("common.py", "conftest.py"):
        shutil.copy(HERE / "suite" / own, tests)
    told = run(server, side, directory, [])
    for _ in range(TRIES - 1):
        again = {
            name for name, has_passed in told.items() if not has_passed
        } - named_in_the_readme()
        if again:
            told |= run(server, side, directory, ["-k", " or ".join(again)])
    return told


def run(server: Server, side: str, directory: Path, which: list[str]) -> dict[str, bool]:
    report = directory / "report.xml"
    files = [f"tests/{file}" for file in FILES]
    options = ["-q", "-p", "no:cacheprovider", "-o", "timeout=120", f"--junit-xml={report}"]
    told = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(directory), *files, *which],
        cwd=directory,
        env=os.environ | {"SUITE_SIDE": side, "SUITE_PORT": str(server.port)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(told.stdout[-20_000:])
    cases = ElementTree.parse(report).iter("testcase")
    return {case.attrib["name"]: not case.findall("*[@message]") for case in cases}


@pytest.mark.timeout(WITHIN_S)
def test_what_passes_on_redis_passes_on_dq_or_is_named(server: Server, tmp_path: Path) -> None:
    ours = outcomes(server, "dq", tmp_path)
    assert len(ours) >= AT_LEAST
    assert {name for name, has_passed in ours.items() if not has_passed} == named_in_the_readme()


@pytest.mark.timeout(WITHIN_S)
@pytest.mark.parametrize("kind", KINDS[:1], indirect=True, ids=str, scope="session")
def test_all_of_them_pass_on_redis(server: Server, tmp_path: Path) -> None:
    theirs = outcomes(server, "redis", tmp_path)
    assert len(theirs) >= AT_LEAST
    assert all(theirs.values()), [name for name, has_passed in theirs.items() if not has_passed]
