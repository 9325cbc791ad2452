"""What can't be meant is refused where the program says it, and what the server refuses names the
queue and the job.
"""

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
import redis
import redis.asyncio
import valkey

from dq_client import (
    RAW,
    Add,
    AsyncQueue,
    AsyncTopic,
    Backoff,
    Exists,
    Full,
    Invalid,
    NoJob,
    NoModule,
    Queue,
    Rate,
    Step,
    Topic,
    WrongType,
    commands,
    envelope,
    group,
)
from dq_client.codec import JSON
from dq_client.commands import Key
from dq_client.errors import refusal
from dq_client.outages import passes
from dq_client.worker import Retry, Worker

Make = Callable[..., Queue]
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("name", ["delay", "ttr", "ttl", "keep", "late", "every", "jitter"])
@pytest.mark.parametrize("value", [1800, 0, 2.5, "30"])
def test_a_duration_is_no_number(queue: Make, name: str, value: Any) -> None:
    with pytest.raises(TypeError, match="timedelta"):
        queue().add("a", 1, **{name: value})
    assert queue().len() == 0


def test_what_an_option_can_not_be_is_said(queue: Make) -> None:
    q: Any = queue()
    for call, what in (
        (lambda: q.add(5, 1), "an id or a name is text or bytes, and not 5"),
        (lambda: q.finish(5), "an id or a name"),
        (lambda: q.get(None), "an id or a name"),
        (lambda: q.delete(["a"]), "an id or a name"),
        (lambda: q.pop(id=[5]), "an id or a name"),
        (lambda: q.add("a", 1, after=[5]), "an id or a name"),
        (lambda: q.add("a", 1, after="bc"), "after is a list of ids, and not 'bc'"),
        (lambda: q.add("a", 1, before=b"bc"), "before is a list of ids"),
        (lambda: q.start(group(Step(1, after="bc"), Step(2))), "after is a list of ids"),
        (lambda: q.add("a", 1, backoff=(SECOND, SECOND)), "backoff is a Backoff, and not"),
        (lambda: q.add("a", 1, backoff=5), "backoff is a Backoff"),
        (lambda: q.alter(rate=5), "rate is a Rate"),
        (lambda: q.alter(grouprate=(1, SECOND)), "grouprate is a Rate"),
        (lambda: q.alter(sink=5), "sink is a Sink or a str"),
        (lambda: q.add("a", 1, cron=5), "cron is a Cron or a str"),
        (lambda: q.add("a", 1, group=True), "group needs a value, and not True"),
        (lambda: q.add("a", 1, priority=True), "priority needs a value"),
        (lambda: q.add("a", 1, nx=1), "nx is True or False, and not 1"),
        (lambda: q.done("a", 1, add=["b"]), "what is added is an Add, and not 'b'"),
        (
            lambda: q.add_many("ab"),
            r"jobs is a list of bodies or \(id, body\) tuples, and not 'ab'",
        ),
        (lambda: q.add_many(5), "jobs is a list"),
        (lambda: q.add_many({"a": 1}), "jobs is a list"),
        (lambda: q.add_many([("a", 1, 2)]), "a tuple in jobs is an id and a body, and not"),
        (lambda: q.add_many([(5, 1)]), "an id or a name is text or bytes, and not 5"),
        (lambda: q.add_many([1], delays=SECOND), "delays is a list of timedeltas, and not"),
        (lambda: q.add_many([1], delays=[5]), "delays: a duration is a timedelta"),
        (lambda: q.add_many([1], ats="now"), "ats is a list of datetimes, and not 'now'"),
        (lambda: q.add_many([1], ats=[SECOND]), "ats: a time is a datetime"),
        (lambda: q.add_many([1], after="bc"), "after is a list of ids, and not 'bc'"),
        (lambda: q.add_many([1], nx=1), "nx is True or False, and not 1"),
        (
            lambda: q.finish_and_pop("ab"),
            r"jobs is a list of deliveries or \(id, lease\) tuples, and not 'ab'",
        ),
        (lambda: q.finish_and_pop([("a", 5)], block=5), "a duration is a timedelta"),
        (lambda: q.finish_and_pop([5]), "an id or a name is text or bytes, and not 5"),
    ):
        with pytest.raises(TypeError, match=what):
            call()
    assert q.len() == 0


def test_the_longest_duration_is_for_the_server_to_refuse(queue: Make) -> None:
    for options in ({"delay": timedelta.max}, {"ttl": timedelta.max}, {"delay": timedelta.min}):
        with pytest.raises(Invalid):
            queue().add("a", 1, **options)  # type: ignore[arg-type]


