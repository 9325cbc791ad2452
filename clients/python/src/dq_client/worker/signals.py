"""The end by a signal, for certain: whatever handlers do."""

from __future__ import annotations

import math
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any

#: After the last words to the server: for what ends slowly.
_MARGIN_S = 5.0
#: After the program's own end, when a handler still runs.
_STUCK_S = 1.0
_FLUSH_S = 1.0
#: A grace time may be longer than a socket, or a clock, can wait.
_PIECE_S, _LONGEST_S = 86_400.0, 1e9
#: Marks the numbers of signals that come by way of Python's handler.
_BY_HANDLER = 128


class Signals:
    """Calls `signalled` at each of these signals, from a thread of its own, even when a handler
    blocks the main thread. A process that is still there `patience_s` after the first one, or
    `hurry_s` after the second, is ended by that thread.
    """

    def __init__(
        self,
        numbers: Sequence[signal.Signals],
        signalled: Callable[[], None],
        patience_s: float,
        hurry_s: float,
    ):
        self.numbers = numbers
        self._signalled = signalled
        self._patience_s = min(patience_s, _LONGEST_S) + _MARGIN_S
        self._hurry_s = hurry_s + _MARGIN_S
        self._before: dict[signal.Signals, Any] = {}
        self._fd_before = -1
        #: Handlers still run though the grace time is over.
        self.is_stuck = False

    def __enter__(self) -> Signals:
        if threading.current_thread() is not threading.main_thread():
            self.numbers = ()  # Python gives signals to the main thread alone
        if self.numbers:
            self._reader, self._writer = socket.socketpair()
            self._writer.setblocking(False)
            _catching.append(self)
            for number in self.numbers:
                self._before[number] = signal.signal(number, self._handle)
            # The bytes are written when the signal comes, whatever the main thread is doing.
            self._fd_before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
            threading.Thread(target=self._watch, name="dq-signals", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.numbers:
            _catching.remove(self)
            fd = self._writer.fileno()
            above = next((each for each in _catching if each._fd_before == fd), None)
            if above is None:
                signal.set_wakeup_fd(self._fd_before)
            else:
                above._fd_before = self._fd_before
            for number, before in self._before.items():
                if above is not None and number in above._before:
                    above._before[number] = before
                else:
                    signal.signal(number, before if before is not None else signal.SIG_DFL)
            self._writer.close()

    @property
    def _has_another_below(self) -> bool:
        """Another worker of this process caught signals when this one began to."""
        return any(each._writer.fileno() == self._fd_before for each in tuple(_catching))

    def let_go(self) -> None:
        """In a process that a handler has forked: a signal to it is none to the worker."""
        signal.set_wakeup_fd(-1)
        for number in self.numbers:
            signal.signal(number, signal.SIG_DFL)

    def _handle(self, number: int, _: FrameType | None) -> None:
        """The program may have taken the wake-up descriptor for itself."""
        with suppress(OSError):
            self._writer.send(bytes([number | _BY_HANDLER]))

    def _watch(self) -> None:
        counts: Counter[int] = Counter()
        seen, number, deadline = 0, 0, math.inf
        while data := self._received(deadline):
            for byte in data:
                if byte & ~_BY_HANDLER in self.numbers:
                    number = byte & ~_BY_HANDLER
                    counts[byte & _BY_HANDLER] += 1
                    if not self._has_another_below:
                        continue
                if self._fd_before >= 0:  # a signal of the program, or one to all workers
                    with suppress(OSError):
                        os.write(self._fd_before, bytes([byte]))
            # Each signal comes in both ways, or in one of them.
            for _ in range(seen, max(counts.values(), default=0)):
                seen += 1
                patience_s = self._patience_s if seen == 1 else self._hurry_s
                deadline = min(deadline, time.monotonic() + patience_s)
                self._signalled()
        if data is None:
            end(number)
        if not seen:
            return
        # The worker has ended, and the program may do what it has to do after that.
        _wait_for_the_end()
        time.sleep(_STUCK_S if self.is_stuck else max(_MARGIN_S, deadline - time.monotonic()))
        end(number)

    def _received(self, deadline: float) -> bytes | None:
        """What has come; nothing when the worker has ended, None at the deadline."""
        while (left_s := deadline - time.monotonic()) > 0:
            self._reader.settimeout(min(left_s, _PIECE_S))
            with suppress(TimeoutError):
                return self._reader.recv(64)
        return None


#: In the order in which they began.
_catching: list[Signals] = []
_masks = threading.local()


def _hold_back() -> None:
    """A signal to the child must not come before the child has let go."""
    numbers = {number for each in _catching for number in each.numbers}
    _masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)


def _let_come() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.before)


def _let_go() -> None:
    for each in _catching:
        each.let_go()
    _catching.clear()
    _let_come()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_back, after_in_parent=_let_come, after_in_child=_let_go)


_ending = threading.Event()
# Python's end begins with what is registered here, the last one first: before the wait for the
# threads of executors, for which the main thread counts as alive.
_register: Callable[[Callable[[], None]], None] | None
_register = getattr(threading, "_register_atexit", None)
if _register is not None and import_module("concurrent.futures.thread"):
    with suppress(RuntimeError):  # imported at the very end
        _register(_ending.set)


def _wait_for_the_end() -> None:
    """Of the main thread's program."""
    if _register is not None:
        _ending.wait()
    else:
        threading.main_thread().join()


def end(number: int) -> None:
    """As a shell shows it for a process that died of this signal."""
    with suppress(Exception):
        os.write(2, b"dq_client: the process is ended, as a handler or a thread doesn't end\n")
        flushing = threading.Thread(target=_flush, daemon=True)
        flushing.start()
        flushing.join(_FLUSH_S)
    os._exit(128 + number)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
