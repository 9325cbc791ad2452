"""A simulated year of one worker's life (runner/year.py), judged by the oracle (runner/oracle.py):
no job runs twice without a cause that the oracle names, none is dead without a failed attempt, and
no worker ends but by its signal.

Each program lives a year on one kind of server. `--seed 2` plays another year, on the next kind.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from harness.server import KINDS, Server
from runner.program import Program
from runner.year import Year


@pytest.mark.timeout(400)
def test_a_year(
    request: pytest.FixtureRequest,
    program_name: str,
    start: Callable[[], Program],
    tmp_path: Path,
) -> None:
    seed = request.config.getoption("--seed")
    kind = KINDS[(sum(program_name.encode()) + seed) % len(KINDS)]
    numbers = count()
    started: list[Server] = []

    def start_server() -> Server:
        directory = tmp_path / f"server-{next(numbers)}"
        directory.mkdir()
        started.append(Server(kind, directory, "appendonly yes", "appendfsync always"))
        return started[-1]

    year = Year(seed, start_server, start)
    try:
        violations = list(year.live().violations())
    finally:
        year.close()
        for server in started:
            server.kill9()
    assert violations == [], "\n".join(violations)
