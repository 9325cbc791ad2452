"""Jobs with a schedule come back, whatever happens to a run. Some tests repeat bugs of other
queues.
"""

import threading
from typing import Any

import pytest
import redis

from harness.clock import DAY_MS, HOUR_MS, now_ms
from harness.consumers import Room
from harness.queues import info, job
from harness.server import Server, eventually

EVERY_MS = 100
MINUTE_MS = 60_000
LONG_MS = 20_000


def add(r: redis.Redis, *words: str | int, id: str = "a", body: str = "x") -> str:
    return r.execute_command("DQ.ADD", "q", id, body, *words)


def take(r: redis.Redis, *words: str | int) -> list[Any]:
    """The next job: id, body, lease, attempt, due."""
    jobs = r.execute_command("DQ.POP", "q", "BLOCK", LONG_MS, "WITHDUE", *words)
    assert jobs, "nothing came"
    return jobs[0]


def finish(r: redis.Redis, taken: list[Any]) -> None:
    assert r.execute_command("DQ.FINISH", "q", taken[0], taken[2]) == 1


def test_a_finished_job_comes_back_on_time_and_never_drifts(r: redis.Redis) -> None:
    anchor = now_ms() + 1_000
    assert add(r, "EVERY", EVERY_MS, "AT", anchor) == "a"
    dues = []
    for _ in range(5):
        taken = take(r)
        assert taken[:2] + taken[3:4] == ["a", "x", 1]
        assert now_ms() >= taken[4], "never early"
        assert r.execute_command("DQ.POP", "q") is None, "no run overlaps another"
        finish(r, taken)
        dues.append(taken[4])
    assert dues[0] == anchor
    assert all((due - anchor) % EVERY_MS == 0 for due in dues)
    assert dues == sorted(set(dues))
    assert job(r, "q", "a")["runs-begun"] == 5
    assert r.execute_command("DQ.LEN", "q") == 1


def test_a_cron_schedule_comes_every_second(r: redis.Redis) -> None:
    add(r, "CRON", "* * * * * *", "TZ", "America/New_York")
    for _ in range(2):
        taken = take(r)
        assert taken[4] % 1_000 == 0
        assert 0 <= now_ms() - taken[4] < 1_000
        finish(r, taken)


def test_withdue_adds_the_due_time_to_every_kind_of_pop(r: redis.Redis, room: Room) -> None:
    due = now_ms() - 10
    for n in range(4):
        add(r, "AT", due, id=f"plain{n}")
    # A due time in the past counts as now.
    (plain,) = r.execute_command("DQ.POP", "q", "WITHDUE")
    assert plain[0] == "plain0"
    assert due < plain[4] <= now_ms()
    key, jobs = r.execute_command("DQ.MPOP", 2, "none", "q", "COUNT", 2, "WITHDUE")
    assert (key, [len(one) for one in jobs]) == ("q", [5, 5])
    (no_ack,) = r.execute_command("DQ.POP", "q", "NOACK", "WITHDUE")
    assert (len(no_ack), no_ack[2]) == (5, None)
    assert len(r.execute_command("DQ.POP", "q", "BLOCK", 1) or []) == 0
    room.play("""
        waiter> DQ.POP p BLOCK 0 WITHDUE
        > DQ.ADD p a x EVERY 3600000 DELAY 0
        "a"
        waiter< [["a", "x", <*>, 1, <due>]]
        > DQ.GET p a
        [<...>, "occurrence", <due>, "next", <*>, <...>]
    """)


def test_the_due_time_names_the_run_at_each_attempt(r: redis.Redis) -> None:
    add(r, "EVERY", HOUR_MS, "DELAY", 0, "JITTER", 50)
    first = take(r)
    assert r.execute_command("DQ.RELEASE", "q", "a", first[2], "DELAY", 30) == 1
    second = take(r)
    assert (second[3], second[4]) == (2, first[4])
    shown = job(r, "q", "a")
    assert (shown["occurrence"], shown["next"]) == (first[4], first[4] + HOUR_MS)


