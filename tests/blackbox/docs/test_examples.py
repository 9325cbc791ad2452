"""The programs of examples/ work, in each language: a producer and a worker
(example_programs.py).
"""

import signal
from collections.abc import Callable

import pytest
import redis

from harness.example_programs import (
    Example,
    Worker,
    counts,
    example,
    job,
    people,
    produce,
    start_at,
)
from harness.marks import on_one_kind
from harness.server import Server, eventually

__all__ = ["example", "start_at"]  # fixtures

# What is tested are the examples, so one kind of server does. The first of them has to wait until
# its language's packages are fetched and built.
pytestmark = [
    on_one_kind,
    pytest.mark.timeout(600),
]


@pytest.fixture
def start(start_at: Callable[[int], Worker], server: Server) -> Callable[[], Worker]:
    return lambda: start_at(server.port)


def test_the_worker_does_what_the_producer_queues(
    example: Example, server: Server, r: redis.Redis, start: Callable[[], Worker]
) -> None:
    assert produce(example, server) == [
        "added: welcome:ann",
        "queued already: welcome:ann",
        "added: newsletter:7",
        "added: welcome:dan",
        "added: welcome:nobody",
        "added: reminder:bob",
        "cancelled: reminder:bob",
    ]
    assert job(r, "welcome:ann").items() >= {"ttr": 10_000, "attempt": 0}.items()
    policy = {"attempts": 3, "backoff-base": 200, "backoff-max": 60_000}
    assert job(r, "welcome:dan").items() >= policy.items()

    worker = start()
    for line in (
        "welcome:ann: finished, attempt 1",
        "newsletter:7: finished, attempt 1",
        "welcome:nobody: buried, not an address: nobody, attempt 1",
        "welcome:dan: failed, down.example does not answer, attempt 3",
    ):
        worker.has_said(line)
    # Those that died are kept, with their reasons; the others are gone.
    assert counts(r) == {"dead": 2}
    assert (
        job(r, "welcome:nobody").items()
        >= {"attempt": 1, "reason": "not an address: nobody"}.items()
    )
    assert (
        job(r, "welcome:dan").items()
        >= {"attempt": 3, "reason": "down.example does not answer"}.items()
    )

    assert sorted(worker.stops_when_told(signal.SIGINT)) == [
        "newsletter:7: finished, attempt 1",
        "sent newsletter:7 to ann@example.com",
        "sent newsletter:7 to bob@example.com",
        "sent newsletter:7 to eve@example.com",
        "sent welcome:ann to ann@example.com",
        "welcome:ann: finished, attempt 1",
        "welcome:dan: failed, down.example does not answer, attempt 1",
        "welcome:dan: failed, down.example does not answer, attempt 2",
        "welcome:dan: failed, down.example does not answer, attempt 3",
        "welcome:nobody: buried, not an address: nobody, attempt 1",
    ]


def test_a_worker_that_is_told_to_stop_gives_back_what_it_has_not_begun(
    r: redis.Redis, start: Callable[[], Worker]
) -> None:
    r.execute_command("DQ.ADD", "mail", "long", people(10))
    # Given back, they don't wait for a backoff, and haven't lost an attempt.
    r.execute_command("DQ.ADD", "mail", "b", people(1), "BACKOFF", 60_000, 60_000)
    r.execute_command("DQ.ADD", "mail", "c", people(1), "ATTEMPTS", 1)
    worker = start()
    worker.has_said("sent long to p0@example.com")
    lines = worker.stops_when_told()
    assert lines[-4:] == [
        "sent long to p9@example.com",
        "long: finished, attempt 1",
        "b: given back, attempt 1",
        "c: given back, attempt 1",
    ]
    assert counts(r) == {"ready": 2}
    popped = r.execute_command("DQ.POP", "mail", "COUNT", 10)
    assert [(job_id, attempt) for job_id, _, _, attempt in popped] == [("b", 1), ("c", 1)]


def test_the_jobs_of_a_killed_worker_come_back(r: redis.Redis, start: Callable[[], Worker]) -> None:
    r.execute_command("DQ.ADD", "mail", "long", people(300), "TTR", 1_500)
    r.execute_command("DQ.ADD", "mail", "unbegun", people(1), "TTR", 1_500)
    killed = start()
    killed.has_said("sent long to p0@example.com")
    killed.kill9()

    # The next one waits in DQ.POP when their TTR runs out.
    start().has_said("sent long to p0@example.com")
    for job_id in ("long", "unbegun"):
        assert job(r, job_id)["attempt"] == 2


def test_a_worker_keeps_its_leases_and_notices_when_one_is_lost(
    r: redis.Redis, start: Callable[[], Worker]
) -> None:
    for job_id in ("long", "next", "unbegun"):
        # A minute is what they would take.
        r.execute_command("DQ.ADD", "mail", job_id, people(1 if job_id == "next" else 300))

    def beats() -> None:
        """Waits until the lease of the job in work has been renewed."""
        before = job(r, "long")["deadline"]
        eventually(lambda: job(r, "long")["deadline"] > before, within_s=10)

    worker = start()
    worker.has_said("sent long to p0@example.com")
    leased_until = job(r, "next")["deadline"]
    beats()
    # Also that of a job that waits for its turn.
    eventually(lambda: job(r, "next")["deadline"] > leased_until, within_s=10)

    r.execute_command("DQ.DEL", "mail", "unbegun")
    beats()
    beats()  # by now the worker has learned of that
    r.execute_command("DQ.DEL", "mail", "long")
    worker.has_said("unbegun: lost, attempt 1")
    lines = worker.stops_when_told()
    assert [line for line in lines if not line.startswith("sent long ")] == [
        "long: lost, attempt 1",
        "sent next to p0@example.com",
        "next: finished, attempt 1",
        "unbegun: lost, attempt 1",
    ]
    assert counts(r) == {}
