"""Chords on DQ's result backend beside Celery's redis backend: commands, and how long they take.

    target/kombu/venv/bin/python integrations/kombu-dq/tests/measure_chords.py [CHORDS]

The broker is DQ for both; one worker with two processes. What differs is what the chords cost. Commands are
those that the server counts, less those of waiting and of an idle worker.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "tests" / "blackbox"))

from celery import chord  # noqa: E402

from harness.server import KINDS, Server  # noqa: E402, it lies where we just said
from workers import Worker, producer  # noqa: E402

SIZES = (10, 100)
#: Clients that wait, and what we ask ourselves.
WAITING = {"cmdstat_info", "cmdstat_config|resetstat", "cmdstat_dq.mpop", "cmdstat_dq.touch"}


def main(chords: int) -> None:
    for scheme in ("redis", "dq"):
        with tempfile.TemporaryDirectory() as directory:
            server = Server(KINDS[0], Path(directory))
            settings = {"RESULT_URL": f"{scheme}://127.0.0.1:{server.port}/8", "TTR": "60"}
            options = ("-c", "2", "--without-mingle", "--without-gossip", "--without-heartbeat")
            worker = Worker(server.port, Path(directory) / "worker.log", *options, **settings)
            try:
                worker.wait_until_ready()
                app = producer(server.port, **settings)
                for size in SIZES:
                    header = [app.add.s(n, n) for n in range(size)]
                    chord(header, app.tsum.s())().get(timeout=60)
                    with server.client() as client:
                        client.config_resetstat()
                        times = []
                        for _ in range(chords):
                            started = time.monotonic()
                            result = chord(header, app.tsum.s()).apply_async()
                            while result.state != "SUCCESS":
                                time.sleep(0.002)
                            times.append(time.monotonic() - started)
                        stats = client.info("commandstats")
                    counted = {
                        name: each["calls"] for name, each in stats.items() if name not in WAITING
                    }
                    # Those of the loop above, which asks for the state again and again.
                    for name in ("cmdstat_get", "cmdstat_dq.result", "cmdstat_dq.get"):
                        counted.pop(name, None)
                    each = sum(counted.values()) / chords
                    print(
                        f"{scheme}://, a chord of {size}: {each:.0f} commands, {1000 * statistics.median(times):.0f} ms"
                    )
                    print("  ", {name: round(n / chords, 1) for name, n in counted.items()})
            finally:
                worker.kill()
                server.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