def test_after_an_outage_one_run_comes_and_tells_what_was_missed(r: redis.Redis) -> None:
    """river#1035: after two weeks down, a flood; oban#630: the run was lost."""
    add(r, "EVERY", 20, "DELAY", 0)
    r.execute_command("DQ.PAUSE", "q")
    start = job(r, "q", "a")["due"]
    eventually(lambda: now_ms() > start + 400)
    r.execute_command("DQ.RESUME", "q")
    jobs = r.execute_command("DQ.POP", "q", "COUNT", 100, "WITHDUE")
    assert [taken[4] for taken in jobs] == [start]
    shown = job(r, "q", "a")
    assert 20 <= shown["missed"] < 1_000
    assert start + 20 * shown["missed"] < shown["next"] <= start + 20 * (shown["missed"] + 1)
    told = info(r, "q")
    assert (told["schedules"], told["total-missed"]) == (1, shown["missed"])
    r.execute_command("DEBUG", "RELOAD")
    told = info(r, "q")
    assert (told["schedules"], told["total-missed"]) == (1, shown["missed"])
    finish(r, jobs[0])
    after = take(r)
    assert after[4] == shown["next"]


def test_schedules_are_found_among_other_jobs(r: redis.Redis) -> None:
    for n in range(200):
        r.execute_command("DQ.ADD", "q", f"job-{n}", "x")
    add(r, "EVERY", HOUR_MS)
    add(r, "CRON", "0 3 * * *", "DELAY", 0, id="b")
    assert info(r, "q")["schedules"] == 2
    cursor, found = "0", []
    while True:
        cursor, ids = r.execute_command("DQ.SCAN", "q", cursor, "SCHEDULED", "COUNT", 50)
        found += ids
        if cursor == "0":
            break
    assert sorted(found) == ["a", "b"]
    assert r.execute_command("DQ.SCAN", "q", 0, "SCHEDULED", "STATE", "ready", "COUNT", 1000) == [
        "0",
        [],
    ]
    assert r.execute_command("DQ.SCAN", "q", 0, "SCHEDULED", "MATCH", "[b-z]*", "COUNT", 1000) == [
        "0",
        ["b"],
    ]
    r.execute_command("DQ.DEL", "q", "b")
    assert info(r, "q")["schedules"] == 1


def test_misfire_all_makes_up_for_each_missed_run(r: redis.Redis) -> None:
    add(r, "EVERY", 20, "DELAY", 0, "MISFIRE", "ALL")
    start = job(r, "q", "a")["due"]
    eventually(lambda: now_ms() > start + 200)
    dues = []
    for _ in range(10):
        taken = take(r)
        finish(r, taken)
        dues.append(taken[4])
    assert dues == [start + 20 * n for n in range(10)]
    assert job(r, "q", "a")["missed"] == 0


def test_no_run_overlaps_one_that_is_longer_than_the_period(r: redis.Redis) -> None:
    """asynq#371, and all queues that add a job for each time."""
    add(r, "EVERY", 20, "DELAY", 0)
    taken = take(r)
    # Decided when the run was handed out, which on a busy machine may have been late itself.
    following = job(r, "q", "a")["next"]
    eventually(lambda: now_ms() > following + 100)
    assert r.execute_command("DQ.POP", "q", "COUNT", 10) is None
    finish(r, taken)
    late = take(r)
    assert late[4] == following
    assert job(r, "q", "a")["missed"] >= 3


def test_a_run_that_is_out_of_attempts_does_not_end_the_schedule(r: redis.Redis) -> None:
    add(r, "EVERY", 300, "DELAY", 0, "ATTEMPTS", 2, "TTR", 20)
    first, second = take(r), take(r)
    assert (first[3], second[3]) == (1, 2)
    # Nobody says anything: time alone.
    eventually(lambda: job(r, "q", "a")["failed-runs"] == 1)
    shown = job(r, "q", "a")
    assert (shown["attempt"], shown["reason"]) == (0, "no attempts left")
    assert shown["state"] in ("delayed", "ready")
    third = take(r)
    assert (third[3], third[4]) == (1, first[4] + 300)
    assert r.execute_command("DQ.RELEASE", "q", "a", third[2], "REASON", "rain") == 1
    fourth = take(r)
    assert (fourth[3], fourth[4]) == (2, third[4])
    assert r.execute_command("DQ.RELEASE", "q", "a", fourth[2], "REASON", "snow") == 1
    shown = job(r, "q", "a")
    assert (shown["failed-runs"], shown["reason"], shown["occurrence"]) == (
        2,
        "snow",
        third[4] + 300,
    )
    assert r.execute_command("DQ.LEN", "q", "STATE", "dead") == 0


