"""The result backend: a result is a done job that is kept."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from typing import Any

from dramatiq.encoder import Encoder
from dramatiq.results import ResultBackend, ResultMissing, ResultTimeout
from dramatiq.results.backend import DEFAULT_TIMEOUT
from dramatiq.results.result import wrap_exception

from dq_client import RAW, Invalid, Later, Outcome, Queue
from dq_client.seam import Client
from dramatiq_dq.broker import connected
from dramatiq_dq.message import reason_of
from dramatiq_dq.outages import at_the_primary

#: Of what waited in vain nothing is kept.
_AT_ONCE = timedelta(milliseconds=1)


class ResultNotStored(Exception):
    """An actor has ended, but what it returned or raised can't be stored: it is too large, or the
    encoder doesn't know its type. It is the error of the ResultFailure in its place.
    """


class DQBackend(ResultBackend):
    """A result backend for DQ. Who waits for a result waits in the server, to the millisecond.

    A result that isn't stored yet is a held job, which no worker gets. To store a result is to end
    that job.

    Parameters:
      namespace: the key of the queue that has the results.
      encoder, use_namespace_prefix_keys: as all result backends have them.
      client: one of redis-py or valkey-py, in place of url and parameters.
      url: of the server, as redis-py has it.
      parameters: of redis.Redis.
    """

    def __init__(
        self,
        *,
        namespace: str = "dramatiq-dq-results",
        encoder: Encoder | None = None,
        use_namespace_prefix_keys: bool = False,
        client: Client | None = None,
        url: str | None = None,
        **parameters: Any,
    ):
        super().__init__(
            namespace=namespace,
            encoder=encoder,
            use_namespace_prefix_keys=use_namespace_prefix_keys,
        )
        self.client: Any = client or connected(url, parameters)
        self.queue = Queue(self.client, namespace, codec=RAW)  # raises for a client it can't use

    def get_result(self, message: Any, *, block: bool = False, timeout: int | None = None) -> Any:
        """The result of a message.

        Parameters:
          block: whether to wait for it.
          timeout: how long to wait, in milliseconds; 10 seconds without it.

        Raises:
          ResultMissing: there is none, and block is False.
          ResultTimeout: there is none within that time.
          ResultFailure: the actor has failed.
        """
        key = self.build_message_key(message)
        if block:
            outcome = self._awaited(key, DEFAULT_TIMEOUT if timeout is None else timeout)
            missing: Exception = ResultTimeout(message)
        else:
            outcome = self.queue.result(key)
            missing = ResultMissing(message)
        if outcome is None or not outcome.is_done:
            raise missing
        return self.unwrap_result(self.encoder.decode(outcome.value))

    def _awaited(self, key: str, timeout: int) -> Outcome | None:
        deadline = time.monotonic() + timeout / 1000
        outcome = self.queue.result(key)
        while outcome is None or not outcome.is_done:
            left = timedelta(milliseconds=int((deadline - time.monotonic()) * 1000))
            if left <= timedelta(0):
                return None
            if outcome is None:
                at_the_primary(self.client, partial(self._expect, key, left))
            outcome = self.queue.result(key, block=left)
        return outcome

    def _expect(self, key: str, left: timedelta) -> None:
        """Makes the held job to wait for, unless there is one. It dies with the wait."""
        pipeline = self.client.pipeline(transaction=True)
        steps: list[Later[Any]] = [
            self.queue.alter(deadkeep=_AT_ONCE, on=pipeline),
            self.queue.add(key, b"", hold=True, nx=True, ttl=left, on=pipeline),
        ]
        replies = pipeline.execute(raise_on_error=False)
        for step in steps:
            step.of(replies)

    def store_exception(self, message: Any, exception: Exception, ttl: int) -> None:
        """Also one of which the text can't be had."""
        try:
            str(exception)
        except Exception:
            exception = ResultNotStored(reason_of(exception))
        super().store_exception(message, exception, ttl)

    def _store(self, message_key: str, result: Any, ttl: int) -> None:
        """Takes the place of an earlier result. The clients that wait for this key are told, also
        when it can't be stored.
        """
        try:
            encoded = self.encoder.encode(result)
        except Exception as error:
            encoded = self._failure(error)
        try:
            at_the_primary(self.client, lambda: self._store_once(message_key, encoded, ttl))
        except Invalid as error:
            self._store_once(message_key, self._failure(error), ttl)

    def _failure(self, error: Exception) -> bytes:
        return self.encoder.encode(wrap_exception(ResultNotStored(reason_of(error))))

    def _store_once(self, message_key: str, encoded: bytes, ttl: int) -> None:
        pipeline = self.client.pipeline(transaction=True)
        keep = timedelta(milliseconds=ttl)
        steps: list[Later[Any]] = [
            self.queue.add(message_key, b"", hold=True, replace=True, ttl=keep, on=pipeline),
            self.queue.done(message_key, "*", result=encoded, keep=keep, on=pipeline),
        ]
        replies = pipeline.execute(raise_on_error=False)
        for step in steps:
            step.of(replies)
