"""A client's test program, and the conversation with it: one JSON object a line, each way.

A request is answered by one line that has `reply` or `error`. Lines with `event` come by themselves
while a worker runs. README.md lists all of them.
"""

import json
import os
import queue
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

Raw = dict[str, Any]
TIMEOUT_S = 60


class Refused(Exception):
    """The program replied with an error: that of the server, or of the client."""

    def __init__(self, error: Raw):
        super().__init__(f"{error.get('type')}: {error.get('code', '')} {error.get('message')}")
        self.error = error


class Program:
    def __init__(self, command: list[str], directory: Path, log: Path):
        self.command = command
        self.log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],
                cwd=directory,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
            )
        self._replies: queue.SimpleQueue[Raw] = queue.SimpleQueue()
        self.events: list[Raw] = []
        self._has_news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    # ---- talking ---------------------------------------------------------------------------------

    def ask(self, what: str, **request: Any) -> Any:
        """Sends a request; returns the reply, or raises what came instead."""
        self.send(what, **request)
        told = self._replies.get(timeout=TIMEOUT_S)
        if "ended" in told:
            raise AssertionError(f"the program ended:\n{self.said()}")
        if "error" in told:
            raise Refused(told["error"])
        return told["reply"]

    def send(self, what: str, **request: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what} | request).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            if "event" not in told:
                self._replies.put(told)
                continue
            told["at"] = time.monotonic()
            with self._has_news:
                self.events.append(told)
                self._has_news.notify_all()
        self._replies.put({"ended": True})

    # ---- events ----------------------------------------------------------------------------------

    def event(self, name: str, seen: int = 0, within_s: float = 30, **fields: Any) -> int:
        """Waits for an event with these fields after the first `seen` ones; returns its place."""
        __tracebackhide__ = True
        wanted = {"event": name} | fields

        def place() -> int | None:
            return next(
                (
                    at
                    for at, event in enumerate(self.events)
                    if at >= seen and event.items() >= wanted.items()
                ),
                None,
            )

        with self._has_news:
            self._has_news.wait_for(lambda: place() is not None, timeout=within_s)
            found = place()
        if found is None:
            raise AssertionError(f"not told: {wanted}\ntold: {self.events}\n{self.said()}")
        return found

    def told(self) -> list[Raw]:
        """All events so far."""
        with self._has_news:
            return list(self.events)

    def is_up(self) -> bool:
        return self._process.poll() is None

    # ---- its end ---------------------------------------------------------------------------------

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def exit(self, within_s: float = 30) -> int:
        """Its exit status, once it has ended by itself."""
        return self._process.wait(timeout=within_s)

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._reader.join(5)

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-6000:]
