"""What the client adds to the commands, which the contract plays."""

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
import redis

from dq_client import (
    RAW,
    Add,
    Added,
    AsyncQueue,
    Backoff,
    Exists,
    FinishedAndTaken,
    Invalid,
    NoJob,
    Queue,
    Rate,
    Step,
    Taken,
    WrongType,
    after,
    chain,
    group,
)
from dq_client.words import ms, options, unix_ms

Make = Callable[..., Queue]


def test_a_body_comes_back_as_the_value_that_it_was(queue: Make) -> None:
    q = queue()
    body = {"to": "größe", "n": [1, None, 2.5]}
    assert q.add("a", body) == Added("a")
    (job,) = q.pop()
    assert (job.id, job.body, job.attempt, job.key) == ("a", body, 1, "q")
    assert q.finish(job) == 1


def test_the_server_makes_an_id(queue: Make) -> None:
    added = queue().add("*", None)
    assert isinstance(added, Added)
    assert added.id.endswith("-0")


def test_what_is_taken_is_no_error_with_nx(queue: Make) -> None:
    q = queue()
    assert q.add("a", 1)
    with pytest.raises(Exists, match="taken"):
        q.add("a", 2)
    taken = q.add("a", 2, nx=True)
    assert taken == Taken("a")
    assert not taken


def test_many_jobs_are_added_in_one_step(queue: Make) -> None:
    q = queue()
    hour = timedelta(hours=1)
    first, ann, bob = q.add_many(
        (job for job in ({"n": 1}, ("ann", ["a", "list"]), ("bob", None))),
        delays=[timedelta(0), hour, hour],
    )
    assert (ann, bob, q.len("delayed")) == ("ann", "bob", 2)
    assert [(job.id, job.body) for job in q.pop(count=3)] == [(first, {"n": 1})]
    assert q.add_many([("bob", 1), (b"\xff", (1, 2))], nx=True) == [None, "\udcff"]
    assert [job.body for job in q.pop(count=3)] == [[1, 2]]
    at = datetime(2096, 1, 1, tzinfo=timezone.utc)
    q.add_many([("c", 1), ("d", 2)], at=at, spread=hour)
    q.add_many([("e", 1), ("f", 2)], ats=[at, at + hour], priority=9)
    due = [job.due for job in map(q.get, "cdef") if job is not None]
    assert due == [at, at + hour / 2, at, at + hour]


def test_nothing_is_added_when_one_of_many_is_refused(queue: Make, client: redis.Redis) -> None:
    q = queue()
    with pytest.raises(Invalid, match="job 2: the id 'a' is given twice"):
        q.add_many([("a", 1), ("a", 2)])
    with pytest.raises(Invalid):
        q.add_many([])
    assert q.len() == 0
    pipeline = client.pipeline(transaction=True)
    added = q.add_many(["x", ("a", 1)], on=pipeline)
    exists = q.add_many(["y", ("a", 1)], on=pipeline)
    replies = pipeline.execute(raise_on_error=False)
    assert added.of(replies)[1] == "a"
    with pytest.raises(Exists, match="id 'a'"):
        exists.of(replies)


def test_jobs_are_finished_and_others_are_taken_in_one_step(queue: Make) -> None:
    q = queue()
    q.add_many([("a", 1), ("b", 2), ("c", 3)], ttr=timedelta(hours=1))
    first = q.pop(count=2)
    both = q.finish_and_pop(first, count=2, ttr=timedelta(hours=2), withdue=True)
    assert (both.finished, [(job.id, job.body, job.attempt) for job in both.jobs]) == (
        2,
        [("c", 3, 1)],
    )
    assert both.jobs[0].due is not None
    assert q.finish_and_pop(iter(both.jobs)) == FinishedAndTaken(1, [])
    # Again, as after a broken connection; and by an id alone.
    assert q.finish_and_pop([("c", both.jobs[0].lease or 0), "a"]) == FinishedAndTaken(0, [])
    assert q.len() == 0


