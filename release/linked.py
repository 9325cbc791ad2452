"""What is linked into the released files: the packages of Cargo.lock, and what the toolchain
adds.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# rustc's own, by the names of their SPDX files in the toolchain's share/doc/rust/licenses.
STANDARD_LIBRARY_LICENCES = ("Apache-2.0", "MIT")

LICENCE_FILE = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Package:
    """A package that is linked, with what its licences ask to be passed on."""

    name: str
    version: str
    licence: str
    authors: tuple[str, ...]
    repository: str
    texts: tuple[str, ...]
    sha256: str | None
    purl: str


@dataclass(frozen=True)
class Linked:
    """One of our own packages, what it is made of, itself included, and who depends on whom, by
    purl.
    """

    own: str
    packages: list[Package]
    edges: dict[str, list[str]]


def linked(manifest: Path, target: str) -> Linked:
    """What `manifest` links on `target`: no proc-macros, no build scripts' needs, no tests'
    needs.
    """
    ids = set(_tree(manifest, target))
    metadata = _metadata(manifest, target)
    locked = _checksums(manifest.with_name("Cargo.lock"))
    packages = {}
    for raw in metadata["packages"]:
        name, version = raw["name"], raw["version"]
        if (name, version) in ids:
            packages[raw["id"]] = _package(raw, locked.get((name, version)))
    edges = {
        packages[node["id"]].purl: sorted(
            packages[dependency["pkg"]].purl
            for dependency in node["deps"]
            if dependency["pkg"] in packages
            and any(kind["kind"] is None for kind in dependency["dep_kinds"])
        )
        for node in metadata["resolve"]["nodes"]
        if node["id"] in packages
    }
    return Linked(packages[metadata["resolve"]["root"]].purl, sorted(packages.values()), edges)


def toolchain(zig: Path) -> list[Package]:
    """What the compilers add: Rust's standard library, zig's unwinder, and musl, in the static
    program.
    """
    sysroot = Path(output("rustc", "--print", "sysroot"))
    licences = sysroot / "share" / "doc" / "rust" / "licenses"
    rust = re.match(r"rustc (\S+)", output("rustc", "--version"))
    assert rust, "rustc tells its version"
    texts = tuple((licences / f"{name}.txt").read_text() for name in STANDARD_LIBRARY_LICENCES)
    version = output(str(zig / "zig"), "version")
    unwinder = (zig / "lib" / "libunwind" / "LICENSE.TXT").read_text()
    musl = (zig / "lib" / "libc" / "musl" / "COPYRIGHT").read_text()
    return [
        _tool("rust-std", rust[1], "MIT OR Apache-2.0", "https://www.rust-lang.org", *texts),
        _tool("libunwind", version, "Apache-2.0 WITH LLVM-exception", "https://llvm.org", unwinder),
        _tool("musl", version, "MIT", "https://musl.libc.org", musl),
    ]


def _tree(manifest: Path, target: str) -> Iterator[tuple[str, str]]:
    """Names and versions, with the features of a build. `cargo metadata` takes in those of tests,
    too.
    """
    lines = output(
        *("cargo", "tree", "--locked", "--manifest-path", str(manifest), "--target", target),
        *("--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe", "--format", "{p}"),
    )
    for line in lines.splitlines():
        name, version = line.split()[:2]
        yield name, version.removeprefix("v")


def _metadata(manifest: Path, target: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(
        output(
            *("cargo", "metadata", "--locked", "--format-version", "1"),
            *("--manifest-path", str(manifest), "--filter-platform", target),
        )
    )
    return told


def _checksums(lock: Path) -> dict[tuple[str, str], str]:
    """By name and version. Cargo writes one line a field, checksum last."""
    found = re.findall(
        r'\[\[package\]\]\nname = "(.+)"\nversion = "(.+)"\n(?:source = .+\nchecksum = "(.+)"\n)?',
        lock.read_text(),
    )
    return {(name, version): checksum for name, version, checksum in found if checksum}


def _package(raw: dict[str, Any], checksum: str | None) -> Package:
    name, version = raw["name"], raw["version"]
    licence = (raw["license"] or "").replace("/", " OR ").replace("  ", " ")
    home = Path(raw["manifest_path"]).parent
    texts = tuple(
        path.read_text(errors="replace")
        for path in sorted(home.iterdir())
        if path.is_file() and LICENCE_FILE.match(path.name)
    )
    return Package(
        name=name,
        version=version,
        licence=licence,
        authors=tuple(raw["authors"]),
        repository=raw["repository"] or "",
        texts=texts,
        sha256=checksum,
        purl=f"pkg:cargo/{name}@{version}" if raw["source"] else f"pkg:generic/{name}@{version}",
    )


def _tool(name: str, version: str, licence: str, repository: str, *texts: str) -> Package:
    """`version` is that of the tool which brings it."""
    return Package(
        name, version, licence, (), repository, texts, None, f"pkg:generic/{name}@{version}"
    )


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
