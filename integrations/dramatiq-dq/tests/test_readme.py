"""The programs of README.md do what is said of them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import dramatiq_dq
from conftest import url
from dq_client import Queue
from dramatiq_dq import DQBroker
from harness.readme import send
from harness.server import Server

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()
BIN = Path(sys.executable).parent


def test_the_start_of_the_readme(server: Server, tmp_path: Path) -> None:
    blocks = re.findall(r"<!-- start:.*?-->\n```python\n(.*?)```", README, re.DOTALL)
    for name, block in zip(("actors.py", "send.py"), blocks, strict=True):
        (tmp_path / name).write_text(block.replace("redis://127.0.0.1:6379/0", url(server)))
    workers = subprocess.Popen(
        [BIN / "dramatiq", "actors", "--processes", "1"],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # where Dramatiq sends what actors print
        text=True,
    )
    try:
        assert [line for line in send(tmp_path, workers) if line.startswith("to ")] == ["to ann"]
    finally:
        workers.kill()
        workers.wait()


def test_names_of_the_readme_are_there(broker: DQBroker) -> None:
    """Its other blocks are pieces of programs: what they call must exist."""
    calls = set(re.findall(r"\bqueue\.(\w+)\(", README))
    assert {"alter", "peek_iter", "kick", "pause"} <= calls
    assert all(hasattr(Queue, name) for name in calls)
    for name in re.findall(r"broker\.(\w+)\(", README):
        assert hasattr(broker, name), name


def test_the_tests_that_the_readme_names_are_there() -> None:
    own = (Path(__file__).parent / "test_broker.py").read_text()
    for name in re.findall(r"\| `(test_\w+)` \|\n", README):
        assert f"def {name}(" in own, name
    assert set(dramatiq_dq.__all__) == {"DQBackend", "DQBroker", "ResultNotStored"}
