"""A client of a cluster: each queue is one key, and so on one shard."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis.asyncio

from conftest import Work, eventually, is_empty, result_of
from harness.cluster import started_cluster
from harness.server import Kind
from taskiq_dq import DQBroker, DQResultBackend, DQScheduleSource

QUEUES = ("one", "two", "three", "four")
pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    with started_cluster(kind, tmp_path_factory.mktemp) as cluster:
        client = redis.asyncio.RedisCluster(host="127.0.0.1", port=cluster.nodes[0].port)
        yield client
        await client.aclose()


async def test_tasks_run_are_scheduled_and_have_results_in_a_cluster(
    client: Any, work: Work
) -> None:
    for name in QUEUES:
        broker = DQBroker(client=client, queue_name=name)
        broker = broker.with_result_backend(DQResultBackend(client=client, queue_name=f"{name}:r"))

        @broker.task
        async def double(number: int) -> int:
            return 2 * number

        worker = await work(broker)
        task = await double.kicker().with_labels(delay=0.1).kiq(17)
        assert await result_of(broker, task) == 34
        made = await double.schedule_by_interval(DQScheduleSource(broker), 3600, 1)
        assert await made.source.get_schedules() == [made.task]
        await made.unschedule()
        await eventually(lambda broker=broker: is_empty(broker))
        await worker.stop()
