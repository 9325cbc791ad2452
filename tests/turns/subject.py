"""A server that is measured: how long the longest turn of its event loop was.

A turn is all that the server does between two waits for events: it reads commands, executes them,
runs timers and writes replies. Its length is the processor time of the main thread (turn_clock.c),
since the machine does other things as well. Other programs still show in the caches, so each case
is measured a few times, and the shortest time counts: DQ's own work takes at least that long each
time.
"""

import mmap
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

from harness.pipelined import Pipelined, Words, encoded
from harness.resp import Failure
from harness.server import Kind, Server

CONFIG = [
    "maxclients 12000",
    "proto-max-bulk-len 4gb",
    "client-query-buffer-limit 4gb",
    "client-output-buffer-limit normal 0 0 0",
    "slowlog-log-slower-than -1",
]
WITHIN_S = 60
SHIM = Path(__file__).with_name("turn_clock.c")


@dataclass
class Row:
    """A case, and how long its longest turn took each time, in milliseconds."""

    name: str
    # Why it may take longer than the bar: what README and the page say of it.
    named: str | None
    ms: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        return min(self.ms)


class Subject:
    def __init__(self, kind: Kind, directory: Path, *config: str):
        self._clock = TurnClock(directory)
        self.server = Server(kind, directory, *CONFIG, *config, environment=self._clock.environment)
        self.port = self.server.port
        self.rows: dict[str, Row] = {}
        self._line = Pipelined(self.port, timeout_s=WITHIN_S)

    def close(self) -> None:
        self._line.close()
        self.server.kill9()

    # ---- what is done to it

    def call(self, *words: str | bytes | int) -> Any:
        reply = self._line.call(*words)
        if isinstance(reply, Failure):
            raise RuntimeError(f"{words[:6]}: {reply}")
        return reply

    def asks(self, *words: str | bytes | int) -> bool:
        """Sends a command that the server may refuse."""
        return not isinstance(self._line.call(*words), Failure)

    def send(self, *commands: Words) -> None:
        """Sends the commands in one write, so that the server reads them at once."""
        self._line.send(*commands)

    def receive(self, replies: int) -> list[Any]:
        return [self._line.receive() for _ in range(replies)]

    def calls(self, commands: list[Words], at_once: int = 1_000) -> list[Any]:
        return self._line.call_all(commands, at_once)

    def fill(self, key: str, jobs: int, *options: str | int, body: bytes = b"x" * 100) -> None:
        """Adds this many jobs with made ids."""
        one, at_once = encoded(("DQ.ADD", key, "*", body, *options)), min(jobs, 10_000)
        if len(one) > 10_000:
            at_once = 10
        before = self.jobs(key)
        line = Pipelined(self.port, timeout_s=WITHIN_S)
        batch = one * at_once
        sender = Thread(
            target=lambda: [line._socket.sendall(batch) for _ in range(jobs // at_once)]
        )
        sender.start()
        lines = 2 * (jobs // at_once) * at_once
        while lines > 0:
            lines -= line._stream.read1(1 << 20).count(b"\n")
        sender.join()
        line.close()
        assert self.jobs(key) == before + jobs

    def jobs(self, key: str, state: str | None = None) -> int:
        return self.call("DQ.LEN", key, *(["STATE", state] if state else []))

    def says(self, field: str) -> int:
        """A number of the module's own INFO section."""
        told = self.call("INFO", "dq").decode()
        return int(re.search(rf"^dq_{field}:(\d+)", told, re.MULTILINE)[1])

    def until(self, condition: Callable[[], Any], within_s: float = WITHIN_S) -> None:
        deadline = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError("the server doesn't get there")
            time.sleep(0.005)

    def now(self) -> int:
        seconds, us = self.call("TIME")
        return int(seconds) * 1_000 + int(us) // 1_000

    # ---- what it took

    @contextmanager
    def turn(self, name: str, named: str | None = None) -> Iterator[None]:
        """Measures the longest turn of the event loop while the body runs, for the case `name`."""
        self.call("PING")
        self._clock.begin()
        yield
        # Answered in another turn: the last one that counts is over.
        self.call("PING")
        row = self.rows.setdefault(name, Row(name, named))
        row.ms.append(self._clock.longest_ms())


class TurnClock:
    """The page in memory to which the server writes its longest turn, and what makes the server do
    so.
    """

    def __init__(self, directory: Path):
        library, page = directory / "turn_clock.so", directory / "turns"
        compiler = ["cc", "-shared", "-fPIC", "-O1", "-o", library, SHIM, "-ldl"]
        subprocess.run(compiler, check=True, timeout=WITHIN_S)
        page.write_bytes(bytes(mmap.PAGESIZE))
        with page.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self.environment = {"LD_PRELOAD": str(library), "DQ_TURNS": str(page)}

    def begin(self) -> None:
        self._page[:8] = bytes(8)

    def longest_ms(self) -> float:
        return int.from_bytes(self._page[:8], "little") / 1_000_000