def test_jobs_of_one_of_several_queues_are_finished(queue: Make) -> None:
    urgent, bulk = queue("urgent"), queue("bulk")
    bulk.add_many([("a", 1), ("b", 2), ("c", 3)])
    jobs = urgent.mpop(["bulk"])
    assert [(job.key, job.id) for job in jobs] == [("bulk", "a")]
    both = urgent.finish_and_mpop(jobs, ["bulk"], count=5)
    assert (both.finished, [(job.key, job.id) for job in both.jobs]) == (
        1,
        [("bulk", "b"), ("bulk", "c")],
    )
    b, c = both.jobs
    urgent.add("d", 4)
    both = urgent.finish_and_mpop([("bulk", b.id, b.lease or 0), c], ["bulk"])
    assert (both.finished, [(job.key, job.id) for job in both.jobs]) == (2, [("urgent", "d")])
    # An id with its lease is of the queue itself.
    (d,) = both.jobs
    assert urgent.finish_and_mpop([(d.id, d.lease or 0)], ["bulk"]) == FinishedAndTaken(1, [])


def test_jobs_of_another_queue_are_not_finished(queue: Make) -> None:
    urgent, bulk = queue("urgent"), queue("bulk")
    for q in (urgent, bulk):
        q.add("a", 1)
    jobs = [*urgent.pop(), *bulk.pop()]
    with pytest.raises(ValueError, match="jobs of the queue 'bulk' can't be finished in 'urgent'"):
        urgent.finish_and_pop(jobs[1:])
    several = r"jobs of several queues can't be finished at once: \['bulk', 'urgent'\]"
    with pytest.raises(ValueError, match=several):
        urgent.finish_and_pop(jobs)
    with pytest.raises(ValueError, match=several):
        urgent.finish_and_mpop(jobs, ["bulk"])
    with pytest.raises(Invalid, match="the key of FINISH must be one of the command's keys"):
        urgent.finish_and_mpop(jobs[1:], ["other"])
    assert urgent.finish(jobs[0]) == bulk.finish(jobs[1]) == 1


def test_one_job_at_least_and_10_000_at_most_are_finished_at_once(queue: Make) -> None:
    q = queue()
    q.add("a", 1)
    for jobs in ([], [("b", n) for n in range(1, 10_002)]):
        with pytest.raises(Invalid, match="FINISH must be an integer from 1 to 10000"):
            q.finish_and_pop(jobs)
        with pytest.raises(Invalid, match="FINISH must be an integer from 1 to 10000"):
            q.finish_and_mpop(jobs, ["other"])
    assert q.len("ready") == 1


def test_a_wait_in_pieces_finishes_once(queue: Make) -> None:
    q = queue()
    q.add_many([("a", 1), ("b", 2)])
    jobs = q.pop(count=2)

    def come_again() -> None:
        q.add("a", 3, delay=timedelta(hours=1))
        q.pop(id="a")

    # The latest lease of that id is another worker's by the second piece.
    again = threading.Timer(0.5, come_again)
    again.start()
    both = q.finish_and_pop([jobs[1], "a"], block=timedelta(seconds=2.5))
    again.join()
    assert both == FinishedAndTaken(2, [])
    assert q.len("reserved") == 1


def test_a_wait_in_pieces_lingers_once(queue: Make) -> None:
    q = queue()
    q.add_many(["a", "b"])
    begin, wait = time.monotonic(), timedelta(seconds=60)
    both = q.finish_and_pop(q.pop(), count=5, min=3, linger=timedelta(seconds=2.5), block=wait)
    assert (both.finished, [job.body for job in both.jobs]) == (1, ["b"])
    assert 2 < time.monotonic() - begin < 30
    q.add_many(["c", "d", "e"])
    assert len(q.pop(count=5, min=3, linger=timedelta(hours=1))) == 3
    assert q.mpop(["other"], count=5, min=1, linger=timedelta(hours=1)) == []


def test_a_pipeline_finishes_and_takes(queue: Make, client: redis.Redis) -> None:
    q = queue()
    q.add_many([("a", 1), ("b", 2)])
    pipeline = client.pipeline(transaction=True)
    later = q.finish_and_pop(q.pop(), block=timedelta(0), on=pipeline)
    both = later.of(pipeline.execute())
    assert (both.finished, [job.id for job in both.jobs]) == (1, ["b"])


