"""`taskiq worker`: processes that are killed, a server that restarts, the programs of README.md."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import redis

import taskiq_dq
from conftest import Work, backend_of, eventually, is_empty, result_of, url
from dq_client import AsyncQueue
from harness.readme import send
from harness.server import Server
from taskiq_dq import DQBroker

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()
BIN = Path(sys.executable).parent
PROGRAM = """
import time
from datetime import timedelta
from taskiq_dq import DQBroker
broker = DQBroker("{url}", ttr=timedelta(seconds=1))
@broker.task(task_name="hang")
def hang() -> None:
    print("begun", flush=True)
    time.sleep(600)
"""


@contextmanager
def worker(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [BIN / "taskiq", "worker", "--workers", "1", *options],
        cwd=folder,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.anyio
async def test_the_task_of_a_worker_that_was_killed_goes_to_another_one(
    make_broker: Callable[..., DQBroker], server: Server, work: Work, tmp_path: Path
) -> None:
    broker, ran = make_broker(), list[str]()

    @broker.task(task_name="hang")
    async def hang() -> None:
        ran.append("here")

    await hang.kiq()
    (tmp_path / "program.py").write_text(PROGRAM.format(url=url(server)))
    with worker(tmp_path, "program:broker") as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        os.killpg(process.pid, signal.SIGKILL)
    await work(broker)
    await eventually(lambda: is_empty(broker))
    assert ran == ["here"]


@pytest.mark.anyio
async def test_a_worker_goes_on_when_its_server_is_back(
    make_broker: Callable[..., DQBroker], server: Server, work: Work
) -> None:
    broker = make_broker()

    @broker.task
    async def double(number: int) -> int:
        if number == 1:
            server.restart()
        return 2 * number

    tasks = [await double.kiq(number) for number in (1, 2)]
    await work(broker, max_async_tasks=1)

    async def are_there() -> bool:
        with suppress(redis.ConnectionError):
            return all([await backend_of(broker).is_result_ready(each.task_id) for each in tasks])
        return False

    await eventually(are_there)
    assert [await result_of(broker, each) for each in tasks] == [2, 4]
    await eventually(lambda: is_empty(broker))
    info = await broker.queue().info()
    assert info is not None and info.total_timed_out == 0


def test_the_start_of_the_readme(server: Server, tmp_path: Path) -> None:
    blocks = re.findall(r"<!-- start:.*?-->\n```python\n(.*?)```", README, re.DOTALL)
    for name, block in zip(("tasks.py", "send.py"), blocks, strict=True):
        (tmp_path / name).write_text(block.replace("redis://127.0.0.1:6379/0", url(server)))
    with worker(tmp_path, "tasks:broker") as workers:
        told = send(tmp_path, workers)
    assert told.count("to ann") == 1
    assert any("to cleo" in line for line in told)
    assert not any("to bob" in line for line in told)


def test_names_of_the_readme_are_there() -> None:
    """Its other blocks are pieces of programs: what they call must exist."""
    calls = set(re.findall(r"\bqueue\.(\w+)\(", README))
    assert {"alter", "peek_iter", "kick", "pause"} <= calls
    assert all(hasattr(AsyncQueue, name) for name in calls)
    for name in re.findall(r"\bbroker\.(\w+)\(", README):
        assert hasattr(DQBroker, name), name
    for name in re.findall(r"\b(DQ[A-Z]\w+|ResultI\w+|ResultN\w+)\b", README):
        assert name in taskiq_dq.__all__, name
