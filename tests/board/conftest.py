"""Fixtures for dq-board: one browser for all tests, a server and a board for each.

server   a server of the test's own
servers  starts others, and ends them: servers("appendonly yes")
r        a redis-py client of it, whose replies are bytes
board    a read-only board of it
boards   starts others: boards("--writable")
scalers  starts boards with --keda, and gives a gRPC client of each: scalers()
prometheus  a Prometheus that scrapes `board`
slow     a relay in front of the server that lets each request wait: see slow.py
browser  Chromium; a test fails when its console has complained
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from board import Board
from browser import Browser
from harness.ports import free_port
from harness.server import KNOWN, Server
from prometheus import Prometheus
from scaler import Scaler
from slow import Slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    directory = tmp_path / "server"
    directory.mkdir()
    server = Server(KNOWN["redis-7.0"], directory)
    yield server
    server.kill9()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(*config: str) -> Server:
        directory = tmp_path / f"server-{len(started)}"
        directory.mkdir()
        started.append(Server(KNOWN["redis-7.0"], directory, *config))
        return started[-1]

    yield start
    for server in started:
        server.kill9()


@pytest.fixture
def r(server: Server) -> Iterator[redis.Redis]:
    with server.client(decode_responses=False) as client:
        yield client


@pytest.fixture
def boards(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Board]]:
    started: list[Board] = []

    def start(*args: str, redis: str | None = None) -> Board:
        server = None if redis else request.getfixturevalue("server")
        directory = tmp_path / f"board-{len(started)}"
        directory.mkdir()
        board = Board(server, directory, *args, redis=redis)
        started.append(board)
        return board

    yield start
    for board in started:
        board.stop()
        assert "panicked" not in board.log()


@pytest.fixture
def board(boards: Callable[..., Board]) -> Board:
    return boards()


@pytest.fixture
def scalers(boards: Callable[..., Board]) -> Iterator[Callable[..., Scaler]]:
    with ExitStack() as opened:

        def start(*args: str, redis: str | None = None) -> Scaler:
            port = free_port()
            boards("--keda", f"127.0.0.1:{port}", *args, redis=redis)
            return opened.enter_context(Scaler(port))

        yield start


@pytest.fixture
def prometheus(board: Board, tmp_path: Path) -> Iterator[Prometheus]:
    prometheus = Prometheus(tmp_path, board.url.removeprefix("http://"))
    yield prometheus
    prometheus.stop()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    browser = Browser()
    yield browser
    browser.quit()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    chromium.look()
    chromium.complaints()
    yield chromium
    complaints = chromium.complaints()
    chromium.open("about:blank")
    # A page that isn't there is reported too, and so is a server that was taken away on purpose, with
    # the pages that can't show what they are for.
    expected = re.compile("status of (404|50[24])|net::ERR_")
    assert not [line for line in complaints if not expected.search(line)]


@pytest.fixture
def slow(server: Server) -> Iterator[Slow]:
    slow = Slow(server, 0.1)
    yield slow
    slow.close()