def test_dead_jobs_come_back_evenly(queue: Make) -> None:
    q = queue()
    q.add_many([("a", 1), ("b", 2)], attempts=1)
    for job in q.pop(count=2):
        q.bury(job.id, job.lease or 0)
    assert q.kick(count=2, spread=timedelta(hours=1)) == 2
    assert (q.len("ready"), q.len("delayed")) == (1, 1)


def test_ids_and_bodies_are_any_bytes(queue: Make) -> None:
    q = queue(codec=RAW)
    id = b"\xff\x00\xfe"
    q.add(id, b"\x80\x81")
    (job,) = q.pop()
    assert job.id.encode("utf-8", "surrogateescape") == id
    assert job.body == b"\x80\x81"
    assert q.finish((job.id, "*")) == 1


def test_a_client_that_decodes_replies_will_do(dq_url: str) -> None:
    with redis.Redis.from_url(dq_url, decode_responses=True) as client:
        q = Queue(client, "q")
        q.add("a", {"to": "größe"})
        (job,) = q.pop()
        assert job.body == {"to": "größe"}
        shown = q.get("a")
        assert shown is not None
        assert (shown.state, shown.body) == ("reserved", {"to": "größe"})


def test_durations_are_rounded_up_and_times_need_a_zone() -> None:
    assert ms(timedelta(microseconds=1)) == 1
    assert ms(timedelta(seconds=1.5)) == 1500
    assert unix_ms(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 0
    with pytest.raises(ValueError, match="time zone"):
        unix_ms(datetime(2030, 1, 1))
    backoff = Backoff(timedelta(seconds=1), timedelta(minutes=1))
    assert options(backoff=backoff, nx=True, group=None) == ["BACKOFF", 1000, 60_000, "NX"]
    assert options(rate=Rate(5, timedelta(seconds=1), burst=2)) == ["RATE", 5, 1000, "BURST", 2]


def test_a_pipeline_has_replies_of_their_types(queue: Make, client: redis.Redis) -> None:
    q = queue()
    q.add("taken", 1)
    pipeline = client.pipeline(transaction=True)
    added = q.add("a", {"n": 1}, on=pipeline)
    pipeline.set("text", "x")
    exists = q.add("taken", 2, on=pipeline)
    popped = q.pop(count=10, on=pipeline)
    replies = pipeline.execute(raise_on_error=False)
    assert added.of(replies) == Added("a")
    with pytest.raises(Exists):
        exists.of(replies)
    assert [job.body for job in popped.of(replies)] == [1, {"n": 1}]


def test_errors_have_types(queue: Make, client: redis.Redis) -> None:
    client.set("text", "no queue")
    with pytest.raises(WrongType) as wrong:
        queue("text").len()
    assert (wrong.value.code, "wrong kind" in wrong.value.message) == ("WRONGTYPE", True)
    with pytest.raises(Invalid, match="PRIORITY must be an integer"):
        queue().add("a", 1, priority=256)
    client.execute_command("CONFIG", "SET", "requirepass", "secret")
    try:
        port = client.connection_pool.connection_kwargs["port"]
        # Errors of the connection stay the client library's.
        with redis.Redis(port=port) as stranger, pytest.raises(redis.AuthenticationError):
            Queue(stranger, "q").len()
    finally:
        client.execute_command("CONFIG", "SET", "requirepass", "")


def test_iterators_go_from_page_to_page(queue: Make) -> None:
    q = queue()
    for number in range(25):
        q.add(f"job:{number:02}", number, delay=timedelta(hours=number + 1))
        q.add(f"dead:{number:02}", number, attempts=1, group=f"g{number}")
    for job in q.pop(count=100):
        q.bury(job.id, job.lease or 0)
    delayed = [job.body for job in q.peek_iter("delayed", count=10)]
    assert delayed == list(range(25))
    # Those that died in the same millisecond are shown once, too.
    assert sorted(job.body for job in q.peek_iter("dead", count=10)) == list(range(25))
    assert sorted(q.scan_iter(match="job:*", count=10)) == [f"job:{n:02}" for n in range(25)]
    q.pause(group="g0")
    assert [each.group for each in q.groups_iter(count=1) if each.paused] == ["g0"]


def test_a_wait_is_longer_than_the_library_waits_for_a_reply(dq_url: str) -> None:
    with redis.Redis.from_url(dq_url, socket_timeout=2.5, retry=None) as client:
        q = Queue(client, "q")
        q.add("a", 1, delay=timedelta(seconds=3))
        assert [job.id for job in q.pop(block=timedelta(seconds=30))] == ["a"]
        assert q.pop(block=timedelta(milliseconds=1)) == []


def test_a_result_is_waited_for(dq_url: str, queue: Make) -> None:
    q = queue()
    q.add("a", 1)
    q.add("b", 1, delay=timedelta(hours=1))

    def work() -> None:
        (job,) = q.pop()
        time.sleep(2.5)  # longer than a piece of the wait, and than the library waits for a reply
        q.done("a", job.lease or 0, result="done in time")

    worker = threading.Thread(target=work)
    worker.start()
    with redis.Redis.from_url(dq_url, socket_timeout=2.2, retry=None) as client:
        # It is told also of a job that isn't kept.
        outcome = Queue(client, "q").result("a", timedelta(seconds=60))
    worker.join()
    assert outcome is not None
    assert outcome.value == "done in time"
    waiting = q.result("b", timedelta(milliseconds=10))
    assert waiting is not None
    assert waiting.state == "delayed"


def test_a_result_is_done_or_dead(queue: Make) -> None:
    q = queue()
    q.add("a", 1, keep=timedelta(minutes=1))
    waiting = q.result("a")
    assert waiting is not None
    assert (waiting.state, waiting.value, waiting.reason) == ("ready", None, None)
    (job,) = q.pop()
    assert q.done("a", job.lease or 0, result={"n": 2}, add=[Add(3, "b"), Add(4)])
    done = q.result("a")
    assert done is not None
    assert (done.is_done, done.value) == (True, {"n": 2})
    assert q.done("a", job.lease or 0) is None
    assert q.result("nobody") is None
    (b, _) = q.pop(count=2)
    q.bury("b", b.lease or 0, reason="no way")
    dead = q.result("b")
    assert dead is not None
    assert (dead.is_dead, dead.reason, dead.value) == (True, "no way", None)


def test_a_flow_runs_in_its_order(queue: Make) -> None:
    q = queue()
    flow = chain(
        Step("charge", "pay"),
        group(Step("send", "ship"), Step("thank", "mail")),
        Step("close", "end", keep=timedelta(minutes=1)),
    )
    assert flow.last == ("end",)
    assert [each.id for each in q.start(flow)] == ["pay", "ship", "mail", "end"]
    assert q.len("held") == 3
    order = []
    while jobs := q.pop(count=10):
        order.append([job.id for job in jobs])
        for job in jobs:
            q.done(job.id, job.lease or 0, result=f"did {job.id}")
    assert order == [["pay"], ["ship", "mail"], ["end"]]
    deps = q.deps("end")
    assert deps is not None
    assert [(dep.id, dep.state, dep.value) for dep in deps.items] == [
        ("ship", "done", "did ship"),
        ("mail", "done", "did mail"),
    ]
    with pytest.raises(NoJob, match="nobody"):
        q.start(after("nobody", Step("x", "late")))
    q.add("approval", None, hold=True)
    assert q.resume("approval", "nobody") == 1


def test_the_asyncio_client_has_the_same_methods(
    with_aqueue: Callable[[Callable[[AsyncQueue], Any]], Any],
) -> None:
    async def work(q: AsyncQueue) -> None:
        assert await q.add("a", {"n": 1}) == Added("a")
        with pytest.raises(Exists):
            await q.add("a", 2)
        pipeline = q.client.pipeline(transaction=False)
        added = [q.add(f"b:{n}", n, on=pipeline) for n in range(25)]
        replies = await pipeline.execute(raise_on_error=False)
        assert added[24].of(replies) == Added("b:24")
        assert len([job async for job in q.peek_iter(count=10)]) == 26
        assert len([id async for id in q.scan_iter(match="b:*", count=10)]) == 25
        assert [each async for each in q.groups_iter()] == []
        (job,) = await q.pop()
        assert await q.finish(job) == 1
        await q.start(chain(Step(1, "first"), Step(2, "second")))
        assert await q.len("held") == 1

    with_aqueue(work)
