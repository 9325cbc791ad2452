"""A release has one version, and each of the places that release/versions.py lists has it.

server/test_info_section.py tests the version in MODULE LIST and INFO.
"""

import re
import subprocess

import pytest

import versions
from harness.paths import ROOT


def test_all_places_of_a_package_have_its_version() -> None:
    assert versions.disagreements(ROOT) == []


def test_a_git_tag_that_a_page_names_exists() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no git here: these sources are a copy")
    tags = subprocess.check_output(["git", "-C", ROOT, "tag"], text=True).split()
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {tag for page in pages for tag in re.findall(r"git checkout (\S+)", page.read_text())}
    assert named <= set(tags)
