"""Dramatiq on its Redis broker.

python dramatiq_app.py URL add COUNT | late COUNT; dramatiq dramatiq_app
"""

import os
import sys
import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from told import DELAY_MS, EVERY_S, tell

dramatiq.set_broker(RedisBroker(url=os.environ.get("BROKER") or sys.argv[1]))


@dramatiq.actor(queue_name="bench")
def handle(due: float | None = None) -> None:
    tell(due)


def main() -> None:
    load, count = sys.argv[2], int(sys.argv[3])
    for _ in range(count):
        if load == "add":
            handle.send()
            continue
        due = int(time.time() * 1_000) + DELAY_MS
        handle.send_with_options(args=(due,), delay=DELAY_MS)
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main()
