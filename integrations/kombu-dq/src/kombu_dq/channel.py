"""A channel: messages to jobs, deliveries to messages. Where kombu says BRPOP, it is DQ.MPOP
here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import Empty
from time import monotonic, time
from types import MappingProxyType
from typing import Any

from kombu.log import get_logger
from kombu.transport import redis as redis_transport
from kombu.utils.encoding import bytes_to_str
from redis import ConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, ResponseError
from redis.retry import Retry

from kombu_dq import celery_app, outbox, revoking
from kombu_dq.job import Job, Payload, job_of, payload_of, supersedes
from kombu_dq.leases import FINISH, UNBEGUN, Lease, Leases, bury
from kombu_dq.outbox import Addition, Command, Outbox
from kombu_dq.qos import QoS
from kombu_dq.wire import Delivery, fields, in_one_transaction, passes, plain_errors, said

logger = get_logger("kombu_dq")

#: A reply has as many messages as there is room for, but no more than this. Celery passes each that
#: had an ETA through its timer, which carries out ten entries a turn, and has another fetched
#: meanwhile: with more than ten a turn, all that is due would come into the worker's memory.
MAX_BATCH = 8
#: How often to try to add a message whose id comes and goes while we look.
ADD_ATTEMPTS = 3
#: Most jobs that one DQ.PURGE removes.
PURGE_COUNT = 10_000
#: A year: a job of a worker that died comes back after that time.
LONGEST_TTR_S = 365 * 86_400
#: Options of kombu's redis transport that have no meaning here. They may stay in an app's settings.
IGNORED_OPTIONS = {
    "ack_emulation",
    "priority_steps",
    "sep",
    "unacked_index_key",
    "unacked_key",
    "unacked_mutex_expire",
    "unacked_mutex_key",
    "unacked_restore_interval",
    "unacked_restore_limit",
    "unacked_restore_throttle",
    "visibility_timeout",
}


class BeforeKombu57:
    """What kombu 5.6 hasn't: queues that expire, and credentials that are renewed."""

    _expires: Any = MappingProxyType({})

    def _maybe_update_queues_expire(self, client: Redis, queue: str) -> None:
        pass

    def _flush_brpop_reauth(self) -> None:
        pass


