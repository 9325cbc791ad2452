"""A topic in a cluster: a worker over all its shards loses no job while slots move, a primary hands
over, and the number of shards grows.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis.cluster import key_slot

from harness.cluster import Cluster
from harness.server import eventually
from runner.program import Program, Refused

# A job whose reply got lost, when a client closed its connections, is delivered again after it.
TTR_MS = 5_000
TOPIC = {"name": "mail", "shards": 6}
GROWN = {"name": "mail-v2", "shards": 12, "before": TOPIC}


@pytest.fixture
def connect(start: Callable[[], Program], cluster: Cluster) -> Iterator[Callable[[], Program]]:
    cluster.heal()
    for node in cluster.primaries():
        cluster.call(node, "FLUSHALL", "SYNC")

    def connect() -> Program:
        program = start()
        url = f"redis://127.0.0.1:{cluster.primaries()[0].port}"
        program.ask("connect", url=url, protocol=2, cluster=True)
        return program

    return connect


def add(program: Program, topic: Any, id: str, script: Any = (), **options: Any) -> Any:
    arguments = {"id": id, "body": list(script)} | options
    return program.ask("on_topic", topic=topic, command="add", arguments=arguments)


def ask(program: Program, topic: Any, command: str, **arguments: Any) -> Any:
    return program.ask("on_topic", topic=topic, command=command, arguments=arguments)


def handled(program: Program) -> set[str]:
    return {event["id"] for event in program.told() if event["event"] == "ended"}


@pytest.mark.timeout(300)
def test_a_worker_loses_no_job_while_slots_move_and_a_primary_hands_over(
    connect: Callable[[], Program], cluster: Cluster
) -> None:
    producer, worker = connect(), connect()
    queues = producer.ask("topic", ids=[], **TOPIC)["queues"]
    worker.ask("work", topic=TOPIC, concurrency=12, ttr=TTR_MS)

    def produce(first: int) -> None:
        for number in range(first, first + 100):
            add(producer, TOPIC, f"job:{number}")

    produce(0)
    for queue in queues[:2]:
        cluster.move(key_slot(queue.encode()), cluster.others(cluster.owner(queue))[0])
    produce(100)
    cluster.fail_over(cluster.owner(queues[-1]))
    cluster.settle()
    produce(200)
    eventually(lambda: len(handled(worker)) == 300, 60)
    eventually(lambda: ask(producer, TOPIC, "length") == 0, 30)


def test_an_id_is_one_job_while_the_number_of_shards_grows(
    connect: Callable[[], Program],
) -> None:
    program, worker = connect(), connect()
    later = {"delay": {"ms": 3_600_000}}
    for id in ("kept", "cancelled", "replaced"):
        add(program, TOPIC, id, [["return", "old"]], keep={"ms": 60_000}, **later)

    # Programs know of both now.
    assert add(program, GROWN, "kept", nx=True) == {}
    with pytest.raises(Refused, match="Exists"):
        add(program, GROWN, "kept")
    assert add(program, GROWN, "new", nx=True) == {"added": "new"}
    assert ask(program, GROWN, "cancel", id="cancelled") is True
    assert ask(program, GROWN, "cancel", id="cancelled") is False
    add(program, GROWN, "replaced", [["return", "newer"]], replace=True, keep={"ms": 60_000})
    assert ask(program, TOPIC, "get", id="replaced") is None
    assert ask(program, GROWN, "get", id="kept")["state"] == "delayed"

    # A worker serves both.
    program.ask(
        "call", command="kickjob", key=queue_of(program, TOPIC, "kept"), arguments={"id": ["kept"]}
    )
    worker.ask("work", topic=GROWN, concurrency=18, ttr=TTR_MS)
    eventually(lambda: handled(worker) == {"kept", "new", "replaced"}, 30)
    for id, result in (("kept", "old"), ("replaced", "newer")):
        done = {"state": "done", "what": result}
        eventually(lambda id=id, done=done: ask(program, GROWN, "result", id=id) == done, 30)
    assert ask(program, GROWN, "result", id="cancelled") is None


def queue_of(program: Program, topic: Any, id: str) -> str:
    queue: str = program.ask("topic", ids=[id], **topic)["queue_of"][id]
    return queue
