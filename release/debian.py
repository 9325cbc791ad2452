"""Debian packages: dq-module, with the module where Redis and Valkey keep theirs, and dq-board."""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MAINTAINER = "The DQ authors <dq@localhost>"

MODULE = "usr/lib/redis/modules/libdq.so"
UNIT = "usr/lib/systemd/system/dq-board.service"

# What lintian is told to pass over, each with its reason.
NO_MAIL = (
    "# The authors take no mail; issues are taken where the sources are.\n{}: bogus-mail-host *\n"
)
STATIC = (
    "# On purpose: one program for every machine, whatever its libc.\n"
    "{}: statically-linked-binary *\n"
)

# Within one block: licences.py puts lines of 80 between them.
APACHE_TEXT = re.compile(
    r"^ *Apache License\n+ *Version 2\.0, January 2004\n(?:(?!^={80}$).)*?^ *END OF TERMS AND CONDITIONS$",
    re.MULTILINE | re.DOTALL,
)
APACHE_PLACE = (
    "Apache License, Version 2.0: on Debian, its text is in /usr/share/common-licenses/Apache-2.0."
)


@dataclass
class Package:
    """What is installed, by path; links by path; and the fields of the control file."""

    name: str
    fields: dict[str, str]
    files: dict[str, tuple[bytes, int]]
    links: dict[str, str] = field(default_factory=dict)


def module_package(library: bytes, glibc: str, docs: dict[str, bytes]) -> Package:
    """Debian's modules are in /usr/lib/redis/modules, Valkey's in a folder of the same form.

    Nothing is enabled: no file that a server reads by itself, no maintainer script.
    """
    name = "dq-module"
    return Package(
        name,
        {
            "Section": "database",
            "Depends": f"libc6 (>= {glibc})",
            "Recommends": "redis-server (>= 5:7.0) | valkey-server",
            "Enhances": "redis-server, valkey-server",
            "Suggests": "dq-board",
            "Description": "delay queue module for Redis and Valkey\n"
            " DQ gives Redis and Valkey a delay queue as a native data type: jobs that\n"
            " are delivered when they are due, leases, retries, dead jobs.\n"
            " .\n"
            " The module is not enabled: add the loadmodule line of\n"
            f" /usr/share/doc/{name}/examples/redis.conf.example to the server's\n"
            " configuration.",
        },
        {MODULE: (library, 0o755), **_overrides(name, NO_MAIL), **_docs(name, docs)},
        {"usr/lib/valkey/modules/libdq.so": "../../redis/modules/libdq.so"},
    )


def board_package(program: bytes, unit: bytes, docs: dict[str, bytes]) -> Package:
    """The unit is there, and neither enabled nor started."""
    name = "dq-board"
    return Package(
        name,
        {
            "Section": "database",
            "Suggests": "dq-module, prometheus",
            "Description": "web page and Prometheus metrics for DQ\n"
            " dq-board shows the queues of DQ, the delay queue module for Redis and\n"
            " Valkey, and serves their metrics. It is one static program, starts by hand\n"
            " or by systemctl enable --now dq-board, and listens on 127.0.0.1 unless it\n"
            " is told otherwise.",
        },
        {
            "usr/bin/dq-board": (program, 0o755),
            UNIT: (unit, 0o644),
            **_overrides(name, NO_MAIL + STATIC),
            **_docs(name, docs),
        },
        # Under this name it serves the metrics alone.
        {"usr/bin/dq-exporter": "dq-board"},
    )


def can_build() -> bool:
    return shutil.which("dpkg-deb") is not None


def build(package: Package, version: str, arch: str, out: Path, epoch: int) -> Path:
    architecture = ARCHITECTURES[arch]
    with tempfile.TemporaryDirectory() as root:
        tree = Path(root)
        tree.chmod(0o755)
        for name, (content, mode) in package.files.items():
            path = _folder_for(tree, name)
            path.write_bytes(content)
            path.chmod(mode)
        for name, leads_to in package.links.items():
            _folder_for(tree, name).symlink_to(leads_to)
        sizes_kib = sum(-(-len(content) // 1024) for content, _ in package.files.values())
        control = {
            "Package": package.name,
            "Version": version,
            "Architecture": architecture,
            "Maintainer": MAINTAINER,
            "Installed-Size": str(sizes_kib),
            "Priority": "optional",
            **package.fields,
        }
        lines = "".join(f"{name}: {value}\n" for name, value in control.items())
        _write(tree / "DEBIAN" / "control", lines.encode())
        md5sums = (
            f"{hashlib.md5(content, usedforsecurity=False).hexdigest()}  {name}\n"
            for name, (content, _) in sorted(package.files.items())
        )
        _write(tree / "DEBIAN" / "md5sums", "".join(md5sums).encode())
        path = out / f"{package.name}_{version}_{architecture}.deb"
        # One thread: xz writes other bytes with more. Younger files get the time of
        # SOURCE_DATE_EPOCH.
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path],
            check=True,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"DPKG_DEB_THREADS_MAX": "1", "SOURCE_DATE_EPOCH": str(epoch)},
        )
    return path


def _docs(name: str, docs: dict[str, bytes]) -> dict[str, tuple[bytes, int]]:
    return {f"usr/share/doc/{name}/{path}": (content, 0o644) for path, content in docs.items()}


def _overrides(name: str, lines: str) -> dict[str, tuple[bytes, int]]:
    return {f"usr/share/lintian/overrides/{name}": (lines.replace("{}", name).encode(), 0o644)}


def with_common_licences(text: str) -> str:
    """A text that each Debian has is named and not repeated, as its policy asks. What names authors
    stays.
    """
    return APACHE_TEXT.sub(APACHE_PLACE, text)


def zipped(text: bytes) -> bytes:
    """As Debian wants changelogs: gzip, without name and time."""
    return gzip.compress(text, 9, mtime=0)


def _folder_for(tree: Path, name: str) -> Path:
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for folder in path.relative_to(tree).parents:
        (tree / folder).chmod(0o755)
    return path


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o755, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o644)
