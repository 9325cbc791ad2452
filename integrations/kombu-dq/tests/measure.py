"""Celery on DQ beside Celery on Redis: throughput, and what waiting tasks cost a worker.

    target/kombu/venv/bin/python integrations/kombu-dq/tests/measure.py [TASKS]

One worker with two processes, on a server of its own, on this machine. It takes a minute or two.
"""

import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "tests" / "blackbox"))

from harness.server import KINDS, Server, eventually  # noqa: E402, it lies where we just said
from workers import RESULTS_DATABASE, Worker, producer  # noqa: E402

AHEAD_S = 30


def main(tasks: int) -> None:
    for scheme in ("redis", "dq"):
        with tempfile.TemporaryDirectory() as directory:
            server = Server(KINDS[0], Path(directory))
            settings = {
                "BROKER_URL": f"{scheme}://127.0.0.1:{server.port}/0",
                "TTR": "60",
                "VISIBILITY_TIMEOUT": "3600",
            }
            worker = Worker(server.port, Path(directory) / "worker.log", "-c", "2", **settings)
            try:
                worker.wait_until_ready()
                measure(scheme, tasks, server, worker, producer(server.port, **settings))
            finally:
                worker.kill()
                server.stop()


def measure(scheme: str, tasks: int, server: Server, worker: Worker, app: ModuleType) -> None:
    records = server.client(db=RESULTS_DATABASE)

    def wait_for_all() -> None:
        eventually(lambda: records.llen("runs") == tasks, 300)
        records.delete("runs")

    send(app, 1, None)
    eventually(lambda: records.llen("runs"))
    records.delete("runs")
    time.sleep(1)
    idle_kib = worker.rss_kib()

    started = time.monotonic()
    send(app, tasks, None)
    sent = time.monotonic()
    wait_for_all()
    ran = time.monotonic()
    send(app, tasks, datetime.now(timezone.utc) + timedelta(seconds=AHEAD_S))
    time.sleep(2)
    waiting_kib = worker.rss_kib()
    wait_for_all()
    sends, runs = tasks / (sent - started), tasks / (ran - started)
    each_kib = (waiting_kib - idle_kib) / tasks
    print(
        f"{scheme}://: {sends:,.0f} sent/s, {runs:,.0f} sent and run/s, {each_kib:.1f} KiB a waiting task"
    )


def send(app: ModuleType, tasks: int, eta: datetime | None) -> None:
    with app.app.producer_or_acquire() as sender:
        for number in range(tasks):
            app.record.apply_async((number,), eta=eta, producer=sender)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
