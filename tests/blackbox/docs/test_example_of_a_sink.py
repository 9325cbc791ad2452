"""The consumer of a sink's stream, examples/python/stream_consumer.py, works as its README says."""

import dataclasses
import re
import shlex
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from harness.example_programs import SOURCE, Example, Worker, installed, people, produce
from harness.marks import on_one_kind
from harness.server import Server, eventually

pytestmark = [on_one_kind, pytest.mark.timeout(600)]

STREAM, GROUP = "{mail}:out", "mailers"


@pytest.fixture(scope="module")
def example(testrun_uid: str) -> Example:
    python = installed("python", testrun_uid)
    (line,) = re.findall(
        r"^python stream_\w+\.py$", (SOURCE / "README.md").read_text(), re.MULTILINE
    )
    return dataclasses.replace(python, worker=shlex.split(line))


@pytest.fixture
def start(example: Example, server: Server, tmp_path: Path) -> Iterator[Callable[[], Worker]]:
    workers: list[Worker] = []

    def start() -> Worker:
        workers.append(Worker(example, server.port, tmp_path / f"consumer-{len(workers)}"))
        return workers[-1]

    yield start
    for worker in workers:
        worker.kill9()


def pending(r: redis.Redis) -> int:
    return r.xpending(STREAM, GROUP)["pending"]


def test_the_consumer_of_a_sink_does_what_the_producer_queues(
    example: Example, server: Server, r: redis.Redis, start: Callable[[], Worker]
) -> None:
    produce(example, server)
    consumer = start()
    for line in (
        "welcome:ann: finished",
        "newsletter:7: finished",
        "welcome:nobody: given up, not an address: nobody",
    ):
        consumer.has_said(line)
    # Again and again, after a delay that the queue keeps.
    eventually(
        lambda: consumer.lines().count("welcome:dan: failed, down.example does not answer") >= 3,
        within_s=20,
    )
    lines = consumer.stops_when_told(signal.SIGINT)
    assert lines.count("sent welcome:ann to ann@example.com") == 1
    assert pending(r) == 0
    assert [fields["id"] for _, fields in r.xrange("{mail}:failed")] == ["welcome:nobody"]
    # Nobody reads on, and the job that comes back is in the queue or in the stream.
    eventually(lambda: r.execute_command("DQ.LEN", "mail") == 0)
    assert r.xrevrange(STREAM, count=1)[0][1]["id"] == "welcome:dan"


def test_another_consumer_takes_over_from_a_dead_one(
    r: redis.Redis, start: Callable[[], Worker]
) -> None:
    killed = start()
    eventually(lambda: r.exists(STREAM), within_s=20)
    r.execute_command("DQ.ADD", "mail", "long", people(300))
    killed.has_said("sent long to p0@example.com")
    killed.kill9()
    assert pending(r) == 1
    r.execute_command("DQ.ADD", "mail", "short", people(1))
    other = start()
    other.has_said("short: finished")
    other.has_said("sent long to p0@example.com")


def test_a_consumer_of_a_sink_survives_a_restart_of_its_server(
    example: Example, fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = fresh_server("appendonly yes")
    consumer = Worker(example, server.port, tmp_path / "consumer")
    try:
        with server.client() as r:
            eventually(lambda: r.exists(STREAM), within_s=20)
            r.execute_command("DQ.ADD", "mail", "first", people(1))
        consumer.has_said("first: finished")
        server.restart()
        with server.client() as r:
            r.execute_command("DQ.ADD", "mail", "second", people(1), "DELAY", 100)
        consumer.has_said("second: finished")
        consumer.stops_when_told()
    finally:
        consumer.kill9()
