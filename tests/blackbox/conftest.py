"""Fixtures: every test that asks for a server runs on each kind of server.

    session       a Session (transcript.py) with the shared server
    r             a redis-py client of the shared server
    server        the shared server: empty, its dq settings at their defaults
    fresh_server  starts servers of one's own: fresh_server("appendonly yes", module_args="…")
    lone          a server of one's own that writes down every change
    lone_session  a Session with it, whose queue `q` has a job in each state (observer.py)

A test that fails shows what its servers logged meanwhile.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from observer import QUEUE
from server import KINDS, Kind, Server
from transcript import Session

LOG_LINES = 40


class SharedServer:
    """The one server of a kind, and the settings it came with."""

    def __init__(self, kind: Kind, directory: Path):
        self.server = Server(kind, directory)
        with self.server.client() as client:
            self._settings = client.config_get("dq.*")

    def reset(self) -> None:
        if self.server.has_died():
            self.server.start()
        with self.server.client() as client:
            client.flushall()
            client.config_set(*[word for pair in self._settings.items() for word in pair])


@pytest.fixture(scope="session", params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture(scope="session")
def shared_server(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    shared = SharedServer(kind, tmp_path_factory.mktemp(kind.name))
    yield shared
    shared.server.stop()


@pytest.fixture
def servers() -> list[tuple[Server, int]]:
    """The servers of the test, each with the length of its log at the start: shown on failure."""
    return []


@pytest.fixture
def server(shared_server: SharedServer, servers: list[tuple[Server, int]]) -> Iterator[Server]:
    shared_server.reset()
    server = shared_server.server
    servers.append((server, len(server.log())))
    yield server
    # The next test gets a new server: nobody else would hear of this.
    assert not server.has_died(), f"{server} died in this test"


@pytest.fixture
def r(server: Server) -> Iterator[redis.Redis]:
    with server.client() as client:
        yield client


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    session = server.session()
    yield session
    session.close()


@pytest.fixture
def fresh_server(
    kind: Kind, tmp_path: Path, servers: list[tuple[Server, int]]
) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(*config: str, module_args: str | None = "") -> Server:
        directory = tmp_path / f"server-{len(started)}"
        directory.mkdir()
        server = Server(kind, directory, *config, module_args=module_args)
        started.append(server)
        servers.append((server, 0))
        return server

    yield start
    died = [str(server) for server in started if server.has_died()]
    for server in started:
        server.kill9()
    assert not died, f"died in this test: {died}"


@pytest.fixture
def lone(fresh_server: Callable[..., Server]) -> Server:
    return fresh_server("appendonly yes", "appendfsync always")


@pytest.fixture
def lone_session(lone: Server) -> Iterator[Session]:
    session = lone.session()
    session.check(QUEUE)
    yield session
    session.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    report = yield
    if report.failed:
        for server, start in getattr(item, "funcargs", {}).get("servers", []):
            tail = server.log(start).splitlines()[-LOG_LINES:]
            report.sections.append((f"log of {server}", "\n".join(tail)))
    return report
