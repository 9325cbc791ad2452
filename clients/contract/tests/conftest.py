"""Fixtures: servers with DQ, as in tests/blackbox, and the test programs of clients.

kind      each kind of server in turn
server    the server of that kind, empty
program   a test program, of each client in turn (clients.json)
connect   the same, connected to the server: connect(protocol=3)

`--client python` plays the contract with one client, DQ_SERVERS names the servers.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cluster import Cluster, started_cluster
from harness.fixtures import kind as kind
from harness.paths import ROOT, TARGET
from harness.server import Kind, Server
from runner.program import Program

CONTRACT = Path(__file__).resolve().parents[1]
CLIENTS: dict[str, Any] = json.loads((CONTRACT / "clients.json").read_text())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--client", action="append", choices=sorted(CLIENTS), help="of which client")
    parser.addoption("--seed", type=int, default=1, help="of the year in test_year.py")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "program_name" in metafunc.fixturenames:
        clients = metafunc.config.getoption("--client") or sorted(CLIENTS)
        names = [name for client in clients for name in CLIENTS[client]["programs"]]
        metafunc.parametrize("program_name", names, scope="session")


@pytest.fixture(scope="session")
def shared(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(kind, tmp_path_factory.mktemp(kind.name))
    yield server
    server.stop()


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    with shared.client() as client:
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        client.execute_command("FLUSHALL", "SYNC")
        client.config_set("dq.max-body-bytes", 1 << 20)
    yield shared
    assert not shared.has_died()


@pytest.fixture
def start(program_name: str, tmp_path: Path) -> Iterator[Callable[[], Program]]:
    """Starts test programs of the client."""
    (client,) = [each for each in CLIENTS.values() if program_name in each["programs"]]
    command = [word.format(target=TARGET) for word in client["programs"][program_name]]
    started: list[Program] = []

    def start() -> Program:
        log = tmp_path / f"program-{len(started)}.log"
        started.append(Program(command, ROOT / client["directory"], log))
        return started[-1]

    yield start
    for program in started:
        program.close()


@pytest.fixture(scope="session")
def shared_programs(
    program_name: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Program]]:
    (client,) = [each for each in CLIENTS.values() if program_name in each["programs"]]
    command = [word.format(target=TARGET) for word in client["programs"][program_name]]
    program = Program(
        command, ROOT / client["directory"], tmp_path_factory.mktemp(program_name) / "log"
    )
    yield lambda: program
    program.close()


@pytest.fixture
def program(shared_programs: Callable[[], Program]) -> Program:
    """One program for all tests of pages and vectors: it keeps nothing from one to the next."""
    return shared_programs()


@pytest.fixture(scope="session")
def cluster(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with started_cluster(kind, tmp_path_factory.mktemp) as cluster:
        yield cluster


@pytest.fixture
def connect(program: Program, server: Server) -> Callable[[int], Program]:
    def connect(protocol: int) -> Program:
        program.ask("connect", url=f"redis://127.0.0.1:{server.port}", protocol=protocol)
        return program

    return connect
