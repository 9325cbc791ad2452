"""Parts of the worker that need no server, and what the contract can't see from outside."""

import asyncio
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import islice

import pytest
import redis

from dq_client import AsyncQueue, LeaseLost, Queue, Step, chain
from dq_client.codec import JSON
from dq_client.commands import Key
from dq_client.errors import Exists
from dq_client.outages import passes, pauses
from dq_client.replies import delivery
from dq_client.worker import AsyncRunningJob, Retry, RunningJob, Worker, outcomes
from dq_client.worker.calling import Threads
from dq_client.worker.fetching import orders, sources


def test_weights_say_how_often_a_queue_is_the_first() -> None:
    a, b, c = Key("a"), Key("b"), Key("c")
    firsts = [keys[0].name for keys in islice(orders([a, b, c], [3, 2, 1]), 12)]
    assert Counter(firsts) == {"a": 6, "b": 4, "c": 2}
    # Evenly spread: none has all its turns together.
    assert firsts[:6] != ["a", "a", "a", "b", "b", "c"]
    assert all(
        sorted(key.name for key in keys) == ["a", "b", "c"]
        for keys in islice(orders([a, b, c], [3, 2, 1]), 6)
    )


def test_queues_of_several_slots_share_the_places() -> None:
    weights = {Key("{a}1"): 1, Key("{a}2"): 1, Key("{b}"): 1, Key("{c}"): 1}
    assert [list(each.keys) for each in sources(weights, 8, is_cluster=True)] == [
        ["{a}1", "{a}2"],
        ["{b}"],
        ["{c}"],
    ]
    assert len(sources(weights, 1, is_cluster=False)) == 1
    with pytest.raises(ValueError, match="3 slots"):
        sources(weights, 2, is_cluster=True)


def test_pauses_grow_up_to_two_seconds_with_jitter() -> None:
    first = list(islice(pauses(), 10))
    assert all(0.025 <= first[0] <= 0.05 and pause <= 2 for pause in first)
    assert first[-1] >= 1
    assert first != list(islice(pauses(), 10))


def test_what_waiting_mends_and_what_it_does_not() -> None:
    for error in (
        redis.ConnectionError(),
        redis.TimeoutError(),
        redis.exceptions.ReadOnlyError("x"),
        redis.exceptions.BusyLoadingError("x"),
        redis.exceptions.OutOfMemoryError("x"),
        redis.exceptions.ClusterDownError("x"),
        redis.ResponseError("UNBLOCKED force unblock"),
        redis.ResponseError("MOVED 1 127.0.0.1:1"),
        OSError(),
    ):
        assert passes(error), error
    for error in (
        redis.AuthenticationError("x"),
        redis.exceptions.NoPermissionError("x"),
        redis.ResponseError("WRONGTYPE Operation against a key"),
        redis.ResponseError("unknown command 'DQ.POP', with args"),
        redis.ResponseError("EXISTS id is taken in this queue"),
        Exists("taken", "EXISTS"),
        TypeError(),
        # The program's own: those of redis-py are raised there.
        RuntimeError("the codec is broken"),
        AttributeError("the codec has no such thing"),
    ):
        assert not passes(error), error
    with pytest.raises(AttributeError) as raised:
        redis.Connection.pack_command(None, "PING")  # type: ignore[arg-type]
    assert passes(raised.value)


def test_a_reason_is_as_long_as_the_server_takes() -> None:
    job = delivery([b"a", b"1", 17, 1], "q", JSON)
    settlement = outcomes.of_error(Key("q"), job, RuntimeError("ü" * 600))
    assert settlement.command is not None
    reason = settlement.command.words[-1]
    assert isinstance(reason, bytes)
    assert len(reason) <= 512
    assert reason.decode().startswith("RuntimeError: üü")
    settlement = outcomes.of_error(Key("q"), job, Retry("later", in_=timedelta(seconds=2)))
    assert settlement.command is not None
    assert settlement.command.words[4:] == ["DELAY", 2000, "REASON", b"later"]


def test_threads_are_as_many_as_work_at_the_same_time() -> None:
    async def main() -> set[int | None]:
        threads = Threads("t")
        barrier = threading.Barrier(3)

        def meet() -> int | None:
            barrier.wait(10)
            return threading.current_thread().ident

        first = await asyncio.gather(*(threads.run(meet) for _ in range(3)))
        again = await asyncio.gather(*(threads.run(meet) for _ in range(3)))
        with pytest.raises(ZeroDivisionError):
            await threads.run(lambda: 1 // 0)
        return set(first) | set(again)

    assert len(asyncio.run(main())) == 3


def test_a_worker_reads_what_came_before(queue: Callable[..., Queue]) -> None:
    q = queue()
    q.start(chain(Step({"n": 2}, "double"), Step(None, "sum", keep=timedelta(minutes=1))))

    def handle(job: RunningJob) -> int:
        if job.id == "double":
            return int(job.body["n"]) * 2
        worker.stop()
        return sum(dep.value for dep in job.deps())

    worker = Worker(q, handle)
    worker.run()
    outcome = q.result("sum")
    assert outcome is not None
    assert outcome.value == 4


def test_a_worker_runs_in_a_loop_of_the_program(
    with_aqueue: Callable[[Callable[[AsyncQueue], object]], object],
) -> None:
    async def work(q: AsyncQueue) -> None:
        done = asyncio.Event()

        async def handle(job: AsyncRunningJob) -> None:
            await job.checkpoint(note="begun")
            assert (await q.get(job.id)).note == "begun"  # type: ignore[union-attr]
            try:
                # Either this is told that the job is lost, or the handler is cancelled before.
                with pytest.raises((LeaseLost, asyncio.CancelledError)):
                    await q.delete(job.id)
                    await job.checkpoint(note="too late")
            finally:
                done.set()

        worker = Worker(q, handle, concurrency=1)
        serving = asyncio.create_task(worker.serve())
        await q.add("a", None)
        await asyncio.wait_for(done.wait(), 20)
        worker.stop()
        await asyncio.wait_for(serving, 20)
        assert await q.len() == 0

    with_aqueue(work)


def test_what_does_not_fit_is_said_at_once(queue: Callable[..., Queue]) -> None:
    with pytest.raises(ValueError, match="needs a queue"):
        Worker([], print)
    with pytest.raises(ValueError, match="weight"):
        Worker({queue(): 0}, print)
    with pytest.raises(ValueError, match="same client"):
        Worker([queue(), Queue(redis.Redis(), "other")], print)


def test_a_thread_that_never_ends_does_not_keep_the_program(dq_url: str) -> None:
    """After the grace time the program ends, whatever the handler is doing."""
    program = """
import sys, time, redis
from datetime import timedelta
from dq_client import Queue
from dq_client.worker import Worker
q = Queue(redis.Redis.from_url(sys.argv[1]), "q")
q.add("a", None)
def handle(job):
    worker.stop()
    time.sleep(600)
worker = Worker(q, handle, grace=timedelta(milliseconds=50))
worker.run()
print(q.get("a").state, q.get("a").attempt)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, dq_url],
        env=os.environ | {},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "ready 0\n"
