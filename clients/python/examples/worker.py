"""Sends the mail that is due, until it is told to stop by SIGTERM or Ctrl-C."""

import logging
import os
from datetime import timedelta

import redis

from dq_client import Queue
from dq_client.worker import Bury, Retry, RunningJob, Worker

server = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))
mail = Queue(server, "mail")


def send(job: RunningJob) -> str:
    """The work; here it is pretended. A job may run twice: make this idempotent."""
    address = job.body["to"]
    if "@" not in address:
        raise Bury(f"not an address: {address}")
    if address.endswith("@down.example") and job.attempt < 3:
        raise Retry("down.example doesn't answer", in_=timedelta(milliseconds=100))
    print(f"sent {job.id} to {address}, attempt {job.attempt}", flush=True)
    return f"accepted for {address}"


worker = Worker(mail, send, concurrency=10)
worker.schedule("nightly", {"to": "boss@example.com"}, every=timedelta(days=1))

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    worker.run()
