"""Debian packages: dq-module, with the module where Redis and Valkey keep theirs, and dq-board.

What they install besides programs and pages is in release/installed.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MAINTAINER = "The DQ authors <dq@localhost>"

MODULE = "usr/lib/redis/modules/libdq.so"
UNIT = "usr/lib/systemd/system/dq-board.service"
SETTINGS = "etc/default/dq-board"
INSTALLED = Path(__file__).resolve().parent / "installed"
# Those of a package are `installed/PACKAGE.SCRIPT`.
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")

# What lintian is told to pass over: its tag with a pattern for what it says besides, and the reason.
OF_BOTH = {
    "bogus-mail-host *": "The authors take no mail; issues are taken where the sources are.",
    "bogus-mail-host-in-debian-changelog *": "As above.",
    "binary-has-unneeded-section .comment *": "It names the compiler and the linker.",
    "spelling-error-in-copyright *": "The texts of others' licences are passed on as they are.",
}
OF_MODULE = OF_BOTH | {
    "hardening-no-fortify-functions *": "Rust's own checks of bounds are in place of libc's.",
}
OF_BOARD = OF_BOTH | {
    "shared-library-lacks-prerequisites *": "On purpose static: one program for every libc.",
    "non-standard-file-perm 0640 != 0644 *": "The settings of the service may have passwords.",
    "package-supports-alternative-init-but-no-init.d-script *": "For systemd alone; others start"
    " the program as they start theirs.",
}

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
    # dpkg keeps what the reader has changed in these.
    settings: tuple[str, ...] = ()


def module_package(library: bytes, glibc: str, docs: dict[str, bytes]) -> Package:
    """Debian's modules are in /usr/lib/redis/modules, Valkey's in a folder of the same form.

    Nothing is enabled: the reader does that, by dq-module.
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
            " No server loads it by itself: dq-module enable puts it into the server's\n"
            " configuration, and dq-module disable takes it out.",
        },
        {
            MODULE: (library, 0o755),
            "usr/sbin/dq-module": (_installed("dq-module"), 0o755),
            "usr/share/man/man8/dq-module.8.gz": (zipped(_installed("dq-module.8")), 0o644),
            **_overrides(name, OF_MODULE),
            **_docs(name, docs),
        },
        {"usr/lib/valkey/modules/libdq.so": "../../redis/modules/libdq.so"},
    )


def board_package(program: bytes, manual: bytes, docs: dict[str, bytes]) -> Package:
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
            UNIT: (_installed("dq-board.service"), 0o644),
            SETTINGS: (_installed("dq-board.default"), 0o640),
            "usr/share/man/man1/dq-board.1.gz": (zipped(manual), 0o644),
            **_overrides(name, OF_BOARD),
            **_docs(name, docs),
        },
        # Under this name it serves the metrics alone.
        {
            "usr/bin/dq-exporter": "dq-board",
            "usr/share/man/man1/dq-exporter.1.gz": "dq-board.1.gz",
        },
        (SETTINGS,),
    )


def can_build() -> bool:
    return shutil.which("dpkg-deb") is not None


def build(package: Package, version: str, arch: str, out: Path, epoch: int) -> Path:
    architecture = ARCHITECTURES[arch]
    log = zipped(changelog(package.name, version, epoch))
    files = package.files | {f"usr/share/doc/{package.name}/changelog.gz": (log, 0o644)}
    with tempfile.TemporaryDirectory() as root:
        tree = Path(root)
        tree.chmod(0o755)
        for name, (content, mode) in files.items():
            path = _folder_for(tree, name)
            path.write_bytes(content)
            path.chmod(mode)
        for name, leads_to in package.links.items():
            _folder_for(tree, name).symlink_to(leads_to)
        sizes_kib = sum(-(-len(content) // 1024) for content, _ in files.values())
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
            for name, (content, _) in sorted(files.items())
            if name not in package.settings
        )
        _write(tree / "DEBIAN" / "md5sums", "".join(md5sums).encode())
        if package.settings:
            listed = "".join(f"/{path}\n" for path in package.settings)
            _write(tree / "DEBIAN" / "conffiles", listed.encode())
        for script in SCRIPTS:
            if (INSTALLED / f"{package.name}.{script}").exists():
                _write(tree / "DEBIAN" / script, _installed(f"{package.name}.{script}"), 0o755)
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


def _overrides(name: str, reasons: dict[str, str]) -> dict[str, tuple[bytes, int]]:
    lines = "".join(f"# {reason}\n{name}: {tag}\n" for tag, reason in reasons.items())
    return {f"usr/share/lintian/overrides/{name}": (lines.encode(), 0o644)}


def _installed(name: str) -> bytes:
    return (INSTALLED / name).read_bytes()


def changelog(name: str, version: str, epoch: int) -> bytes:
    """In Debian's form, which apt-listchanges reads; what changed is told in one place."""
    day = format_datetime(datetime.fromtimestamp(epoch, timezone.utc))
    return (
        f"{name} ({version}) unstable; urgency=medium\n\n"
        f"  * DQ {version}: what changed is in /usr/share/doc/{name}/CHANGELOG.md.\n\n"
        f" -- {MAINTAINER}  {day}\n"
    ).encode()


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


def _write(path: Path, content: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(mode=0o755, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
