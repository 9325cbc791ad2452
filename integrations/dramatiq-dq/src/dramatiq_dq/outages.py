"""An outage is one line of the log, and its end another."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from dramatiq.logging import get_logger

from dq_client.outages import passes


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
        """Also leaves the server: its address may lead to another one by now. Clients of clusters
        see to that by themselves.
        """
        pool = getattr(self._client, "connection_pool", None)
        if pool is not None and not self._is_cluster:
            with suppress(Exception):
                pool.disconnect(inuse_connections=False)
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
