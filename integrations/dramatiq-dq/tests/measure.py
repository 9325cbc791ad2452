"""Messages a second and lateness, of Dramatiq's Redis broker and of ours, in turn on one server.

target/frameworks/dramatiq-dq/venv/bin/python integrations/dramatiq-dq/tests/measure.py [MESSAGES]
"""

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dramatiq
from dramatiq import Broker, Worker
from dramatiq.brokers.redis import RedisBroker

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "blackbox"))

from dramatiq_dq import DQBroker
from harness.server import KINDS, Server

ROUNDS, THREADS = 3, 8
# Messages with a delay, and how far apart they are due.
DELAYED, APART_MS, FIRST_MS = 40, 50, 500


def main() -> None:
    count = int(sys.argv[1]) if sys.argv[1:] else 5_000
    with tempfile.TemporaryDirectory() as folder:
        server = Server(KINDS[0], Path(folder), "appendonly yes", "appendfsync everysec")
        try:
            for _ in range(ROUNDS):
                for kind in (RedisBroker, DQBroker):
                    measure(kind, server, count)
        finally:
            server.stop()


def measure(kind: Callable[..., Any], server: Server, count: int) -> None:
    with server.client() as client:
        client.flushall()
    broker = kind(url=f"redis://127.0.0.1:{server.port}/0")
    dramatiq.set_broker(broker)
    sent_per_s, done_per_s, late_ms = of_empty(broker, count)
    print(
        f"{kind.__name__:12} sent {sent_per_s:6.0f}/s, done {done_per_s:6.0f}/s, "
        f"late: half {late_ms[len(late_ms) // 2]:.1f} ms, most {late_ms[-1]:.1f} ms",
        flush=True,
    )
    broker.close()


def of_empty(broker: Broker, count: int) -> tuple[float, float, list[float]]:
    ended = threading.Semaphore(0)
    empty = dramatiq.actor(ended.release, actor_name="empty", broker=broker)
    late_ms: list[float] = []

    @dramatiq.actor(broker=broker)
    def be_late(due: float) -> None:
        late_ms.append((time.time() - due) * 1000)
        ended.release()

    begun = time.monotonic()
    for _ in range(count):
        empty.send()
    sent = time.monotonic()
    worker = Worker(broker, worker_threads=THREADS)
    worker.start()
    for _ in range(count):
        ended.acquire()
    done = time.monotonic()
    broker.join("default")
    for delay in range(FIRST_MS, FIRST_MS + DELAYED * APART_MS, APART_MS):
        be_late.send_with_options(args=(time.time() + delay / 1000,), delay=delay)
    for _ in range(DELAYED):
        ended.acquire()
    worker.stop()
    return count / (sent - begun), count / (done - sent), sorted(late_ms)


if __name__ == "__main__":
    main()
