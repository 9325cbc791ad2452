"""Keyspace notifications of the module, and the latency event of its timer."""

from collections.abc import Callable, Iterator

import pytest
import redis

from harness.clock import now_ms
from harness.server import Server, eventually


class Watcher:
    """A subscriber to the events of this module, on the key `q`."""

    def __init__(self, r: redis.Redis):
        r.config_set("notify-keyspace-events", "Kd")
        self._pubsub = r.pubsub(ignore_subscribe_messages=True)
        self._pubsub.subscribe("__keyspace@0__:q")
        self._pubsub.subscribe("end of test")
        self._r = r

    def heard(self) -> list[str]:
        """All events until now."""
        self._r.publish("end of test", "")
        events: list[str] = []
        while (message := eventually(lambda: self._pubsub.get_message(timeout=1)))[
            "channel"
        ] != "end of test":
            events.append(message["data"])
        return events

    def close(self) -> None:
        self._pubsub.close()
        self._r.config_set("notify-keyspace-events", "")


@pytest.fixture
def watcher(r: redis.Redis) -> Iterator[Watcher]:
    watcher = Watcher(r)
    watcher.heard()
    yield watcher
    watcher.close()


def pop(r: redis.Redis) -> tuple[str, int]:
    ((job_id, _, lease, _),) = r.execute_command("DQ.POP", "q")
    return job_id, lease


def test_commands_that_change_a_queue_are_events(r: redis.Redis, watcher: Watcher) -> None:
    def heard_after(*command: str | int) -> list[str]:
        r.execute_command(*command)
        return watcher.heard()

    assert heard_after("DQ.ADD", "q", "a", "x", "DELAY", 60_000) == ["dq.added"]
    assert heard_after("DQ.ADD", "q", "a", "x", "REPLACE") == ["dq.added", "dq.ready"]
    assert heard_after("DQ.RELEASE", "q", *pop(r)) == ["dq.ready"]
    assert heard_after("DQ.RELEASE", "q", *pop(r), "DELAY", 60_000) == []
    # Taken by its id it is ready for nobody.
    assert heard_after("DQ.POP", "q", "ID", "a") == []
    assert heard_after("DQ.RELEASE", "q", "a", "*", "DELAY", 60_000) == []
    assert heard_after("DQ.KICKJOB", "q", "a") == ["dq.ready"]
    assert heard_after("DQ.BURY", "q", *pop(r)) == ["dq.dead"]
    assert heard_after("DQ.KICK", "q") == ["dq.ready"]
    assert heard_after("DQ.TOUCH", "q", *pop(r)) == []
    assert heard_after("DQ.FINISH", "q", "a") == ["dq.finished"]
    assert heard_after("DQ.FINISH", "q", "a") == []
    assert heard_after("DQ.PAUSE", "q") == ["dq.paused"]
    assert heard_after("DQ.RESUME", "q") == ["dq.resumed"]
    assert heard_after("DQ.RESUME", "q") == []
    assert heard_after("DQ.PAUSE", "q", "GROUP", "g") == ["dq.paused"]
    assert heard_after("DQ.RESUME", "q", "GROUP", "g") == ["dq.resumed"]
    # A job on hold was not paused, as the queue or a group is.
    assert heard_after("DQ.ADD", "q", "held", "x", "HOLD") == ["dq.added"]
    assert heard_after("DQ.RESUME", "q", "ID", "held") == ["dq.ready"]
    assert heard_after("DQ.DEL", "q", "held") == ["dq.deleted"]
    assert heard_after("DQ.ALTER", "q", "TTR", 1_000) == []
    assert heard_after("DQ.ADD", "q", "b", "x") == ["dq.added", "dq.ready"]
    assert heard_after("DQ.POP", "q", "NOACK") == ["dq.finished"]
    assert heard_after("DQ.ADD", "q", "c", "x") == ["dq.added", "dq.ready"]
    done = ("DQ.DONE", "q", *pop(r), "ADD", "c", "x", "DELAY", 60_000)
    assert heard_after(*done) == ["dq.added", "dq.finished"]
    assert heard_after("DQ.DEL", "q", "c") == ["dq.deleted"]
    assert heard_after("DQ.ADD", "q", "d", "x", "DELAY", 60_000) == ["dq.added"]
    assert heard_after("DQ.PURGE", "q", "STATE", "delayed") == ["dq.deleted"]
    assert heard_after("DQ.PURGE", "q", "STATE", "delayed") == []


