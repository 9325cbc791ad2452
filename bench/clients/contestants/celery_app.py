"""Celery on its Redis transport, without results, as its documentation advises for short tasks.

python celery_app.py URL add COUNT | late COUNT; celery -A celery_app worker
"""

import os
import sys
import time
from datetime import datetime, timedelta, timezone

from celery import Celery
from told import DELAY_MS, EVERY_S, tell

app = Celery("celery_app", broker=os.environ.get("BROKER") or sys.argv[1])
app.conf.update(worker_prefetch_multiplier=16, task_ignore_result=True)


@app.task
def handle(due: float | None = None) -> None:
    tell(due)


def main() -> None:
    load, count = sys.argv[2], int(sys.argv[3])
    for _ in range(count):
        if load == "add":
            handle.delay()
            continue
        due = datetime.now(timezone.utc) + timedelta(milliseconds=DELAY_MS)
        handle.apply_async((int(due.timestamp() * 1_000),), eta=due)
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main()
