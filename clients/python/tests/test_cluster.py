"""A node of a cluster that is killed costs the queues of other nodes nothing."""

import asyncio
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio

from dq_client import AsyncTopic, Topic
from dq_client.worker import Worker
from harness.cluster import Cluster, started_cluster
from harness.server import KINDS

SHARDS = 6
MANY = 150
# The others don't elect a new node in the time of this test.
PATIENCE_MS = 60_000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    def folder(name: str) -> Path:
        made = tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}"
        made.mkdir()
        return made

    with started_cluster(KINDS[-1], folder) as cluster:
        yield cluster


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_a_node_that_is_killed_holds_up_its_own_queues_only(cluster: Cluster, kind: str) -> None:
    cluster.set_patience(PATIENCE_MS)
    with redis.RedisCluster(host="127.0.0.1", port=cluster.primaries()[1].port) as client:
        topic = Topic(client, "mail", SHARDS)
        killed = cluster.owner(topic.queues[0].name)
        healthy = [queue for queue in topic.queues if cluster.owner(queue.name) is not killed]
        begun: list[tuple[str, int]] = []

        def handle(job: Any) -> None:
            begun.append((job.id, job.attempt))

        async def handle_async(job: Any) -> None:
            await asyncio.sleep(0)
            handle(job)

        at: Any = {"host": "127.0.0.1", "port": cluster.primaries()[1].port}
        served: Any = (
            Topic(redis.RedisCluster(**at), "mail", SHARDS)
            if kind == "blocking"
            else AsyncTopic(redis.asyncio.RedisCluster(**at), "mail", SHARDS)
        )
        worker = Worker(
            served,
            handle if kind == "blocking" else handle_async,
            concurrency=SHARDS,
            ttr=timedelta(seconds=3),
        )
        for queue in topic.queues:
            queue.add("first", None)
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        until(lambda: len(begun) == SHARDS, 20)
        killed.kill9()
        for number in range(MANY):
            for queue in healthy:
                queue.add(f"{queue.name}:{number}", None)
        # At the pace of a few jobs a second it would take minutes.
        until(lambda: len(begun) == SHARDS + MANY * len(healthy), 40)
        until(lambda: sum(queue.len() for queue in healthy) == 0, 20)
        assert {attempt for _, attempt in begun} == {1}
        worker.stop()
        thread.join(40)
        assert not thread.is_alive()


def until(condition: Any, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
