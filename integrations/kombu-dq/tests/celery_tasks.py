"""The app of the workers in these tests. It writes down what ran in the list `runs`, beside its
results.
"""

import os
import time
from typing import Any

import redis
from celery import Celery, Task, group
from celery.exceptions import Reject

import dying

app = Celery("celery_tasks", broker=os.environ["BROKER_URL"], backend=os.environ["RESULT_URL"])
app.conf.update(
    broker_transport_options={
        "ttr": float(os.environ.get("TTR", "2")),
        # Means nothing to DQ. With kombu's redis transport it is an hour unless set.
        "visibility_timeout": int(os.environ.get("VISIBILITY_TIMEOUT", "1")),
    },
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=int(os.environ.get("PREFETCH", "4")),
    worker_cancel_long_running_tasks_on_connection_loss=False,
    result_expires=int(os.environ.get("RESULT_EXPIRES", "3600")),
    timezone=os.environ.get("TIMEZONE") or None,
    enable_utc=os.environ.get("ENABLE_UTC", "yes") == "yes",
    task_create_missing_queues=True,
)
records = redis.Redis.from_url(os.environ["RECORDS_URL"])


@app.task
def add(x: int, y: int) -> int:
    return x + y


@app.task(ignore_result=True)
def record(word: Any) -> None:
    records.rpush("runs", word)


@app.task(acks_late=True, reject_on_worker_lost=True, bind=True)
def record_late(self: Task, word: str, seconds: float = 0) -> bool:
    """Writes down when it begins and when it ends; tells whether it was redelivered."""
    records.rpush("begun", word)
    time.sleep(seconds)
    records.rpush("runs", word)
    return bool(self.request.delivery_info.get("redelivered"))


@app.task(acks_late=True, bind=True, max_retries=2)
def fail_twice(self: Task) -> int:
    if self.request.retries < 2:
        raise self.retry(countdown=0.5)
    return int(self.request.retries)


@app.task(acks_late=True)
def reject(requeue: bool) -> None:
    records.rpush("begun", "rejected")
    raise Reject("can't be done", requeue=requeue)


@app.task(bind=True)
def tell_eta(self: Task) -> str | None:
    eta: str | None = self.request.eta
    return eta


@app.task(bind=True, ignore_result=True)
def record_eta(self: Task, key: str) -> None:
    records.rpush(key, self.request.eta, time.time())


@app.task(acks_late=True, reject_on_worker_lost=True)
def part(n: int) -> int:
    """Of the header of a chord."""
    dying.die_at("part")
    return n


@app.task(acks_late=True, reject_on_worker_lost=True)
def body(numbers: list[int]) -> int:
    """Writes down that it ran."""
    dying.die_at("body")
    records.rpush("runs", sum(numbers))
    return sum(numbers)


@app.task
def fail(text: str) -> None:
    raise ValueError(text)


@app.task
def errback(request: Any, error: Exception, traceback: Any) -> None:
    records.rpush("errors", type(error).__name__)


@app.task(bind=True)
def replaced(self: Task, n: int) -> Any:
    return self.replace(group(add.si(n, 0), add.si(n, 1)) | tsum.s())


@app.task(bind=True)
def more(self: Task, n: int) -> int:
    """Adds a part to its own chord."""
    self.add_to_chord(add.si(n, n))
    return n


@app.task(bind=True)
def tell_state(self: Task) -> str:
    self.update_state(state="PROGRESS", meta={"done": 1})
    while not records.exists("go on"):
        time.sleep(0.01)
    return "told"


@app.task
def listed(numbers: list[Any]) -> list[Any]:
    return numbers


@app.task
def tsum(numbers: list[int]) -> int:
    return sum(numbers)


@app.task
def give(size: int) -> str:
    return "x" * size


@app.task(ignore_result=True)
def give_unseen(size: int) -> str:
    return "x" * size


@app.task
def fail_long(size: int) -> None:
    raise ValueError("x" * size)


@app.task
def length(texts: list[str]) -> int:
    records.rpush("runs", len(texts))
    return sum(map(len, texts))
