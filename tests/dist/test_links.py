"""Every link of a page leads to a file of the package that the page is in."""

import re
import tarfile
import zipfile
from pathlib import Path

import pytest

from conftest import run
from test_debian import deb

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
TITLE = re.compile(r"^#+ (.+)$", re.MULTILINE)


def dead_links(folder: Path) -> list[str]:
    """Of all pages below it. A page that says nothing of others would pass, so there have to be some."""
    dead, followed = [], 0
    for page in sorted(folder.rglob("*.md")):
        for path, anchor in LINK.findall(FENCE.sub("", page.read_text())):
            if path.startswith("http"):
                continue
            followed += 1
            target = (page.parent / path).resolve() if path else page
            if not (target.exists() and target.is_relative_to(folder.resolve())):
                dead.append(f"{page.relative_to(folder)}: {path}")
            elif anchor and anchor not in anchors_of(target):
                dead.append(f"{page.relative_to(folder)}: {path}#{anchor}")
    assert followed > 5
    return dead


def anchors_of(page: Path) -> set[str]:
    """As GitHub makes them."""
    titles = TITLE.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_no_link_of_the_archive_is_dead(unpacked: Path) -> None:
    assert dead_links(unpacked) == []


def test_no_link_of_a_debian_package_is_dead(dist: Path, tmp_path: Path) -> None:
    for name in ("dq-module", "dq-board"):
        run("dpkg-deb", "--extract", deb(dist, name), tmp_path / name)
        assert dead_links(tmp_path / name / "usr/share/doc" / name) == []


def test_pages_of_the_sources_are_named_where_they_are_not_linked(unpacked: Path) -> None:
    assert "[Contributing](" not in (unpacked / "README.md").read_text()
    assert "Contributing (`CONTRIBUTING.md` in the sources)" in (unpacked / "README.md").read_text()
    assert "[Python](python)" in (unpacked / "examples" / "README.md").read_text()
    assert (unpacked / "examples/python/worker.py").exists()


@pytest.mark.parametrize(
    "package", ["kombu_dq", "django_dq", "dramatiq_dq", "taskiq_dq", "dq_client"]
)
def test_a_python_package_has_no_links_into_the_sources(dist: Path, package: str) -> None:
    """Its page is shown where packages are listed."""
    (wheel,) = dist.glob(f"{package}-*.whl")
    (sdist,) = dist.glob(f"{package}-*.tar.gz")
    with zipfile.ZipFile(wheel) as files:
        (metadata,) = (name for name in files.namelist() if name.endswith("/METADATA"))
        pages = [files.read(metadata).decode()]
    with tarfile.open(sdist) as files:
        (readme,) = (name for name in files.getnames() if name.endswith("/README.md"))
        pages.append(files.extractfile(readme).read().decode())
    for page in pages:
        assert [
            path for path, _ in LINK.findall(page) if path and not path.startswith("http")
        ] == []