def test_nowhere_is_a_duration_a_number_or_a_time(queue: Make) -> None:
    q: Any = queue()
    for call in (
        lambda: q.add("a", 1, backoff=Backoff(1, 600)),  # type: ignore[arg-type]
        lambda: q.add("a", 1, at=1_795_000_000),
        lambda: q.add_many([1], spread=60),
        lambda: q.kick(spread=60),
        lambda: q.add("a", 1, at=SECOND),
        lambda: q.add("a", 1, until=1_795_000_000_000),
        lambda: q.pop(block=5),
        lambda: q.pop(min=2, linger=5),
        lambda: q.finish_and_mpop(["a"], ["b"], min=2, linger=5),
        lambda: q.pop(ttr=5),
        lambda: q.pause(for_=60),
        lambda: q.purge("dead", older=60),
        lambda: q.alter(deadkeep=3600),
        lambda: q.alter(rate=Rate(1, 1)),  # type: ignore[arg-type]
        lambda: q.result("a", 10),
        lambda: q.release("a", 1, delay=5),
        lambda: q.touch("a", 1, ttr=5),
        lambda: q.renew(30, SECOND, [("a", 1)]),
        lambda: q.done("a", 1, keep=60),
        lambda: q.done("a", 1, add=[Add(1, delay=60)]),
        lambda: q.peek("delayed", from_=1_795_000_000),
        lambda: q.forecast(60, 10),
        lambda: q.forecast(SECOND, 10, from_=17),
        lambda: q.next("* * * * *", from_=17),
        lambda: Retry("later", in_=5),  # type: ignore[arg-type]
        lambda: Worker(q, print, ttr=30),  # type: ignore[arg-type]
        lambda: Worker(q, print, grace=30),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=r"timedelta|datetime"):
            call()
    assert q.forecast(SECOND, 2, from_=datetime.now(timezone.utc)) == [0, 0]
    assert q.deps("a", from_=0) is None


@pytest.mark.parametrize("concurrency", [0, -1, 2.5, "3", None])
def test_a_concurrency_that_takes_nothing_is_refused(queue: Make, concurrency: Any) -> None:
    with pytest.raises(ValueError, match=f"concurrency .* not {concurrency!r}"):
        Worker(queue(), print, concurrency=concurrency)


def test_a_lease_without_length_is_refused(queue: Make) -> None:
    with pytest.raises(ValueError, match="ttr"):
        Worker(queue(), print, ttr=timedelta(0))
    with pytest.raises(ValueError, match="grace"):
        Worker(queue(), print, grace=-SECOND)


BLOCKING: list[Any] = [redis.Redis, valkey.Valkey]
ASYNC: list[Any] = [redis.asyncio.Redis]


def test_a_client_that_would_add_nothing_is_refused() -> None:
    import valkey.asyncio

    for blocking in BLOCKING:
        for kind in (lambda c: Queue(c, "q"), lambda c: AsyncQueue(c, "q")):
            with pytest.raises(TypeError, match="on=pipeline"):
                kind(blocking().pipeline())
        with pytest.raises(TypeError, match="take Queue"):
            AsyncQueue(blocking(), "q")
        with pytest.raises(TypeError, match="take Queue"):
            AsyncTopic(blocking(), "q", 2)
        Topic(blocking(), "q", 2)
    for looped in [*ASYNC, valkey.asyncio.Valkey]:
        for kind in (lambda c: Queue(c, "q"), lambda c: AsyncQueue(c, "q")):
            with pytest.raises(TypeError, match="on=pipeline"):
                kind(looped().pipeline())
        with pytest.raises(TypeError, match="AsyncQueue"):
            Queue(looped(), "q")
        with pytest.raises(TypeError, match="AsyncQueue"):
            Topic(looped(), "q", 2)
        AsyncQueue(looped(), "q")

    class Own(redis.asyncio.Redis):
        """A class of the program."""

    with pytest.raises(TypeError, match="AsyncQueue"):
        Queue(Own(), "q")


