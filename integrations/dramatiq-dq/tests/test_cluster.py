"""A client of a cluster: each queue is one key, and so on one shard."""

from collections.abc import Iterator
from contextlib import closing

import dramatiq
import pytest
import redis
from dramatiq.results import Results

from conftest import Work
from dramatiq_dq import DQBackend, DQBroker
from harness.cluster import started_cluster
from harness.server import Kind

QUEUES = ("one", "two", "three", "four")


@pytest.fixture
def client(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.RedisCluster]:
    with started_cluster(kind, tmp_path_factory.mktemp) as cluster:
        port = cluster.nodes[0].port
        with closing(redis.RedisCluster(host="127.0.0.1", port=port)) as client:
            yield client


def test_actors_run_fail_and_have_results_in_a_cluster(
    client: redis.RedisCluster, work: Work
) -> None:
    broker = DQBroker(client=client)
    backend = DQBackend(client=client)
    broker.add_middleware(Results(backend=backend))
    dramatiq.set_broker(broker)

    @dramatiq.actor(store_results=True)
    def double(number: int) -> int:
        return 2 * number

    @dramatiq.actor(max_retries=1, min_backoff=10, max_backoff=10)
    def fail() -> None:
        raise ValueError

    doubles = [
        dramatiq.actor(double.fn, actor_name=name, queue_name=name, store_results=True)
        for name in QUEUES
    ]
    sent = [each.send_with_options(args=(17,), delay=100) for each in doubles]
    fail.send()
    worker = work(broker)
    assert [backend.get_result(each, block=True, timeout=60_000) for each in sent] == [34] * 4
    broker.join("default", timeout=60_000)
    assert broker.queue("default").len(state="dead") == 1
    # What waits goes back, by a pipeline.
    worker.stop()
    double.send(1)
    consumer = broker.consume("default", prefetch=1, timeout=1000)
    message = next(consumer)
    assert message is not None
    consumer.requeue([message])
    assert broker.queue("default").len(state="ready") == 1
