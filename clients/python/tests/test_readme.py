"""The programs of README.md and examples/ do what is said of them."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from dq_client import Queue

HERE = Path(__file__).resolve().parents[1]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(dq_url: str) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start(*command: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *command],
            env=os.environ | {"REDIS_URL": dq_url},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().rstrip() for _ in range(count)]


def ended(process: subprocess.Popen[str]) -> list[str]:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return out.splitlines()


def test_the_start_of_the_readme_takes_no_longer_than_it_says(
    start: Start, dq_url: str, tmp_path: Path
) -> None:
    blocks = re.findall(
        r"<!-- start:.*?-->\n```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL
    )
    producer, worker = (
        block.replace("redis.Redis()", f'redis.Redis.from_url("{dq_url}")') for block in blocks
    )
    (tmp_path / "producer.py").write_text(producer)
    (tmp_path / "worker.py").write_text(worker)
    begun = time.time()
    assert ended(start(str(tmp_path / "producer.py"))) == ["Added(id='welcome:ann')"]
    assert ended(start(str(tmp_path / "producer.py"))) == ["Taken(id='welcome:ann')"]
    working = start(str(tmp_path / "worker.py"))
    assert lines(working, 1) == ["to ann@example.com attempt 1"]
    assert time.time() >= begun + 3
    working.send_signal(signal.SIGINT)
    assert ended(working) == []


def test_the_examples_work_together(start: Start, queue: Callable[..., Queue]) -> None:
    worker = start(str(HERE / "examples" / "worker.py"))
    producer = start(str(HERE / "examples" / "producer.py"))
    assert ended(producer) == [
        "queued welcome:ann",
        "cancelled: 1",
        "welcome:ann: accepted for ann@example.com",
    ]
    assert sorted(lines(worker, 2)) == [
        "sent welcome:ann to ann@example.com, attempt 1",
        "sent welcome:dan to dan@down.example, attempt 3",
    ]
    mail = queue("mail")
    nobody = mail.result("welcome:nobody")
    assert nobody is not None
    assert nobody.reason == "not an address: nobody"
    assert list(mail.scan_iter(scheduled=True)) == ["nightly"]
    worker.send_signal(signal.SIGTERM)
    assert ended(worker) == []


def test_names_of_the_readme_are_there(client: redis.Redis) -> None:
    """Its other blocks are pieces of programs: what they call must exist."""
    text = (HERE / "README.md").read_text()
    for name in set(re.findall(r"orders\.(\w+)\(", text)):
        assert hasattr(Queue(client, "q"), name), name