class Channel(redis_transport.Channel, BeforeKombu57):
    QoS: Any = QoS

    #: Seconds from when a worker falls silent until others get its jobs. A heartbeat keeps them.
    ttr: float = 60
    #: A queue is one key, whatever the priorities in it.
    priority_steps: Any = (0,)
    #: DQ's. 0 leaves first, as with kombu's redis transport.
    max_priority = 255
    #: The set of durable queues: where to look for a task that is revoked.
    queues_key = "_kombu.dq.queues"

    from_transport_options: Any = (
        *(
            name
            for name in redis_transport.Channel.from_transport_options
            if name not in IGNORED_OPTIONS
        ),
        "ttr",
    )

    # Kombu's own are of the types that None and False have.
    _in_poll: Any
    _brpop_sent_at: Any

    def __init__(self, *args: Any, **kwargs: Any):
        self._no_ack_queues: set[str] = set()
        super().__init__(*args, **kwargs)
        if not 0 < self.ttr <= LONGEST_TTR_S:
            raise ValueError(f"ttr is in seconds, more than 0 and at most {LONGEST_TTR_S}")
        self.ttr_ms = max(1, round(self.ttr * 1000))
        self.leases = Leases(self._client_of_leases(), self.ttr_ms, celery_app.begun_tags)

    def _client_of_leases(self) -> Callable[[], Redis]:
        """Connects for the leases, which may outlive the channel."""
        params = self._connparams() | {
            "retry": Retry(NoBackoff(), 1),  # nothing that it sends does harm when it is sent twice
            "socket_timeout": self.socket_timeout or min(10, self.ttr / 3),
        }
        return lambda: Redis(connection_pool=ConnectionPool(**params))

    def check_writable(self) -> None:
        """Raises a connection error when the server takes no writes now."""
        with self.conn_or_acquire() as client:
            try:
                client.srem(self.queues_key, "")  # takes nothing out
            except ResponseError as error:
                if passes(error):
                    raise ConnectionError(said(error)) from error

    # ---- producing -----------------------------------------------------------------------------

    def _put(self, queue: str, message: Payload, **kwargs: Any) -> None:
        priority = self._get_message_priority(message)
        addition = Addition(self.key_of(queue), job_of(message, priority), message, outbox.parts())
        collected = outbox.current()
        if collected is not None:
            collected.additions.append(addition)
            return
        with self.conn_or_acquire() as client, plain_errors():
            if addition.parts is None:
                self._add(client, addition.key, addition.job, message)
            else:
                self._add_held(client, addition)
            self._maybe_update_queues_expire(client, queue)

    def _add_held(self, client: Redis, addition: Addition) -> None:
        """All of a chord or nothing: a transaction carries out what isn't refused."""
        commands = addition.commands()
        try:
            in_one_transaction(client, commands)
        except ResponseError as error:
            if not passes(error):
                ids = [each[2] for each in commands]
                client.execute_command("DQ.DEL", addition.key, *ids)
            raise

    def _add(self, client: Redis, key: str, job: Job, message: Payload) -> None:
        for _ in range(ADD_ATTEMPTS):
            words = ["DQ.ADD", key, job.id, job.body, *job.options()]
            if client.execute_command(*words, "NX") is not None:
                return
            present = fields(client.execute_command("DQ.GET", key, job.id))
            if present.get("body") == job.body.encode():
                return  # redis-py has sent it twice
            if present.get("state") == b"reserved" and supersedes(message, present["body"]):
                # A worker retries the task that it has. The lease on it is void: at no moment are
                # there two.
                client.execute_command(*words, "REPLACE")
                return
            if present:
                # Tasks that were given the same id: kombu has always queued each of them.
                job = job.under_another_id(message["properties"]["delivery_tag"])
        raise ResponseError(f"can't add {job.id!r} to {key!r}: its id comes and goes")

    # ---- chords: see chords.py -----------------------------------------------------------------

    def finish_part(
        self, queue: str, closing_id: str, part: str, place: str, outcome: Any, keep_ms: int
    ) -> None:
        """Tells a chord what came of a part of its header; nothing, when it knows.

        While the chord is open, the part is one by its place in the header. It is kept for
        `keep_ms`, so that it isn't awaited once more.
        """
        key, result = self.key_of(queue), ("*", "RESULT", outcome)
        with self.conn_or_acquire() as client, plain_errors():
            if client.execute_command("DQ.DONE", key, part, *result):
                return
            stand_in = ["DQ.ADD", key, place, "", "HOLD", "BEFORE", 1, closing_id, "NX"]
            done = ["DQ.DONE", key, place, *result, "KEEP", keep_ms]
            try:
                in_one_transaction(client, [stand_in, done])
            except ResponseError as error:
                if "NOTHELD" not in str(error):
                    raise
                logger.debug("%s is over, or has never been: %s", closing_id, error)

    def add_parts(
        self, queue: str, closing_id: str, parts: Sequence[str], *more: Sequence[Any]
    ) -> None:
        """Makes a chord wait for more, those aside that it knows. Then does what else is given."""
        key = self.key_of(queue)
        with self.conn_or_acquire() as client, plain_errors():
            commands: list[Command] = [
                ["DQ.ADD", key, part, "", "HOLD", "BEFORE", 1, closing_id, "NX"] for part in parts
            ]
            in_one_transaction(client, [*commands, *more])

    def close_parts(self, queue: str, closing_id: str, parts: Sequence[str]) -> None:
        """These are all parts of a chord that was open."""
        self.add_parts(
            queue, closing_id, parts, ["DQ.RESUME", self.key_of(queue), "ID", closing_id]
        )

    def drop_parts(self, queue: str, parts: Sequence[str]) -> None:
        """Removes those that were kept."""
        with self.conn_or_acquire() as client, plain_errors():
            client.execute_command("DQ.DEL", self.key_of(queue), *parts)

    def parts_of(self, tag: str) -> list[tuple[str, str, Any]] | None:
        """What came of all that a delivered closing job has waited for; None when it isn't ours."""
        lease = self._lease_of(tag)
        found: list[tuple[str, str, Any]] = []
        place: int | None = 0
        with self.conn_or_acquire() as client, plain_errors():
            while place is not None:
                reply: Any = client.execute_command(
                    "DQ.DEPS", lease.key, lease.job_id, "FROM", place
                )
                if not reply:
                    return None
                place, parts = reply
                found += [
                    (bytes_to_str(part), bytes_to_str(state), what) for part, state, what in parts
                ]
        return found

    def commit(self, tag: str, collected: Outbox) -> bool:
        """Ends a delivered job, and adds the messages that come of it: both or neither.

        When its lease is void, nothing is added, and the reply is False. Raises ResponseError when
        the server refuses a message. If they go into several queues, the job has ended then.
        """
        lease = self._lease_of(tag)
        done: Command = ["DQ.DONE", lease.key, lease.job_id, lease.number]
        adds = [command for each in collected.additions for command in each.commands()]
        with self.conn_or_acquire() as client, plain_errors():
            if collected.goes_into_one_done(lease.key):
                for name, _key, *words in adds:
                    done += [bytes_to_str(name).removeprefix("DQ."), *words]
                replies = client.execute_command(*done)
                replies = replies if isinstance(replies, list) else None
            elif self.leases.renew(lease):
                # The lease is good for a TTR: enough for one transaction.
                _, *replies = in_one_transaction(client, [done, *adds])
            else:
                replies = None
            if replies is None:
                logger.warning("%s is another worker's by now", bytes_to_str(lease.job_id))
                return False
            taken = {
                command[2] for command, reply in zip(adds, replies, strict=True) if reply is None
            }
            for each in collected.additions:
                if each.job.id in taken:  # by a task that was given the same id
                    self._add(client, each.key, each.job, each.message)
        return True

    def publish_all(self, collected: Outbox) -> None:
        with self.conn_or_acquire() as client, plain_errors():
            for each in collected.additions:
                self._add(client, each.key, each.job, each.message)

    def _lease_of(self, tag: str) -> Lease:
        """The lease of a delivery, in whichever process it is worked on."""
        rest, _, number = tag.rpartition(":")
        queue, _, job_id = rest.partition(":chord:")
        return Lease(self.key_of(queue), f"chord:{job_id}".encode(), int(number))

    def _put_fanout(self, exchange: str, message: Payload, routing_key: str, **kwargs: Any) -> None:
        super()._put_fanout(exchange, message, routing_key, **kwargs)
        revoked = revoking.revoked_ids(exchange, message)
        if revoked:
            with self.conn_or_acquire() as client:
                queues = sorted(bytes_to_str(name) for name in client.smembers(self.queues_key))
                revoking.delete(client, [self.key_of(queue) for queue in queues], revoked)

    # ---- consuming -----------------------------------------------------------------------------

    def basic_consume(self, queue: str, no_ack: bool, *args: Any, **kwargs: Any) -> Any:
        (self._no_ack_queues.add if no_ack else self._no_ack_queues.discard)(queue)
        return super().basic_consume(queue, no_ack, *args, **kwargs)

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        words = ["DQ.POP", self.key_of(queue), *(["NOACK"] if no_ack else ["TTR", self.ttr_ms])]
        with self.conn_or_acquire() as client, plain_errors():
            reply = client.execute_command(*words)
            self._maybe_update_queues_expire(client, queue)
        for tag, payload in self._messages_in(queue, reply or []):
            message = self.Message(payload, channel=self)
            if not no_ack:
                self.qos.append(message, tag)
            return message
        return None

    def _brpop_start(self, timeout: float | None = None) -> None:
        queues = self._queue_cycle.consume(len(self.active_queues))
        if not queues:
            return
        wait_ms = round(1000 * (self.brpop_timeout if timeout is None else timeout))
        qos: Any = self.qos
        most = qos.can_consume_at_most(MAX_BATCH)
        keys = [self.key_of(queue) for queue in queues]
        words = ["DQ.MPOP", len(keys), *keys, "COUNT", most, "BLOCK", wait_ms]
        words += ["NOACK"] if self._no_ack_queues.issuperset(queues) else ["TTR", self.ttr_ms]
        self._in_poll = self.client.connection
        self._brpop_sent_at = monotonic()
        self.client.connection.send_command(*words)

    def _brpop_read(self, **options: Any) -> Any:
        """Delivers what MPOP has brought. Raises Empty when that is nothing."""
        queue, deliveries = self._reply_of_mpop(**options)
        self._queue_cycle.rotate(queue)
        received = self._messages_in(queue, deliveries)
        if not received:
            raise Empty
        self._deliver_all(queue, received)
        return True

    def _reply_of_mpop(self, **options: Any) -> tuple[str, list[list[Any]]]:
        """The queue and what came of it. Raises Empty."""
        try:
            with plain_errors():
                reply = self.client.parse_response(self.client.connection, "DQ.MPOP", **options)
        except self.connection_errors:
            self.client.connection.disconnect()  # the next turn connects again
            raise
        finally:
            self._in_poll = None
            self._flush_brpop_reauth()
        if not reply:
            raise Empty
        key, deliveries = reply
        queue = self.queue_of(bytes_to_str(key))
        # It may have lain in the socket for long, when nobody drained events, and leases may have
        # run out.
        if monotonic() - self._brpop_sent_at > self.brpop_timeout + self.ttr / 2:
            deliveries = [
                words for words in deliveries if self._is_still_ours(queue, Delivery(*words))
            ]
        return queue, deliveries

    def _is_still_ours(self, queue: str, delivery: Delivery) -> bool:
        if delivery.lease is None:
            return True
        return self.leases.renew(Lease(self.key_of(queue), delivery.id, delivery.lease))

    def _messages_in(self, queue: str, deliveries: list[list[Any]]) -> list[tuple[str, Payload]]:
        """The messages with their tags, their leases held. What is no message is buried."""
        key, now_ms = self.key_of(queue), int(time() * 1000)
        received = []
        for delivery in (Delivery(*words) for words in deliveries):
            job_id = delivery.id.decode("utf-8", "backslashreplace")
            tag = f"{queue}:{job_id}:{delivery.lease or self._next_delivery_tag()}"
            if delivery.lease is not None:
                self.leases.hold(tag, Lease(key, delivery.id, delivery.lease))
            try:
                received.append((tag, payload_of(delivery, tag, now_ms)))
            except ValueError as error:
                logger.error("%r in %s is buried: %s", delivery.id, queue, error)
                self.leases.settle(tag, bury(str(error)))
        return received

    def _deliver_all(self, queue: str, received: list[tuple[str, Payload]]) -> None:
        undelivered = [tag for tag, _ in received]
        try:
            for tag, payload in received:
                if queue not in self.connection._callbacks:
                    break  # cancelled since we asked
                if queue in self._no_ack_queues:
                    self.leases.settle(tag, FINISH)
                undelivered.remove(tag)
                self._deliver(queue, tag, payload)
        finally:
            for tag in undelivered:
                self.leases.settle(tag, UNBEGUN)

    def _deliver(self, queue: str, tag: str, payload: Payload) -> None:
        """A message that Celery's own code stumbles over is dead: the worker would end, and the
        next one, too. What a program's own consumer raises is the program's.
        """
        try:
            self.connection._deliver(payload, queue)
        except Exception as error:
            if passes(error) or not celery_app.is_worker():
                raise
            logger.exception("%s is buried", tag)
            qos: Any = self.qos
            qos.bury(tag, f"Celery can't take it: {error!r}")

    # ---- queues --------------------------------------------------------------------------------

    def key_of(self, queue: str) -> str:
        return f"{self.global_keyprefix}{queue}"

    def queue_of(self, key: str) -> str:
        return key.removeprefix(self.global_keyprefix)

    def _new_queue(self, queue: str, auto_delete: bool = False, **kwargs: Any) -> None:
        super()._new_queue(queue, auto_delete=auto_delete, **kwargs)
        if not auto_delete and queue not in self._expires:
            with self.conn_or_acquire() as client:
                client.sadd(self.queues_key, queue)

    def _delete(self, queue: str, *args: Any, **kwargs: Any) -> None:
        super()._delete(queue, *args, **kwargs)
        with self.conn_or_acquire(kwargs.get("client")) as client:
            client.srem(self.queues_key, queue)

    def _has_queue(self, queue: str, **kwargs: Any) -> bool:
        with self.conn_or_acquire() as client:
            return bool(client.execute_command("EXISTS", self.key_of(queue)))

    def _size(self, queue: str) -> Any:
        """How many messages wait, due or not."""
        with self.conn_or_acquire() as client, plain_errors():
            return sum(
                self._in_state(client, "DQ.LEN", queue, state) for state in ("ready", "delayed")
            )

    def _purge(self, queue: str) -> int:
        """Removes what waits. What a worker has, and what is dead, stays."""
        purged = 0
        with self.conn_or_acquire() as client, plain_errors():
            for state in ("ready", "delayed"):
                while count := self._in_state(
                    client, "DQ.PURGE", queue, state, "COUNT", PURGE_COUNT
                ):
                    purged += count
        return purged

    def _in_state(
        self, client: Redis, command: str, queue: str, state: str, *options: str | int
    ) -> int:
        reply: Any = client.execute_command(command, self.key_of(queue), "STATE", state, *options)
        return int(reply)

    # ---- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        if self._in_poll:
            self._give_back_what_is_under_way()
        super().close()
        self.leases.close()

    def _give_back_what_is_under_way(self) -> None:
        """An MPOP that waits isn't broken off: there may be jobs in its reply, which is awaited."""
        try:
            # Its socket may have a timeout that is shorter than the wait.
            self.client.connection.can_read(self.brpop_timeout + 1)
            queue, deliveries = self._reply_of_mpop()
            for tag, _ in self._messages_in(queue, deliveries):
                self.leases.settle(tag, UNBEGUN)
        except (Empty, ResponseError, *self.connection_errors) as error:
            # If there was a job in it, it comes back when its lease runs out.
            logger.debug("closing: %r", error)
