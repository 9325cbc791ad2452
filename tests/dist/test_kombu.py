"""kombu-dq's wheel and its source distribution, each installed into an environment of its own."""

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import run
from harness.paths import ROOT
from harness.server import KNOWN, Server

# A message by the broker URL alone: the entry point of the package registers the transports. As Celery does,
# this loads kombu's serializers, which have that entry point, before it connects.
ROUND_TRIP = """
import sys, kombu, kombu.serialization
with kombu.Connection(sys.argv[1]) as connection:
    queue = connection.SimpleQueue("mail")
    queue.put({"to": "ann"})
    message = queue.get(timeout=10)
    message.ack()
    print(message.payload["to"], end="")
"""
FORMS = {"wheel": "kombu_dq-*.whl", "sdist": "kombu_dq-*.tar.gz"}


@pytest.fixture(scope="session")
def package(dist: Path) -> Callable[[str], Path]:
    def package(form: str) -> Path:
        (path,) = dist.glob(FORMS[form])
        return path

    return package


@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", FORMS)
def test_the_kombu_package_is_installed_and_carries_messages(
    package: Callable[[str], Path], unpacked: Path, tmp_path: Path, form: str
) -> None:
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", venv)
    pip = (venv / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "install", package(form))
    folder = tmp_path / "server"
    folder.mkdir()
    server = Server(KNOWN["redis-7.0"], folder, module=unpacked / "libdq.so")
    try:
        url = f"dq://127.0.0.1:{server.port}/0"
        # Not in the sources' folder, which would be imported instead.
        told = subprocess.run(
            [venv / "bin/python", "-c", ROUND_TRIP, url],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert (told.stdout, told.returncode) == ("ann", 0), told.stderr
        with server.client() as client:
            assert client.execute_command("DQ.LEN", "mail") == 0
            assert client.info("commandstats")["cmdstat_dq.add"]["calls"] == 1
    finally:
        server.kill9()


def test_the_kombu_packages_have_all_files_and_no_others(package: Callable[[str], Path]) -> None:
    """All of the package, its licence, and nothing that lay about."""
    sources = ROOT / "integrations/kombu-dq/src/kombu_dq"
    modules = {f"kombu_dq/{path.name}" for path in [*sources.glob("*.py"), sources / "py.typed"]}
    with zipfile.ZipFile(package("wheel")) as files:
        names = {name for name in files.namelist() if ".dist-info/" not in name}
        assert any(name.endswith("/licenses/LICENSE") for name in files.namelist())
    assert names == modules
    with tarfile.open(package("sdist")) as files:
        names = {name.split("/", 1)[1] for name in files.getnames()}
    assert {f"src/{module}" for module in modules} < names
    assert {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"} < names
    assert not [name for name in names if "__pycache__" in name or "/." in name]
