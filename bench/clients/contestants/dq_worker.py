"""DQ's Python client: a worker with coroutines; or, as `raw`, its commands one after the other.

python dq_worker.py URL add COUNT | late COUNT | worker CONCURRENCY | raw
"""

import asyncio
import sys
import time
from datetime import timedelta

import redis
import redis.asyncio
from told import DELAY_MS, EVERY_S, tell

from dq_client import AsyncQueue, Queue
from dq_client.worker import AsyncRunningJob, Worker

url, load, *rest = sys.argv[1:]
client = redis.Redis.from_url(url)
queue = Queue(client, "queue")


async def handle(job: AsyncRunningJob) -> None:
    tell(job.body.get("due"))


async def work() -> None:
    own = AsyncQueue(redis.asyncio.Redis.from_url(url), "queue")
    await Worker(own, handle, concurrency=int(rest[0])).serve()


match load:
    case "add":
        for first in range(0, int(rest[0]), 1_000):
            pipeline = client.pipeline(transaction=False)
            for number in range(first, first + 1_000):
                queue.add(f"job:{number}", {"n": number}, on=pipeline)
            pipeline.execute()
    case "late":
        for number in range(int(rest[0])):
            due = int(time.time() * 1_000) + DELAY_MS
            queue.add(f"late:{number}", {"due": due}, delay=timedelta(milliseconds=DELAY_MS))
            time.sleep(EVERY_S)
    case "worker":
        asyncio.run(work())
    case "raw":
        while True:
            for id, _, lease, _ in client.execute_command("DQ.POP", "queue", "BLOCK", 100) or []:
                client.execute_command("DQ.FINISH", "queue", id, lease)
