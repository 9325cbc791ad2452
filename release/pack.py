"""Packs what scripts/dist.sh has built: an archive and Debian packages for each architecture;
Python packages; sums.

pack.py --out FOLDER --build FOLDER ARCH…
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import ziglang

import archive
import debian
import versions
from licences import notices
from linked import linked, output, toolchain
from links import placed
from sbom import bill_of_materials

ROOT = Path(__file__).resolve().parents[1]
ZIG = Path(ziglang.__file__).parent
GLIBC = "2.28"

CRATE = "clients/rust"
NPM_PACKAGE = ROOT / "clients" / "typescript"

PAGES = ("README.md", "CHANGELOG.md", "ARCHITECTURE.md", "LICENSE", "redis.conf.example")
MANUAL = ROOT / "board" / "dq-board.1"
EXAMPLES = (".md", ".py", ".txt", ".js", ".json", ".java", ".xml", ".rs", ".toml", ".lock")
FOLDERS = {
    "docs": (".md", ".png", ".svg"),
    "examples": EXAMPLES,
    "grafana": (".json",),
    # alerts.yml is a link in the sources, and a file there.
    "helm": (".yaml", ".yml", ".json", ".tpl", ".txt", ".md"),
    "kubernetes": (".yaml",),
    "prometheus": (".yml",),
}

# What goes into the Debian packages besides programs: places in their folders of documentation, by
# paths of the sources. A name that ends in a slash is a folder's.
OF_BOTH = {"LICENSE": "copyright", "CHANGELOG.md": "CHANGELOG.md"}
OF_MODULE = {
    "README.md": "README.md",
    "docs/": "docs/",
    "redis.conf.example": "examples/redis.conf.example",
}
OF_BOARD = {
    "docs/board/": "board/",
    "docs/autoscaling.md": "autoscaling.md",
    "kubernetes/autoscaling/": "examples/kubernetes/",
    "prometheus/alerts.yml": "examples/alerts.yml",
    "grafana/dq.json": "examples/dq.json",
}

# Where the built files lie in the folder of the build, and what they are called in an archive.
BUILT = {
    "libdq.so": "module/{arch}-unknown-linux-gnu/release/libdq.so",
    "libdq-musl.so": "module/{arch}-unknown-linux-musl/release/libdq.so",
    "dq-board": "board/{arch}-unknown-linux-musl/release/dq-board",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("archs", nargs="+", metavar="ARCH", choices=debian.ARCHITECTURES)
    options = parser.parse_args()
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    version = released_version()
    for arch in options.archs:
        pack(arch, version, options.build, options.out, epoch)
    for package in versions.PYTHON:
        pack_python(package.name, options.out)
    pack_crate(CRATE, options.build, options.out)
    pack_npm(options.build / "typescript", options.out)
    made = {path.name: path.read_bytes() for path in options.out.iterdir()}
    (options.out / "SHA256SUMS").write_text(archive.sums(made))
    print(*(options.out / name for name in sorted(made)), options.out / "SHA256SUMS", sep="\n")


def pack(arch: str, version: str, build: Path, out: Path, epoch: int) -> None:
    name = f"dq-{version}-linux-{arch}"
    built = {file: (build / place.format(arch=arch)).read_bytes() for file, place in BUILT.items()}
    about = {**papers(name, version, arch, epoch), **pages()}
    files = {file: (content, 0o755) for file, content in built.items()}
    files |= {file: (content, 0o644) for file, content in placed(about).items()}
    files["dq-board.1"] = (MANUAL.read_bytes(), 0o644)
    for file in ("dq-board.service", "dq-board.default"):
        files[f"systemd/{file}"] = ((debian.INSTALLED / file).read_bytes(), 0o644)
    sums = archive.sums({file: content for file, (content, _) in files.items()})
    files["SHA256SUMS"] = (sums.encode(), 0o644)
    archive.write_tar_gz(out / f"{name}.tar.gz", name, files, epoch)
    # Also beside the archive, for those who read no further.
    (out / f"{name}.cdx.json").write_bytes(about["sbom.cdx.json"])
    if not debian.can_build():
        print("pack: no dpkg-deb here, so no Debian packages", file=sys.stderr)
        return
    for package in (
        debian.module_package(built["libdq.so"], GLIBC, debian_docs(about, OF_MODULE)),
        debian.board_package(built["dq-board"], MANUAL.read_bytes(), debian_docs(about, OF_BOARD)),
    ):
        debian.build(package, version, arch, out, epoch)


def pack_python(folder: str, out: Path) -> None:
    """The same bytes for the same sources: hatchling goes by SOURCE_DATE_EPOCH."""
    subprocess.run(
        [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "-d",
            out.resolve(),
            "-t",
            "wheel",
            "-t",
            "sdist",
        ],
        cwd=ROOT / folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def pack_crate(folder: str, build: Path, out: Path) -> None:
    """The same bytes for the same sources: made from a copy that git knows nothing of, for cargo
    would write down the commit. Whether the package builds, tests/dist sees.
    """
    copy, target = build.resolve() / "crate-sources", build.resolve() / "crate"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / folder, copy, ignore=shutil.ignore_patterns("target"))
    subprocess.run(
        [
            *("cargo", "package", "--quiet", "--locked", "--no-verify", "--allow-dirty"),
            *("--target-dir", target),
        ],
        cwd=copy,
        check=True,
    )
    (made,) = (target / "package").glob("*.crate")
    shutil.copyfile(made, out / made.name)


def pack_npm(build: Path, out: Path) -> None:
    """The same bytes for the same sources: npm gives all files one time. The compiler lies beside
    this Python (scripts/setup.sh dist).
    """
    tools = Path(sys.prefix) / "typescript" / "node_modules"
    shutil.rmtree(build, ignore_errors=True)
    shutil.copytree(
        NPM_PACKAGE,
        build,
        ignore=shutil.ignore_patterns("node_modules", "dist", "tests", ".gitignore"),
    )
    (build / "node_modules").symlink_to(tools)
    for command in (
        [str(tools / ".bin" / "tsc"), "-p", "tsconfig.build.json"],
        ["npm", "pack", "--ignore-scripts", "--silent", "--pack-destination", str(out.resolve())],
    ):
        subprocess.run(command, cwd=build, check=True, stdout=subprocess.DEVNULL)


def papers(name: str, version: str, arch: str, epoch: int) -> dict[str, bytes]:
    """The licences of all that is linked, and the list of it."""
    module = linked(ROOT / "Cargo.toml", f"{arch}-unknown-linux-gnu")
    board = linked(ROOT / "board" / "Cargo.toml", f"{arch}-unknown-linux-musl")
    tools = toolchain(ZIG)
    bom = bill_of_materials(name, version, epoch, [module, board], tools, built_with())
    foreign = sorted(
        tools + [p for part in (module, board) for p in part.packages if p.purl != part.own]
    )
    return {
        "sbom.cdx.json": bom.encode(),
        "THIRD-PARTY-LICENSES.txt": notices(
            list(dict.fromkeys(foreign)), (ROOT / "LICENSE").read_text()
        ).encode(),
    }


def built_with() -> dict[str, str]:
    return {"rustc": output("rustc", "--version"), "zig": output(str(ZIG / "zig"), "version")}


def pages() -> dict[str, bytes]:
    found = {name: (ROOT / name).read_bytes() for name in PAGES}
    # What running an example leaves behind.
    ignored = set(
        re.findall(r"^(\w+)/$", (ROOT / "examples" / ".gitignore").read_text(), re.MULTILINE)
    )
    for folder, suffixes in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT)
            if path.suffix in suffixes and not ignored.intersection(name.parts):
                found[str(name)] = path.read_bytes()
    return found


def debian_docs(about: dict[str, bytes], own: dict[str, str]) -> dict[str, bytes]:
    """Below /usr/share/doc: what Debian asks for, and what is the package's `own`."""
    places = {}
    for name, place in {**OF_BOTH, **own}.items():
        for path in about:
            if path == name:
                places[path] = place
            elif name.endswith("/") and path.startswith(name):
                places[path] = place + path.removeprefix(name)
    docs = placed(about, places)
    licences = about["LICENSE"] + b"\n" + b"=" * 80 + b"\n" + about["THIRD-PARTY-LICENSES.txt"]
    docs["copyright"] = debian.with_common_licences(licences.decode()).encode()
    docs["sbom.cdx.json"] = about["sbom.cdx.json"]
    return docs


def released_version() -> str:
    """That of the module. All places of it say the same, and so do those of each other package."""
    wrong = versions.disagreements(ROOT)
    if wrong:
        sys.exit("pack: one release has one version: " + "; ".join(wrong))
    return versions.MODULE.version(ROOT)


if __name__ == "__main__":
    main()
