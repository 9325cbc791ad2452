"""Fixtures: every test that asks for a server runs on each kind of server.

    session       a Session (harness/transcript.py) with the shared server
    r             a redis-py client of the shared server
    server        the shared server: empty, its dq settings at their defaults
    fresh_server  starts servers for one test: fresh_server("appendonly yes", module_args="…", on=kind)
    room          consumers that wait, and a client that sends commands (harness/consumers.py)
    lone          a server for one test that writes every change to its AOF
    lone_session  a Session with it, whose queue `q` has a job in each state (harness/observer.py)

A test that fails shows what its servers logged meanwhile. Several processes run tests at the same
time (pytest-xdist), except those marked `alone` (harness/marks.py), which run last and one by one.
"""

import fcntl
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis
from xdist.scheduler import LoadScopeScheduling

from harness.consumers import Room
from harness.observer import QUEUE
from harness.paths import TARGET
from harness.server import KINDS, Kind, Server, release_of
from harness.transcript import Session

LOG_LINES = 40


def pytest_report_header() -> str:
    """The log of a run begins with its servers."""
    return f"servers: {', '.join(map(described, KINDS))}"


def described(kind: Kind) -> str:
    release = (
        release_of(kind.path)
        if kind.path.exists()
        else f"{kind.version} (missing: run `make setup`)"
    )
    return f"{kind.family.capitalize()} {release}"


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
            # A client that a failed test has left connected would take the jobs of the next test.
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            # Not on another thread, where it would go on beside the next test.
            client.execute_command("FLUSHALL", "SYNC")
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
    # The next test gets a new server, and would not notice.
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
def room(server: Server) -> Iterator[Room]:
    room = Room(server)
    yield room
    room.close()


@pytest.fixture
def fresh_server(
    kind: Kind, tmp_path: Path, servers: list[tuple[Server, int]]
) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []
    # A server that doesn't start has a folder, too.
    numbers = count()

    def start(*config: str, on: Kind = kind, **options: Any) -> Server:
        directory = tmp_path / f"server-{next(numbers)}"
        directory.mkdir()
        server = Server(on, directory, *config, **options)
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


class Scheduling(LoadScopeScheduling):
    """A test goes to the next process that is free. The tests of WHOLE_FILES go to one process,
    before all others. So do the tests that share a cluster.
    """

    WHOLE_FILES = ("docs/test_examples.py",)
    CLUSTERS = "blackbox/cluster/"

    def _split_scope(self, nodeid: str) -> str:
        path, _, name = nodeid.partition("::")
        if self.CLUSTERS in path:
            return next((f"{self.CLUSTERS}{kind}" for kind in KINDS if f"[{kind}" in name), nodeid)
        return path if path.endswith(self.WHOLE_FILES) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling:
    return Scheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=is_alone)


def is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """All processes share one lock. The kernel releases it when a process ends, for whatever
    reason.
    """
    with (TARGET / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if is_alone(item) else fcntl.LOCK_SH)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    report = yield
    if report.failed:
        for server, start in getattr(item, "funcargs", {}).get("servers", []):
            tail = server.log(start).splitlines()[-LOG_LINES:]
            report.sections.append((f"log of {server}", "\n".join(tail)))
    return report
