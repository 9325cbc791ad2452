"""Celery's result backend `dq://`: results are jobs of one queue; the server counts for chords.

What it has in common with Celery's redis backend stays Celery's: URLs, TLS, connections, retries.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from celery import states
from celery.backends import redis as redis_backend
from celery.backends.asynchronous import BaseResultConsumer
from celery.backends.base import Backend
from celery.exceptions import BackendStoreError, TimeoutError
from kombu.utils.encoding import bytes_to_str
from redis.exceptions import ResponseError

from kombu_dq import chords
from kombu_dq.too_large import ResultTooLarge, shortened
from kombu_dq.wire import fields, in_one_go, in_one_transaction, is_too_large, passes, plain_errors

#: The queue of the results.
RESULTS_KEY = "celery.results"
#: How long to wait for one of several results before looking at the others.
GLANCE_S = 0.05
#: How long to wait for a result that nothing else is waited for with.
LONG_LOOK_S = 1.0
#: A state that is no longer of interest is gone as soon as it is over.
DEADKEEP_MS = 1
#: Celery's name for a kind of connection. All others are plain ones.
SCHEMES = {"dqs": "rediss", "socket": "socket"}


class ResultConsumer(BaseResultConsumer):
    """Waits for results by DQ.RESULT, each thread with a connection of its own."""

    backend: DQBackend

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._connection_errors = self.backend.connection_errors
        self._lock = threading.Lock()
        self._awaited: dict[str, None] = {}

    def on_after_fork(self) -> None:
        self._lock = threading.Lock()
        self._awaited = {}
        self.backend.client.connection_pool.reset()

    def start(self, initial_task_id: str, **kwargs: Any) -> None:
        self.consume_from(initial_task_id)

    def consume_from(self, task_id: str) -> None:
        with self._lock:
            self._awaited[task_id] = None

    def cancel_for(self, task_id: str) -> None:
        # Called when garbage is collected, in whatever is going on: a dict's pop needs no lock.
        self._awaited.pop(task_id, None)

    def on_wait_for_pending(self, result: Any, timeout: Any = None, **kwargs: Any) -> None:
        # One look: drain_events() waits for what isn't there yet.
        with suppress(TimeoutError):
            for meta in result._iter_meta(timeout=0, **kwargs):
                if meta is not None:
                    self.on_state_change(meta, None)

    def on_state_change(self, meta: dict[str, Any], message: Any) -> None:
        super().on_state_change(meta, message)
        if meta["status"] in states.READY_STATES:
            self.cancel_for(meta["task_id"])

    def drain_events(self, timeout: float | None = None) -> None:
        """Looks at all results that are awaited, or waits for the one that is."""
        with self._lock:
            awaited = list(self._awaited)
        first: Any = None
        found: list[Any] = []
        with self.reconnect_on_error():
            wait_s = LONG_LOOK_S if len(awaited) == 1 else GLANCE_S
            wait_s = wait_s if timeout is None else min(wait_s, timeout)
            if awaited:
                first = self.backend.await_result(awaited[0], wait_s)
            else:
                time.sleep(wait_s)
            found = [first, *self.backend.results_of(awaited[1:])]
        for value in found:
            if value is not None:
                meta: Any = self.backend.decode_result(value)
                self.on_state_change(meta, None)
        if awaited and first is None:
            self.cancel_for(awaited[0])  # to the end of the row
            self.consume_from(awaited[0])

    def _reconnect(self) -> None:
        """Waits until the server is back. The next look shows what became of the results."""
        self.backend.ensure(self.backend.client.ping, ())


class DQBackend(redis_backend.RedisBackend):
    """A result is that of a done job that is kept; a state before it, the body of a held job."""

    ResultConsumer: Any = ResultConsumer
    client: Any
    task_keyprefix: Any = ""
    group_keyprefix: Any = "group:"
    chord_keyprefix: Any = "chord:"

    def __init__(self, *args: Any, **kwargs: Any):
        self.results_key = RESULTS_KEY
        super().__init__(*args, **kwargs)
        self._is_set_up = False
        #: The queue and the results of chords whose headers a generator is making.
        self.open_chords: dict[str, tuple[str, Any]] = {}

    def _params_from_url(self, url: str, defaults: dict[str, Any]) -> Any:
        scheme, colon, rest = url.partition("://")
        if scheme == "dqs":  # as with the broker
            defaults = {"ssl_cert_reqs": "required"} | defaults
        return super()._params_from_url(SCHEMES.get(scheme, "redis") + colon + rest, defaults)

    def _add_global_keyprefix(self) -> None:
        options = self.app.conf.get("result_backend_transport_options", {})
        self.results_key = f"{options.get('global_keyprefix') or ''}{RESULTS_KEY}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """In plain words. After one of an outage the connections are left: the address may lead to
        another server by now.
        """
        try:
            with plain_errors():
                yield
        except Exception as error:
            if passes(error):
                self.client.connection_pool.disconnect(inuse_connections=False)
            raise

    # ---- results -------------------------------------------------------------------------------

    def get(self, key: Any) -> Any:
        return self.mget([key])[0]

    def mget(self, keys: Iterable[Any]) -> list[Any]:
        """What is stored of each: its result, or its state before that; None without either."""
        names = list(keys)
        values = self.results_of(names)
        open_names = [name for name, value in zip(names, values, strict=True) if value is None]
        with self._errors():
            replies = in_one_go(
                self.client, [("DQ.GET", self.results_key, name) for name in open_names]
            )
            found = dict(zip(open_names, map(_state_of, replies), strict=True))
        return [
            found[name] if value is None else value
            for name, value in zip(names, values, strict=True)
        ]

    def results_of(self, names: Sequence[Any]) -> list[Any]:
        """The results of those that are done; None for the others."""
        with self._errors():
            replies = in_one_go(
                self.client, [("DQ.RESULT", self.results_key, name) for name in names]
            )
            return [_result_in(reply) for reply in replies]

    def await_result(self, name: str, seconds: float) -> Any:
        """The result, when there is one within that time; else None."""
        socket_timeout_s = self.connparams.get("socket_timeout")
        if socket_timeout_s:  # the reply to a wait comes at its end
            seconds = min(seconds, socket_timeout_s / 2)
        ms = max(1, round(seconds * 1000))
        with self._errors():
            self.client.execute_command(*self._pending(name), "NX")
            return _result_in(
                self.client.execute_command("DQ.RESULT", self.results_key, name, "BLOCK", ms)
            )

    def _pending(self, name: Any, value: Any = "") -> list[Any]:
        """Adds a held job. An empty one is of a task of which nothing is known yet."""
        ttl = ["TTL", int(self.expires * 1000)] if self.expires else []
        return ["DQ.ADD", self.results_key, name, value, "HOLD", *ttl]

    def _set_with_state(self, key: Any, value: Any, state: str) -> None:
        expires = self.failure_expires if state == states.FAILURE else self.expires
        commands: list[list[Any]] = []
        if not self._is_set_up:
            commands.append(["DQ.ALTER", self.results_key, "DEADKEEP", DEADKEEP_MS])
        if state in states.READY_STATES:
            keep = int(expires * 1000) if expires else FOR_GOOD_MS
            done = ["DQ.DONE", self.results_key, key, "*", "RESULT", value, "KEEP", keep]
            commands += [[*self._pending(key), "REPLACE"], done]
        else:
            commands.append([*self._pending(key, value), "REPLACE"])
        self.ensure(self._in_one_transaction, (commands,))
        self._is_set_up = True

    def set(self, key: Any, value: Any, expires: Any = None, **retry_policy: Any) -> None:
        self._set_with_state(key, value, states.SUCCESS)

    def _in_one_transaction(self, commands: list[list[Any]]) -> None:
        try:
            with self._errors():
                in_one_transaction(self.client, commands)
        except ResponseError as error:
            if is_too_large(error):
                raise ResultTooLarge(f"the result is too large: {error}") from error
            raise

    def store_result(
        self,
        task_id: Any,
        result: Any,
        state: Any,
        traceback: Any = None,
        request: Any = None,
        **kwargs: Any,
    ) -> Any:
        """A failure whose message is too large is stored as one that says so."""
        words = (traceback, request)
        try:
            return super().store_result(task_id, result, state, *words, **kwargs)
        except BackendStoreError as error:
            # Celery makes another error of ours.
            of_size = isinstance(error, ResultTooLarge) or isinstance(
                error.__cause__, ResultTooLarge
            )
            if not (of_size and isinstance(result, BaseException)):
                raise
            shorter = shortened(result, error)
            return super().store_result(task_id, shorter, state, None, request, **kwargs)

    def delete(self, key: Any) -> None:
        with self._errors():
            self.client.execute_command("DQ.DEL", self.results_key, key)

    def expire(self, key: Any, value: Any) -> None:
        """A result expires as it was told when it was stored."""

    def on_task_call(self, producer: Any, task_id: str) -> None:
        """Nothing: who waits says so, not who sends."""

    # ---- chords --------------------------------------------------------------------------------

    def apply_chord(self, header_result_args: Any, body: Any, **kwargs: Any) -> None:
        if not chords.begin(self, header_result_args, body):
            # By polling, as with backends that can't count.
            Backend.apply_chord(self, header_result_args, body, **kwargs)

    def set_chord_size(self, group_id: str, chord_size: int) -> None:
        chords.close(self, group_id, chord_size)

    def on_chord_part_return(
        self, request: Any, state: str, result: Any, propagate: Any = None, **kwargs: Any
    ) -> None:
        if request.group and request.id:
            chords.settle(self, request, state, result)

    def add_to_chord(self, group_id: str, result: Any) -> None:
        chords.extend(self, group_id, result)


#: Without end, to DQ: the longest time there is, less what a clock may reach.
FOR_GOOD_MS = 2**47


def _result_in(reply: Any) -> Any:
    if isinstance(reply, Exception):
        raise reply
    return reply[1] if reply and bytes_to_str(reply[0]) == "done" else None


def _state_of(reply: Any) -> Any:
    """What a task said of itself before it was done. A dead job is one that has expired."""
    if isinstance(reply, Exception):
        raise reply
    job = fields(reply)
    if job.get("state") == b"done":
        return job.get("result")  # it was done between two looks
    return job.get("body") if job.get("state") == b"held" else None
