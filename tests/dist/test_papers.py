"""The list of linked packages, their licences, and the versions that have to agree."""

import json
import re
from pathlib import Path

import pytest

from conftest import HERE, TOOLS, VERSION, run
from harness.paths import ROOT, TARGET

BUILD = TARGET / "dist-build"
OWN_VERSIONS = ("kombu_dq-", "django_dq-", "dramatiq_dq-", "taskiq_dq-", "dq_client-", "dq-client-")


@pytest.fixture(scope="session")
def bom(unpacked: Path) -> dict:
    return json.loads((unpacked / "sbom.cdx.json").read_text())


def test_the_sbom_is_valid_cyclonedx(unpacked: Path) -> None:
    code = (
        "import sys; from cyclonedx.schema import SchemaVersion\n"
        "from cyclonedx.validation.json import JsonStrictValidator\n"
        "wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())\n"
        "sys.exit(wrong and str(wrong))"
    )
    run(TOOLS / "bin" / "python", "-c", code, unpacked / "sbom.cdx.json")


def test_the_sbom_has_every_package_that_was_linked(bom: dict) -> None:
    """The compiler was handed an .rlib for each package: what was compiled for the target is what is linked.
    What only build scripts and macros need was compiled for the host, elsewhere."""
    listed = {component["name"].replace("-", "_") for component in bom["components"]}
    linked = set()
    for part, libc in (("module", "gnu"), ("board", "musl")):
        deps = BUILD / part / f"{HERE}-unknown-linux-{libc}" / "release" / "deps"
        linked |= {re.sub(r"^lib|-[0-9a-f]+$", "", path.stem) for path in deps.glob("*.rlib")}
    assert len(linked) > 100
    # A crate's name may differ from its package's: what the metadata of cargo calls its library.
    assert linked - library_names(listed) == set()


def library_names(packages: set[str]) -> set[str]:
    names = set(packages)
    for manifest in (ROOT / "Cargo.toml", ROOT / "board" / "Cargo.toml"):
        told = run(
            "cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", manifest
        )
        for package in json.loads(told)["packages"]:
            if package["name"].replace("-", "_") in packages:
                names |= {
                    target["name"].replace("-", "_")
                    for target in package["targets"]
                    if "lib" in target["kind"]
                }
    return names


def test_versions_and_sums_of_the_sbom_are_those_of_the_lock_files(bom: dict) -> None:
    locks = [(ROOT / place / "Cargo.lock").read_text() for place in ("", "board")]
    locked = {
        (name, version): checksum
        for lock in locks
        for name, version, checksum in re.findall(
            r'name = "(.+)"\nversion = "(.+)"\nsource = .+\nchecksum = "(.+)"', lock
        )
    }
    crates = [
        component
        for component in bom["components"]
        if component.get("purl", "").startswith("pkg:cargo/")
    ]
    assert len(crates) > 100
    for crate in crates:
        assert crate["hashes"][0]["content"] == locked[crate["name"], crate["version"]], crate[
            "name"
        ]


def test_each_package_s_licence_is_passed_on(unpacked: Path, bom: dict) -> None:
    notices = (unpacked / "THIRD-PARTY-LICENSES.txt").read_text()
    for component in bom["components"]:
        if component["name"] not in ("dq", "dq-board"):
            assert f"\n{component['name']} {component['version']} (" in notices, component["name"]
    for text in (
        "Permission is hereby granted, free of charge",
        "Apache License",
        "UNICODE LICENSE",
    ):
        assert text.lower() in notices.lower()


@pytest.mark.parametrize(
    ("expression", "is_taken"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("Apache-2.0 AND ISC", True),
        ("MIT AND GPL-2.0-only", False),
        ("(MIT OR GPL-2.0-only) AND Unicode-3.0", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("", False),
    ],
)
def test_only_allowed_licences_are_taken(expression: str, is_taken: bool) -> None:
    code = "import sys; sys.path[0] = sys.argv[1]; import licences; print(licences.is_taken(sys.argv[2]))"
    assert (
        run(TOOLS / "bin" / "python", "-c", code, ROOT / "release", expression) == f"{is_taken}\n"
    )


def test_one_release_has_one_version(dist: Path, bom: dict) -> None:
    """MODULE LIST tells that of Cargo.toml (test_load.py)."""
    (board,) = re.findall(
        r'^version = "(.+)"$', (ROOT / "board" / "Cargo.toml").read_text(), re.MULTILINE
    )
    newest = re.search(
        r"^## (?:Unreleased \()?([0-9.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert newest
    assert VERSION == board == newest[1] == bom["metadata"]["component"]["version"]
    for path in dist.iterdir():
        # The other packages have versions of their own.
        assert (
            path.name == "SHA256SUMS" or VERSION in path.name or path.name.startswith(OWN_VERSIONS)
        )
