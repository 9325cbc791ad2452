"""The packages for frameworks: their wheels and source distributions, each installed with dq-client into an
environment of its own."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from conftest import run
from harness.paths import ROOT
from harness.server import KNOWN, Server

# What each package does, with the address of a server: it prints 42.
PROGRAMS = {
    "django-dq": """
import sys, django
from django.conf import settings
names = ["django_tasks"] if django.VERSION < (6, 0) else []
tasks = {"BACKEND": "django_dq.DQBackend", "OPTIONS": {"url": sys.argv[1]}}
settings.configure(INSTALLED_APPS=[*names, "django_dq"], TASKS={"default": tasks}, USE_TZ=True)
django.setup()
import threading
from django.core.management import load_command_class
from django_dq.framework import task_backends
from program import answer
import asyncio
from django_dq.running import Runner
from dq_client.worker import Worker
result = answer.enqueue()
backend = task_backends["default"]
worker = Worker(backend.queue("default"), Runner(backend))
thread = threading.Thread(target=lambda: asyncio.run(worker.serve()))
thread.start()
while not result.is_finished:
    result.refresh()
worker.stop()
thread.join()
assert load_command_class("django_dq", "dq_worker")
print(result.return_value, end="")
""",
    "dramatiq-dq": """
import sys, dramatiq
from dramatiq.results import Results
from dramatiq_dq import DQBackend, DQBroker
broker = DQBroker(url=sys.argv[1])
broker.add_middleware(Results(backend=DQBackend(url=sys.argv[1])))
dramatiq.set_broker(broker)
@dramatiq.actor(store_results=True)
def answer():
    return 42
worker = dramatiq.Worker(broker, worker_timeout=100)
worker.start()
print(answer.send().get_result(block=True, timeout=60_000), end="")
worker.stop()
""",
    "taskiq-dq": """
import asyncio, sys
from datetime import timedelta
from taskiq.receiver import Receiver
from taskiq_dq import DQBroker, DQResultBackend
async def main():
    backend = DQResultBackend(sys.argv[1])
    broker = DQBroker(sys.argv[1]).with_result_backend(backend)
    @broker.task
    async def answer():
        return 42
    finish = asyncio.Event()
    worker = asyncio.create_task(Receiver(broker, max_async_tasks=1).listen(finish))
    result = await backend.wait_result((await answer.kiq()).task_id, timedelta(minutes=1))
    finish.set()
    await worker
    print(result.return_value, end="")
asyncio.run(main())
""",
}
# The module `program` that these import.
TASKS = """
import django
if django.VERSION < (6, 0):
    from django_tasks import task
else:
    from django.tasks import task
@task
def answer():
    return 42
"""
FORMS = {"wheel": "*.whl", "sdist": "*.tar.gz"}


def made(dist: Path, package: str, form: str) -> Path:
    (path,) = dist.glob(f"{package.replace('-', '_')}-{FORMS[form]}")
    return path


@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("package", PROGRAMS)
def test_a_package_for_a_framework_is_installed_and_works(
    dist: Path, unpacked: Path, tmp_path: Path, package: str, form: str
) -> None:
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", venv)
    pip = (venv / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "install", made(dist, "dq-client", "wheel"), made(dist, package, form))
    (tmp_path / "program.py").write_text(TASKS)
    folder = tmp_path / "server"
    folder.mkdir()
    server = Server(KNOWN["redis-7.0"], folder, module=unpacked / "libdq.so")
    try:
        url = f"redis://127.0.0.1:{server.port}/0"
        # Not in the sources' folder, which would be imported instead.
        told = subprocess.run(
            [venv / "bin/python", "-c", PROGRAMS[package], url],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (told.stdout, told.returncode) == ("42", 0), told.stderr
    finally:
        server.kill9()


@pytest.mark.parametrize("package", PROGRAMS)
def test_packages_for_frameworks_have_all_files_and_no_others(dist: Path, package: str) -> None:
    """All of the package, its licence, and nothing that lay about."""
    sources = ROOT / "integrations" / package / "src"
    files = [*sources.rglob("*.py"), *sources.rglob("py.typed")]
    modules = {str(path.relative_to(sources)) for path in files}
    with zipfile.ZipFile(made(dist, package, "wheel")) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())
    assert names == modules
    with tarfile.open(made(dist, package, "sdist")) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames()}
    assert {f"src/{module}" for module in modules} < names
    assert {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"} < names
    assert not [name for name in names if "__pycache__" in name or "/." in name]
