"""LATE: a job that no worker takes in time is dead; a run of a schedule is passed over and
counted.
"""

import pytest
import redis

from harness.clock import HOUR_MS, now_ms
from harness.consumers import Room
from harness.queues import digests, info, job
from harness.server import Server, eventually
from harness.transcript import Session


def add(r: redis.Redis, id: str, *words: str | int) -> None:
    assert r.execute_command("DQ.ADD", "q", id, "x", *words) == id


def wait_until(unix_ms: int) -> None:
    eventually(lambda: now_ms() > unix_ms)


def test_a_job_that_was_not_taken_within_late_is_dead_and_can_be_kicked(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x LATE 20
        "a"
        > DQ.ADD q b x LATE 3600000
        "b"
    """)
    session.eventually("> DQ.LEN q STATE dead\n(integer) 1")
    session.check("""
        > DQ.POP q COUNT 5
        [["b", "x", <*>, 1]]
        > DQ.GET q a
        [<...>, "state", "dead", "due", (nil), <...>, "late", 20, <...>, "reason", "late", <...>]
        > DQ.PEEK q STATE dead
        [["id", "a", <...>, "reason", "late", <...>]]
        > DQ.KICKJOB q a
        (integer) 1
        > DQ.GET q a
        [<...>, "state", "ready", <...>, "reason", (nil), <...>]
    """)
    # It has the same time again.
    session.eventually("> DQ.LEN q STATE dead\n(integer) 1")
    session.check("""
        > DQ.KICK q COUNT 9
        (integer) 1
        > DQ.POP q
        [["a", "x", <*>, 1]]
    """)


def test_a_queue_has_a_late_for_jobs_that_give_none(r: redis.Redis) -> None:
    add(r, "before")
    assert r.execute_command("DQ.ALTER", "q", "LATE", 30) == "OK"
    assert info(r, "q")["default-late"] == 30
    add(r, "a")
    add(r, "never", "LATE", 0)
    assert [job(r, "q", id)["late"] for id in ("before", "a", "never")] == [0, 30, 0]
    eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "dead") == 1)
    assert [taken[0] for taken in r.execute_command("DQ.POP", "q", "COUNT", 9)] == [
        "before",
        "never",
    ]


def test_each_attempt_of_a_job_has_its_own_late(r: redis.Redis) -> None:
    add(r, "a", "LATE", 50, "TTR", 100)
    ((_, _, lease, _),) = r.execute_command("DQ.POP", "q")
    # Longer than LATE, and in somebody's hands.
    end = job(r, "q", "a")["deadline"]
    eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "dead") == 1)
    shown = job(r, "q", "a")
    assert (shown["since"], shown["reason"]) == (end + 50, "late")
    # Nobody else was given it.
    assert r.execute_command("DQ.TOUCH", "q", "a", lease, "TTR", HOUR_MS) == 1
    assert job(r, "q", "a")["state"] == "reserved"
    assert r.execute_command("DQ.RELEASE", "q", "a", lease) == 1
    assert r.execute_command("DQ.POP", "q")[0][3] == 2


def test_a_death_by_late_is_a_keyspace_event(server: Server, r: redis.Redis) -> None:
    r.config_set("notify-keyspace-events", "Ed")
    with r.pubsub() as watcher:
        watcher.subscribe("__keyevent@0__:dq.dead")
        add(r, "a", "LATE", 20)
        heard: list[object] = []

        def has_heard() -> bool:
            message = watcher.get_message(timeout=0.1)
            heard.extend([message["data"]] if message and message["type"] == "message" else [])
            return heard == ["q"]

        eventually(has_heard)
    assert job(r, "q", "a")["reason"] == "late"


def test_pauses_and_limits_add_no_time_to_late(r: redis.Redis) -> None:
    r.execute_command("DQ.PAUSE", "q")
    add(r, "paused", "LATE", 20)
    eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "dead") == 1)
    r.execute_command("DQ.RESUME", "q")
    r.execute_command("DQ.ALTER", "q", "CONCURRENCY", 1)
    add(r, "taken")
    add(r, "held", "LATE", 20)
    assert r.execute_command("DQ.POP", "q", "COUNT", 2)[0][0] == "taken"
    eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "dead") == 2)
    r.execute_command("DQ.FINISH", "q", "taken")
    assert r.execute_command("DQ.POP", "q") is None


def test_a_run_that_was_not_taken_within_late_is_passed_over(r: redis.Redis) -> None:
    anchor = now_ms() + 20
    add(r, "a", "EVERY", HOUR_MS, "AT", anchor, "LATE", 20)
    add(r, "other", "DELAY", 5)
    wait_until(anchor + 20)
    # Until somebody asks, it is as it was.
    assert job(r, "q", "a")["state"] == "ready"
    assert [taken[0] for taken in r.execute_command("DQ.POP", "q", "COUNT", 9)] == ["other"]
    shown = job(r, "q", "a")
    assert (shown["state"], shown["due"], shown["missed"]) == ("delayed", anchor + HOUR_MS, 1)
    assert (shown["late"], shown["runs-begun"]) == (20, 0)
    assert r.execute_command("DQ.LEN", "q", "STATE", "dead") == 0


def test_of_many_missed_runs_those_within_late_come(r: redis.Redis) -> None:
    """After an outage: no flood, and what is in time isn't lost."""
    anchor = now_ms()
    for id, misfire in ("one", "ONE"), ("all", "ALL"):
        add(r, id, "EVERY", 100, "AT", anchor, "MISFIRE", misfire, "LATE", 400)
    r.execute_command("DQ.PAUSE", "q")
    wait_until(anchor + 2_000)
    r.execute_command("DQ.RESUME", "q")
    before = now_ms()
    taken = r.execute_command("DQ.POP", "q", "COUNT", 100, "NOACK", "WITHDUE")
    after = now_ms()
    dues = {id: [job[4] for job in taken if job[0] == id] for id in ("one", "all")}
    assert len(dues["one"]) == 1
    assert all(due > before - 400 for due in dues["one"] + dues["all"])
    assert dues["all"] == list(range(dues["all"][0], dues["all"][-1] + 1, 100))
    assert len(dues["all"]) >= min(4, 4 - (after - before) // 100)
    assert job(r, "q", "all")["missed"] >= 15


def test_a_waiting_worker_and_mpop_pass_over_runs_that_are_too_late(
    room: Room, r: redis.Redis
) -> None:
    for key in "p", "q":
        r.execute_command("DQ.ADD", key, "old", "x", "CRON", "* * * * * *", "LATE", 1)
        r.execute_command("DQ.PAUSE", key)
        eventually(lambda key=key: r.execute_command("DQ.LEN", key, "STATE", "ready") == 1)
        r.execute_command("DQ.PAUSE", key, "FOR", 1)
    # In a second's first moment a run of it would be in time.
    eventually(lambda: 50 <= now_ms() % 1_000 < 800)
    room.play("""
        > DQ.ADD r b x
        "b"
        > DQ.MPOP 3 p q r
        ["r", [["b", "x", <*>, 1]]]
    """)
    for key in "p", "q":
        taken = r.execute_command("DQ.POP", key, "BLOCK", 20_000, "WITHDUE")
        assert now_ms() >= taken[0][4]
        assert job(r, key, "old")["missed"] >= 1


def test_an_mpop_that_is_refused_passes_over_nothing(r: redis.Redis) -> None:
    add(r, "a", "EVERY", HOUR_MS, "AT", now_ms() - 10 * HOUR_MS, "LATE", 1)
    r.set("string", "x")
    wait_until(now_ms() + 1)
    before = digests(r, "q")
    for keys in (["q", "string"], ["none", "q", "none", "string"]):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            r.execute_command("DQ.MPOP", len(keys), *keys)
        assert digests(r, "q") == before
        assert job(r, "q", "a")["missed"] == 0
    assert r.execute_command("DQ.MPOP", 2, "q", "none") is None
    assert job(r, "q", "a")["missed"] > 0
