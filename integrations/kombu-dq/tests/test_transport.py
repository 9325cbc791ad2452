"""The transport as kombu sees it, and what is in the server meanwhile."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import kombu
import pytest
import redis
from kombu.exceptions import OperationalError

from conftest import url
from harness.ports import free_port
from harness.server import KINDS, Server, eventually


@pytest.fixture
def q(connection: kombu.Connection) -> kombu.Queue:
    queue = kombu.Queue("q", kombu.Exchange("q", "direct"), routing_key="q")
    bound: kombu.Queue = queue(connection.default_channel)
    bound.declare()
    return bound


def publish(connection: kombu.Connection, body: object, to: str = "q", **options: Any) -> None:
    with connection.Producer() as producer:
        producer.publish(body, routing_key=to, **options)


def task(connection: kombu.Connection, body: object, task_id: str, **headers: Any) -> None:
    publish(connection, body, headers={"task": "t", "id": task_id} | headers)


def drain(
    connection: kombu.Connection, queue: Any, count: int, timeout: float = 5, **options: Any
) -> list[Any]:
    """Consumes this many messages and acknowledges them."""
    got: list[Any] = []

    def on_message(message: Any) -> None:
        got.append(message)
        if not options.get("no_ack"):
            message.ack()

    with connection.Consumer(queue, on_message=on_message, **options):
        while len(got) < count:
            connection.drain_events(timeout=timeout)
    return got


def length(r: redis.Redis, state: str, key: str = "q") -> int:
    return int(r.execute_command("DQ.LEN", key, "STATE", state))


def job(r: redis.Redis, job_id: str, key: str = "q") -> dict[str, Any]:
    reply = r.execute_command("DQ.GET", key, job_id)
    return dict(zip(reply[::2], reply[1::2], strict=True))


def in_seconds(seconds: float) -> str:
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).isoformat()


def test_an_acknowledged_message_is_finished(
    connection: kombu.Connection, q: kombu.Queue, r: redis.Redis
) -> None:
    publish(connection, {"hello": "you"})
    message = q.get()
    assert message.payload == {"hello": "you"}
    assert length(r, "reserved") == 1
    message.ack()
    assert r.execute_command("DQ.LEN", "q") == 0
    assert q.get() is None


def test_a_rejected_message_is_buried_and_a_requeued_one_is_ready(
    connection: kombu.Connection, q: kombu.Queue, r: redis.Redis
) -> None:
    task(connection, "x", "a")
    message = q.get()
    message.reject(requeue=True)
    again = q.get()
    assert again.delivery_info["redelivered"]
    again.reject()
    assert job(r, "a")["state"] == "dead"
    assert job(r, "a")["reason"] == "rejected by its consumer"


def test_an_eta_waits_in_the_queue(
    connection: kombu.Connection, q: kombu.Queue, r: redis.Redis
) -> None:
    task(connection, "x", "a", eta=in_seconds(0.5))
    assert (length(r, "delayed"), q.get()) == (1, None)
    due = datetime.fromtimestamp(job(r, "a")["due"] / 1000, timezone.utc)
    [message] = drain(connection, q, 1)
    assert datetime.now(timezone.utc) >= due
    assert abs(datetime.fromisoformat(message.headers["eta"]) - due) <= timedelta(milliseconds=1)


def test_a_job_that_is_kicked_is_not_waited_for(
    connection: kombu.Connection, q: kombu.Queue, r: redis.Redis
) -> None:
    task(connection, "x", "a", eta=in_seconds(3600))
    r.execute_command("DQ.KICKJOB", "q", "a")
    [message] = drain(connection, q, 1)
    assert message.headers["eta"] is None


def test_consumers_wait_without_polling(
    connection: kombu.Connection, q: kombu.Queue, r: redis.Redis
) -> None:
    before = r.info("commandstats")
    task(connection, "x", "a", eta=in_seconds(0.8))
    started = time.monotonic()
    drain(connection, q, 1)
    assert 0.7 < time.monotonic() - started < 1.5
    calls = r.info("commandstats")["cmdstat_dq.mpop"]["calls"]
    assert calls - before.get("cmdstat_dq.mpop", {"calls": 0})["calls"] <= 3


def test_messages_of_priority_0_leave_first(connection: kombu.Connection, q: kombu.Queue) -> None:
    for priority in (9, 3, 0, 200, 3):
        publish(connection, priority, priority=priority)
    assert [q.get(no_ack=True).payload for _ in range(5)] == [0, 3, 3, 9, 200]


def test_queues_of_a_consumer_take_turns(connection: kombu.Connection) -> None:
    queues = [kombu.Queue(name) for name in "abc"]
    for name in "abc":
        for number in range(3):
            publish(connection, f"{name}{number}", to=name)
    got = [message.payload for message in drain(connection, queues, 9, prefetch_count=1)]
    assert sorted(got[:3]) == ["a0", "b0", "c0"]
    assert sorted(got[3:6]) == ["a1", "b1", "c1"]


def test_no_more_messages_are_fetched_than_the_prefetch_count(
    connection: kombu.Connection, q: kombu.Queue, r: redis.Redis
) -> None:
    for number in range(30):
        publish(connection, number)
    got: list[Any] = []
    with connection.Consumer(q, on_message=got.append, prefetch_count=5):
        with pytest.raises(socket.timeout):
            while True:
                connection.drain_events(timeout=0.3)
        assert (len(got), length(r, "reserved")) == (5, 5)
        got[0].ack()
        connection.drain_events(timeout=1)
        assert (len(got), length(r, "reserved")) == (6, 5)


def test_unacknowledged_messages_go_back_when_the_channel_is_closed(
    broker: Server, r: redis.Redis
) -> None:
    with kombu.Connection(url(broker)) as connection:
        queue = kombu.Queue("q")
        publish(connection, "x")
        message = queue(connection.default_channel).get()
        assert message is not None
        assert length(r, "reserved") == 1
    assert length(r, "ready") == 1


def test_an_mpop_that_is_under_way_loses_nothing(broker: Server, r: redis.Redis) -> None:
    """The job comes between the last look of the consumer and its end."""
    with (
        kombu.Connection(url(broker)) as connection,
        connection.Consumer(kombu.Queue("q"), on_message=print),
    ):
        with pytest.raises(socket.timeout):
            connection.drain_events(timeout=0.1)
        r.execute_command("DQ.ADD", "q", "a", "x")
        assert length(r, "reserved") == 1
    # It was given back: not by its TTR, which is a minute.
    assert length(r, "ready") == 1 or length(r, "dead") == 1


def test_a_reply_that_lay_longer_than_its_ttr_is_dropped(broker: Server, r: redis.Redis) -> None:
    options = {"ttr": 0.3}
    with kombu.Connection(url(broker), transport_options=options) as connection:
        got: list[Any] = []
        with connection.Consumer(kombu.Queue("q"), on_message=got.append):
            with pytest.raises(socket.timeout):
                connection.drain_events(timeout=0.1)
            task(connection, "x", "a")
            time.sleep(1.5)
            [[_, _, lease, attempt]] = r.execute_command("DQ.POP", "q", "BLOCK", 1000)
            assert attempt == 2
            with pytest.raises(socket.timeout):
                connection.drain_events(timeout=0.3)
            assert got == []
            assert r.execute_command("DQ.FINISH", "q", "a", lease) == 1


def test_no_ack_delivers_at_most_once(
    connection: kombu.Connection, q: kombu.Queue, r: redis.Redis
) -> None:
    for number in range(3):
        publish(connection, number)
    assert q.get(no_ack=True).payload == 0
    assert [m.payload for m in drain(connection, q, 2, no_ack=True)] == [1, 2]
    assert r.execute_command("DQ.LEN", "q") == 0


def test_consumers_with_and_without_acknowledgement_share_a_channel(
    connection: kombu.Connection, r: redis.Redis
) -> None:
    publish(connection, 1, to="a")
    publish(connection, 2, to="b")
    channel = connection.default_channel
    got: list[Any] = []
    with (
        connection.Consumer(kombu.Queue("a"), channel=channel, no_ack=True, on_message=got.append),
        connection.Consumer(kombu.Queue("b"), channel=channel, on_message=got.append),
    ):
        while len(got) < 2:
            connection.drain_events(timeout=2)
        assert r.execute_command("DQ.LEN", "a") == 0
        assert length(r, "reserved", "b") == 1


def test_a_retry_takes_the_place_of_the_task_it_retries(
    connection: kombu.Connection, q: kombu.Queue, r: redis.Redis
) -> None:
    task(connection, "x", "a", retries=0)
    message = q.get()
    task(connection, "x", "a", retries=1, eta=in_seconds(60))
    assert (job(r, "a")["state"], r.execute_command("DQ.LEN", "q")) == ("delayed", 1)
    message.ack()  # of the first attempt: it ends nothing
    assert length(r, "delayed") == 1


def test_tasks_of_one_id_are_all_queued(
    connection: kombu.Connection, q: kombu.Queue, r: redis.Redis
) -> None:
    for _ in range(3):
        task(connection, "x", "a")
    assert r.execute_command("DQ.LEN", "q") == 3
    first = q.get()
    task(connection, "y", "a")  # no retry: beside the one that a worker has
    assert r.execute_command("DQ.LEN", "q") == 4
    first.ack()
    assert len(drain(connection, q, 3)) == 3


def test_an_add_that_is_sent_twice_adds_one(connection: kombu.Connection, r: redis.Redis) -> None:
    """As redis-py does when the connection breaks before the reply."""
    channel: Any = connection.default_channel
    message = channel.prepare_message("x", headers={"task": "t", "id": "a"})
    channel._inplace_augment_message(message, "", "q")
    channel._put("q", message)
    channel._put("q", message)
    assert r.execute_command("DQ.LEN", "q") == 1


def test_a_job_that_is_no_message_is_buried_and_the_rest_goes_on(
    connection: kombu.Connection, q: kombu.Queue, r: redis.Redis
) -> None:
    r.execute_command("DQ.ADD", "q", "foreign", "hello", "PRIORITY", 0)
    publish(connection, "x")
    assert [m.payload for m in drain(connection, q, 1)] == ["x"]
    assert job(r, "foreign")["state"] == "dead"
    assert "Expecting value" in job(r, "foreign")["reason"]


def test_fanout_reaches_every_consumer_and_leaves_nothing(broker: Server, r: redis.Redis) -> None:
    exchange = kombu.Exchange("news", "fanout")
    got: list[str] = []
    with (
        kombu.Connection(url(broker)) as one,
        kombu.Connection(url(broker)) as two,
        one.Consumer(
            kombu.Queue("one", exchange), on_message=lambda m: got.append("one"), no_ack=True
        ),
        two.Consumer(
            kombu.Queue("two", exchange), on_message=lambda m: got.append("two"), no_ack=True
        ),
    ):
        one.drain_events(timeout=2)  # it has subscribed
        two.drain_events(timeout=2)
        with one.Producer() as producer:
            producer.publish("x", exchange=exchange)
        one.drain_events(timeout=2)
        two.drain_events(timeout=2)
    assert sorted(got) == ["one", "two"]
    assert [key for key in r.scan_iter() if r.type(key) == "delayq-dq"] == []


def test_topic_exchanges_route(connection: kombu.Connection) -> None:
    exchange = kombu.Exchange("logs", "topic")
    errors = kombu.Queue("errors", exchange, routing_key="*.error")(connection.default_channel)
    everything = kombu.Queue("everything", exchange, routing_key="#")(connection.default_channel)
    errors.declare()
    everything.declare()
    with connection.Producer() as producer:
        producer.publish("1", exchange=exchange, routing_key="disk.error")
        producer.publish("2", exchange=exchange, routing_key="disk.info")
    assert [errors.get(no_ack=True).payload, errors.get(no_ack=True)] == ["1", None]
    assert [everything.get(no_ack=True).payload for _ in range(2)] == ["1", "2"]


def test_queues_are_declared_purged_and_deleted(
    connection: kombu.Connection, q: kombu.Queue, r: redis.Redis
) -> None:
    task(connection, "x", "a")
    task(connection, "x", "b")
    task(connection, "x", "c", eta=in_seconds(60))
    held = q.get()
    assert q.queue_declare(passive=True).message_count == 2
    assert q.purge() == 2
    assert length(r, "reserved") == 1  # a worker has it
    held.ack()
    assert r.smembers("_kombu.dq.queues") == {"q"}
    q.delete()
    assert (r.exists("q"), r.smembers("_kombu.dq.queues")) == (0, set())


def test_a_queue_of_another_application_is_apart(broker: Server, r: redis.Redis) -> None:
    options = {"global_keyprefix": "shop:"}
    with kombu.Connection(url(broker), transport_options=options) as connection:
        queue = kombu.Queue("q", kombu.Exchange("q"), routing_key="q")(connection.default_channel)
        queue.declare()
        publish(connection, "x")
        assert r.execute_command("DQ.LEN", "shop:q") == 1
        assert all(key.startswith("shop:") for key in r.scan_iter())
        assert [m.payload for m in drain(connection, queue, 1)] == ["x"]
        assert queue.queue_declare(passive=True).message_count == 0
        queue.delete()
        assert not r.exists("shop:q")


@pytest.mark.skipif(kombu.__version__ < "5.7", reason="kombu's redis transport has them since 5.7")
def test_a_queue_with_an_expiry_expires(connection: kombu.Connection, r: redis.Redis) -> None:
    queue = kombu.Queue("brief", kombu.Exchange("brief"), routing_key="brief", expires=0.3)
    queue(connection.default_channel).declare()
    publish(connection, "x", to="brief")
    assert 0 < r.pttl("brief") <= 300
    assert r.smembers("_kombu.dq.queues") == set()
    eventually(lambda: not r.exists("brief"))


def test_a_key_of_another_type_is_said_to_be_one(
    connection: kombu.Connection, r: redis.Redis
) -> None:
    r.lpush("q", "a message of kombu's redis transport")
    with pytest.raises(OperationalError, match="give DQ a database of its own"):
        publish(connection, "x", retry=True, retry_policy={"max_retries": 1})
    assert r.llen("q") == 1


def test_a_server_without_the_module_is_said_to_be_one(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    server = Server(KINDS[0], tmp_path_factory.mktemp("bare"), module_args=None)
    try:
        with (
            kombu.Connection(url(server)) as connection,
            pytest.raises(OperationalError, match="the server has no module DQ"),
        ):
            publish(connection, "x", retry=True, retry_policy={"max_retries": 1})
    finally:
        server.stop()


def test_a_server_that_has_become_a_replica_is_left(broker: Server, r: redis.Redis) -> None:
    """As after a failover: the consumer's connection is broken, so that it looks for the primary
    again.
    """
    with (
        kombu.Connection(url(broker)) as connection,
        connection.Consumer(kombu.Queue("q"), on_message=print),
    ):
        with pytest.raises(socket.timeout):
            connection.drain_events(timeout=0.1)
        r.execute_command("REPLICAOF", "127.0.0.1", 1)
        try:
            with pytest.raises(connection.connection_errors, match=r"READONLY|UNBLOCKED"):
                while True:
                    with contextlib.suppress(socket.timeout):
                        connection.drain_events(timeout=2)
        finally:
            r.execute_command("REPLICAOF", "NO", "ONE")


def test_a_full_queue_refuses_a_message(connection: kombu.Connection, r: redis.Redis) -> None:
    r.execute_command("DQ.ALTER", "q", "MAXJOBS", 1)
    publish(connection, "x")
    with pytest.raises(OperationalError, match="FULL"):
        publish(connection, "y", retry=True, retry_policy={"max_retries": 1})


@pytest.fixture
def tls_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, str]]:
    """Of a server that speaks TLS only, and the certificate that it signed for itself."""
    directory = tmp_path_factory.mktemp("tls")
    key, certificate = directory / "key.pem", directory / "cert.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    output = ["-keyout", key, "-out", certificate]
    openssl = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        *subject,
        *output,
    ]
    subprocess.run(openssl, check=True, capture_output=True)
    port = free_port()
    settings = (
        f"tls-port {port}",
        f"tls-cert-file {certificate}",
        f"tls-key-file {key}",
        "tls-auth-clients no",
    )
    server = Server(KINDS[0], directory, *settings)
    yield port, str(certificate)
    server.stop()


def test_the_transport_works_over_tls_and_verifies_the_certificate(
    tls_port: tuple[int, str],
) -> None:
    port, certificate = tls_port
    with (
        kombu.Connection(f"dqs://127.0.0.1:{port}/0") as connection,
        pytest.raises(OperationalError),
    ):
        publish(connection, "x", retry=True, retry_policy={"max_retries": 1})
    with (
        kombu.Connection(f"dqs://127.0.0.1:{port}/0", ssl=True) as connection,
        pytest.raises(OperationalError, match="certificate verify failed"),
    ):
        publish(connection, "x", retry=True, retry_policy={"max_retries": 1})
    with kombu.Connection(
        f"dqs://127.0.0.1:{port}/0", ssl={"ssl_ca_certs": certificate}
    ) as connection:
        publish(connection, "x")
        assert kombu.Queue("q")(connection.default_channel).get(no_ack=True).payload == "x"


@pytest.mark.parametrize("ttr", [0, -1, float("nan"), float("inf"), 1e12])
def test_a_ttr_is_a_time(broker: Server, ttr: float) -> None:
    with (
        kombu.Connection(url(broker), transport_options={"ttr": ttr}) as connection,
        pytest.raises(ValueError, match="ttr is in seconds"),
    ):
        _ = connection.default_channel


def test_the_transport_works_over_a_unix_socket(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("unix")
    server = Server(KINDS[0], directory, f"unixsocket {directory}/s")
    try:
        with kombu.Connection(f"dq+socket://{directory}/s") as connection:
            publish(connection, "x")
            message = kombu.Queue("q")(connection.default_channel).get()
            message.ack()
        with server.client() as client:
            assert client.execute_command("DQ.LEN", "q") == 0
    finally:
        server.stop()
