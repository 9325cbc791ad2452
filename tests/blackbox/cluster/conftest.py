"""One cluster for each kind of server, for all tests of this folder; they run in one process."""

from collections.abc import Callable, Iterator

import pytest

from harness.cluster import PATIENCE_MS, Cluster, started_cluster
from harness.consumers import Room
from harness.server import Kind, Server


@pytest.fixture(scope="session")
def shared_cluster(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with started_cluster(kind, tmp_path_factory.mktemp, "appendonly yes") as cluster:
        yield cluster


@pytest.fixture
def fresh_cluster(
    kind: Kind, tmp_path_factory: pytest.TempPathFactory, servers: list[tuple[Server, int]]
) -> Iterator[Cluster]:
    """For a test that leaves something behind, such as counts of INFO."""
    with started_cluster(kind, tmp_path_factory.mktemp, "appendonly yes") as cluster:
        servers += [(node, 0) for node in cluster.nodes]
        yield cluster


@pytest.fixture
def cluster(shared_cluster: Cluster, servers: list[tuple[Server, int]]) -> Iterator[Cluster]:
    """Empty and whole. Who is a primary, and of which slots, is left from the test before."""
    servers += [(node, len(node.log())) for node in shared_cluster.nodes]
    shared_cluster.heal()
    for primary in shared_cluster.primaries():
        shared_cluster.call(primary, "FLUSHALL")
    yield shared_cluster
    died = [str(node) for node in shared_cluster.nodes if node.has_died()]
    assert not died, f"died in this test: {died}"
    shared_cluster.set_patience(PATIENCE_MS)


@pytest.fixture
def room_at(cluster: Cluster) -> Iterator[Callable[[Server], Room]]:
    """Rooms of nodes: consumers that wait there, and one who speaks."""
    rooms: list[Room] = []

    def enter(node: Server) -> Room:
        rooms.append(Room(node))
        return rooms[-1]

    yield enter
    for room in rooms:
        room.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the long tests have told, whichever process they ran in."""
    for report in terminalreporter.getreports("passed"):
        for name, what in report.user_properties:
            if name == "told" and report.when == "call":
                terminalreporter.write_line(what)
