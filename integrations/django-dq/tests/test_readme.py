"""The programs of README.md do what is said of them."""

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import django

from conftest import Program, until

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_start_of_the_readme(
    dq_url: str, start: Callable[..., Program], tmp_path: Path
) -> None:
    blocks = re.findall(r"<!-- start:.*?-->\n```python\n(.*?)```", README.read_text(), re.DOTALL)
    settings, tasks, order = (block.replace("redis://localhost:6379/0", dq_url) for block in blocks)
    if django.VERSION < (6, 0):  # as the README says of Django 5
        settings = settings.replace('["django_dq"]', '["django_tasks", "django_dq"]')
        tasks = tasks.replace("django.tasks", "django_tasks")
    startproject = (sys.executable, "-m", "django", "startproject", "shop")
    subprocess.run(startproject, cwd=tmp_path, check=True)
    project = tmp_path / "shop"
    with (project / "shop/settings.py").open("a") as file:
        file.write(settings)
    (project / "shop/tasks.py").write_text(tasks)
    worker = start("dq_worker", folder=project, settings="shop.settings")
    until(lambda: "works on default" in worker.said)
    begun = time.time()
    program = start("shell", "-v", "0", folder=project, settings="shop.settings", input=order)
    assert program.ended() == 0
    assert time.time() >= begun + 3
    first, last = program.said.splitlines()
    assert re.fullmatch(r"default:\w{22} READY", first)
    assert last == "SUCCESSFUL Ann was welcomed"
    assert "welcome, Ann" in worker.said


def test_what_the_readme_says_of_the_worker_s_options(start: Callable[..., Program]) -> None:
    program = start("dq_worker", "--help")
    assert program.ended() == 0
    options = set(re.findall(r"^\| `(--\w+)", README.read_text(), re.MULTILINE))
    # Those before are this command's, those behind every command's.
    listed = program.said.partition("options:")[2].partition("--version")[0]
    assert options == set(re.findall(r"--[a-z]\w+", listed)) - {"--help"}
