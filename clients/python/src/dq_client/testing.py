"""Fixtures of pytest: a real server with the module, for a program's own tests.

    def test_the_order_is_cancelled(dq_url):
        orders = Queue(redis.Redis.from_url(dq_url), "orders")

dq_server   the server of the whole run
dq_url      its address; it is empty when a test begins

The module is the file that DQ_MODULE names. The server is DQ_SERVER, or the first redis-server or
valkey-server on PATH.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_START_WITHIN_S = 30


class DQServer:
    def __init__(self, program: str, module: str, directory: Path):
        self.port = _free_port()
        self._log = directory / "server.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(program, "--port", str(self.port), "--bind", "127.0.0.1"),
                    *("--dir", str(directory), "--save", "", "--loadmodule", module),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + _START_WITHIN_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(
                    f"{program} with {module} did not start:\n{self._log.read_text()}"
                )
            time.sleep(0.01)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def flush(self) -> None:
        assert self._said("FLUSHALL SYNC") == b"+OK"

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        try:
            return self._said("PING") == b"+PONG"
        except OSError:
            return False

    def _said(self, command: str) -> bytes:
        """The reply to a command in plain text, which needs no client library."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(command.encode() + b"\r\n")
            return connection.makefile("rb").readline().rstrip()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def dq_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DQServer]:
    program = os.environ.get("DQ_SERVER") or next(
        filter(None, map(shutil.which, ("redis-server", "valkey-server"))), None
    )
    module = os.environ.get("DQ_MODULE")
    if program is None:
        pytest.fail("no redis-server or valkey-server on PATH: name one by DQ_SERVER")
    if module is None:
        pytest.fail("DQ_MODULE must be the path of the module, libdq.so")
    server = DQServer(program, str(Path(module).resolve()), tmp_path_factory.mktemp("dq"))
    yield server
    server.stop()


@pytest.fixture
def dq_url(dq_server: DQServer) -> str:
    dq_server.flush()
    return dq_server.url
