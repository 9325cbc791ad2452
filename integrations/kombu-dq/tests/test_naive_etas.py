"""An ETA without a time zone is UTC: so Celery reads it with `redis://`, whatever zone the app is
in.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from itertools import product
from pathlib import Path

import pytest
import redis
from celery import Celery

from harness.server import Server, eventually
from workers import RESULTS_DATABASE, Worker

#: West and east of UTC, of whole hours and of quarters.
ZONES = [
    "Pacific/Honolulu",
    "America/New_York",
    "America/St_Johns",
    "UTC",
    "Europe/Berlin",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Pacific/Kiritimati",
]
#: The app says nothing of a zone. With enable_utc off its zone is the machine's.
UNSET = ""
OPTIONS = ["-P", "solo", "--without-mingle", "--without-gossip", "--without-heartbeat"]
AHEAD = timedelta(seconds=1.5)
#: How long after its ETA a task may run: workers of four apps are at work.
LATE_S = 5

Start = Callable[..., Worker]


@pytest.fixture
def start(one_broker: Server, tmp_path: Path) -> Iterator[Start]:
    """Starts a worker, and doesn't wait until it is ready."""
    started: list[Worker] = []

    def start(**environment: str) -> Worker:
        log = tmp_path / f"worker-{len(started)}.log"
        started.append(Worker(one_broker.port, log, *OPTIONS, **environment))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()


def send(url: str, key: str, eta: datetime, zone: str, enable_utc: bool) -> str:
    """The task's id."""
    app = Celery(broker=url)
    app.conf.update(timezone=zone or None, enable_utc=enable_utc)
    with app:
        return str(app.send_task("celery_tasks.record_eta", (key,), eta=eta).id)


def due_ms(server: Server, database: int, task_id: str) -> int:
    with server.client(db=database) as client:
        job = client.execute_command("DQ.GET", "celery", task_id)
    return int(dict(zip(job[::2], job[1::2], strict=True))["due"])


@pytest.mark.parametrize("zone", [*ZONES, UNSET])
def test_a_naive_eta_is_due_when_it_is_due_with_redis(
    zone: str, one_broker: Server, start: Start
) -> None:
    apps = list(enumerate(product(("dq", "redis"), (True, False))))
    urls = {
        database: f"{scheme}://127.0.0.1:{one_broker.port}/{database}"
        for database, (scheme, _) in apps
    }
    workers = [
        start(
            BROKER_URL=urls[database],
            TZ=zone or "America/New_York",
            TIMEZONE=zone,
            ENABLE_UTC="yes" if enable_utc else "no",
            VISIBILITY_TIMEOUT="3600",
        )
        for database, (_, enable_utc) in apps
    ]
    for worker in workers:
        worker.wait_until_ready()

    eta = datetime.now(timezone.utc) + AHEAD
    naive = eta.replace(tzinfo=None)
    for database, (scheme, enable_utc) in apps:
        task_id = send(urls[database], f"runs-{database}", naive, zone, enable_utc)
        if scheme == "dq":
            exact_ms = eta.timestamp() * 1000
            assert exact_ms <= due_ms(one_broker, database, task_id) < exact_ms + 1.01

    with one_broker.client(db=RESULTS_DATABASE) as records:
        for database, app in apps:
            assert ran(records, f"runs-{database}") == naive.isoformat(), app


def ran(records: redis.Redis, key: str) -> str:
    """The ETA that the task saw when it ran, which was not earlier and not much later."""
    eventually(lambda: records.llen(key), within_s=AHEAD.total_seconds() + LATE_S)
    [seen, ran_at] = records.lrange(key, 0, -1)
    late_s = float(ran_at) - datetime.fromisoformat(seen).replace(tzinfo=timezone.utc).timestamp()
    assert 0 <= late_s < LATE_S
    return str(seen)