@pytest.mark.parametrize("end", ["BURY", "DEL", "RUNS", "UNTIL"])
def test_what_ends_a_schedule(r: redis.Redis, end: str) -> None:
    now = now_ms()
    limit = {"RUNS": ["RUNS", 1], "UNTIL": ["UNTIL", now + HOUR_MS]}.get(end, [])
    add(r, "EVERY", HOUR_MS if end == "UNTIL" else 20, "AT", now + 5, *limit)
    taken = take(r)
    if end == "BURY":
        assert r.execute_command("DQ.BURY", "q", "a", taken[2]) == 1
    elif end == "DEL":
        assert r.execute_command("DQ.DEL", "q", "a") == 1
    else:
        assert job(r, "q", "a")["next"] is None
        finish(r, taken)
    assert r.execute_command("DQ.POP", "q", "BLOCK", 100) is None
    assert (job(r, "q", "a") or {}).get("state") == ("dead" if end == "BURY" else None)


def test_kickjob_runs_a_schedule_now_and_it_goes_on_as_before(r: redis.Redis) -> None:
    add(r, "CRON", "0 0 1 1 *")
    new_year = job(r, "q", "a")["due"]
    assert r.execute_command("DQ.POP", "q") is None
    assert r.execute_command("DQ.KICKJOB", "q", "a") == 1
    taken = take(r)
    assert taken[4] <= now_ms()
    finish(r, taken)
    assert (job(r, "q", "a")["due"], job(r, "q", "a")["state"]) == (new_year, "delayed")


def test_a_pop_with_noack_arms_the_next_run_at_once(r: redis.Redis) -> None:
    add(r, "EVERY", HOUR_MS, "DELAY", 0)
    (taken,) = r.execute_command("DQ.POP", "q", "COUNT", 10, "NOACK", "WITHDUE")
    shown = job(r, "q", "a")
    assert (shown["state"], shown["due"]) == ("delayed", taken[4] + HOUR_MS)


def test_instances_that_race_make_one_schedule_and_lose_none(server: Server) -> None:
    """asynq#371: every instance makes its own; bullmq#3272, #3262: racing upserts lose
    schedules.
    """
    due = now_ms() + HOUR_MS
    failures: list[Exception] = []

    def deploy(instance: int) -> None:
        try:
            with server.client() as r:
                for round in range(50):
                    add(r, "EVERY", MINUTE_MS, "AT", due, "ENSURE", body=f"{instance} {round}")
                    assert add(r, "CRON", "0 3 * * *", "ENSURE", id="nightly") == "nightly"
        except Exception as failure:
            failures.append(failure)

    instances = [threading.Thread(target=deploy, args=(n,)) for n in range(4)]
    for instance in instances:
        instance.start()
    for instance in instances:
        instance.join(timeout=60)
    assert failures == []
    with server.client() as r:
        assert r.execute_command("DQ.LEN", "q", "STATE", "delayed") == 2
        assert r.execute_command("DQ.LEN", "q") == 2
        assert job(r, "q", "a")["due"] == due


@pytest.mark.parametrize(
    "same",
    ["  0 0  1 1\t*\r\n", "0 0 1 jan *", "@YEARLY", "00 0 01 1 ?", "0 0 0 1 1 *", "0-0 0 1-1 1 *"],
    ids=["white space", "names", "short form", "zeroes", "seconds", "ranges"],
)
def test_a_cron_in_other_words_is_the_same_schedule(r: redis.Redis, same: str) -> None:
    """The run that was due was lost: the next one was a year later."""
    add(r, "CRON", "0 0 1 1 *", "ENSURE")
    r.execute_command("DQ.KICKJOB", "q", "a")
    due = job(r, "q", "a")["due"]
    assert add(r, "CRON", same, "ENSURE") == "a"
    shown = job(r, "q", "a")
    assert (shown["state"], shown["due"]) == ("ready", due)
    assert add(r, "CRON", "0 0 2 1 *", "ENSURE") == "a"
    assert job(r, "q", "a")["state"] == "delayed"


def test_a_deployment_updates_what_a_job_does_and_leaves_its_run_alone(r: redis.Redis) -> None:
    add(r, "EVERY", HOUR_MS, "DELAY", 0, "ENSURE", body="old")
    taken = take(r)
    assert add(r, "EVERY", HOUR_MS, "ENSURE", "PRIORITY", 7, "RUNS", 9, body="new") == "a"
    shown = job(r, "q", "a")
    assert (shown["state"], shown["lease"], shown["body"]) == ("reserved", taken[2], "new")
    assert (shown["priority"], shown["runs"], shown["runs-begun"]) == (7, 9, 1)
    finish(r, taken)
    assert job(r, "q", "a")["due"] == taken[4] + HOUR_MS


