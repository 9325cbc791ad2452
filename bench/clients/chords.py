"""Celery's part of flows.py: chords on the Redis backend, a prefork worker for each processor.

python chords.py redis://127.0.0.1:6379/0 FAN_INS JOBS
"""

import subprocess
import sys
import time

from celery import Celery, chord

url = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1].startswith("redis://") else None
app = Celery("chords", broker=url, backend=url)
app.conf.update(worker_prefetch_multiplier=16, result_expires=3_600)


@app.task
def part() -> None:
    pass


@app.task
def total(_results: list[None]) -> None:
    app.backend.client.incr("fan-ins-ended")


def main() -> None:
    fan_ins, jobs = map(int, sys.argv[2:])
    words = [sys.executable, "-m", "celery", "-A", "chords", "-b", url, "--result-backend", url]
    worker = subprocess.Popen(
        [*words, "worker", "-c", "2", "--without-gossip", "--without-mingle", "-l", "error"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(fan_ins):
            chord([part.s() for _ in range(jobs)])(total.s())
        while int(app.backend.client.get("fan-ins-ended") or 0) < fan_ins:
            if worker.poll() is not None:
                sys.exit("the worker has ended")
            time.sleep(0.01)
        print(fan_ins)
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    main()
