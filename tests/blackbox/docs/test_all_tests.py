"""scripts/test_all.sh, which CI runs: it fails when one of its parts fails, and names what it
leaves out.
"""

import subprocess
from pathlib import Path

import pytest

from harness.paths import ROOT

MAKEFILE = """
test: ; @echo 'servers: Redis 7.0.15'; \\
	echo '===== 3 passed, 1 skipped in 0.10s ====='; echo 'SKIPPED [1] tests/a.py:1: no such server'
test-board: ; @echo '== 1 failed, 4 passed in 61.00s (0:01:01) =='; exit {board}
test-clients: ; @echo '2 passed in 0.02s'
test-kombu: ; @echo '5 passed in 0.02s'
test-frameworks: ; @echo '2 passed in 0.02s'
test-guides: ; @printf 'SKIPPED [%d] b.py:%d: no ruby\\n' 1 7 2 9; echo '1 passed in 0.02s'; test -z '$(ARGS)'
test-dist: ; @echo 'dist: nothing can be built here' >&2; echo '2 skipped in 0.02s'
test-all: ; @bash scripts/test_all.sh $(ARGS)
"""
SETUP = """#!/bin/sh
case " $CANT " in *" $1 "*) echo "setup: no browser for $1" >&2; exit 1 ;; esac
"""


def told(
    folder: Path, cant: str = "", board: int = 0, parts: tuple[str, ...] = ()
) -> tuple[int, list[str]]:
    """Its exit status and its last lines, among parts that only pretend."""
    prepare(folder, board)
    return run(folder, cant, ["bash", "scripts/test_all.sh", *parts])


def prepare(folder: Path, board: int = 0) -> None:
    scripts = folder / "scripts"
    scripts.mkdir()
    (scripts / "test_all.sh").write_text((ROOT / "scripts" / "test_all.sh").read_text())
    (scripts / "setup.sh").write_text(SETUP)
    (scripts / "setup.sh").chmod(0o755)
    (folder / "Makefile").write_text(MAKEFILE.format(board=board))


def run(folder: Path, cant: str, command: list[str]) -> tuple[int, list[str]]:
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "CANT": cant},
        timeout=60,
    )
    return done.returncode, done.stdout.split("What all tests came to:", 1)[1].splitlines()


def test_test_all_runs_all_parts_and_names_skipped_tests(tmp_path: Path) -> None:
    status, lines = told(tmp_path)
    assert status == 0
    assert [line.split()[:2] for line in lines[1:8]] == [
        [part, "passed"]
        for part in ("test", "board", "clients", "kombu", "frameworks", "guides", "dist")
    ]
    assert lines[8] == "  servers: Redis 7.0.15"
    assert "  test: SKIPPED [1] tests/a.py:1: no such server" in lines
    assert "  guides: SKIPPED [3] in 2 places: no ruby" in lines
    assert "  dist: dist: nothing can be built here" in lines
    assert lines[-1].startswith("===== 1 failed, 17 passed, 3 skipped in ")


def test_a_part_that_fails_turns_test_all_red_and_the_others_are_run(tmp_path: Path) -> None:
    status, lines = told(tmp_path, board=1)
    assert status == 1
    assert any(line.startswith("  board      FAILED") for line in lines)
    assert any(line.startswith("  dist       passed") for line in lines)


def test_a_part_that_can_t_be_set_up_is_left_out_and_named(tmp_path: Path) -> None:
    status, lines = told(tmp_path, cant="board test-dist")
    assert status == 0
    assert "  board      LEFT OUT" in lines and "  dist       LEFT OUT" in lines
    assert "  board: setup: no browser for board" in lines
    assert "LEFT OUT, so nothing is known of it:" in lines


def test_the_module_s_own_tests_are_never_left_out(tmp_path: Path) -> None:
    assert told(tmp_path, cant="test")[0] == 1


@pytest.mark.parametrize("part", ["board", "dist"])
def test_test_all_runs_one_part_alone(tmp_path: Path, part: str) -> None:
    _, lines = told(tmp_path, parts=(part,))
    assert [line.split()[0] for line in lines[1:] if " passed in" in line and "=" not in line] == [
        part
    ]


def test_make_test_all_does_not_pass_the_names_of_parts_to_pytest(tmp_path: Path) -> None:
    prepare(tmp_path)
    status, lines = run(tmp_path, "", ["make", "test-all", "ARGS=test guides"])
    assert status == 0
    assert [line.split()[:2] for line in lines[1:3]] == [["test", "passed"], ["guides", "passed"]]
