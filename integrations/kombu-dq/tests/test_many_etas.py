"""ETAs far beyond what kombu's redis transport calls the visibility timeout.

There, each of these tasks would be in the memory of a worker, and go to another once an hour is
over. Here they are in the queue until they are due. The server's clock is half a day slow, and
driven: half a day takes minutes. The worker's is right, so that for it each task is due when it
comes.
"""

import os
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import redis

from harness.server import KINDS, Server, eventually
from harness.wall_clock import US_PER_S, WallClock
from workers import RESULTS_DATABASE, Worker, producer

TASKS = int(os.environ.get("ETAS", "100000"))
#: When the first and the last task are due, after the time that the server begins with.
FIRST_S, LAST_S = 2 * 3600, 12 * 3600
#: How far the clock jumps. Leases that are held meanwhile have to outlast that.
STEP_S = 300
TTR_S = 3 * STEP_S
#: What a worker's main process may grow by. In its memory a task takes some 7 KiB: 2 % of them
#: would fit.
GROWTH_KIB = 12 * 1024


@pytest.fixture
def clock(tmp_path: Path) -> WallClock:
    return WallClock(tmp_path, shift_us=-LAST_S * US_PER_S)


@pytest.fixture
def server(clock: WallClock, tmp_path: Path) -> Iterator[Server]:
    server = Server(KINDS[0], tmp_path, environment=clock.environment)
    yield server
    server.kill9()


@pytest.fixture
def r(server: Server) -> Iterator[redis.Redis]:
    with server.client() as client:
        yield client


@pytest.mark.timeout(1800)
def test_each_of_many_etas_runs_once_and_none_is_prefetched(
    clock: WallClock, server: Server, r: redis.Redis, tmp_path: Path
) -> None:
    publish(server, datetime.now(timezone.utc) - timedelta(seconds=LAST_S))
    assert r.execute_command("DQ.LEN", "celery", "STATE", "delayed") == TASKS
    environment = {"PREFETCH": "16", "TTR": str(TTR_S)}
    worker = Worker(
        server.port, tmp_path / "worker-0.log", "-c", "2", "-l", "WARNING", **environment
    )
    records = server.client(db=RESULTS_DATABASE)
    try:
        eventually(lambda: r.execute_command("CLIENT", "LIST").count("cmd=dq.mpop"), 30)
        time.sleep(3)
        assert r.execute_command("DQ.LEN", "celery", "STATE", "delayed") == TASKS
        before = most = worker.rss_kib()
        for now in range(FIRST_S, LAST_S + STEP_S, STEP_S):
            clock.set((now - LAST_S) * US_PER_S)
            due = min(TASKS, TASKS * (now - FIRST_S) // (LAST_S - FIRST_S))
            wait_for_runs(due, records, r)
            most = max(most, worker.rss_kib())
        eventually(lambda: r.execute_command("DQ.LEN", "celery") == 0, 60)
        assert worker.stop() == 0
    finally:
        worker.kill()
    runs = sorted(int(number) for number in records.lrange("runs", 0, -1))  # type: ignore[union-attr]
    assert runs == list(range(TASKS))
    print(
        f"{TASKS} tasks: the worker's main process had {before} KiB at first and {most} KiB at most"
    )
    assert most - before < GROWTH_KIB


def wait_for_runs(due: int, records: redis.Redis, r: redis.Redis) -> None:
    """Waits until this many tasks have run. On failure, shows the state of the queue."""
    try:
        eventually(lambda: records.llen("runs") >= due, 120)
    except AssertionError as error:
        queue, clients = r.execute_command("DQ.INFO", "celery"), r.execute_command("CLIENT", "LIST")
        raise AssertionError(
            f"{records.llen('runs')} of {due} have run: {queue}\n{clients}"
        ) from error


def publish(server: Server, begin: datetime) -> None:
    """Evenly from the first to the last hour, the last first."""
    tasks = producer(server.port)
    with tasks.app.producer_or_acquire() as sender:
        for number in reversed(range(TASKS)):
            after = timedelta(seconds=FIRST_S + number * (LAST_S - FIRST_S) / TASKS)
            tasks.record.apply_async((number,), eta=begin + after, producer=sender)
