"""dq-client's wheel and its source distribution, each installed into an environment of its own."""

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

# A job of a producer, and a worker that takes it.
ROUND_TRIP = """
import sys, redis
from dq_client import Queue
from dq_client.worker import Worker
mail = Queue(redis.Redis.from_url(sys.argv[1]), "mail")
mail.add("a", {"to": "ann"})
def send(job):
    print(job.body["to"], end="")
    worker.stop()
worker = Worker(mail, send)
worker.run()
"""
FORMS = {"wheel": "dq_client-*.whl", "sdist": "dq_client-*.tar.gz"}


@pytest.fixture(scope="session")
def package(dist: Path) -> Callable[[str], Path]:
    def package(form: str) -> Path:
        (path,) = dist.glob(FORMS[form])
        return path

    return package


@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", FORMS)
def test_the_client_is_installed_and_works(
    package: Callable[[str], Path], unpacked: Path, tmp_path: Path, form: str
) -> None:
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", venv)
    pip = (venv / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "install", f"{package(form)}[redis]")
    folder = tmp_path / "server"
    folder.mkdir()
    server = Server(KNOWN["redis-7.0"], folder, module=unpacked / "libdq.so")
    try:
        url = f"redis://127.0.0.1:{server.port}/0"
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
    finally:
        server.kill9()


def test_the_client_s_packages_have_all_files_and_no_others(
    package: Callable[[str], Path],
) -> None:
    """All of the package, its licence, and nothing that lay about."""
    sources = ROOT / "clients/python/src"
    files = [*sources.rglob("*.py"), *sources.rglob("py.typed")]
    modules = {str(path.relative_to(sources)) for path in files}
    with zipfile.ZipFile(package("wheel")) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())
    assert names == modules
    with tarfile.open(package("sdist")) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames()}
    assert {f"src/{module}" for module in modules} < names
    assert {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"} < names
    assert not [name for name in names if "__pycache__" in name or "/." in name]
