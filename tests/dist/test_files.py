"""What an archive holds: the files, their checksums, and what they need on a machine."""

import re
import shutil
import stat
import tarfile
from pathlib import Path

import pytest

from conftest import GLIBC, HERE, OTHER, TOOLS, VERSION, run
from harness.paths import ROOT

PROGRAMS = ("libdq.so", "libdq-musl.so", "dq-board")
# What a page of README and docs/ links to, and what a packager looks for.
PAPERS = (
    *(
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "THIRD-PARTY-LICENSES.txt",
        "SHA256SUMS",
        "sbom.cdx.json",
    ),
    *("redis.conf.example", "docs/install.md", "docs/commands/add.md", "docs/board/overview.png"),
    *(
        "grafana/dq.json",
        "prometheus/alerts.yml",
        "helm/dq/Chart.yaml",
        "helm/dq/alerts.yml",
        "examples/README.md",
        "examples/python/worker.py",
    ),
)
MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}


@pytest.fixture(params=[HERE, OTHER])
def files(request: pytest.FixtureRequest) -> tuple[str, Path]:
    """An architecture and its archive, unpacked."""
    return request.param, request.getfixturevalue("unpacked" if request.param == HERE else "other")


def test_the_sha256_sums_of_all_files_hold(dist: Path, unpacked: Path) -> None:
    for folder in (dist, unpacked):
        named = {
            line.split(maxsplit=1)[1] for line in (folder / "SHA256SUMS").read_text().splitlines()
        }
        there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert named == there - {"SHA256SUMS"}
        run("sh", "-c", f"cd '{folder}' && sha256sum --check --strict --quiet SHA256SUMS")


def test_an_archive_has_all_files_for_its_processor(files: tuple[str, Path]) -> None:
    arch, folder = files
    for name in (*PROGRAMS, *PAPERS):
        mode = 0o755 if name in PROGRAMS else 0o644
        assert stat.S_IMODE((folder / name).stat().st_mode) == mode, name
    for name in PROGRAMS:
        assert f"Machine:                           {MACHINES[arch]}" in run(
            "readelf", "-h", folder / name
        ), name


def test_an_archive_is_root_s_and_sorted(dist: Path) -> None:
    with tarfile.open(dist / f"dq-{VERSION}-linux-{HERE}.tar.gz") as tar:
        members = tar.getmembers()
    assert [member.name for member in members] == sorted(member.name for member in members)
    assert {(member.uname, member.uid, member.gid) for member in members} == {("root", 0, 0)}
    assert len({member.mtime for member in members}) == 1


def test_the_module_needs_libc_alone_and_an_old_one(files: tuple[str, Path]) -> None:
    arch, folder = files
    loader = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}[arch]
    # Before glibc 2.34 these were files of their own. All of them are glibc.
    of_glibc = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", loader}
    assert "libc.so.6" in needed(folder / "libdq.so") <= of_glibc
    told = re.findall(
        r"Name: GLIBC_(\d+)\.(\d+)", run("readelf", "--version-info", "--wide", folder / "libdq.so")
    )
    versions = {(int(major), int(minor)) for major, minor in told}
    assert versions
    assert max(versions) <= GLIBC


def test_the_module_for_musl_needs_musl_alone(files: tuple[str, Path]) -> None:
    _, folder = files
    assert needed(folder / "libdq-musl.so") == {"libc.so"}


def test_the_board_needs_no_shared_library(files: tuple[str, Path]) -> None:
    _, folder = files
    assert needed(folder / "dq-board") == set()
    assert "INTERP" not in run("readelf", "--program-headers", folder / "dq-board")


def test_the_board_is_position_independent(files: tuple[str, Path]) -> None:
    """Position-independent, as what listens should be: an attacker knows no address in it."""
    _, folder = files
    assert "DYN (" in run("readelf", "--file-header", folder / "dq-board")


def test_no_file_tells_where_it_was_built(files: tuple[str, Path]) -> None:
    _, folder = files
    for name in PROGRAMS:
        content = (folder / name).read_bytes()
        places = re.findall(rb"/(?:home|root|work|tmp|build/source)/[\w./+-]+", content)
        assert places == [], name
        assert ".debug_" not in run("readelf", "--sections", "--wide", folder / name), name


def test_a_module_shows_what_a_server_calls_and_no_more(files: tuple[str, Path]) -> None:
    _, folder = files
    for name in ("libdq.so", "libdq-musl.so"):
        symbols = run("readelf", "--dyn-syms", "--wide", folder / name).splitlines()
        shown = {line.split()[-1] for line in symbols if " GLOBAL " in line and " UND " not in line}
        assert "RedisModule_OnLoad" in shown, name


def test_what_running_an_example_leaves_behind_is_not_packed(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "release", tmp_path / "release")
    pages = ("README.md", "CHANGELOG.md", "ARCHITECTURE.md", "LICENSE", "redis.conf.example")
    examples = ("examples/node/worker.js", "examples/rust/src/worker.rs")
    left = ("examples/node/node_modules/redis/index.js", "examples/rust/target/debug/build.rs")
    for name in (*pages, *examples, *left):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(ROOT / "examples/.gitignore", tmp_path / "examples/.gitignore")
    code = "import sys; sys.path[0] = sys.argv[1]; import pack; print(*pack.pages(), sep='\\n')"
    told = run(TOOLS / "bin" / "python", "-c", code, tmp_path / "release")
    assert set(told.splitlines()) == {*pages, *examples}


def test_the_board_runs_and_tells_its_version(unpacked: Path) -> None:
    assert run(unpacked / "dq-board", "--version") == f"dq-board {VERSION}\n"


def needed(path: Path) -> set[str]:
    return set(
        re.findall(r"\(NEEDED\) +Shared library: \[(.+)\]", run("readelf", "--dynamic", path))
    )
