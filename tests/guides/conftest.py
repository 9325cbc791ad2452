"""Fixtures: a server with DQ, and what people come from."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
import redis
from moto.server import ThreadedMotoServer
from programs import NODE_MODULES, Guide

from harness.ports import free_port
from harness.server import KNOWN, Server

BEANSTALKD = "/usr/bin/beanstalkd"


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(KNOWN["redis-7.0"], tmp_path_factory.mktemp("server"))
    yield server
    server.stop()


@pytest.fixture
def server(shared: Server) -> Server:
    with shared.client() as client:
        client.flushall()
    return shared


@pytest.fixture
def r(server: Server) -> Iterator[redis.Redis]:
    with server.client() as client:
        yield client


@pytest.fixture
def url(server: Server) -> str:
    return f"redis://127.0.0.1:{server.port}/0"


@pytest.fixture
def guide(tmp_path: Path, url: str) -> Callable[..., Guide]:
    def make(name: str, **environment: str) -> Guide:
        return Guide(name, tmp_path, REDIS_URL=url, **environment)

    return make


@pytest.fixture
def beanstalkd() -> Iterator[str]:
    if not Path(BEANSTALKD).exists():
        pytest.skip("needs beanstalkd")
    port = str(free_port())
    process = subprocess.Popen([BEANSTALKD, "-l", "127.0.0.1", "-p", port])
    time.sleep(0.3)
    yield f"127.0.0.1:{port}"
    process.kill()
    process.wait()


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a queue in a stand-in for SQS."""
    stand_in = ThreadedMotoServer("127.0.0.1", port=free_port(), verbose=False)
    stand_in.start()
    host, port = stand_in.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("sqs")
    yield client.create_queue(QueueName="mail")["QueueUrl"]
    stand_in.stop()


@pytest.fixture
def node() -> None:
    if not NODE_MODULES.exists():
        pytest.skip("needs node and npm's registry")


@pytest.fixture
def sidekiq() -> str:
    for program in ("/usr/bin/sidekiq", "/usr/bin/ruby"):
        if not Path(program).exists():
            pytest.skip(f"needs {program}")
    return "/usr/bin/sidekiq"
