"""Keeping the leases of all messages that this process has in its hands: Dramatiq's heartbeat."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import islice

from dramatiq.logging import get_logger

from dramatiq_dq.message import HeldMessage

#: Two renewals may get lost.
_PER_TTR = 3
#: In one command.
_MOST_AT_ONCE = 10_000

Pairs = list[tuple[str | bytes, int | str]]
#: Renews leases of a queue; returns the ids of those that are void.
Renew = Callable[[str, Pairs], list[str]]


class Leases:
    """The leases in hand. A thread renews them from the first one on, until `stop`."""

    def __init__(self, ttr: timedelta, renew: Renew):
        self._interval_s = (ttr / _PER_TTR).total_seconds()
        self._renew = renew
        self._held: dict[tuple[str, str, int], HeldMessage] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._logger = get_logger(__name__, type(self))

    def add(self, queue_name: str, message: HeldMessage) -> None:
        with self._lock:
            self._held[queue_name, message.job_id, message.lease] = message
            if self._thread is None:
                self._stopped.clear()
                self._thread = threading.Thread(target=self._run, name="dq-leases", daemon=True)
                self._thread.start()

    def drop(self, queue_name: str, message: HeldMessage) -> None:
        with self._lock:
            self._held.pop((queue_name, message.job_id, message.lease), None)

    def stop(self) -> None:
        self._stopped.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            for queue_name, pairs in self._batches():
                try:
                    void = self._renew(queue_name, pairs)
                except Exception as error:  # it may be over by the next time
                    self._logger.warning("Leases on queue %r aren't renewed: %s", queue_name, error)
                    continue
                self._lose(queue_name, pairs, set(void))

    def _batches(self) -> Iterator[tuple[str, Pairs]]:
        by_queue: defaultdict[str, Pairs] = defaultdict(list)
        with self._lock:
            for queue_name, job_id, lease in self._held:
                by_queue[queue_name].append((job_id, lease))
        for queue_name, pairs in by_queue.items():
            rest = iter(pairs)
            while batch := list(islice(rest, _MOST_AT_ONCE)):
                yield queue_name, batch

    def _lose(self, queue_name: str, pairs: Pairs, void: set[str]) -> None:
        """What was acknowledged during the renewal is no loss."""
        for job_id, lease in pairs:
            if job_id not in void:
                continue
            with self._lock:
                message = self._held.pop((queue_name, str(job_id), int(lease)), None)
            if message is not None:
                self._logger.warning(
                    "Message %r on queue %r was deleted, or another worker has it.",
                    message.message_id,
                    queue_name,
                )