def test_a_deployment_in_and_after_the_last_period_is_no_error(r: redis.Redis) -> None:
    now = now_ms()
    words = ("EVERY", HOUR_MS, "AT", now, "UNTIL", now + 1_000, "ENSURE")
    assert add(r, *words) == add(r, *words) == "a"
    run = take(r)
    assert add(r, *words) == "a"
    finish(r, run)
    eventually(lambda: now_ms() > now + 1_000)
    for queue in ("q", "no such queue"):
        assert r.execute_command("DQ.ADD", queue, "a", "x", *words) is None
    assert r.execute_command("DQ.LEN", "q") == 0 and not r.exists("no such queue")
    # What waits for a time that isn't allowed any more is deleted.
    add(r, "EVERY", HOUR_MS, "ENSURE")
    assert add(r, "EVERY", HOUR_MS, "UNTIL", now_ms(), "ENSURE") is None
    assert r.execute_command("DQ.LEN", "q") == 0


def test_a_changed_expression_never_fires_at_once(r: redis.Redis) -> None:
    """oban#1156"""
    add(r, "EVERY", HOUR_MS, "DELAY", 0, "ENSURE")
    assert job(r, "q", "a")["state"] == "ready"
    assert add(r, "CRON", "0 0 1 1 *", "TZ", "Europe/Berlin", "ENSURE") == "a"
    assert r.execute_command("DQ.POP", "q") is None
    shown = job(r, "q", "a")
    (due,) = r.execute_command("DQ.NEXT", "0 0 1 1 *", "TZ", "Europe/Berlin")
    assert (shown["state"], shown["due"]) == ("delayed", due)
    assert add(r, "EVERY", 5_000, "DELAY", 0, "ENSURE") == "a"
    assert now_ms() < job(r, "q", "a")["due"] <= now_ms() + 5_000


def where(r: redis.Redis) -> tuple[str, int, int, int, str | None]:
    shown = job(r, "q", "a")
    return (
        shown["state"],
        shown["attempt"],
        shown["runs-begun"],
        shown["failed-runs"],
        shown["reason"],
    )


RUN_ONCE = ("RUNS", 1, "ATTEMPTS", 1)


@pytest.mark.parametrize(
    "changed",
    [
        ("EVERY", HOUR_MS, "RUNS", 5, "ATTEMPTS", 1),
        ("EVERY", HOUR_MS, "RUNS", 1, "ATTEMPTS", 5),
        ("EVERY", MINUTE_MS, "ATTEMPTS", 1),
        ("CRON", "* * * * * *"),
    ],
)
def test_a_deployment_brings_no_dead_job_back(
    r: redis.Redis, changed: tuple[str | int, ...]
) -> None:
    """Dead by time alone: no command has come since."""
    add(r, "EVERY", HOUR_MS, "DELAY", 0, "TTR", 1, *RUN_ONCE)
    take(r)
    eventually(lambda: job(r, "q", "a")["state"] == "dead")
    assert add(r, *changed, "ENSURE", body="new") == "a"
    shown = job(r, "q", "a")
    assert (shown["state"], shown["reason"], shown["body"]) == ("dead", "no attempts left", "new")
    assert r.execute_command("DQ.POP", "q", "BLOCK", 50) is None
    assert r.execute_command("DQ.KICKJOB", "q", "a") == 1
    taken = take(r)
    finish(r, taken)


@pytest.mark.parametrize("end", ["TTL", "ATTEMPTS"])
def test_a_deployment_brings_no_dead_job_without_a_schedule_back(r: redis.Redis, end: str) -> None:
    add(r, end, 1, "TTR", 1)
    if end == "ATTEMPTS":
        take(r)
    eventually(lambda: job(r, "q", "a")["state"] == "dead")
    assert add(r, "EVERY", 500, "ENSURE") == "a"
    assert job(r, "q", "a")["state"] == "dead"
    assert r.execute_command("DQ.LEN", "q", "STATE", "dead") == 1


