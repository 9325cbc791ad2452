"""A release has one version, and each of the places that CONTRIBUTING.md lists has it.

server/test_info_section.py tests the version in MODULE LIST and INFO.
"""

import re
import subprocess

import pytest

from harness.paths import ROOT


def first(pattern: str, page: str) -> str:
    found = re.search(pattern, (ROOT / page).read_text(), re.MULTILINE)
    assert found, f"no {pattern} in {page}"
    return found[1]


VERSION = first(r'^version = "(.+)"$', "Cargo.toml")


def test_the_changelog_begins_with_the_crate_s_version() -> None:
    assert first(r"^## (?:Unreleased \()?([0-9.]+)", "CHANGELOG.md") == VERSION


def test_the_board_has_the_module_s_version() -> None:
    assert first(r'^version = "(.+)"$', "board/Cargo.toml") == VERSION
    assert first(r'^name = "dq-board"\nversion = "(.+)"$', "board/Cargo.lock") == VERSION


def test_files_that_the_install_page_names_have_the_module_s_version() -> None:
    named = re.findall(
        r"\bdq-(?:module_|board_)?([0-9]+\.[0-9]+\.[0-9]+)", (ROOT / "docs/install.md").read_text()
    )
    assert len(named) >= 4
    assert set(named) == {VERSION}
    for package, folder in (
        ("kombu_dq", "integrations/kombu-dq"),
        ("django_dq", "integrations/django-dq"),
        ("dramatiq_dq", "integrations/dramatiq-dq"),
        ("dq_client", "clients/python"),
    ):
        page = (ROOT / "docs/install.md").read_text()
        (told,) = set(re.findall(rf"\b{package}-([0-9.]+)-py3", page))
        assert told == first(r'^version = "(.+)"$', f"{folder}/pyproject.toml")


def test_a_git_tag_that_a_page_names_exists() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no git here: these sources are a copy")
    tags = subprocess.check_output(["git", "-C", ROOT, "tag"], text=True).split()
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {tag for page in pages for tag in re.findall(r"git checkout (\S+)", page.read_text())}
    assert named <= set(tags)
