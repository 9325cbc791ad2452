"""The workers of examples/ survive a restart and a failover of their server, and a network that is
cut.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import redis

from harness.address import Address
from harness.example_programs import (
    Example,
    Worker,
    counts,
    example,
    job,
    people,
    start_at,
    writes_of_worker,
)
from harness.marks import on_one_kind
from harness.server import Server, eventually

__all__ = ["example", "start_at"]  # fixtures

pytestmark = [
    on_one_kind,
    pytest.mark.timeout(600),
]

Start = Callable[[int], Worker]
DURABLE = ("appendonly yes", "appendfsync always")


@pytest.fixture
def address() -> Iterator[Callable[[Server], Address]]:
    made: list[Address] = []

    def make(server: Server) -> Address:
        made.append(Address(server.port))
        return made[-1]

    yield make
    for one in made:
        one.close()


def add(client: redis.Redis, job_id: str, body: str, *options: str | int) -> None:
    assert client.execute_command("DQ.ADD", "mail", job_id, body, *options) == job_id


@dataclass
class Busy:
    """A worker in the middle of a long job, and what it got it from."""

    worker: Worker
    primary: Server
    replica: Server
    # The worker knows the primary by this alone.
    address: Address


@pytest.fixture
def busy(
    start_at: Start, fresh_server: Callable[..., Server], address: Callable[[Server], Address]
) -> Busy:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    leading = address(primary)
    worker = start_at(leading.port)
    add(primary.client(), "long", people(5))
    worker.has_said("sent long to p0@example.com")
    replica.catch_up(primary)
    return Busy(worker, primary, replica, leading)


def does_the_next(worker: Worker, server: Server) -> None:
    """It waits for a job there, does it, and leaves nothing behind."""
    add(server.client(), "next", people(1))
    worker.has_said("next: finished, attempt 1")
    worker.stops_when_told()
    assert counts(server.client()) == {}


def test_a_worker_goes_on_when_its_server_is_back_and_finishes_what_it_had(
    start_at: Start, fresh_server: Callable[..., Server]
) -> None:
    server = fresh_server(*DURABLE)
    worker = start_at(server.port)
    add(server.client(), "long", people(5))
    worker.has_said("sent long to p0@example.com")

    server.kill9()
    worker.has_said("sent long to p4@example.com")
    worker.has_complained("DQ.FINISH")
    server.start()
    worker.has_said("long: finished, attempt 1")

    # Once more, while it waits for a job.
    server.restart()
    does_the_next(worker, server)


def test_a_worker_writes_each_line_in_one_go(
    example: Example, fresh_server: Callable[..., Server]
) -> None:
    """Its threads print at the same time: a line in pieces would get another thread's into its
    middle.
    """
    server = fresh_server()
    add(server.client(), "long", people(5))
    with writes_of_worker(example, server.port) as writes:
        assert next(writes) == "sent long to p0@example.com\n"
        server.kill9()
        awaited = {"sent", "heartbeat", "DQ.FINISH"}
        while awaited:
            written = next(writes)
            assert written.endswith("\n")
            awaited -= {word for word in awaited if written.startswith(word)}


def test_a_worker_goes_on_at_the_new_primary_when_the_old_one_becomes_a_replica(busy: Busy) -> None:
    old, new, worker = busy.primary, busy.replica, busy.worker
    new.client().replicaof("no", "one")
    busy.address.lead_to(new.port)
    # Connections to the old one stay open, and writes there are refused.
    old.replicate(new)
    worker.has_said("long: finished, attempt 1")

    # Once more, while it waits for a job: the other way round.
    new_client = new.client()
    eventually(lambda: new_client.info("clients")["blocked_clients"] == 1, within_s=10)
    old.catch_up(new)
    old.client().replicaof("no", "one")
    busy.address.lead_to(old.port)
    new.replicate(old)
    does_the_next(worker, old)


def test_a_worker_goes_on_at_the_new_primary_when_the_old_one_says_nothing_any_more(
    busy: Busy,
) -> None:
    busy.address.silence()
    busy.replica.client().replicaof("no", "one")
    busy.address.lead_to(busy.replica.port)
    busy.worker.has_said("long: finished, attempt 1")
    does_the_next(busy.worker, busy.replica)


def test_a_worker_that_was_cut_off_learns_that_its_job_was_given_to_another(
    start_at: Start, server: Server, r: redis.Redis, address: Callable[[Server], Address]
) -> None:
    leading = address(server)
    # Before it starts: so it gets both with one DQ.POP.
    add(r, "long", people(300), "TTR", 2_000)
    add(r, "short", people(1), "TTR", 2_000)
    worker = start_at(leading.port)
    worker.has_said("sent long to p0@example.com")

    leading.cut()
    taken = r.execute_command("DQ.POP", "mail", "BLOCK", 20_000, "TTR", 60_000)
    taken += r.execute_command("DQ.POP", "mail", "BLOCK", 20_000, "TTR", 60_000)
    assert sorted((job_id, attempt) for job_id, _, _, attempt in taken) == [
        ("long", 2),
        ("short", 2),
    ]
    leading.lead_to(server.port)
    worker.has_said("long: lost, attempt 1")
    worker.has_said("short: lost, attempt 1")
    assert counts(r) == {"reserved": 2}
    worker.stops_when_told()


def test_a_worker_that_is_told_to_stop_does_not_wait_for_its_server_for_long(
    start_at: Start, fresh_server: Callable[..., Server]
) -> None:
    server = fresh_server(*DURABLE)
    # Before it starts: so it gets both with one DQ.POP.
    add(server.client(), "long", people(5))
    add(server.client(), "unbegun", people(1))
    worker = start_at(server.port)
    worker.has_said("sent long to p0@example.com")

    server.kill9()
    worker.has_complained("DQ.FINISH")
    lines = worker.stops_when_told()
    assert "long: finished, but the server can't be told, attempt 1" in lines
    assert "unbegun: given back, but the server can't be told, attempt 1" in lines
    # One that has nothing, and never saw the server, goes at once.
    idle = start_at(server.port)
    idle.has_complained("DQ.POP")
    idle.stops_when_told()

    # Both come back to the next worker when their leases run out; `long` is done twice.
    server.start()
    with server.client() as client:
        assert counts(client) == {"reserved": 2}
        assert job(client, "long")["attempt"] == 1
