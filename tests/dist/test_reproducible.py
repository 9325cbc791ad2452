"""The same sources give the same bytes, in another folder and at another time."""

import filecmp
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import HERE, TOOLS, run
from harness.paths import ROOT


@pytest.mark.timeout(3600)
@pytest.mark.skipif(
    "DIST_ONCE" in os.environ, reason="DIST_ONCE: no second build, so not seen whether it is equal"
)
def test_a_build_elsewhere_is_equal_byte_for_byte(dist: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "in" / "another folder"
    copy_sources(elsewhere)
    done = subprocess.run(
        [elsewhere / "scripts" / "dist.sh", HERE],
        env=os.environ
        | {
            "CARGO_TARGET_DIR": str(elsewhere / "target"),
            "DIST_TOOLS": str(TOOLS),
            "DIST_OUT": str(tmp_path / "out"),
            # A copy has no git to ask.
            "SOURCE_DATE_EPOCH": run("git", "-C", ROOT, "log", "-1", "--format=%ct").strip(),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    made = sorted(path.name for path in (tmp_path / "out").iterdir() if path.name != "SHA256SUMS")
    assert len(made) >= 1
    differing = [
        name
        for name in made
        if not filecmp.cmp(tmp_path / "out" / name, dist / name, shallow=False)
    ]
    assert differing == []
    shutil.rmtree(elsewhere)


def copy_sources(to: Path) -> None:
    """The work tree without what is built and what is ignored."""
    for name in run(
        "git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"
    ).split("\0"):
        if name and (ROOT / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
