"""What a worker does: the scenarios, played by each client's worker (runner/scenario.py)."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from harness.server import Kind, Server
from runner.program import Program
from runner.scenario import Scenario

SCENARIOS = sorted((Path(__file__).resolve().parents[1] / "scenarios").glob("*.txt"))


@pytest.fixture
def scenario(kind: Kind, tmp_path: Path, start: Callable[[], Program]) -> Iterator[Scenario]:
    numbers = count()
    started: list[Server] = []

    def start_server() -> Server:
        directory = tmp_path / f"server-{next(numbers)}"
        directory.mkdir()
        started.append(Server(kind, directory, "appendonly yes", "appendfsync always"))
        return started[-1]

    scenario = Scenario(start_server, start)
    yield scenario
    scenario.close()
    for server in started:
        server.kill9()


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_worker(path: Path, scenario: Scenario) -> None:
    scenario.play(path.read_text())
