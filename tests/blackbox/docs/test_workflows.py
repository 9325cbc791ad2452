"""What GitHub runs is what the Makefile has, and what it updates is what there is."""

import re
import subprocess
from pathlib import PurePosixPath

import pytest

from harness.paths import ROOT
from harness.server import KNOWN

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
CI = (GITHUB / "workflows" / "ci.yml").read_text()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_targets_of_the_makefile(workflow) -> None:
    there = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = workflow.read_text()
    called = re.findall(r"- run: make ([a-z-]+)", text)
    for targets in re.findall(r"^ +target: \[(.*)\]$", text, re.MULTILINE):
        called += [target.split()[0] for target in targets.split(", ")]
    assert called
    assert set(called) <= there
    # All else is in the Makefile, so that it can be run without GitHub.
    others = set(re.findall(r"- run: (?!make )(.*)", text))
    assert others <= {"cargo fetch --locked"}


def test_ci_runs_the_module_on_each_known_server() -> None:
    assert f"server: [{', '.join(KNOWN)}]" in CI


def test_ci_runs_all_parts_of_make_test_all() -> None:
    script = (ROOT / "scripts" / "test_all.sh").read_text()
    parts = re.search(r"parts=\((test board[a-z ]*)\)", script)[1].split()
    for part in parts[1:]:
        assert f"test-{part}" in CI, part


def test_dependabot_looks_into_each_folder_that_pins_versions() -> None:
    named = set(re.findall(r"^ +- (/\S*)$", (GITHUB / "dependabot.yml").read_text(), re.MULTILINE))
    files = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    pins = re.compile(r"Cargo\.lock|package-lock\.json|requirements.*\.txt")
    there = {
        PurePosixPath("/", path).parent for path in files if pins.fullmatch(path.split("/")[-1])
    }
    assert named == {str(folder) for folder in there}
