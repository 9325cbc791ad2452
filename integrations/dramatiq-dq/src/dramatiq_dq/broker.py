"""The broker: a queue of Dramatiq is a queue of DQ."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, get_args

import redis
from dramatiq import Actor
from dramatiq.broker import Broker, Consumer, MessageProxy
from dramatiq.errors import BrokerConnectionError, DecodeError, QueueJoinTimeout, QueueNotFound
from dramatiq.message import Message
from dramatiq.middleware import Middleware

from dq_client import RAW, Add, Delivery, Queue
from dq_client.commands import State
from dq_client.seam import Client
from dramatiq_dq.consumer import DQConsumer
from dramatiq_dq.guarding import guard
from dramatiq_dq.leases import Leases, Pairs
from dramatiq_dq.message import HeldMessage, reason_of, short
from dramatiq_dq.outages import Outages, at_the_primary

#: In milliseconds.
DEFAULT_HEARTBEAT_TIMEOUT = 60_000
DEFAULT_DEAD_MESSAGE_TTL = 7 * 86_400_000

#: The option in which a message that was enqueued has the id of its job.
JOB_ID = "dq_job_id"
#: The option that names the group of a message: see `DQ.ADD … GROUP`.
GROUP = "dq_group"

_DEFAULT_PRIORITY, _LAST_PRIORITY = 128, 255
#: As long as the server knows, less what a clock may reach. In milliseconds: 4,000 years.
_LONGEST_MS = 2**47
Settle = Callable[[str, HeldMessage], None]
#: In one command.
_MOST_AT_ONCE = 10_000


class DQBroker(Broker):
    """A broker for DQ.

    >>> DQBroker(url="redis://127.0.0.1:6379/0")
    >>> DQBroker(client=redis.RedisCluster(host="127.0.0.1"))

    Parameters:
      url: of the server, as redis-py has it.
      middleware: as all brokers have it.
      namespace: a queue is the key `namespace:queue`.
      heartbeat_timeout: in milliseconds, 1 at least. So long after a worker's process died, its
        messages go to another one.
      dead_message_ttl: in milliseconds. How long dead messages are kept; None leaves it to
        `DQ.ALTER … DEADKEEP`.
      client: one of redis-py or valkey-py, in place of url and parameters.
      parameters: of redis.Redis.

    Raises:
      TypeError: client is a pipeline or an asyncio client, which would send nothing.
      ValueError: heartbeat_timeout isn't a time.
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        middleware: list[Middleware] | None = None,
        namespace: str = "dramatiq-dq",
        heartbeat_timeout: int = DEFAULT_HEARTBEAT_TIMEOUT,
        dead_message_ttl: int | None = DEFAULT_DEAD_MESSAGE_TTL,
        client: Client | None = None,
        **parameters: Any,
    ):
        super().__init__(middleware=middleware)
        if not 1 <= heartbeat_timeout <= _LONGEST_MS:
            raise ValueError(
                f"heartbeat_timeout is in milliseconds, from 1 to {_LONGEST_MS}: "
                f"{heartbeat_timeout!r} isn't"
            )
        self.client: Any = client or connected(url, parameters)
        self._is_own_client = client is None
        self.namespace = namespace
        self.heartbeat_timeout = heartbeat_timeout
        self.dead_message_ttl = dead_message_ttl
        self.queues: set[str] = set()
        self.outages = Outages(self.client)
        self._ttr = timedelta(milliseconds=heartbeat_timeout)
        self._leases = Leases(self._ttr, self._renew, self.outages)
        self.queue(namespace)  # raises for a client that it can't use

    # ---- what every broker can do ----------------------------------------------------------------

    def close(self) -> None:
        """Leases aren't renewed any more, so stop the worker first. In an outage, what came of
        messages and isn't told within some seconds is lost: they come again.
        """
        self._leases.stop()
        if self._is_own_client:
            self.client.close()

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Consumer:
        """A consumer of a queue.

        Parameters:
          prefetch: how many messages it may have in its hands, those in work included.
          timeout: how long it waits for a message, in milliseconds.

        Raises:
          QueueNotFound: the queue was never declared.
        """
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        return DQConsumer(self, queue_name, prefetch, timeout)

    def declare_actor(self, actor: Actor[..., Any]) -> None:
        """Of one that is a coroutine, `sys.exit()` is a failure of its message."""
        guard(actor)
        super().declare_actor(actor)

    def declare_queue(self, queue_name: str) -> None:
        """Nothing is sent: the server makes a queue when it is first used. Messages with a delay
        wait in it, so there is no delay queue.
        """
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues.add(queue_name)
            self.emit_after("declare_queue", queue_name)

    def enqueue(
        self, message: Message[Any] | MessageProxy, *, delay: int | None = None
    ) -> Message[Any]:
        """Adds a message to its queue, and returns it as it was added.

        Parameters:
          delay: in milliseconds. One below 0 is none, as with Dramatiq's own brokers. There is no
            upper limit.

        Raises:
          ValueError: delay is no number of milliseconds.
        """
        try:
            delay_ms = None if delay is None else _within_limits(delay)
        except ValueError as error:
            if isinstance(message, HeldMessage) and message.has_raised:
                # Dramatiq would acknowledge it, as if its retry were there.
                message.fail()
                message.stuff_exception(error)
            raise
        job_id = f"{message.message_id}:{secrets.token_hex(4)}"
        copy: Message[Any] = message.copy(options={JOB_ID: job_id})
        self.logger.debug("Enqueueing message %r on queue %r.", copy.message_id, copy.queue_name)
        self.emit_before("enqueue", copy, delay)
        job = Add(
            copy.encode(),
            job_id,
            delay=None if delay_ms is None else timedelta(milliseconds=delay_ms),
            priority=self._priority(copy),
            group=copy.options.get(GROUP),
            nx=True,
        )
        if isinstance(message, HeldMessage) and message.has_raised:
            message.following.append(job)
        else:
            self._add(copy.queue_name, job)
        self.emit_after("enqueue", copy, delay)
        return copy

    def get_declared_queues(self) -> set[str]:
        return self.queues.copy()

    def flush(self, queue_name: str) -> None:
        """Removes all messages of a queue, also those in work and the dead."""
        self.do_purge(queue_name)

    def flush_all(self) -> None:
        """Removes all messages of all declared queues."""
        for queue_name in self.queues:
            self.flush(queue_name)

    def join(self, queue_name: str, *, interval: int = 100, timeout: int | None = None) -> None:
        """Waits until a queue has no messages but dead ones: for tests.

        Parameters:
          interval: between two looks at the queue, in milliseconds.
          timeout: in milliseconds.

        Raises:
          QueueJoinTimeout: the time is over.
        """
        deadline = None if timeout is None else time.monotonic() + timeout / 1000
        while deadline is None or time.monotonic() < deadline:
            if self.do_qsize(queue_name) == 0:
                return
            time.sleep(interval / 1000)
        raise QueueJoinTimeout(queue_name)

    # ---- what came of messages -------------------------------------------------------------------

    def settle(self, queue_name: str, message: HeldMessage, settle: Settle) -> None:
        """Tells the server what came of a message, now or when it is back. What it refuses is a
        failed attempt: nothing that a message brings about keeps its lease for ever.
        """

        def tell() -> None:
            try:
                settle(queue_name, message)
            except BrokerConnectionError:  # of a broker that is derived from this one
                raise
            except Exception as error:
                if self.outages.passes(error):
                    raise
                self._refused(queue_name, message, error)

        if self._leases.untold(queue_name):
            self._leases.tell_later(queue_name, message, tell)
            return
        try:
            tell()
        except Exception as error:
            if not self.outages.passes(error):
                raise
            self.outages.failed(queue_name, error)
            self._leases.tell_later(queue_name, message, tell)

    def untold(self, queue_name: str) -> int:
        """How many messages have ended, and the server doesn't know yet."""
        return self._leases.untold(queue_name)

    def _refused(self, queue_name: str, message: HeldMessage, error: Exception) -> None:
        """The message comes again, after the delay that its retry had."""
        reason = short(f"outcome refused: {reason_of(error)}")
        self.logger.error("Message %r on queue %r: %s", message.message_id, queue_name, reason)
        delay = next((job.options.get("delay") for job in message.following), None)
        queue = self.queue(queue_name)
        try:
            queue.release(message.job_id, message.lease, delay=delay, reason=reason)
        except Exception as again:
            if self.outages.passes(again):
                raise
            self.logger.exception("Message %r comes again within the TTR.", message.message_id)
        self._leases.drop(queue_name, message)

    # ---- what DQ can do besides ------------------------------------------------------------------

    def queue(self, queue_name: str) -> Queue:
        """The queue itself, for all other commands: limits, pauses, dead messages, figures."""
        return Queue(self.client, f"{self.namespace}:{queue_name}", codec=RAW)

    def cancel(self, message: Message[Any]) -> bool:
        """Removes a message that `send` or `enqueue` returned, also while it waits for its delay.
        False when it is through, or failed and waits for a retry under another id.
        """
        job_id: str = message.options[JOB_ID]
        return self.queue(message.queue_name).delete(job_id) == 1

    # ---- what the consumer asks for, by the names of Dramatiq's Redis broker ---------------------

    def do_begin(self, queue_name: str) -> None:
        """Tells the server what this broker wants of a queue, before the first fetch."""
        if self.dead_message_ttl is not None:
            keep = timedelta(milliseconds=max(self.dead_message_ttl, 1))
            self.queue(queue_name).alter(deadkeep=keep)

    def do_fetch(self, queue_name: str, count: int, timeout: int) -> list[HeldMessage]:
        """Up to `count` messages. Waits for the first one, up to `timeout` milliseconds."""
        deliveries = self.queue(queue_name).pop(
            count=min(count, _MOST_AT_ONCE),
            block=timedelta(milliseconds=timeout),
            ttr=self._ttr,
        )
        held = [self._held(queue_name, delivery) for delivery in deliveries]
        return [message for message in held if message is not None]

    def do_ack(self, queue_name: str, message: HeldMessage) -> None:
        """Ends a message. Its retry, if there is one, is added in the same step: unless the lease
        is lost, for then another worker has the message.
        """
        queue = self.queue(queue_name)
        if message.following:
            queue.done(message.job_id, message.lease, add=message.following)
        else:
            queue.finish((message.job_id, message.lease))
        self._leases.drop(queue_name, message)

    def do_nack(self, queue_name: str, message: HeldMessage) -> None:
        """Makes a message dead, with the reason."""
        while message.following:
            try:
                self._add(queue_name, message.following[-1])
            except Exception as error:
                if self.outages.passes(error):
                    raise
                self.logger.exception("The retry of message %r is refused.", message.message_id)
            message.following.pop()
        self.queue(queue_name).bury(message.job_id, message.lease, reason=message.reason)
        self._leases.drop(queue_name, message)

    def do_requeue(self, queue_name: str, *messages: HeldMessage) -> None:
        """Gives messages back that were not begun. That costs them no attempt."""
        queue = self.queue(queue_name)
        pipeline = self.client.pipeline(transaction=False)
        replies = [
            queue.release(each.job_id, each.lease, unbegun=True, on=pipeline) for each in messages
        ]
        for message in messages:
            self._leases.drop(queue_name, message)
        told = pipeline.execute(raise_on_error=False)
        for reply in replies:
            reply.of(told)

    def do_purge(self, queue_name: str) -> None:
        queue = self.queue(queue_name)
        for state in get_args(State):
            while queue.purge(state, count=_MOST_AT_ONCE):
                pass

    def do_qsize(self, queue_name: str) -> int:
        """How many messages wait for their delay, are ready or in work."""
        info = self.queue(queue_name).info()
        return 0 if info is None else info.delayed + info.ready + info.reserved + info.held

    # ---- its parts -------------------------------------------------------------------------------

    def _add(self, queue_name: str, job: Add) -> None:
        queue = self.queue(queue_name)
        at_the_primary(self.client, lambda: queue.add(job.id, job.body, **job.options))

    def _priority(self, message: Message[Any]) -> int | None:
        """Of its actor: the lowest is first, for Dramatiq as for DQ."""
        actor = self.actors.get(message.actor_name)
        if actor is None or actor.priority == 0:
            return None
        return min(max(_DEFAULT_PRIORITY + actor.priority, 0), _LAST_PRIORITY)

    def _held(self, queue_name: str, delivery: Delivery) -> HeldMessage | None:
        try:
            message = HeldMessage(delivery, queue_name)
        except DecodeError as error:
            self.logger.exception("Job %r on queue %r is no message.", delivery.id, queue_name)
            reason = short(f"no message of Dramatiq: {_cause_of(error)}")
            with suppress(Exception):  # it comes again when its lease ends
                self.queue(queue_name).bury(delivery.id, delivery.lease or 0, reason=reason)
            return None
        self._leases.add(queue_name, message)
        return message

    def _renew(self, queue_name: str, pairs: Pairs) -> list[str]:
        return self.queue(queue_name).renew(self._ttr, timedelta(0), pairs)


def _within_limits(delay: Any) -> int:
    """Raises ValueError."""
    try:
        delay_ms: int = max(math.ceil(min(delay, _LONGEST_MS)), 0)
        return delay_ms
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"a delay is in milliseconds, and not {delay!r}") from error


def _cause_of(error: DecodeError) -> str:
    """The innermost: Dramatiq wraps those of its encoder."""
    cause: BaseException = error
    while isinstance(cause, DecodeError) and isinstance(cause.error, BaseException):
        cause = cause.error
    return reason_of(cause)


def connected(url: str | None, parameters: dict[str, Any]) -> redis.Redis:
    return redis.Redis.from_url(url, **parameters) if url else redis.Redis(**parameters)
