"""What an outage costs: no job that comes after it, no lease of a job whose outcome is unsent, and
two lines in the log.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, ClassVar

import pytest
import redis
import redis.asyncio

from dq_client import AsyncQueue, Queue, commands
from dq_client.commands import Key
from dq_client.worker import AsyncRunningJob, RunningJob, Worker, serving
from dq_client.worker.calling import Caller, address_of
from dq_client.worker.hands import Hands, Work
from dq_client.worker.renewing import MOST_AT_ONCE, keep
from dq_client.worker.reporting import Outages
from harness.address import Address

Make = Callable[..., Queue]


@pytest.fixture
def address(dq_url: str) -> Iterator[Address]:
    address = Address(int(dq_url.rsplit(":", 1)[1].split("/")[0]))
    yield address
    address.close()


class InThread:
    """A worker that runs in a thread of the test."""

    def __init__(self, worker: Worker):
        self._worker = worker
        self._thread = threading.Thread(target=worker.run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._worker.stop()
        self._thread.join(30)
        assert not self._thread.is_alive()


def later(condition: Callable[[], Any], within_s: float = 20) -> Any:
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


@pytest.mark.parametrize("retries", [None, "the library's"])
def test_what_is_taken_after_an_outage_is_kept(
    queue: Make, address: Address, retries: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the client library sends the call again by itself, and its first attempt was long
    ago when the answer comes. No renewal hides it: these may be in a pause.
    """

    async def idle(*_: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(serving.renewing, "keep", idle)
    from redis.backoff import ConstantBackoff
    from redis.retry import Retry

    again = Retry(ConstantBackoff(0.1), 30) if retries else None
    q = queue()
    begun: list[str] = []

    def handle(job: RunningJob) -> None:
        begun.append(job.id)
        for _ in range(10):
            time.sleep(0.05)
            job.check()

    url = f"redis://127.0.0.1:{address.port}"
    with redis.Redis.from_url(url, socket_timeout=1, retry=again) as client:
        worker = Worker(Queue(client, "q"), handle, ttr=timedelta(seconds=1))
        with InThread(worker):
            q.add("z", 1)
            later(lambda: "z" in begun and q.len() == 0)
            address.cut()
            for number in range(5):
                q.add(f"a:{number}", None, attempts=1, keep=timedelta(hours=1))
            time.sleep(1.8)  # longer than a lease
            address.lead_to(int(client_port(q)))
            later(lambda: q.len("done") == 5 or q.len("dead"))
    assert q.len("done") == 5
    assert sorted(each for each in begun if each != "z") == [f"a:{n}" for n in range(5)]


def client_port(q: Queue) -> int:
    port: int = q.client.connection_pool.connection_kwargs["port"]  # type: ignore[attr-defined]
    return port


def test_a_job_that_has_ended_is_renewed_until_the_server_knows(queue: Make, dq_url: str) -> None:
    q = queue()
    q.add("a", 1)
    is_deaf = threading.Event()
    is_deaf.set()

    class Deaf(redis.Redis):
        """A pipeline of it doesn't reach the server: what came of jobs can't be said."""

        def pipeline(self, *args: Any, **options: Any) -> Any:
            if is_deaf.is_set():
                raise redis.ConnectionError("no route")
            return super().pipeline(*args, **options)

    runs: list[int] = []
    with Deaf.from_url(dq_url) as client:
        worker = Worker(
            Queue(client, "q"), lambda job: runs.append(job.attempt), ttr=timedelta(seconds=1)
        )
        with InThread(worker):
            later(lambda: runs)
            first = q.get("a")
            assert first is not None and first.deadline is not None
            end = first.deadline
            # Two leases later it is still this worker's.
            later(lambda: shown(q).deadline > end + timedelta(seconds=2))
            assert shown(q).state == "reserved"
            is_deaf.clear()
            later(lambda: q.len() == 0)
    assert runs == [1]


def shown(q: Queue) -> Any:
    return q.get("a")


def test_an_outage_is_two_lines_with_the_address(
    queue: Make, address: Address, caplog: pytest.LogCaptureFixture
) -> None:
    q = queue()
    caplog.set_level(logging.INFO, "dq_client")
    gone = threading.Event()
    with redis.Redis(
        port=address.port, socket_timeout=1, retry=None, password=None, client_name="w"
    ) as client:
        worker = Worker(Queue(client, "q"), lambda job: gone.wait(20), ttr=timedelta(seconds=30))
        with InThread(worker):
            for number in range(10):
                q.add(f"a:{number}", None)
            later(lambda: q.len("reserved") == 10)
            address.cut()
            gone.set()
            time.sleep(2.5)
            address.lead_to(client_port(q))
            later(lambda: q.len() == 0)
    about = [line for line in caplog.messages if "server at" in line]
    assert len(about) == 2, about
    assert f"the server at 127.0.0.1:{address.port} doesn't answer" in about[0].replace(
        "localhost", "127.0.0.1"
    )
    assert "answers again, after" in about[1]


def test_outages_that_flap_are_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    outages = Outages("localhost:1", is_cluster=False)
    for _ in range(100):
        outages.failed("q", OSError("down"))
        outages.failed("p", OSError("down"))
        outages.answered("q")
    assert len(caplog.messages) == 2
    assert outages.count == 100
    outages = Outages("the cluster", is_cluster=True)
    outages.failed("q", OSError("down"))
    outages.answered("p")
    assert "node of queue 'q'" in caplog.messages[-1]


def test_what_pauses_goes_on_when_the_outage_ends() -> None:
    async def pause() -> None:
        outages = Outages("localhost:1", is_cluster=False)
        outages.failed("q", OSError("down"))
        pausing = asyncio.create_task(outages.pause(3_600))
        await asyncio.sleep(0)
        outages.answered("q")
        await asyncio.wait_for(pausing, 30)

    asyncio.run(pause())


@pytest.mark.parametrize("how", ["silence", "cut"])
@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_a_worker_ends_while_the_server_is_away(
    queue: Make, address: Address, how: str, kind: str
) -> None:
    q = queue()
    begun = threading.Event()

    async def handle_async(job: AsyncRunningJob) -> None:
        begun.set()
        await asyncio.sleep(600)

    def handle(job: RunningJob) -> None:
        begun.set()
        while True:
            time.sleep(0.05)
            job.check()

    url = f"redis://127.0.0.1:{address.port}"
    of: Any = (
        Queue(redis.Redis.from_url(url, socket_timeout=None), "q")
        if kind == "blocking"
        else AsyncQueue(redis.asyncio.Redis.from_url(url, socket_timeout=None), "q")
    )
    handler: Any = handle if kind == "blocking" else handle_async
    worker = Worker(of, handler, grace=timedelta(seconds=0.2))
    with InThread(worker):
        q.add("a", None)
        assert begun.wait(20)
        getattr(address, how)()


def test_a_pool_that_is_too_small_is_said(
    queue: Make, dq_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    q = queue()
    pool = redis.BlockingConnectionPool.from_url(dq_url, max_connections=1)
    worker = Worker(Queue(redis.Redis(connection_pool=pool), "q"), lambda job: None)
    with InThread(worker):
        q.add("a", None)
        later(lambda: q.len() == 0)
    assert any("pool has 1 connections, and this worker needs 3" in m for m in caplog.messages)


def test_an_address_has_no_password() -> None:
    for client, wanted in (
        (redis.Redis.from_url("redis://:secret@[::1]:7/3"), "[::1]:7"),
        (redis.Redis(unix_socket_path="/run/dq.sock", password="secret"), "unix:/run/dq.sock"),
        (redis.asyncio.Redis(host="mail.example", password="secret"), "mail.example:6379"),
    ):
        assert address_of(client) == wanted
    sentinel = redis.Sentinel([("127.0.0.1", 1)])  # type: ignore[no-untyped-call]
    assert address_of(sentinel.master_for("mymaster")) == "'mymaster' of the sentinels"


# ---- many jobs -----------------------------------------------------------------------------------


def test_more_jobs_than_fit_in_a_command_are_all_renewed() -> None:
    """By a server that counts: the leases of 25,000 jobs."""
    seen: dict[bytes, int] = {}

    class Counting:
        connection_kwargs: ClassVar[dict[str, Any]] = {}

        async def execute_command(self, *words: Any, **_: Any) -> Any:
            assert words[0] == "DQ.RENEW" and len(words) <= 4 + 2 * MOST_AT_ONCE
            for id in words[4::2]:
                seen[id] = seen.get(id, 0) + 1
            await asyncio.sleep(0)
            return []

        def pipeline(self, transaction: Any = None) -> Any: ...

    async def main() -> None:
        key = Key("q")
        queue = AsyncQueue(Counting(), "q")
        caller = Caller([queue])
        ended = asyncio.Event()

        async def handle(job: AsyncRunningJob) -> None:
            await ended.wait()

        hands = Hands(Work(handle), timedelta(seconds=60), caller, lambda settlement: None)
        pop = commands.pop(key)
        many = [[str(n).encode(), b"null", n + 1, 1] for n in range(25_000)]
        for delivery in pop.parse(many):
            hands.begin(key, delivery, 0.0, lambda: None)
        keeping = asyncio.create_task(keep(key, hands, timedelta(seconds=60), caller))
        while not (len(seen) == 25_000 and min(seen.values()) >= 2):
            await asyncio.sleep(0.01)
        assert all(hand.good_until > 0 for hand in hands.all())
        keeping.cancel()
        ended.set()
        await hands.none.wait()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_job_that_comes_again_is_not_lost_with_its_old_lease(queue: Make) -> None:
    """A release that the server knows of, before the worker knows that it does: the job is in hand
    twice.
    """

    async def main() -> None:
        key, settled = Key("q"), []

        class Silent:
            connection_kwargs: ClassVar[dict[str, Any]] = {}

            async def execute_command(self, *words: Any, **_: Any) -> Any: ...
            def pipeline(self, transaction: Any = None) -> Any: ...

        async def handle(job: AsyncRunningJob) -> None:
            if job.attempt == 2:
                await asyncio.sleep(0.05)

        caller = Caller([AsyncQueue(Silent(), "q")])
        hands = Hands(Work(handle), timedelta(seconds=60), caller, settled.append)
        for attempt in (1, 2):
            (job,) = commands.pop(key).parse([[b"a", b"null", 16 + attempt, attempt]])
            hands.begin(key, job, 1e9, lambda: None)
            await asyncio.sleep(0.01)
        (hand,) = hands.of(key)
        assert hand.delivery.lease == 18
        await hands.none.wait()
        assert [each.job.lease for each in settled] == [17, 18]
        hands.leave(settled[0].hand)
        assert hands.of(key) == [hand]

    asyncio.run(main())


def test_a_job_that_is_lost_before_it_begins_leaves_its_place() -> None:
    async def main() -> None:
        freed: list[int] = []
        key = Key("q")
        hands = Hands(Work(AsyncHandler()), timedelta(1), None, freed.append)  # type: ignore[arg-type]
        (job,) = commands.pop(key).parse([[b"a", b"null", 17, 1]])
        hands.begin(key, job, 0.0, lambda: freed.append(1))
        for hand in hands.all():
            hand.lose()
        await asyncio.wait_for(hands.none.wait(), 10)
        assert freed == [1]
        assert hands.all() == []

    asyncio.run(main())


class AsyncHandler:
    async def __call__(self, job: AsyncRunningJob) -> None:
        raise AssertionError("it isn't this worker's")


# ---- schedules -----------------------------------------------------------------------------------


def test_declared_schedules_come_back_after_the_data_is_gone(
    queue: Make, client: redis.Redis, dq_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "DECLARE_S", 0.4)
    q = queue()
    with redis.Redis.from_url(dq_url) as own:
        worker = Worker(Queue(own, "q"), lambda job: None)
        worker.schedule("tick", None, every=timedelta(hours=1))
        worker.schedule("thrice", None, every=timedelta(hours=1), runs=3)
        with InThread(worker):
            later(lambda: q.len() == 2)
            client.flushall()
            later(lambda: q.get("tick"))
            q.delete("tick")
            later(lambda: q.get("tick"))
            # It would begin to count again.
            assert q.get("thrice") is None


def test_declared_schedules_come_back_with_the_connection(
    queue: Make, client: redis.Redis, address: Address
) -> None:
    q = queue()
    with redis.Redis(port=address.port, retry=None) as own:
        worker = Worker(Queue(own, "q"), lambda job: None)
        worker.schedule("tick", None, every=timedelta(hours=1))
        with InThread(worker):
            later(lambda: q.len())
            address.cut()
            client.flushall()
            address.lead_to(client_port(q))
            later(lambda: q.get("tick"))


def test_a_schedule_that_is_refused_later_does_not_end_the_worker(
    queue: Make, dq_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "DECLARE_S", 0.1)
    q = queue()
    done = threading.Event()
    with redis.Redis.from_url(dq_url) as own:
        worker = Worker(Queue(own, "q"), lambda job: done.set())
        worker.schedule("tick", None, every=timedelta(hours=1))
        with InThread(worker):
            later(lambda: q.len())
            q.alter(maxjobs=1)
            q.delete("tick")
            q.add("other", None, delay=timedelta(seconds=2), replace=True)
            later(lambda: any("can't be declared" in line for line in caplog.messages))
            assert done.wait(20)


def test_a_schedule_of_a_newer_program_stays(
    queue: Make, dq_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "DECLARE_S", 0.1)
    q = queue()
    with redis.Redis.from_url(dq_url) as own:
        worker = Worker(Queue(own, "q"), lambda job: None)
        for id in ("tick", "mark"):
            worker.schedule(id, None, every=timedelta(hours=1))
        with InThread(worker):
            later(lambda: q.len() == 2)
            q.add("tick", None, every=timedelta(hours=2), replace=True)
            # Both are looked at again, one after the other.
            for _ in range(2):
                q.delete("mark")
                later(lambda: q.get("mark"))
            job = q.get("tick")
    assert job is not None and job.schedule is not None
    assert job.schedule.every == timedelta(hours=2)
    assert "queue 'q': schedule 'mark' was gone, and is back" in caplog.messages


@pytest.mark.parametrize("lack", ["maxjobs", "maxmemory"])
def test_a_schedule_without_room_holds_up_no_job(
    queue: Make, client: redis.Redis, dq_url: str, lack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that waits for room before it takes jobs would wait for ever."""
    monkeypatch.setattr(serving, "DECLARE_S", 0.1)
    q = queue()
    q.add("a", None)
    if lack == "maxjobs":
        q.alter(maxjobs=1)
    else:
        client.config_set("maxmemory", 1)
    try:
        done = threading.Event()
        with redis.Redis.from_url(dq_url) as own:
            worker = Worker(Queue(own, "q"), lambda job: done.set())
            worker.schedule("tick", None, every=timedelta(hours=1))
            with InThread(worker):
                assert done.wait(10)
                client.config_set("maxmemory", 0)
                later(lambda: q.get("tick"))
    finally:
        client.config_set("maxmemory", 0)


def test_what_a_worker_leaves_unsent_holds_up_the_taking_of_jobs() -> None:
    from dq_client.worker import settling
    from dq_client.worker.outcomes import Settlement

    async def main() -> None:
        settler = settling.Settler({}, None, lambda *_: None, lambda _: None)  # type: ignore[arg-type]
        (job,) = commands.pop(Key("q")).parse([[b"a", b"null", 17, 1]])
        for _ in range(settling.UNSENT_AT_MOST):
            assert settler.has_room.is_set()
            settler.settle(Settlement(job, "done"))
        assert not settler.has_room.is_set()

    asyncio.run(main())
