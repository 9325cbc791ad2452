"""Messages, exceptions and outcomes that nobody foresaw: none ends a worker, a thread or a lease."""

import json
import time
from typing import Any

import dramatiq
import pytest
import redis
import redis.asyncio
from dramatiq.errors import Retry
from dramatiq.middleware import AsyncIO

from conftest import Work, url
from dramatiq_dq import DQBackend, DQBroker
from harness.server import Server, eventually

MESSAGE: dict[str, Any] = {
    "queue_name": "default",
    "actor_name": "record",
    "args": [],
    "kwargs": {},
    "options": {},
    "message_id": "m",
    "message_timestamp": 1,
}
POISON = {
    "bytes": b"\xff\xfe",
    "deep": b"[" * 200_000,
    "list for an actor": json.dumps(MESSAGE | {"actor_name": []}).encode(),
    "number for a queue": json.dumps(MESSAGE | {"queue_name": 5}).encode(),
    "text for options": json.dumps(MESSAGE | {"options": "eta"}).encode(),
    "number for options": json.dumps(MESSAGE | {"options": 7}).encode(),
    "number for kwargs": json.dumps(MESSAGE | {"kwargs": 7}).encode(),
    "list for an id": json.dumps(MESSAGE | {"message_id": []}).encode(),
    "unknown actor": json.dumps(MESSAGE | {"actor_name": "none"}).encode(),
}


def test_jobs_that_are_no_messages_are_dead_and_no_worker_ends(
    broker: DQBroker, work: Work
) -> None:
    ran: list[int] = []

    @dramatiq.actor
    def record() -> None:
        ran.append(1)

    queue = broker.queue("default")
    for id, body in POISON.items():
        queue.add(id, body)
    queue.add(b"\xff\xfe id", b"no message")
    # A message of another queue, as an operator may have moved it, runs where it is.
    queue.add("of another queue", json.dumps(MESSAGE | {"queue_name": "other"}).encode())
    work(broker, worker_threads=1)
    broker.join("default", timeout=30_000)
    record.send()
    broker.join("default", timeout=20_000)
    assert ran == [1, 1]
    dead = {job.id for job in queue.peek("dead", count=20)}
    assert dead == {*POISON, b"\xff\xfe id".decode("utf-8", "surrogateescape")}


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("nothing to say")


RAISED = {
    "mute": Mute(),
    "surrogates": ValueError("\ud800"),
    "long": ValueError("x" * (2 << 20)),
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "stop": StopIteration(),
    "generator": GeneratorExit(),
}


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("retries", [0, 1])
def test_whatever_an_actor_raises_its_message_ends(
    name: str, retries: int, broker: DQBroker, work: Work
) -> None:
    ran: list[int] = []

    @dramatiq.actor(max_retries=retries, min_backoff=1, max_backoff=2)
    def fail() -> None:
        ran.append(1)
        raise RAISED[name]

    @dramatiq.actor
    def other() -> None:
        ran.append(2)

    queue = broker.queue("default")
    queue.alter(attempts=retries + 1)
    fail.send()
    work(broker, worker_threads=1)
    broker.join("default", timeout=30_000)
    assert ran == [1] * (retries + 1)
    # Outcomes are sent by a thread of their own.
    eventually(lambda: queue.len(state="dead") == 1, within_s=20)
    other.send()
    broker.join("default", timeout=20_000)
    eventually(lambda: ran[-1] == 2, within_s=20)
    eventually(lambda: broker._leases.count == 0, within_s=20)


@pytest.mark.parametrize("name", RAISED)
def test_whatever_a_coroutine_raises_the_others_go_on(
    name: str, broker: DQBroker, work: Work
) -> None:
    broker.add_middleware(AsyncIO())
    ran: list[int] = []

    @dramatiq.actor(max_retries=0)
    async def fail() -> None:
        raise RAISED[name]

    @dramatiq.actor(max_retries=0)
    async def other() -> None:
        ran.append(1)

    fail.send()
    other.send()
    work(broker, worker_threads=1)
    broker.join("default", timeout=20_000)
    assert ran == [1]
    assert broker.queue("default").len(state="dead") == 1


@pytest.mark.parametrize("delay", [-1, -(10**9), float("inf"), 10**30, 1.5, True])
def test_a_delay_is_within_what_the_server_takes(broker: DQBroker, delay: Any) -> None:
    @dramatiq.actor
    def nothing() -> None: ...

    nothing.send_with_options(delay=delay)
    queue = broker.queue("default")
    assert queue.len(state="ready" if delay <= 0 else "delayed") + queue.len(state="ready") >= 1


@pytest.mark.parametrize("delay", [float("nan"), "soon", [1]])
def test_what_is_no_delay_is_refused(broker: DQBroker, delay: Any) -> None:
    @dramatiq.actor
    def nothing() -> None: ...

    with pytest.raises((TypeError, ValueError), match="delay is in milliseconds"):
        nothing.send_with_options(delay=delay)


@pytest.mark.parametrize("delay", [-5, float("nan"), 10**30, "soon"])
def test_a_retry_with_an_odd_delay_is_not_lost(delay: Any, broker: DQBroker, work: Work) -> None:
    ran: list[int] = []

    @dramatiq.actor(max_retries=5)
    def fail_once() -> None:
        ran.append(1)
        if len(ran) == 1:
            raise Retry("not yet", delay=delay)

    fail_once.send()
    work(broker)
    queue = broker.queue("default")
    if delay == -5:
        broker.join("default", timeout=20_000)
        assert len(ran) == 2
        return
    state = "delayed" if delay == 10**30 else "dead"
    eventually(lambda: queue.len(state=state) == 1, within_s=20)  # type: ignore[arg-type]
    assert len(ran) == 1


def test_a_retry_that_the_server_refuses_is_the_same_message_after_its_delay(
    broker: DQBroker, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[float] = []

    @dramatiq.actor(max_retries=20, min_backoff=600, max_backoff=601)
    def fail_long(text: str) -> None:
        ran.append(time.time())
        if len(ran) < 3:
            raise ValueError

    # With its retry's options it is over the limit.
    message = fail_long.message("x" * ((1 << 20) - 400))
    broker.enqueue(message)
    work(broker)
    broker.join("default", timeout=30_000)
    assert len(ran) == 3
    assert ran[1] - ran[0] > 0.2


def test_clients_with_which_nothing_would_be_sent_are_refused(server: Server) -> None:
    with redis.Redis.from_url(url(server)) as client:
        for wrong in (redis.asyncio.Redis.from_url(url(server)), client.pipeline()):
            for kind in (DQBroker, DQBackend):
                with pytest.raises(TypeError):
                    kind(client=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("timeout", [0, -1, 0.2, float("nan")])
def test_a_heartbeat_timeout_is_a_time(timeout: Any) -> None:
    with pytest.raises(ValueError, match="heartbeat_timeout"):
        DQBroker(url="redis://127.0.0.1:1/0", heartbeat_timeout=timeout)
