"""A node of a cluster that doesn't answer costs the jobs of the other nodes nothing: they are run
once, while the node is away, and those in hand keep their leases.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.cluster import Cluster
from harness.server import Server, eventually
from runner.program import Program

# A node is away for longer than a lease, and for less time than makes the others elect a new one.
TTR_MS = 1_500
AWAY_S = 4
TOPIC = {"name": "nodes", "shards": 6}


@pytest.fixture
def healed(cluster: Cluster) -> Iterator[Cluster]:
    cluster.heal()
    for node in cluster.primaries():
        cluster.call(node, "FLUSHALL", "SYNC")
    yield cluster
    cluster.heal()


@pytest.fixture
def connect(start: Callable[[], Program], healed: Cluster) -> Callable[[], Program]:
    def connect() -> Program:
        program = start()
        url = f"redis://127.0.0.1:{healed.primaries()[0].port}"
        program.ask("connect", url=url, protocol=2, cluster=True)
        return program

    return connect


@pytest.mark.timeout(240)
def test_a_node_that_is_silent_costs_the_others_nothing(
    connect: Callable[[], Program], healed: Cluster
) -> None:
    producer, worker = connect(), connect()
    queues = producer.ask("topic", ids=[], **TOPIC)["queues"]
    # The worker learns the cluster's shape from the first primary.
    away = healed.owner(queues[0])
    healthy = [queue for queue in queues if healed.owner(queue) is not away]
    if not healthy:
        pytest.skip("all shards are on one node")
    of_queue = by_queue(producer, range(600))
    worker.ask("work", topic=TOPIC, concurrency=24, ttr=TTR_MS)

    def add(queue: str, script: list[Any]) -> str:
        id = of_queue[queue].pop()
        arguments = {"id": id, "body": script, "keep": {"ms": 600_000}}
        producer.ask("on_topic", topic=TOPIC, command="add", arguments=arguments)
        return id

    before = [add(queue, [["wait", "back"], ["return", 1]]) for queue in healthy]
    on_the_node = [add(queue, [["return", 1]]) for queue in queues if queue not in healthy]
    for id in before + on_the_node:
        worker.event("begun", id=id)
    meanwhile: list[str] = []
    with silenced(away):
        deadline = time.monotonic() + AWAY_S
        while time.monotonic() < deadline:
            meanwhile += [add(queue, [["return", 1]]) for queue in healthy]
            time.sleep(0.1)
        ended = {event["id"] for event in worker.told() if event["event"] == "ended"}
        # Those of the last moments may be under way.
        assert set(meanwhile[: len(meanwhile) // 2]) <= ended, sorted(set(meanwhile) - ended)
    worker.ask("go", name="back")

    def states(ids: list[str]) -> set[str]:
        shown = [
            producer.ask("on_topic", topic=TOPIC, command="get", arguments={"id": id}) for id in ids
        ]
        return {job["state"] for job in shown}

    eventually(lambda: states(before + meanwhile + on_the_node) == {"done"}, 40)
    begun = [event["id"] for event in worker.told() if event["event"] == "begun"]
    assert [id for id in before + meanwhile if begun.count(id) != 1] == []


def by_queue(program: Program, numbers: range) -> dict[str, list[str]]:
    """Ids, by the queue that they belong to."""
    ids = [f"job:{number}" for number in numbers]
    queue_of = program.ask("topic", ids=ids, **TOPIC)["queue_of"]
    found: dict[str, list[str]] = {}
    for id in ids:
        found.setdefault(queue_of[id], []).append(id)
    return found


@contextlib.contextmanager
def silenced(server: Server) -> Iterator[None]:
    """The server doesn't answer meanwhile, and its connections stay open."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)
