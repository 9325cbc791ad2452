"""One server process of a session: its start, crashes, stops and continuations, and what it logged."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..borrowed import CONFIG, Kind, WallClock, free_port
from ..resp import Connection, Failure

START_S = 60
# Of the time that a server shows, beside what was set. The least that a session sets a clock by is 300 ms.
CLOCK_ERROR_MAX_US = 100_000
# What a server writes when it breaks, and what it must not write again and again.
ALARMS = re.compile(
    r"REDIS BUG REPORT|VALKEY BUG REPORT|BUG REPORT START|panicked at|ASSERTION FAILED|Guru Meditation"
    r"|Skipping diskless-load|crashed by signal|AddressSanitizer|LeakSanitizer"
)


class DidNotStart(RuntimeError):
    """The server ended, or didn't answer in time."""


class Node:
    """A server. Its port, directory and clock stay the same when it is started again."""

    def __init__(
        self,
        kind: Kind,
        name: str,
        directory: Path,
        config: Sequence[str],
        module: Path,
        *,
        own_clock: bool,
    ):
        if not module.exists():
            raise FileNotFoundError(f"{module} is missing: run `make build`")
        self.kind = kind
        self.name = name
        self.directory = directory / name
        self.directory.mkdir(parents=True)
        self.port = free_port()
        self.log_path = self.directory / "server.log"
        self.clock = WallClock(directory, name) if own_clock else None
        # How often it was started: a history speaks of `a.2`, the second process of server a.
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._is_asked_to_end = False
        self._alarms_from = 0
        lines = [CONFIG, f"port {self.port}", f'dir "{self.directory}"', *config]
        lines.append(f'loadmodule "{module}"')
        self._config_path = self.directory / "redis.conf"
        self._config_path.write_text("\n".join(lines) + "\n")

    def __str__(self) -> str:
        return self.name

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def has_died(self) -> bool:
        """The server has ended, and not because the session ended it."""
        return (
            self._process is not None
            and not self._is_asked_to_end
            and self._process.poll() is not None
        )

    async def start(self) -> None:
        """Starts the server; returns when it answers and its data is loaded."""
        assert not self.is_up, f"{self} is already up"
        environment = os.environ | (self.clock.environment if self.clock else {})
        # The kernel ends the server when this program ends, however it ends.
        command = ["setpriv", "--pdeathsig", "KILL", str(self.kind.binary), str(self._config_path)]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment,
            )
        self.starts += 1
        self._is_asked_to_end = False
        async with asyncio.timeout(START_S):
            while not await self._answers():
                if self.has_died():
                    raise DidNotStart(f"{self} did not start:\n{self.log()[-4000:]}")
                await asyncio.sleep(0.01)
        await self.check_clock()

    async def check_clock(self) -> None:
        """A server that ignores its clock would pass all sessions in which the clock is set."""
        shift_us = self.clock.shift_us if self.clock else 0
        earliest_us = time.time_ns() // 1_000 + shift_us
        seconds, us = map(int, await self.ask("TIME"))
        latest_us = time.time_ns() // 1_000 + shift_us
        shown_us = seconds * 1_000_000 + us
        if not earliest_us - CLOCK_ERROR_MAX_US < shown_us < latest_us + CLOCK_ERROR_MAX_US:
            wrong_s = (shown_us - latest_us) / 1_000_000
            raise RuntimeError(
                f"{self} doesn't hear its clock: what it shows is wrong by {wrong_s:.3f} s"
            )

    async def _answers(self) -> bool:
        try:
            async with self.talk() as connection:
                return await connection.call("PING", within_s=5) == "PONG"
        except (OSError, TimeoutError):
            return False

    @contextlib.asynccontextmanager
    async def talk(self) -> Any:
        """A connection of the nemesis' own."""
        connection = await Connection.to(self.port)
        try:
            yield connection
        finally:
            connection.close()

    async def ask(self, *words: str | int, within_s: float = 30) -> Any:
        """Sends one command over a connection of its own; raises an error reply."""
        async with self.talk() as connection:
            reply = await connection.call(*words, within_s=within_s)
        if isinstance(reply, Failure):
            raise RuntimeError(f"{self}: {' '.join(map(str, words))}: {reply}")
        return reply

    async def info(self, section: str) -> dict[str, str]:
        text = await self.ask("INFO", section)
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    async def kill9(self) -> None:
        """A crash of the server and of any child that is saving for it."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self.ended()

    async def terminate(self) -> None:
        """An orderly shutdown."""
        assert self._process is not None
        self._process.terminate()
        await self.ended()

    async def ended(self, within_s: float = 30) -> None:
        """Waits until the server has ended, as it was asked to."""
        assert self._process is not None
        self._is_asked_to_end = True
        async with asyncio.timeout(within_s):
            while self._process.poll() is None:
                await asyncio.sleep(0.005)
        self._process = None

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def log(self) -> str:
        return self.log_path.read_bytes().decode(errors="replace") if self.log_path.exists() else ""

    def new_alarms(self) -> list[str]:
        """The lines since the last look that no server should have logged."""
        text = self.log()[self._alarms_from :]
        self._alarms_from += len(text)
        return [line for line in text.splitlines() if ALARMS.search(line)]

    def crash_report(self) -> str:
        """The end of its log: the reason and the stack."""
        return self.log()[-6000:]
