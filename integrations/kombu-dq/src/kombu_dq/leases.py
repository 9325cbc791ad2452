"""The leases that this process holds: kept by a heartbeat, and settled, if need be when the server
is back.

A lease is a number, good on any connection. So it outlives the channel that its job came through: a
task that runs on after a connection was lost keeps its job, and is acknowledged when it is done.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kombu.log import get_logger
from redis import Redis

from kombu_dq.wire import in_one_go, passes

logger = get_logger("kombu_dq")

#: A beat every third of the TTR: two may get lost.
BEATS_PER_TTR = 3
#: How soon a settlement that didn't get through is sent again.
RESEND_INTERVAL_S = 1.0
#: Commands in one pipeline.
MOST_AT_ONCE = 1_000

#: What came of a job: the command and its options behind the lease.
Words = tuple[str, ...]
FINISH: Words = ("DQ.FINISH",)
RELEASE: Words = ("DQ.RELEASE",)
UNBEGUN: Words = ("DQ.RELEASE", "UNBEGUN")


#: Of a reason, in bytes: a longer one is refused.
REASON_AT_MOST = 512


def bury(reason: str) -> Words:
    """With as much of the reason as the server takes."""
    data = reason.encode("utf-8", "backslashreplace")[:REASON_AT_MOST]
    return ("DQ.BURY", "REASON", data.decode("utf-8", "ignore"))


@dataclass(frozen=True)
class Lease:
    key: str
    job_id: bytes
    number: int


@dataclass(frozen=True)
class Settlement:
    lease: Lease
    words: Words

    def command(self) -> list[str | bytes | int]:
        name, *options = self.words
        return [name, self.lease.key, self.lease.job_id, self.lease.number, *options]


class Leases:
    """Thread-safe: the consumer holds and settles, and a thread beats while there is something to
    keep.
    """

    def __init__(
        self,
        connect: Callable[[], Redis],
        ttr_ms: int,
        begun_tags: Callable[[], set[str] | None],
    ):
        """`begun_tags` tells which jobs are being worked on; None that nobody knows."""
        self._connect = connect
        self._ttr_ms = ttr_ms
        self._begun_tags = begun_tags
        self._reset()
        _all.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, Lease] = {}
        self._unsent: dict[str, Settlement] = {}
        self._suspects: set[str] = set()
        self._is_closed = False
        self._client: Redis | None = None
        self._is_server_away = False
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._pid = os.getpid()

    @property
    def tags(self) -> set[str]:
        """Of the deliveries that are held."""
        with self._lock:
            return set(self._held)

    def hold(self, tag: str, lease: Lease) -> None:
        with self._lock:
            self._held[tag] = lease
        self._ensure_heartbeat()

    def settle(self, tag: str, words: Words) -> None:
        """Tells the queue what came of a job, now or when the server is back; the second time,
        nothing.
        """
        with self._lock:
            lease = self._held.pop(tag, None)
            unsent = self._unsent.get(tag)
            if lease is None and unsent is not None and words == FINISH:
                # It was to be given back, but had been begun all the same.
                lease = self._unsent.pop(tag).lease
        if lease is not None:
            self._send({tag: Settlement(lease, words)})

    def renew(self, lease: Lease) -> bool:
        """Whether a lease is still good; if so, it lasts for a TTR from now."""
        return bool(self._redis().execute_command(*self._touch(lease)))

    def give_back(self) -> None:
        """Gives back what nobody works on."""
        begun = self._begun_tags()
        with self._lock:
            kept = {tag: lease for tag, lease in self._held.items() if begun and tag in begun}
            dropped = {tag: lease for tag, lease in self._held.items() if tag not in kept}
            self._held = kept
        # Without a worker to ask, a message that was handed to its consumer counts as begun.
        words = RELEASE if begun is None else UNBEGUN
        self._send({tag: Settlement(lease, words) for tag, lease in dropped.items()})

    def close(self) -> None:
        """No more to come. What is being worked on is kept until it is settled, or dropped without
        a word.
        """
        with self._lock:
            self._is_closed = True
        self._wake.set()

    # ---- the heartbeat -------------------------------------------------------------------------

    def _ensure_heartbeat(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._beat, name="dq-leases", daemon=True)
                self._thread.start()

    def _beat(self) -> None:
        while True:
            interval_s = self._ttr_ms / BEATS_PER_TTR / 1000
            woken = self._wake.wait(
                min(RESEND_INTERVAL_S, interval_s)
                if self._unsent or self._is_server_away
                else interval_s
            )
            self._wake.clear()
            if os.getpid() != self._pid:
                return
            try:
                self._resend()
                if not woken:
                    self._touch_all()
                    self._drop_abandoned()
            except Exception as error:
                if passes(error):
                    self._leave(error)
                else:
                    logger.exception("no heartbeat for %d leases", len(self._held))
            if self._is_over():
                return

    def _is_over(self) -> bool:
        with self._lock:
            if self._held or self._unsent:
                return False
            self._thread = None  # the next lease starts another
            client = self._client if self._is_closed else None
        if client is not None:
            client.connection_pool.disconnect()
        return True

    def _touch(self, lease: Lease) -> list[str | bytes | int]:
        return ["DQ.TOUCH", lease.key, lease.job_id, lease.number, "TTR", self._ttr_ms]

    def _touch_all(self) -> None:
        with self._lock:
            held = dict(self._held)
        replies = self._told([self._touch(lease) for lease in held.values()])
        lost: list[Lease] = []
        for (tag, lease), reply in zip(held.items(), replies, strict=True):
            if isinstance(reply, Exception):
                logger.warning("lease of %r in %s: %s", lease.job_id, lease.key, reply)
            elif not reply:
                with self._lock:
                    is_lost = self._held.pop(tag, None) is not None
                if is_lost:  # and not settled while we asked
                    lost.append(lease)
        if lost:  # one line: a server without its data has lost all of them
            logger.warning(
                "lease of %r in %s is lost%s",
                *(lost[0].job_id, lost[0].key),
                f", with {len(lost) - 1} others" if lost[1:] else "",
            )

    def _drop_abandoned(self) -> None:
        """After close(): what was being worked on, and is no longer, without a word of how it went.

        For a whole beat: between the end of a task and the word of it lies a moment.
        """
        if not self._is_closed:
            return
        idle = self.tags - (self._begun_tags() or set())
        for tag in idle & self._suspects:
            self.settle(tag, RELEASE)
        self._suspects = idle

    # ---- the connection ------------------------------------------------------------------------

    def _send(self, settlements: dict[str, Settlement]) -> None:
        if self._is_server_away and threading.current_thread() is not self._thread:
            self._send_later(settlements)  # Celery's event loop doesn't wait for it once more
            return
        try:
            replies = self._told([each.command() for each in settlements.values()])
        except Exception as error:
            if not passes(error):
                raise
            self._leave(error)
            self._send_later(settlements)
            return
        for settlement, reply in zip(settlements.values(), replies, strict=True):
            name, job_id = settlement.words[0], settlement.lease.job_id
            if isinstance(reply, Exception):
                logger.error("%s of %r: %s", name, job_id, reply)
            elif not reply:  # revoked, retried, or redelivered after a silence longer than the TTR
                logger.debug("%s of %r: the lease is void", name, job_id)

    def _send_later(self, settlements: dict[str, Settlement]) -> None:
        with self._lock:
            # What has been said of a job meanwhile is the newer word.
            self._unsent = settlements | self._unsent
        if threading.current_thread() is not self._thread:
            self._ensure_heartbeat()
            self._wake.set()

    def _resend(self) -> None:
        with self._lock:
            settlements, self._unsent = self._unsent, {}
        self._send(settlements)

    def _told(self, commands: list[list[str | bytes | int]]) -> list[Any]:
        """The replies. A pipeline is bounded: the server and its clients read it as a whole."""
        replies: list[Any] = []
        for first in range(0, len(commands), MOST_AT_ONCE):
            replies += in_one_go(self._redis(), commands[first : first + MOST_AT_ONCE])
        if commands and self._is_server_away:
            self._is_server_away = False
            logger.warning("%s answers again", self._address())
        return replies

    def _leave(self, error: BaseException) -> None:
        """The address may lead to another server by now. An outage is one line of the log, and its
        end another.
        """
        self._redis().connection_pool.disconnect(inuse_connections=False)
        if not self._is_server_away:
            self._is_server_away = True
            logger.warning(
                "%s doesn't answer: %s. %d leases aren't renewed, and outcomes are sent later",
                self._address(),
                error,
                len(self.tags),
            )

    def _address(self) -> str:
        known = self._redis().connection_pool.connection_kwargs
        return str(known.get("path") or f"{known.get('host')}:{known.get('port')}")

    def _redis(self) -> Redis:
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def forget(self) -> None:
        """In a forked child: the leases are the parent's."""
        self._reset()


_all: weakref.WeakSet[Leases] = weakref.WeakSet()


def _forget_all() -> None:
    for leases in list(_all):
        leases.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
