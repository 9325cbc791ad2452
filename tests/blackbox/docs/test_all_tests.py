"""scripts/test_all.sh, which CI runs: it fails when one of its parts fails, and names what it
leaves out.
"""

import subprocess
from pathlib import Path

from harness.paths import ROOT

MAKEFILE = """
test: ; @echo 'servers: Redis 7.0.15'; echo '3 passed in 0.10s'
test-board: ; @echo '4 passed in 61.00s'; exit {board}
test-clients: ; @echo '2 passed in 0.02s'
test-kombu: ; @echo '5 passed in 0.02s'
test-frameworks: ; @echo '2 passed in 0.02s'
test-guides: ; @echo '1 passed in 0.02s'
test-dist: ; @echo '2 passed in 0.02s'
"""
SETUP = """#!/bin/sh
case " $CANT " in *" $1 "*) echo "setup: no browser for $1" >&2; exit 1 ;; esac
"""


def told(folder: Path, cant: str = "", board: int = 0) -> tuple[int, list[str]]:
    """Its exit status and its last lines, among parts that only pretend."""
    scripts = folder / "scripts"
    scripts.mkdir()
    (scripts / "test_all.sh").write_text((ROOT / "scripts" / "test_all.sh").read_text())
    (scripts / "setup.sh").write_text(SETUP)
    (scripts / "setup.sh").chmod(0o755)
    (folder / "Makefile").write_text(MAKEFILE.format(board=board))
    done = subprocess.run(
        ["bash", "scripts/test_all.sh"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "CANT": cant},
        timeout=60,
    )
    return done.returncode, done.stdout.split("What all tests came to:", 1)[1].splitlines()


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
