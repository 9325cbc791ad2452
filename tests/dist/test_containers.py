"""The Containerfiles and compose.yaml. No image can be had without a network: they are read by linters, and
what they name is there."""

import re
import shutil
from pathlib import Path

import pytest

from conftest import TOOLS, run
from harness.paths import ROOT

CONTAINERFILES = sorted((ROOT / "containers").glob("*.Containerfile"))


@pytest.mark.parametrize("path", CONTAINERFILES, ids=lambda path: path.stem)
def test_a_containerfile_is_sound(path: Path) -> None:
    run(TOOLS / "bin" / "hadolint", "--failure-threshold", "style", path)


@pytest.mark.parametrize("path", CONTAINERFILES, ids=lambda path: path.stem)
def test_a_containerfile_copies_all_that_the_build_needs(path: Path, tmp_path: Path) -> None:
    """Copied as the Containerfile and .dockerignore say, cargo finds each file of the package."""
    allowed = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copies = re.findall(r"^COPY (?!--from)(.+) (\S+)$", path.read_text(), re.MULTILINE)
    assert copies
    for sources, to in copies:
        for source in sources.split():
            assert source in allowed, f".dockerignore keeps {source} out"
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, tmp_path / to)
            else:
                shutil.copy(ROOT / source, tmp_path / to)
    (host,) = re.findall(r"^host: (.+)$", run("rustc", "-vV"), re.MULTILINE)
    run(
        "cargo",
        "metadata",
        "--locked",
        "--offline",
        # What only other systems need is not on this one.
        "--filter-platform",
        host,
        "--format-version",
        "1",
        "--manifest-path",
        tmp_path / "Cargo.toml",
    )
    included = {
        (source.parent / name).resolve()
        for source in tmp_path.rglob("*.rs")
        for name in re.findall(r'include_(?:str|bytes)!\("(.+)"\)', source.read_text())
    }
    assert all(file.exists() for file in included)


def test_compose_yaml_is_valid_by_its_schema() -> None:
    run(
        TOOLS / "bin" / "check-jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        ROOT / "compose.yaml",
    )


def test_files_that_compose_yaml_names_exist() -> None:
    compose = (ROOT / "compose.yaml").read_text()
    files = re.findall(r"^\s+(?:dockerfile: |- \./)([\w./-]+)", compose, re.MULTILINE)
    assert len(files) == 6
    for name in files:
        assert (ROOT / name).exists(), name
    published = re.findall(r'ports: \["(.+)"\]', compose)
    assert len(published) == 4
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_the_prometheus_of_compose_yaml_is_configured(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: scripts/setup.sh board installs it")
    shutil.copy(ROOT / "containers" / "prometheus.yml", tmp_path)
    shutil.copy(ROOT / "prometheus" / "alerts.yml", tmp_path)
    run(promtool, "check", "config", tmp_path / "prometheus.yml")


def test_the_board_of_compose_yaml_takes_its_options(unpacked: Path) -> None:
    """Each option of compose.yaml is one of dq-board's."""
    options = re.findall(
        r'"(--[a-z-]+)"', re.search(r"command: (\[.+\])", (ROOT / "compose.yaml").read_text())[1]
    )
    assert options
    told = run(unpacked / "dq-board", "--help")
    assert all(option in told for option in options)