def test_a_deployment_leaves_a_failed_run_where_it_is(r: redis.Redis) -> None:
    add(r, "EVERY", HOUR_MS, "DELAY", 0, "ATTEMPTS", 1, "TTR", 1)
    first = take(r)
    failed = ("delayed", 0, 1, 1, "no attempts left")
    eventually(lambda: where(r) == failed)
    assert add(r, "EVERY", HOUR_MS, "ATTEMPTS", 5, "TTR", 1, "ENSURE") == "a"
    assert where(r) == failed
    assert job(r, "q", "a")["due"] == first[4] + HOUR_MS
    # And one that waits for another attempt.
    add(r, "EVERY", HOUR_MS, "DELAY", 0, "ATTEMPTS", 5, "TTR", 1, "REPLACE")
    take(r)
    waits = ("ready", 1, 1, 0, None)
    eventually(lambda: where(r) == waits)
    assert add(r, "EVERY", HOUR_MS, "ATTEMPTS", 1, "ENSURE") == "a"
    assert where(r) == waits
    assert take(r)[3] == 2


def test_work_that_is_late_counts_across_a_deployment(r: redis.Redis) -> None:
    add(r, "EVERY", HOUR_MS, "DELAY", 0, "ATTEMPTS", 5, "TTR", 1)
    taken = take(r)
    eventually(lambda: where(r)[0] == "ready")
    assert add(r, "EVERY", HOUR_MS, "ATTEMPTS", 5, "TTR", 1, "ENSURE", body="new") == "a"
    finish(r, taken)
    assert job(r, "q", "a")["due"] == taken[4] + HOUR_MS


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((), ("TZ", "UTC")),
        (("TZ", "utc"), ()),
        (("TZ", "Europe/Berlin"), ("TZ", "europe/BERLIN")),
    ],
)
def test_a_zone_is_the_same_however_it_is_written(
    r: redis.Redis, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    add(r, "CRON", "* * * * * *", *before)
    finish(r, take(r))
    digest = r.execute_command("DEBUG", "DIGEST-VALUE", "q")
    assert add(r, "CRON", "* * * * * *", *after, "ENSURE") == "a"
    assert job(r, "q", "a")["runs-begun"] == 1
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "q") == digest, "nothing has changed"


def test_an_hour_that_does_not_exist_and_one_that_comes_twice(r: redis.Redis) -> None:
    """nomad#5410"""

    def next_after(expression: str, zone: str, utc: int, count: int) -> list[int]:
        return r.execute_command("DQ.NEXT", expression, "TZ", zone, "FROM", utc, "COUNT", count)

    spring, autumn = (
        1_772_928_000_000,
        1_793_491_200_000,
    )  # midnight UTC of 2026-03-08 and 2026-11-01
    hours = lambda times, day: [(time - day) / HOUR_MS for time in times]  # noqa: E731
    # 2:30 doesn't exist: it comes at 3:00 New York, which is 7:00 UTC.
    assert hours(next_after("30 2 * * *", "America/New_York", spring, 2), spring) == [7, 24 + 6.5]
    # 1:30 comes twice: the first time, at 5:30 UTC.
    assert hours(next_after("30 1 * * *", "America/New_York", autumn, 2), autumn) == [5.5, 24 + 6.5]
    # A wildcard goes by elapsed time.
    assert hours(next_after("30 * * * *", "America/New_York", autumn, 6), autumn) == [
        0.5,
        1.5,
        2.5,
        3.5,
        4.5,
        5.5,
    ]


def test_a_jitter_spreads_jobs_of_one_time(r: redis.Redis) -> None:
    for n in range(50):
        add(r, "CRON", "0 0 1 1 *", "JITTER", HOUR_MS, id=str(n))
    shown = [job(r, "q", str(n)) for n in range(50)]
    assert len({one["occurrence"] for one in shown}) == 1
    late = [one["due"] - one["occurrence"] for one in shown]
    assert all(0 <= ms <= HOUR_MS for ms in late)
    assert len(set(late)) > 45
    assert max(late) - min(late) > HOUR_MS / 2


def test_next_gives_cron_times_without_a_key(r: redis.Redis) -> None:
    times = r.execute_command("DQ.NEXT", "0 12 * * *", "FROM", 0, "COUNT", 3)
    assert times == [DAY_MS * day + 12 * HOUR_MS for day in range(3)]
    (soon,) = r.execute_command("DQ.NEXT", "* * * * * *")
    assert 0 < soon - now_ms() <= 1_000
    assert len(r.execute_command("DQ.NEXT", "* * * * *", "COUNT", 100_000)) == 1_000
    assert r.dbsize() == 0
