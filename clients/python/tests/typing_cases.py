"""What a type checker makes of the client. mypy and pyright read it; nothing runs it."""

from collections.abc import Awaitable
from datetime import datetime, timedelta

import redis
import redis.asyncio
from typing_extensions import assert_type

from dq_client import (
    Added,
    AsyncQueue,
    Deps,
    FinishedAndTaken,
    Info,
    Job,
    Later,
    Outcome,
    Over,
    Page,
    Queue,
    Taken,
    Topic,
)
from dq_client.replies import Delivery
from dq_client.worker import AsyncRunningJob, RunningJob, Worker


def of_a_queue(client: redis.Redis) -> None:
    q = Queue(client, "q")
    assert_type(q.add("a", 1, delay=timedelta(minutes=1), nx=True), Added | Taken | Over)
    assert_type(q.add_many([1, ("a", 2)], delays=[timedelta(1)] * 2, nx=True), list[str | None])
    assert_type(q.pop(count=3), list[Delivery])
    assert_type(q.pop(count=3, min=2, linger=timedelta(1)), list[Delivery])
    assert_type(q.finish(("a", 17), ("b", "*")), int)
    assert_type(q.finish_and_pop(q.pop(), count=3, ttr=timedelta(1)), FinishedAndTaken)
    assert_type(q.finish_and_pop([("a", 17), "b"]), FinishedAndTaken)
    assert_type(q.finish_and_mpop([("bulk", "a", 17)], ["bulk"]).jobs, list[Delivery])
    assert_type(q.done("a", 17, result=1), list[Added | Taken] | None)
    assert_type(q.release("a", 17, unbegun=True), bool)
    assert_type(q.get("a"), Job | None)
    assert_type(q.result("a", timedelta(seconds=1)), Outcome | None)
    assert_type(q.deps("a"), Deps | None)
    assert_type(q.scan(), Page[str])
    assert_type(q.info(), Info | None)
    assert_type(q.next("@daily", tz="Europe/Berlin"), list[datetime])
    assert_type(q.pause(for_=timedelta(seconds=1)), None)
    # A command on a pipeline has its reply later.
    assert_type(q.pop(on=client.pipeline()), Later[list[Delivery]])
    for job in q.peek_iter("dead"):
        assert_type(job, Job)

    q.add("a", 1, delay=5)  # type: ignore[call-overload]  # pyright: ignore
    q.add("a", 1, dely=timedelta(seconds=1))  # type: ignore[call-overload]  # pyright: ignore
    q.add_many([1], spread=5)  # type: ignore[call-overload]  # pyright: ignore
    q.add_many([1], every=timedelta(1))  # type: ignore[call-overload]  # pyright: ignore
    q.finish_and_pop([("a", 17)], id="b")  # type: ignore[call-overload]  # pyright: ignore
    q.pop(min=2, linger=5)  # type: ignore[call-overload]  # pyright: ignore
    q.pop(state="ready")  # type: ignore[call-overload]  # pyright: ignore
    q.len("old")  # type: ignore[call-overload]  # pyright: ignore


async def of_an_async_queue(client: redis.asyncio.Redis) -> None:
    q = AsyncQueue(client, "q")
    assert_type(q.add("a", 1), Awaitable[Added | Taken | Over])
    assert_type(await q.add_many(["a"]), list[str | None])
    assert_type(await q.pop(), list[Delivery])
    assert_type(await q.finish_and_pop(await q.pop()), FinishedAndTaken)
    assert_type(q.len(on=client.pipeline()), Later[int])
    async for job in q.peek_iter():
        assert_type(job, Job)
    q.add("a", 1, delay=5)  # type: ignore[call-overload]  # pyright: ignore


def of_topics_and_workers(client: redis.Redis, cluster: redis.RedisCluster) -> None:
    topic = Topic(cluster, "mail", 12)
    assert_type(topic.cancel("a"), bool)
    topic.add("a", 1, delay=5)  # type: ignore[arg-type]  # pyright: ignore

    def handle(job: RunningJob) -> int:
        job.check()
        return len(job.body)

    async def handle_async(job: AsyncRunningJob) -> None:
        await job.checkpoint(note="half of it")

    Worker(Queue(client, "q"), handle, concurrency=4).run()
    Worker({Queue(client, "a"): 3, Queue(client, "b"): 1}, handle_async)
    worker = Worker(topic, handle)
    worker.schedule("nightly", None, every=timedelta(hours=24))
