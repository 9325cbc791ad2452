"""What the broker does beyond Dramatiq's own tests."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import dramatiq
import pytest
from dramatiq import Message
from dramatiq.errors import QueueNotFound

from conftest import Work
from dramatiq_dq import DQBroker
from harness.server import Server, eventually

MakeBroker = Callable[..., DQBroker]


def test_a_message_with_a_delay_waits_in_the_server_and_never_comes_early(
    broker: DQBroker, work: Work
) -> None:
    ran: list[tuple[int, float]] = []

    @dramatiq.actor
    def record(delay: int) -> None:
        ran.append((delay, time.time()))

    begun = time.time()
    work(broker)
    for delay in (300, 100, 200):
        record.send_with_options(args=(delay,), delay=delay)
    info = broker.queue("default").info()
    assert info is not None and info.reserved == 0
    broker.join("default", timeout=20_000)
    assert [delay for delay, _ in ran] == [100, 200, 300]
    assert all(at >= begun + delay / 1000 for delay, at in ran)
    assert broker.get_declared_delay_queues() == set()


def test_a_delay_of_a_year_is_kept(broker: DQBroker) -> None:
    @dramatiq.actor
    def renew() -> None: ...

    year = 365 * 86_400_000
    message = renew.send_with_options(delay=year)
    job = broker.queue("default").get(message.options["dq_job_id"])
    assert job is not None and job.due is not None
    assert job.due - job.created == timedelta(milliseconds=year)


def test_a_message_that_the_client_library_sends_twice_is_there_once(
    broker: DQBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dramatiq.actor
    def nothing() -> None: ...

    send = broker.client.execute_command

    def twice(*words: Any, **options: Any) -> Any:
        send(*words, **options)
        return send(*words, **options)

    monkeypatch.setattr(broker.client, "execute_command", twice)
    nothing.send()
    assert broker.queue("default").len() == 1


def test_a_message_is_cancelled_before_and_after_it_is_due(broker: DQBroker, work: Work) -> None:
    ran: list[str] = []

    @dramatiq.actor
    def record(name: str) -> None:
        ran.append(name)

    later = record.send_with_options(args=("later",), delay=3_600_000)
    ready = record.send("ready")
    assert broker.cancel(later) and broker.cancel(ready)
    assert not broker.cancel(ready)
    record.send("kept")
    work(broker)
    broker.join("default", timeout=20_000)
    assert ran == ["kept"]


def test_actors_with_a_lower_priority_number_come_first(broker: DQBroker, work: Work) -> None:
    ran: list[int] = []
    for priority in (1000, 5, 0, -5, -1000):

        @dramatiq.actor(actor_name=f"p{priority}", priority=priority)
        def record(priority: int = priority) -> None:
            ran.append(priority)

        record.send()
    work(broker, worker_threads=1)
    broker.join("default", timeout=20_000)
    assert ran == [-1000, -5, 0, 5, 1000]


def test_messages_of_a_group_take_turns_with_others(broker: DQBroker) -> None:
    @dramatiq.actor
    def send(customer: str) -> None: ...

    for customer in ("ann", "ann", "ann", "bob"):
        send.send_with_options(args=(customer,), dq_group=customer)
    consumer = broker.consume("default", prefetch=4, timeout=1000)
    taken = [next(consumer) for _ in range(4)]
    assert [message.args[0] for message in taken if message] == ["ann", "bob", "ann", "ann"]


def test_a_failed_message_is_dead_with_its_reason(broker: DQBroker, work: Work) -> None:
    @dramatiq.actor(max_retries=0)
    def fail() -> None:
        raise ValueError("no such mailbox" + "é" * 600)

    fail.send()
    work(broker)
    broker.join("default", timeout=20_000)
    (dead,) = broker.queue("default").peek("dead")
    assert dead.reason is not None
    assert dead.reason.startswith("ValueError: no such mailboxé")
    info = broker.queue("default").info()
    assert info is not None and info.dead_keep == timedelta(days=7)


def test_dead_messages_are_kept_as_long_as_the_broker_says(
    make_broker: MakeBroker, work: Work
) -> None:
    broker = make_broker(dead_message_ttl=300)
    dramatiq.set_broker(broker)

    @dramatiq.actor(max_retries=0)
    def fail() -> None:
        raise ValueError

    fail.send()
    work(broker)
    broker.join("default", timeout=20_000)
    eventually(lambda: broker.queue("default").len() == 0, within_s=20)


def test_a_body_that_is_no_message_is_dead_and_holds_up_no_other(
    broker: DQBroker, work: Work
) -> None:
    ran: list[int] = []

    @dramatiq.actor
    def record() -> None:
        ran.append(1)

    for id, body in {"text": b"no message", "list": b"[]", "map": b"{}"}.items():
        broker.queue("default").add(id, body, priority=0)
    record.send()
    work(broker)
    broker.join("default", timeout=20_000)
    assert ran == [1]
    dead = broker.queue("default").peek("dead", count=10)
    assert {job.id for job in dead} == {"text", "list", "map"}
    assert all((job.reason or "").startswith("no message of Dramatiq: ") for job in dead)


def test_a_retry_is_added_and_its_attempt_ended_in_one_step(broker: DQBroker) -> None:
    """Also when the acknowledgement comes twice, as after a reply that was lost."""

    @dramatiq.actor
    def fail() -> None: ...

    fail.send()
    consumer = broker.consume("default", timeout=1000)
    message = next(consumer)
    assert message is not None
    message.stuff_exception(RuntimeError())
    broker.emit_after("process_message", message, exception=RuntimeError())
    assert broker.queue("default").len() == 1
    consumer.ack(message)
    consumer.ack(message)
    info = broker.queue("default").info()
    assert info is not None
    assert (info.jobs, info.delayed, info.total_added) == (1, 1, 2)


def test_a_message_that_is_rejected_after_its_retry_was_made_keeps_the_retry(
    broker: DQBroker,
) -> None:
    @dramatiq.actor
    def fail() -> None: ...

    fail.send()
    consumer = broker.consume("default", timeout=1000)
    message = next(consumer)
    assert message is not None
    message.stuff_exception(RuntimeError())
    broker.emit_after("process_message", message, exception=RuntimeError())
    message.fail()  # as a middleware of the program's own may do
    consumer.nack(message)
    info = broker.queue("default").info()
    assert info is not None
    assert (info.dead, info.delayed) == (1, 1)


def test_a_limit_of_the_queue_holds_for_all_workers(make_broker: MakeBroker, work: Work) -> None:
    brokers = [make_broker(), make_broker()]
    running: list[int] = []
    most: list[int] = []

    def call(number: int) -> None:
        running.append(number)
        most.append(len(running))
        time.sleep(0.02)
        running.remove(number)

    for broker in brokers:
        dramatiq.actor(call, actor_name="call", broker=broker)
    brokers[0].queue("default").alter(concurrency=2)
    for number in range(20):
        brokers[0].enqueue(Message("default", "call", (number,), {}, {}))
    for broker in brokers:
        work(broker)
    brokers[0].join("default", timeout=20_000)
    assert (len(most), max(most)) == (20, 2)


def test_what_is_not_begun_at_shutdown_goes_back_without_an_attempt(
    broker: DQBroker, work: Work
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    @dramatiq.actor
    def slow() -> None:
        begun.set()
        go_on.wait(20)

    for _ in range(3):
        slow.send()
    worker = work(broker, worker_threads=1)
    assert begun.wait(20)
    queue = broker.queue("default")
    eventually(lambda: queue.len(state="reserved") == 2, within_s=20)  # one in work, one prefetched
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    go_on.set()
    stopping.join()
    assert (queue.len(), queue.len(state="ready")) == (2, 2)
    assert [job.attempt for job in queue.peek("ready", count=10)] == [0, 0]


def test_an_actor_that_takes_longer_than_the_heartbeat_timeout_runs_once(
    make_broker: MakeBroker, work: Work
) -> None:
    broker = make_broker(heartbeat_timeout=300)
    dramatiq.set_broker(broker)
    ran: list[int] = []

    @dramatiq.actor
    def slow() -> None:
        ran.append(1)
        time.sleep(1.5)

    slow.send()
    work(broker)
    broker.join("default", timeout=20_000)
    info = broker.queue("default").info()
    assert info is not None
    assert (len(ran), info.total_timed_out) == (1, 0)


def test_a_message_of_a_worker_that_is_gone_goes_to_another(
    make_broker: MakeBroker, work: Work
) -> None:
    gone, broker = make_broker(heartbeat_timeout=300), make_broker()
    dramatiq.set_broker(broker)
    ran: list[float] = []

    @dramatiq.actor
    def record() -> None:
        ran.append(time.time())

    record.send()
    gone.declare_queue("default")
    begun = time.time()
    assert next(gone.consume("default", timeout=1000)) is not None
    gone.close()
    work(broker)
    broker.join("default", timeout=20_000)
    assert len(ran) == 1
    assert ran[0] >= begun + 0.3


def test_a_worker_goes_on_after_the_server_was_gone(
    make_broker: MakeBroker, work: Work, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dramatiq.worker.CONSUMER_RESTART_DELAY_SECS", 0.1)
    monkeypatch.setattr("dramatiq.worker.POST_PROCESS_MESSAGE_RETRY_DELAY_SECS", 0.1)
    broker = make_broker()
    dramatiq.set_broker(broker)
    begun, go_on = threading.Event(), threading.Event()
    ran: list[str] = []

    @dramatiq.actor
    def record(name: str) -> None:
        ran.append(name)
        begun.set()
        go_on.wait(20)

    record.send("during")
    work(broker)
    assert begun.wait(20)
    server.restart()
    go_on.set()
    record.send("after")
    broker.join("default", timeout=20_000)
    assert ran == ["during", "after"]


def test_no_more_than_the_prefetch_is_in_hand(broker: DQBroker) -> None:
    @dramatiq.actor
    def nothing() -> None: ...

    for _ in range(5):
        nothing.send()
    consumer = broker.consume("default", prefetch=2, timeout=50)
    first, second = next(consumer), next(consumer)
    assert first and second
    assert next(consumer) is None
    consumer.ack(first)
    assert next(consumer) is not None
    assert broker.queue("default").len(state="reserved") == 2


def test_a_message_that_another_worker_has_is_not_acknowledged(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker(heartbeat_timeout=60_000)
    broker.declare_queue("default")
    broker.enqueue(Message("default", "actor", (), {}, {}))
    consumer = broker.consume("default", timeout=1000)
    late = next(consumer)
    assert late is not None
    broker.queue("default").release(late.job_id, "*", unbegun=True)
    assert next(broker.consume("default", timeout=1000)) is not None
    consumer.ack(late)
    assert broker.queue("default").len(state="reserved") == 1


def test_flush_removes_what_is_in_any_state(broker: DQBroker) -> None:
    @dramatiq.actor
    def nothing() -> None: ...

    queue = broker.queue("default")
    for delay in (None, None, None, 60_000):
        nothing.send_with_options(delay=delay)
    consumer = broker.consume("default", prefetch=1, timeout=1000)
    message = next(consumer)
    assert message is not None
    message.fail()
    consumer.nack(message)
    assert next(consumer) is not None
    assert [queue.len(state=state) for state in ("delayed", "ready", "reserved", "dead")] == [1] * 4
    queue.alter(concurrency=7)
    broker.flush_all()
    info = queue.info()
    assert info is not None
    assert (info.jobs, info.concurrency) == (0, 7)


def test_a_queue_that_was_not_declared_is_not_consumed(broker: DQBroker) -> None:
    with pytest.raises(QueueNotFound):
        broker.consume("unknown")


def test_each_message_counts_once_while_it_waits_and_while_it_is_in_work(
    broker: DQBroker, work: Work
) -> None:
    """In place of Dramatiq's test_redis_join_race_condition."""
    sizes: list[int] = []

    @dramatiq.actor
    def go() -> None:
        go_again.send_with_options(delay=300)
        sizes.append(broker.do_qsize("default"))

    @dramatiq.actor
    def go_again() -> None:
        sizes.append(broker.do_qsize("default"))

    go.send()
    work(broker)
    broker.join("default", timeout=20_000)
    assert sizes == [2, 1]
