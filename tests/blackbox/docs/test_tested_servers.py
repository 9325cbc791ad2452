"""The pages for users, and the first line of a test run, name the servers that are tested."""

import os
import subprocess
import sys

import pytest

from harness.paths import ROOT
from harness.server import KINDS, KNOWN, Kind, Server

FETCHED = [pytest.param(kind, id=name) for name, kind in KNOWN.items()]


def title(kind: Kind) -> str:
    return f"{kind.family.capitalize()} {kind.version}"


@pytest.mark.parametrize("fetched", FETCHED)
def test_the_page_of_servers_names_each_server_that_is_fetched(fetched: Kind) -> None:
    assert title(fetched) in (ROOT / "docs" / "servers.md").read_text()


def test_make_test_all_runs_on_all_known_servers() -> None:
    assert f"SERVERS:-{' '.join(KNOWN)}}}" in (ROOT / "scripts" / "test_all.sh").read_text()


def test_a_test_run_begins_with_the_releases_of_its_servers(server: Server) -> None:
    release = server.client().info("server")
    told = release.get("valkey_version", release["redis_version"])
    header = subprocess.check_output(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "tests/blackbox/harness/test_wall_clock.py",
        ],
        cwd=ROOT,
        text=True,
        env=os.environ | {"DQ_SERVERS": str(server.kind.path)},
        timeout=60,
    )
    assert f"\nservers: {server.kind.family.capitalize()} {told}\n" in header


def test_make_test_newest_wants_a_server() -> None:
    done = subprocess.run(
        ["make", "test-newest", "SERVER="], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "SERVER=path/to/redis-server" in done.stderr


def test_make_test_newest_runs_the_black_box_tests_on_that_server() -> None:
    command = ["make", "--dry-run", "test-newest", f"SERVER={KINDS[0].path}"]
    told = subprocess.check_output(command, cwd=ROOT, text=True, timeout=60)
    assert f'test-blackbox SERVERS="{KINDS[0].path}"' in told
