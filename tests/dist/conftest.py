"""Fixtures for what `make dist` has built: they are files of target/dist, not the developer's.

dist       the folder of the archives and packages
unpacked   the archive of this machine's architecture, unpacked
other      that of the other architecture; a test is skipped where it couldn't be built
server     a server of each kind with the built module, in a folder of its own
"""

import os
import platform
import re
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.paths import ROOT, TARGET
from harness.server import KINDS, Kind, Server

TOOLS = TARGET / "dist-tools"
DIST = Path(os.environ.get("DIST_OUT", TARGET / "dist"))
VERSION = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
HERE = platform.machine()
OTHER = {"x86_64": "aarch64", "aarch64": "x86_64"}[HERE]

# Nothing newer than this may be asked of a glibc.
GLIBC = (2, 28)


@pytest.fixture(scope="session")
def dist() -> Path:
    if not (DIST / "SHA256SUMS").exists():
        pytest.skip(
            f"{DIST} is empty: make dist has not run, or rustup has no standard library for musl"
        )
    return DIST


@pytest.fixture(scope="session")
def unpack(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    def unpack(arch: str) -> Path:
        name = f"dq-{VERSION}-linux-{arch}"
        folder = tmp_path_factory.mktemp("unpacked")
        with tarfile.open(dist / f"{name}.tar.gz") as tar:
            tar.extractall(folder, filter="tar")
        return folder / name

    return unpack


@pytest.fixture(scope="session")
def unpacked(unpack: Callable[[str], Path]) -> Path:
    return unpack(HERE)


@pytest.fixture(scope="session")
def other(dist: Path, unpack: Callable[[str], Path]) -> Path:
    if not (dist / f"dq-{VERSION}-linux-{OTHER}.tar.gz").exists():
        pytest.skip(
            f"nothing was built for {OTHER}: DIST_ARCH was another, or rustup had no standard library of it"
        )
    return unpack(OTHER)


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture
def server(kind: Kind, unpacked: Path, tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "server"
    folder.mkdir()
    server = Server(kind, folder, module=unpacked / "libdq.so")
    yield server
    server.kill9()


def run(*command: object) -> str:
    """What a command prints; a failure shows all of it."""
    __tracebackhide__ = True
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout
