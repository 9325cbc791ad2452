"""RQ, with its scheduler inside the worker.

python rq_app.py URL add COUNT | late COUNT; rq worker --with-scheduler bench
"""

import sys
import time
from datetime import datetime, timedelta, timezone

from redis import Redis
from rq import Queue
from told import DELAY_MS, EVERY_S, tell


def main() -> None:
    url, load, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    queue = Queue("bench", connection=Redis.from_url(url))
    for _ in range(count):
        if load == "add":
            queue.enqueue(tell, None, result_ttl=0)
            continue
        due = datetime.now(timezone.utc) + timedelta(milliseconds=DELAY_MS)
        queue.enqueue_at(due, tell, int(due.timestamp() * 1_000), result_ttl=0)
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main()
