"""`dq-board --healthcheck`, by which a container's runtime learns whether dq-board is well."""

import subprocess
import urllib.parse
from collections.abc import Callable

from board import BINARY, Board
from harness.ports import free_port
from harness.server import Server


def healthcheck(port: int, host: str = "127.0.0.1") -> tuple[int, str]:
    command = [BINARY, "--healthcheck", "--listen", f"{host}:{port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stderr


def test_the_healthcheck_tells_by_its_exit_code_whether_a_board_answers(
    boards: Callable[..., Board], server: Server
) -> None:
    board = boards("--auth", "ann:secret")
    port = urllib.parse.urlsplit(board.url).port
    assert healthcheck(port) == (0, "")
    # As an image's board listens.
    assert healthcheck(port, "0.0.0.0") == (0, "")
    # It is well without its server: it shows that it has none.
    server.kill9()
    assert healthcheck(port)[0] == 0
    board.stop()
    code, told = healthcheck(port)
    assert code == 1 and f"127.0.0.1:{port}" in told


def test_what_is_no_board_is_not_well(server: Server) -> None:
    code, told = healthcheck(server.port)
    assert code == 1 and f"127.0.0.1:{server.port}" in told
    assert healthcheck(free_port())[0] == 1
