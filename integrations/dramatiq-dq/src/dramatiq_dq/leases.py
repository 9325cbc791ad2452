"""Keeping the leases of all messages that this process has in its hands, Dramatiq's heartbeat, and
telling the server later what could not be told at once.

Each queue has a thread of its own: in a cluster a node that hangs holds up no other queue's leases.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Protocol

from dramatiq.logging import get_logger

from dq_client.outages import pauses
from dramatiq_dq.message import HeldMessage

#: Two renewals may get lost.
_PER_TTR = 3
#: In one command.
_MOST_AT_ONCE = 10_000
#: For what is still to be told when the broker is closed.
_LAST_WORDS_S = 5.0

Pairs = list[tuple[str | bytes, int | str]]
#: Renews leases of a queue; returns the ids of those that are void.
Renew = Callable[[str, Pairs], list[str]]
#: Tells the server what came of a message.
Tell = Callable[[], None]


class Outages(Protocol):
    """Hears of each call that failed in an outage, and of each that was answered."""

    def passes(self, error: BaseException) -> bool: ...

    def failed(self, queue_name: str, error: BaseException) -> None: ...

    def answered(self, queue_name: str) -> None: ...


class Leases:
    """The leases in hand, by queue."""

    def __init__(self, ttr: timedelta, renew: Renew, outages: Outages):
        self._interval_s = (ttr / _PER_TTR).total_seconds()
        self._renew = renew
        self._outages = outages
        self._lock = threading.Lock()
        self._keepers: dict[str, Keeper] = {}

    def add(self, queue_name: str, message: HeldMessage) -> None:
        self._of(queue_name).hold(message)

    def drop(self, queue_name: str, message: HeldMessage) -> None:
        self._of(queue_name).drop(message)

    def tell_later(self, queue_name: str, message: HeldMessage, tell: Tell) -> None:
        """Keeps the lease until the server was told."""
        self._of(queue_name).tell_later(message, tell)

    def untold(self, queue_name: str) -> int:
        """How many messages of a queue have ended, and the server doesn't know."""
        return len(self._of(queue_name).unsent)

    @property
    def count(self) -> int:
        return sum(len(each.held) for each in list(self._keepers.values()))

    def stop(self) -> None:
        with self._lock:
            keepers, self._keepers = self._keepers, {}
        for each in keepers.values():
            each.stop()
        deadline = time.monotonic() + _LAST_WORDS_S
        for each in keepers.values():
            each.join(deadline - time.monotonic())

    def _of(self, queue_name: str) -> Keeper:
        with self._lock:
            if queue_name not in self._keepers:
                words = (queue_name, self._interval_s, lambda *pairs: self._renew(*pairs))
                self._keepers[queue_name] = Keeper(*words, self._outages)
            return self._keepers[queue_name]


class Keeper:
    """Of one queue. Its thread begins with the first lease."""

    def __init__(self, queue_name: str, interval_s: float, renew: Renew, outages: Outages):
        self.held: dict[tuple[str, int], HeldMessage] = {}
        self.unsent: dict[tuple[str, int], Tell] = {}
        self._queue_name = queue_name
        self._interval_s = interval_s
        self._renew = renew
        self._outages = outages
        self._lock = threading.Lock()
        self._is_stopped = False
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._logger = get_logger(__name__, type(self))

    def hold(self, message: HeldMessage) -> None:
        with self._lock:
            self.held[message.key] = message
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="dq-leases", daemon=True)
                self._thread.start()

    def drop(self, message: HeldMessage) -> None:
        with self._lock:
            self.held.pop(message.key, None)

    def tell_later(self, message: HeldMessage, tell: Tell) -> None:
        with self._lock:
            self.unsent[message.key] = tell
        self._wake.set()

    def stop(self) -> None:
        """Leases aren't renewed any more. What is still to be told is tried once more."""
        self._is_stopped = True
        self._wake.set()

    def join(self, within_s: float) -> None:
        if self._thread is not None:
            self._thread.join(max(within_s, 0))

    def _run(self) -> None:
        waits, renewed_at = pauses(), time.monotonic()
        while True:
            due_s = max(renewed_at + self._interval_s - time.monotonic(), 0)
            self._wake.wait(min(due_s, next(waits)) if self.unsent else due_s)
            self._wake.clear()
            if self._send():
                waits = pauses()
            if self._is_stopped:
                return
            if time.monotonic() >= renewed_at + self._interval_s:
                renewed_at = time.monotonic()
                self._renew_all()

    def _send(self) -> bool:
        """Whether all has been told."""
        for key, tell in list(self.unsent.items()):
            try:
                tell()
            except Exception as error:
                if self._outages.passes(error):
                    self._outages.failed(self._queue_name, error)
                    return False
                self._logger.exception("Message %r isn't settled.", key[0])
            with self._lock:
                self.unsent.pop(key, None)
                self.held.pop(key, None)
            self._outages.answered(self._queue_name)
        return True

    def _renew_all(self) -> None:
        for pairs in self._batches():
            try:
                void = self._renew(self._queue_name, pairs)
            except Exception as error:
                if self._outages.passes(error):
                    self._outages.failed(self._queue_name, error)
                else:
                    words = "Leases on queue %r aren't renewed: %s"
                    self._logger.warning(words, self._queue_name, error)
                return
            self._outages.answered(self._queue_name)
            self._lose(pairs, set(void))

    def _batches(self) -> Iterator[Pairs]:
        with self._lock:
            rest = iter(list(self.held))
        while batch := list(islice(rest, _MOST_AT_ONCE)):
            yield list(batch)

    def _lose(self, pairs: Pairs, void: set[str]) -> None:
        """What was acknowledged during the renewal is no loss. One line tells all: a server without
        its data has lost each of them.
        """
        lost: list[HeldMessage] = []
        for job_id, lease in pairs:
            if job_id not in void:
                continue
            with self._lock:
                message = self.held.pop((str(job_id), int(lease)), None)
                self.unsent.pop((str(job_id), int(lease)), None)
            if message is not None:
                lost.append(message)
        if lost:
            self._logger.warning(
                "Message %r on queue %r was deleted, or another worker has it%s.",
                lost[0].message_id,
                self._queue_name,
                f"; {len(lost) - 1} others, too" if lost[1:] else "",
            )
