"""The code of docs/scaling.md works."""

import re
import threading
from collections import Counter
from typing import Any

import pytest
from redis.cluster import RedisCluster, key_slot

from harness.clock import now_ms
from harness.cluster import SLOTS, Cluster
from harness.marks import on_one_kind
from harness.paths import ROOT
from harness.server import eventually

PAGE = (ROOT / "docs" / "scaling.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHARDS = 12


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    """What the page defines; its producer, which names a server, is run apart."""
    names: dict[str, Any] = {}
    definitions = [block for block in BLOCKS if "7000" not in block]
    assert len(definitions) == 2
    for block in definitions:
        exec(block, names)
    return names


@pytest.fixture
def url(cluster: Cluster) -> str:
    return f"redis://127.0.0.1:{cluster.nodes[0].port}"


@pytest.mark.parametrize("shards", [1, 2, 3, 12, 24, 100])
def test_shards_of_a_topic_lie_evenly_over_the_slots(program: dict[str, Any], shards: int) -> None:
    queues = program["Topic"]("mail", shards).queues
    slots = [key_slot(queue.encode()) for queue in queues]
    assert [slot * shards // SLOTS for slot in slots] == list(range(shards))
    assert queues == program["Topic"]("mail", shards).queues


def test_ids_are_spread_evenly_over_the_shards(program: dict[str, Any]) -> None:
    topic = program["Topic"]("mail", SHARDS)
    counts = Counter(topic.queue_of(f"order:{n}") for n in range(12_000))
    assert set(counts) == set(topic.queues)
    assert all(800 < count < 1_200 for count in counts.values()), counts


@on_one_kind
def test_the_producer_of_the_scaling_page_works(
    program: dict[str, Any], cluster: Cluster, url: str
) -> None:
    (producer,) = [block for block in BLOCKS if "7000" in block]
    names = dict(program)
    exec(producer.replace("redis://127.0.0.1:7000", url), names)
    topic, client = names["mail"], names["cluster"]
    assert topic.length(client) == 0, "it was cancelled"
    assert topic.add(client, "a", "x", "NX") == b"a"
    assert topic.add(client, "a", "x", "NX") is None
    assert topic.length(client) == 1
    assert topic.cancel(client, "a")
    assert not topic.cancel(client, "a")
    client.close()


@on_one_kind
def test_workers_get_every_job_while_slots_move_and_a_node_fails_over(
    program: dict[str, Any], cluster: Cluster, url: str
) -> None:
    topic = program["Topic"]("mail", SHARDS)
    due: dict[str, int] = {}
    early: list[str] = []
    handled: Counter[str] = Counter()

    def handle(job_id: str, body: str) -> None:
        if now_ms() < due[job_id]:
            early.append(job_id)
        handled[job_id] += 1

    is_stopping = threading.Event()
    threads = program["serve"](url, topic.queues, handle, is_stopping)
    try:
        client = RedisCluster.from_url(url)

        def add(count: int) -> None:
            for _ in range(count):
                job_id = f"job:{len(due)}"
                due[job_id] = now_ms() + 20 * (len(due) % 20)
                topic.add(client, job_id, "x", "AT", due[job_id])

        add(200)
        owners = Counter(cluster.owner(queue).port for queue in topic.queues)
        for queue in topic.queues[:3]:
            cluster.move(key_slot(queue.encode()), cluster.others(cluster.owner(queue))[0])
            add(100)
        cluster.fail_over(cluster.owner(topic.queues[-1]))
        cluster.settle()
        add(200)
        eventually(lambda: len(handled) == len(due), 30)
    finally:
        is_stopping.set()
        for thread in threads:
            thread.join(30)
        client.close()
    assert set(handled) == set(due)
    assert early == []
    assert len(owners) == 3
    assert set(handled.values()) == {1}
