"""A cluster: Django's queues are in several slots, on several nodes."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import Program, finished, until
from django_dq import DQBackend
from harness.cluster import Cluster, started_cluster
from harness.server import Kind
from shop import tasks


@pytest.fixture
def cluster(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with started_cluster(kind, tmp_path_factory.mktemp) as cluster:
        yield cluster


def test_a_worker_serves_queues_on_several_nodes(
    cluster: Cluster,
    configured: Callable[..., DQBackend],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("DQ_CLIENT", "shop.clients.of_cluster")
    monkeypatch.setenv("DQ_CLUSTER", f"redis://127.0.0.1:{cluster.primaries()[0].port}")
    backend = configured(client=os.environ["DQ_CLIENT"])
    names = ["default", "emails"]
    assert len({cluster.owner(backend.queue(name).name).port for name in names}) == 2
    worker = Program("", tmp_path / "worker.log", ("dq_worker", "--concurrency", "4"))
    try:
        results = [
            tasks.add.using(queue_name=name).enqueue(number, 1)
            for name in names
            for number in range(10)
        ]
        assert [finished(result).return_value for result in results] == [*range(1, 11)] * 2
        until(lambda: all(backend.queue(name).len("done") == 10 for name in names))
    finally:
        worker.process.kill()
        worker.process.wait()
        print(worker.said)
