"""Fixtures that the tests of packages have in common. A conftest.py imports those that it needs.

kind    each kind of server in turn
shared  a server of that kind, one for all tests
server  the same, empty
"""

from collections.abc import Iterator

import pytest

from harness.server import KINDS, Kind, Server


@pytest.fixture(scope="session", params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    kind: Kind = request.param
    return kind


@pytest.fixture(scope="session")
def shared(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(
        kind, tmp_path_factory.mktemp(kind.name), "appendonly yes", "appendfsync everysec"
    )
    yield server
    server.stop()


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    with shared.client() as client:
        client.flushall()
    yield shared
    assert not shared.has_died()
