"""Leases are kept while their jobs are held, settled when the server is reachable, and never those
of a forked child.
"""

import os
import time
from collections.abc import Callable, Iterator

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from harness.server import KINDS, Server, eventually
from kombu_dq.leases import FINISH, RELEASE, UNBEGUN, Lease, Leases, bury

TTR_MS = 400

Make = Callable[..., Leases]


@pytest.fixture
def leases(one_broker: Server) -> Iterator[Make]:
    made: list[Leases] = []

    def make(begun: Callable[[], set[str] | None] = lambda: set()) -> Leases:
        def connect() -> redis.Redis:
            return redis.Redis(port=one_broker.port, retry=Retry(NoBackoff(), 0))

        made.append(Leases(connect, TTR_MS, begun))
        return made[-1]

    yield make
    for each in made:
        each.give_back()
        each.close()


@pytest.fixture
def r(one_broker: Server) -> Iterator[redis.Redis]:
    with one_broker.client() as client:
        yield client


def pop(r: redis.Redis) -> tuple[str, Lease]:
    [[job_id, _, number, _]] = r.execute_command("DQ.POP", "q", "TTR", TTR_MS)
    return job_id, Lease("q", job_id.encode(), number)


def held(r: redis.Redis, leases: Leases, *job_ids: str) -> None:
    for job_id in job_ids:
        r.execute_command("DQ.ADD", "q", job_id, "x")
        leases.hold(*pop(r))


def state(r: redis.Redis, job_id: str) -> str | None:
    reply = r.execute_command("DQ.GET", "q", job_id)
    return reply and str(dict(zip(reply[::2], reply[1::2], strict=True))["state"])


def attempt(r: redis.Redis, job_id: str) -> int:
    reply = r.execute_command("DQ.GET", "q", job_id)
    return int(dict(zip(reply[::2], reply[1::2], strict=True))["attempt"])


def test_held_leases_are_extended_and_settled_ones_are_not(leases: Make, r: redis.Redis) -> None:
    mine = leases()
    held(r, mine, "a", "b", "c", "d", "e")
    time.sleep(3 * TTR_MS / 1000)
    assert {state(r, job_id) for job_id in "abcde"} == {"reserved"}
    mine.settle("a", FINISH)
    mine.settle("b", RELEASE)
    mine.settle("c", UNBEGUN)
    mine.settle("d", bury("hopeless"))
    mine.settle("d", FINISH)  # the second word does nothing
    assert [state(r, job_id) for job_id in "abcde"] == [None, "ready", "ready", "dead", "reserved"]
    assert (attempt(r, "b"), attempt(r, "c")) == (1, 0)
    assert mine.tags == {"e"}


def test_the_heartbeat_ends_when_there_is_nothing_to_keep_and_begins_again(
    leases: Make, r: redis.Redis
) -> None:
    mine = leases()
    for job_id in "ab":
        held(r, mine, job_id)
        thread = mine._thread
        assert thread is not None
        mine.settle(job_id, FINISH)
        thread.join(5)
        assert not thread.is_alive()


def test_a_lease_that_is_lost_is_let_go(
    leases: Make, r: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    mine = leases()
    held(r, mine, "a")
    r.execute_command("DQ.DEL", "q", "a")
    eventually(lambda: "lease of b'a' in q is lost" in caplog.text)
    assert mine.tags == set()


def test_many_leases_that_are_lost_are_one_line(
    leases: Make, r: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    mine = leases()
    held(r, mine, *(f"{n}" for n in range(50)))
    r.flushall()
    eventually(lambda: mine.tags == set())
    eventually(lambda: "is lost, with 49 others" in caplog.text)
    assert caplog.text.count("lost") == 1


def test_without_a_heartbeat_a_job_goes_to_another_worker(leases: Make, r: redis.Redis) -> None:
    r.execute_command("DQ.ADD", "q", "a", "x")
    _, lease = pop(r)
    mine = leases()
    assert mine.renew(lease)
    assert r.execute_command("DQ.POP", "q", "BLOCK", 5000)
    assert not mine.renew(lease)


@pytest.fixture
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(
        KINDS[0], tmp_path_factory.mktemp("lone"), "appendonly yes", "appendfsync always"
    )
    yield server
    server.kill9()


def test_outcomes_of_jobs_are_reported_when_the_server_is_back(lone: Server) -> None:
    mine = Leases(
        lambda: redis.Redis(port=lone.port, retry=Retry(NoBackoff(), 0)), 10_000, lambda: set()
    )
    with lone.client() as r:
        held(r, mine, "a", "b", "c", "d")
    lone.stop()
    mine.settle("a", FINISH)
    mine.give_back()  # b, c, d: told to give them back ...
    mine.settle("b", FINISH)  # ... but b had been begun, and is done
    mine.settle("c", RELEASE)  # too late: it is given back already
    lone.start()
    with lone.client() as r:
        eventually(
            lambda: [state(r, job_id) for job_id in "abcd"] == [None, None, "ready", "ready"]
        )
        assert attempt(r, "c") == 0
        assert r.execute_command("DQ.LEN", "q") == 2


def test_leases_of_begun_jobs_are_kept_over_the_end_of_the_channel(
    leases: Make, r: redis.Redis
) -> None:
    begun = {"a", "b"}
    mine = leases(lambda: begun)
    held(r, mine, "a", "b", "c")
    mine.give_back()
    mine.close()
    assert [state(r, job_id) for job_id in "abc"] == ["reserved", "reserved", "ready"]
    time.sleep(2 * TTR_MS / 1000)
    assert [state(r, job_id) for job_id in "ab"] == ["reserved", "reserved"]
    mine.settle("a", FINISH)
    begun.clear()  # b was dropped without a word, as when Celery cancels it
    eventually(lambda: state(r, "b") == "ready")
    assert (state(r, "a"), attempt(r, "b")) == (None, 1)


def test_without_a_count_of_begun_jobs_all_count_as_begun(leases: Make, r: redis.Redis) -> None:
    mine = leases(lambda: None)
    held(r, mine, "a")
    mine.give_back()
    assert (state(r, "a"), attempt(r, "a")) == ("ready", 1)


def test_a_forked_child_has_no_leases(leases: Make, r: redis.Redis) -> None:
    mine = leases()
    held(r, mine, "a")
    child = os.fork()
    if child == 0:
        mine.give_back()
        os._exit(len(mine.tags))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    time.sleep(2 * TTR_MS / 1000)
    assert state(r, "a") == "reserved"
