"""A server that answers and has no module DQ: pages, metrics and alerts say so."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from board import Board
from browser import Browser
from harness.server import KINDS, Kind, Server, eventually

CONFIG = "redis.conf"


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture
def server(kind: Kind, tmp_path: Path) -> Iterator[Server]:
    directory = tmp_path / "server"
    directory.mkdir()
    server = Server(kind, directory)
    yield server
    server.kill9()


def without_module(server: Server) -> None:
    """Starts it again as one does with the wrong configuration."""
    server.kill9()
    config = server.directory / CONFIG
    lines = [line for line in config.read_text().splitlines() if "loadmodule" not in line]
    config.write_text("\n".join(lines) + "\n")
    server.start()


def with_module(server: Server, lines: str) -> None:
    server.kill9()
    (server.directory / CONFIG).write_text(lines)
    server.start()


def test_a_server_that_lost_its_module_is_not_healthy(
    server: Server, boards: Callable[..., Board], browser: Browser
):
    config = (server.directory / CONFIG).read_text()
    board = boards(redis=f"redis://127.0.0.1:{server.port}")
    loaded = f'dq_module_loaded{{server="127.0.0.1:{server.port}"}}'
    with server.client() as r:
        r.execute_command("DQ.ADD", "mail", "a", "x")
    eventually(lambda: board.metrics().get("dq_up") == 1, 10)
    assert board.metrics()[loaded] == 1

    without_module(server)
    eventually(lambda: board.metrics().get(loaded) == 0, 20)
    told = board.metrics()
    assert told["dq_up"] == 0
    assert {name.split("{")[0] for name in told} <= {
        "dq_up",
        "dq_module_loaded",
        "dq_board_info",
    }
    browser.open(board.url)
    browser.sees("No module DQ since", ".banner")
    assert "There are no queues yet" not in browser.text()
    assert board.get("/queue", name="mail").status == 502
    assert "has no module DQ" in board.log()

    with_module(server, config)
    eventually(lambda: board.metrics().get("dq_up") == 1, 20)
    assert board.metrics()[loaded] == 1
    browser.sees("There are no queues yet", ".empty")


def test_a_server_that_never_had_it_is_marked_among_several(
    kind: Kind, server: Server, boards: Callable[..., Board], tmp_path: Path
):
    directory = tmp_path / "bare"
    directory.mkdir()
    bare = Server(kind, directory, module_args=None)
    try:
        board = boards(
            redis=f"good=redis://127.0.0.1:{server.port} bare=redis://127.0.0.1:{bare.port}"
        )
        eventually(lambda: board.metrics().get('dq_up{redis="good"}') == 1, 10)
        eventually(lambda: "no module DQ since" in board.get("/").text, 10)
        assert board.metrics()['dq_up{redis="bare"}'] == 0
        row = re.search(r'<tr data-key="good">.*?</tr>', board.get("/").text)
        assert row and "no module" not in row[0]
    finally:
        bare.kill9()


def test_a_user_that_may_not_ask_info_knows_it_too(
    kind: Kind, boards: Callable[..., Board], tmp_path: Path
):
    """The command is unknown before rights are looked at."""
    directory = tmp_path / "bare"
    directory.mkdir()
    bare = Server(kind, directory, module_args=None)
    try:
        with bare.client() as r:
            r.execute_command("ACL", "SETUSER", "board", "on", ">see", "~*", "+hello", "+scan")
        board = boards(redis=f"redis://board:see@127.0.0.1:{bare.port}")
        eventually(lambda: "No module DQ since" in board.get("/").text, 10)
    finally:
        bare.kill9()