def test_what_is_refused_names_the_queue_and_the_job(queue: Make, client: redis.Redis) -> None:
    q = queue("mail")
    q.add("welcome:ann", 1)
    with pytest.raises(Exists, match=r"queue 'mail', id 'welcome:ann'") as exists:
        q.add("welcome:ann", 2)
    assert (exists.value.queue, exists.value.id) == ("mail", "welcome:ann")
    assert (exists.value.code, exists.value.message) == ("EXISTS", "id is taken in this queue")
    pipeline = client.pipeline(transaction=False)
    again = q.add("welcome:ann", 2, on=pipeline)
    with pytest.raises(Exists, match="'welcome:ann'"):
        again.of(pipeline.execute(raise_on_error=False))
    with pytest.raises(NoJob, match=r"'mail', id 'b'"):
        q.add("b", 1, after=["nobody"])
    with pytest.raises(Exists, match=r"job 3: .* \(queue 'mail', id 'welcome:ann'\)") as exists:
        q.add_many([1, ("b", 1), ("welcome:ann", 1)])
    assert exists.value.id == "welcome:ann"
    with pytest.raises(NoJob, match=r"job 1: ") as nobody:
        q.add_many([1], after=["nobody"])
    assert nobody.value.id is None
    q.alter(maxjobs=1)
    with pytest.raises(Full, match="queue 'mail'"):
        q.add("*", 1)
    client.set("text", "x")
    with pytest.raises(WrongType, match="queue 'text'"):
        queue("text").pop()


def test_a_server_without_the_module_is_said_in_words() -> None:
    words = commands.add(Key("mail"), "a", 1).words
    told = redis.ResponseError("unknown command 'DQ.ADD', with args beginning with: 'mail'")
    error = refusal(told, words)
    assert isinstance(error, NoModule)
    assert "the server has no module DQ" in str(error)
    assert "queue 'mail'" in str(error)
    # As a pipeline has it.
    told = redis.ResponseError(
        "Command # 1 (DQ.ADD mail a 1) of pipeline caused error: unknown command 'DQ.ADD', with"
    )
    assert "has no module DQ" in str(refusal(told, words))


def test_a_server_with_too_many_clients_is_waited_for() -> None:
    for kind in (redis.ResponseError, redis.ConnectionError):
        assert passes(kind("max number of clients reached"))


# ---- text and bytes ------------------------------------------------------------------------------


def test_half_a_surrogate_pair_is_written_as_it_was_read() -> None:
    for body in (b'"\\ud800"', b'{"\\udfff":["\\ud83d","\xc3\xbc"]}'):
        assert JSON.encode(JSON.decode(body)) == body
    payload = envelope.wrapped(b"x", {"a": "\ud800"})
    assert envelope.unwrapped(payload) == (b"x", {"a": "\ud800"})


@pytest.mark.parametrize("opened", [b"[", b'{"a":'])
def test_headers_without_an_end_are_a_body(opened: bytes) -> None:
    payload = b"dq:1 " + opened * 200_000 + b"\nbody"
    assert envelope.unwrapped(payload) == (payload, {})


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_client_that_decodes_replies_reads_any_bytes(dq_url: str, protocol: int) -> None:
    with redis.Redis.from_url(dq_url, decode_responses=True, protocol=protocol) as client:
        q = Queue(client, "q", codec=RAW)
        id = b"\xff\xfe"
        q.add(id, b"\x80", keep=timedelta(hours=1), group=b"\xfd")
        assert [job.payload for job in q.peek()] == [b"\x80"]
        (job,) = q.pop()
        assert (job.id, job.payload) == ("\udcff\udcfe", b"\x80")
        assert q.renew(SECOND, timedelta(0), [(job.id, job.lease or 0)]) == []
        pipeline = client.pipeline(transaction=False)
        got = q.get(job.id, on=pipeline)
        found = got.of(pipeline.execute())
        assert found is not None and found.id == job.id
        assert q.done(job.id, job.lease or 0, result=b"\x81") == []
        outcome = q.result(job.id)
        assert outcome is not None and outcome.payload == b"\x81"
        assert list(q.scan_iter()) == [job.id]


# ---- waits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout_s", [0.3, 1.0])
def test_a_wait_is_longer_than_a_short_timeout(dq_url: str, queue: Make, timeout_s: float) -> None:
    queue().add("a", 1, delay=timedelta(seconds=2))
    with redis.Redis.from_url(dq_url, socket_timeout=timeout_s, retry=None) as client:
        assert [job.id for job in Queue(client, "q").pop(block=timedelta(seconds=30))] == ["a"]
        assert Queue(client, "q").pop(block=timedelta(seconds=0.6)) == []


def test_a_negative_wait_is_for_the_server_to_refuse(queue: Make) -> None:
    with pytest.raises(Invalid, match="BLOCK"):
        queue().pop(block=-SECOND)
    with pytest.raises(Invalid, match="BLOCK"):
        queue().result("a", -SECOND)