def test_looking_is_no_event(r: redis.Redis, watcher: Watcher) -> None:
    r.execute_command("DQ.ADD", "q", "a", "x")
    watcher.heard()
    for command in ("GET q a", "PEEK q", "SCAN q 0", "LEN q", "INFO q"):
        r.execute_command(*f"DQ.{command}".split())
    assert watcher.heard() == []


def test_a_change_by_time_is_one_event_however_many_jobs_it_is_about(
    r: redis.Redis, watcher: Watcher
) -> None:
    due = now_ms() + 600
    pipeline = r.pipeline(transaction=False)
    for n in range(100):
        pipeline.execute_command("DQ.ADD", "q", n, "x", "AT", due, "TTL", 1_200)
    pipeline.execute()
    assert set(watcher.heard()) == {"dq.added"}
    eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "ready") == 100)
    ready: list[str] = []
    eventually(lambda: ready.extend(watcher.heard()) or ready)
    assert ready == ["dq.ready"]
    eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "dead") == 100)
    dead: list[str] = []
    eventually(lambda: dead.extend(watcher.heard()) or dead)
    assert set(dead) == {"dq.dead"}


def test_a_lease_that_ends_is_an_event(r: redis.Redis, watcher: Watcher) -> None:
    r.execute_command("DQ.ADD", "q", "a", "x", "ATTEMPTS", 2, "TTR", 50)
    pop(r)
    watcher.heard()
    again: list[str] = []
    eventually(lambda: again.extend(watcher.heard()) or again)
    assert again == ["dq.ready"]
    pop(r)
    last: list[str] = []
    eventually(lambda: last.extend(watcher.heard()) or last)
    assert last == ["dq.dead"]


def test_jobs_that_are_forgotten_are_an_event(r: redis.Redis, watcher: Watcher) -> None:
    r.execute_command("DQ.ADD", "q", "a", "x", "KEEP", 50)
    pop(r)
    r.execute_command("DQ.FINISH", "q", "a")
    heard: list[str] = []
    eventually(lambda: heard.extend(watcher.heard()) or "dq.deleted" in heard)
    assert heard == ["dq.added", "dq.ready", "dq.finished", "dq.deleted"]


def test_there_are_no_events_unless_the_server_is_set_to_send_them(r: redis.Redis) -> None:
    watcher = Watcher(r)
    watcher.heard()
    try:
        for wanted in ("", "KA", "Kg$"):
            r.config_set("notify-keyspace-events", wanted)
            r.execute_command("DQ.ADD", "q", "*", "x")
            heard = watcher.heard()
            # `A` stands for all classes, this one among them where the server says so.
            assert all(event.startswith("dq.") for event in heard) if "A" in wanted else heard == []
    finally:
        watcher.close()


def test_a_replica_sends_no_events_by_itself(fresh_server: Callable[..., Server]) -> None:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    with primary.client() as r, replica.client() as there:
        watcher = Watcher(there)
        watcher.heard()
        r.execute_command("DQ.ADD", "q", "a", "x")
        pop(r)
        r.execute_command("DQ.FINISH", "q", "a")
        replica.catch_up(primary)
        assert watcher.heard() == []
        watcher.close()


def test_a_timer_run_that_takes_its_whole_budget_is_a_latency_event(r: redis.Redis) -> None:
    r.config_set("latency-monitor-threshold", 1)
    try:
        pipeline = r.pipeline(transaction=False)
        for n in range(30_000):
            pipeline.execute_command("DQ.ADD", "q", n, "x", "TTL", 1)
        pipeline.execute()
        eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "dead") == 30_000)
        assert not r.execute_command("LATENCY", "HISTORY", "no such event")
        # The timer purges them all, in more than one run.
        r.execute_command("DQ.ALTER", "q", "DEADKEEP", 1)
        eventually(lambda: r.execute_command("DQ.LEN", "q") == 0)
        runs = r.execute_command("LATENCY", "HISTORY", "dq-timer")
        assert runs and all(ms >= 1 for _, ms in runs)
        assert r.info("dq")["dq_timer_budget_exceeded"] > 0
    finally:
        r.config_set("latency-monitor-threshold", 0)
        r.execute_command("LATENCY", "RESET")
