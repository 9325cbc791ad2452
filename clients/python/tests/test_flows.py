"""A flow is added as a whole, or not at all."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis

from dq_client import (
    Add,
    AsyncQueue,
    Cron,
    DQError,
    Exists,
    Full,
    Invalid,
    Queue,
    Step,
    Taken,
    after,
    chain,
    group,
)

Make = Callable[..., Queue]


def steps(*ids: str, **options: Any) -> list[Step]:
    return [Step(id, id, **options) for id in ids]


@pytest.mark.parametrize("taken", ["a", "b", "c"])
def test_an_id_that_is_taken_leaves_nothing_of_a_chain(queue: Make, taken: str) -> None:
    q = queue()
    q.add(taken, "a stranger's", delay=timedelta(hours=1))
    with pytest.raises(Exists, match=taken):
        q.start(chain(*steps("a", "b", "c")))
    assert q.len() == 1
    assert q.pop() == []
    stranger = q.get(taken)
    assert stranger is not None
    assert (stranger.body, stranger.edges) == ("a stranger's", None)


def test_a_body_that_is_too_long_leaves_nothing(queue: Make, client: redis.Redis) -> None:
    q = queue()
    client.config_set("dq.max-body-bytes", 50)
    try:
        with pytest.raises(Invalid, match="at most 50"):
            q.start(group(*steps("a", "b"), Step("x" * 100, "c")))
    finally:
        client.config_set("dq.max-body-bytes", 1 << 20)
    assert q.len() == 0


def test_a_fan_in_that_is_too_wide_leaves_nothing(queue: Make) -> None:
    q = queue()
    wide = group(*(Step(None, f"part:{n}") for n in range(10_001)))
    with pytest.raises(Invalid):
        q.start(chain(wide, Step(None, "end")))
    assert q.len() == 0


def test_a_queue_that_is_full_leaves_nothing(queue: Make) -> None:
    q = queue()
    q.alter(maxjobs=3)
    with pytest.raises(Full):
        q.start(chain(*steps("a", "b", "c", "d")))
    assert q.len() == 0


def test_an_id_twice_in_a_flow_leaves_nothing(queue: Make) -> None:
    q = queue()
    with pytest.raises(Exists):
        q.start(chain(*steps("a", "b", "a")))
    assert q.len() == 0


def test_a_user_that_may_not_resume_leaves_nothing(client: redis.Redis, dq_url: str) -> None:
    rights = ["+@connection", "+multi", "+exec", "+dq.add", "+dq.del"]
    client.execute_command("ACL", "SETUSER", "flows", "reset", "on", "nopass", "~*", *rights)
    try:
        with (
            redis.Redis.from_url(dq_url, username="flows", password="x") as limited,
            pytest.raises(redis.ResponseError, match="permissions"),
        ):
            Queue(limited, "q").start(chain(*steps("a", "b")))
    finally:
        client.execute_command("ACL", "DELUSER", "flows")
    assert Queue(client, "q").len() == 0


def test_with_nx_a_flow_that_is_there_is_taken(queue: Make) -> None:
    q = queue()
    assert all(q.start(chain(*steps("a", "b", nx=True))))
    assert q.start(chain(*steps("a", "b", nx=True))) == [Taken("a"), Taken("b")]
    assert q.len() == 2
    (job,) = q.pop()
    q.finish(job)
    # Half of it is there: the other half doesn't run again.
    assert q.start(chain(*steps("a", "b", nx=True))) == [Taken("a"), Taken("b")]
    assert [job.id for job in q.pop(count=10)] == ["b"]


def test_what_waits_for_a_job_outside_is_added_as_a_whole_too(queue: Make) -> None:
    q = queue()
    q.add("x", None, keep=timedelta(hours=1))
    (x,) = q.pop()
    q.finish(x)
    q.add("b", "a stranger's", delay=timedelta(hours=1))
    with pytest.raises(Exists):
        q.start(after("x", chain(*steps("a", "b"))))
    assert q.get("a") is None
    q.delete("b")
    q.start(after("x", chain(*steps("a", "b"))))
    assert [job.id for job in q.pop(count=10)] == ["a"]


def test_options_of_a_step_hold_in_a_flow(queue: Make) -> None:
    q = queue()
    held = Step(None, "approval", hold=True)
    late = Step(None, "late", delay=timedelta(hours=1))
    made = Add(None)  # the server makes its id
    q.start(group(held, late, made))
    assert (q.len("held"), q.len("delayed"), q.len("ready")) == (1, 1, 1)
    with pytest.raises(ValueError, match="schedule"):
        q.start(group(*steps("a"), Step(None, "nightly", cron=Cron("0 3 * * *"))))
    assert q.start(Step(None, "nightly", cron=Cron("0 3 * * *"), ensure=True))
    assert q.get("a") is None


def test_a_flow_of_asyncio_is_added_as_a_whole_too(
    with_aqueue: Callable[[Callable[[AsyncQueue], Any]], Any],
) -> None:
    async def work(q: AsyncQueue) -> None:
        await q.add("b", "a stranger's", delay=timedelta(hours=1))
        with pytest.raises(DQError):
            await q.start(chain(*steps("a", "b", "c")))
        assert await q.len() == 1
        await q.delete("b")
        await q.start(chain(*steps("a", "b", "c")))
        assert (await q.len("ready"), await q.len("held")) == (1, 2)

    with_aqueue(work)
