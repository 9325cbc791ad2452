"""An outage is one line of the log, and its end another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from dramatiq.logging import get_logger

from dq_client.outages import passes

T = TypeVar("T")


def leave(client: Any) -> None:
    """Next time it connects again. Clients of clusters see to that by themselves."""
    pool = getattr(client, "connection_pool", None)
    if pool is not None and not hasattr(client, "get_random_node"):
        with suppress(Exception):
            pool.disconnect(inuse_connections=False)


def at_the_primary(client: Any, call: Callable[[], T]) -> T:
    """Calls once more where the server that was asked is a replica by now: it has done nothing, and
    the address may lead to the new primary.
    """
    try:
        return call()
    except Exception as error:
        if type(error).__name__ != "ReadOnlyError":
            raise
        leave(client)
        return call()


class Outages:
    """Thread-safe. In a cluster nodes fail one by one, so each queue has an outage of its own."""

    def __init__(self, client: Any):
        self._client = client
        self._is_cluster = hasattr(client, "get_random_node")
        self._lock = threading.Lock()
        self._away: set[str] = set()
        self._logger = get_logger(__name__, type(self))

    def passes(self, error: BaseException) -> bool:
        """Whether the server may take the same command later. A RuntimeError or AttributeError is
        that of a cluster's client, whose nodes change, alone.
        """
        is_race = isinstance(error, (RuntimeError, AttributeError))
        return passes(error) and (self._is_cluster or not is_race)

    def failed(self, queue_name: str, error: BaseException) -> None:
        """Also leaves the server: its address may lead to another one by now."""
        leave(self._client)
        where = self._where(queue_name)
        with self._lock:
            is_new = where not in self._away
            self._away.add(where)
        if is_new:
            self._logger.warning("%s doesn't answer: %s: %s", where, type(error).__name__, error)

    def answered(self, queue_name: str) -> None:
        if not self._away:
            return
        where = self._where(queue_name)
        with self._lock:
            was_away = where in self._away
            self._away.discard(where)
        if was_away:
            self._logger.warning("%s answers again.", where)

    def _where(self, queue_name: str) -> str:
        if self._is_cluster:
            return f"The node of queue {queue_name!r}"
        pool = getattr(self._client, "connection_pool", None)
        known = getattr(pool, "connection_kwargs", {})
        address = known.get("path") or f"{known.get('host', 'localhost')}:{known.get('port', 6379)}"
        return f"The server at {address}"
