"""The timer: it promotes queues that no client touches, in slices, and costs nothing when there is
nothing to do.

`INFO dq` tells how many queues wait for something; asking it touches none of them.
"""

import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import redis

from harness.clock import DAY_MS, now_ms
from harness.marks import alone
from harness.patience import TooSlow, patiently
from harness.pipelined import Pipelined
from harness.queues import info, waiting
from harness.server import Server, eventually

YEAR_MS = 365 * DAY_MS
LATE_MS_MAX = 1_000


def timer(r: redis.Redis, field: str) -> int:
    return r.info("dq")[f"dq_timer_{field}"]


def comes_by_itself(r: redis.Redis, due: int) -> None:
    """Nothing is done to any queue until the time has come, and then they are all looked after."""
    __tracebackhide__ = True
    eventually(lambda: waiting(r) == 0, (due + LATE_MS_MAX - now_ms()) / 1_000)
    assert now_ms() >= due, "too early"


def test_the_timer_makes_a_due_job_ready(r: redis.Redis) -> None:
    runs = timer(r, "runs")
    due = now_ms() + 150
    r.execute_command("DQ.ADD", "q", "a", "x", "AT", due)
    assert waiting(r) == 1
    assert info(r, "q")["next-due"] == due
    comes_by_itself(r, due)
    assert timer(r, "runs") > runs
    seen = info(r, "q")
    assert (seen["ready"], seen["delayed"], seen["next-due"]) == (1, 0, None)
    assert r.execute_command("DQ.LEN", "q", "STATE", "ready") == 1


def test_a_job_whose_lease_ran_out_comes_back_by_the_timer(r: redis.Redis) -> None:
    r.execute_command("DQ.ADD", "q", "a", "x", "TTR", 150)
    r.execute_command("DQ.ADD", "q", "b", "x", "TTR", 150, "ATTEMPTS", 1)
    begin = now_ms()
    assert len(r.execute_command("DQ.POP", "q", "COUNT", 2)) == 2
    assert waiting(r) == 1
    comes_by_itself(r, begin + 150)
    seen = info(r, "q")
    assert (seen["reserved"], seen["ready"], seen["dead"], seen["next-due"]) == (0, 1, 1, None)
    ((id, _, _, attempt),) = r.execute_command("DQ.POP", "q")
    assert (id, attempt) == ("a", 2)


def test_an_earlier_job_is_not_kept_waiting_by_a_later_one(r: redis.Redis) -> None:
    begin = now_ms()
    for queue, delay in [("q", DAY_MS), ("q", 300), ("other", 200), ("other", DAY_MS), ("q", 100)]:
        r.execute_command("DQ.ADD", queue, "*", "x", "AT", begin + delay)
    runs = timer(r, "runs")
    eventually(lambda: timer(r, "runs") >= runs + 3, 0.3 + LATE_MS_MAX / 1_000)
    assert now_ms() >= begin + 300
    assert waiting(r) == 2
    assert [info(r, queue)["ready"] for queue in ("q", "other")] == [2, 1]
    assert [info(r, queue)["next-due"] for queue in ("q", "other")] == [begin + DAY_MS] * 2


def test_a_job_put_off_or_deleted_is_not_ready_at_its_old_time(r: redis.Redis) -> None:
    old, new = now_ms() + 100, now_ms() + 400
    r.execute_command("DQ.ADD", "q", "a", "x", "AT", old)
    r.execute_command("DQ.ADD", "q", "a", "x", "AT", new, "REPLACE")
    r.execute_command("DQ.ADD", "emptied", "a", "x", "AT", old)
    r.execute_command("DQ.DEL", "emptied", "a")
    r.execute_command("DQ.ADD", "deleted", "a", "x", "AT", old)
    r.delete("deleted")
    comes_by_itself(r, new)
    assert info(r, "q")["ready"] == 1
    assert info(r, "emptied")["jobs"] == 0


def add_to_many_queues(server: Server, queues: int) -> int:
    """One job each, all of them due in the same millisecond: soon, but after the last of them was
    added.
    """

    def add(ahead_ms: int) -> int:
        due = now_ms() + ahead_ms
        with closing(Pipelined(server.port)) as connection:
            connection.call_all(
                [("DQ.ADD", f"q{n}", "a", "x", "AT", due, "REPLACE") for n in range(queues)]
            )
            (section,) = connection.call_all([("INFO", "dq")])
        if now_ms() >= due:
            raise TooSlow
        assert b"dq_queues_waiting:%d\r\n" % queues in section
        return due

    return patiently(add)


@alone
def test_many_queues_are_promoted_in_slices(server: Server, r: redis.Redis) -> None:
    r.config_set("dq.tick-budget-us", 100)
    due = add_to_many_queues(server, 20_000)
    cut, longest = timer(r, "budget_exceeded"), 0.0
    eventually(lambda: now_ms() >= due - 20)
    while waiting(r) > 0:
        assert now_ms() < due + 10 * LATE_MS_MAX
        before = time.monotonic()
        r.ping()
        longest = max(longest, time.monotonic() - before)
    assert now_ms() >= due
    assert timer(r, "budget_exceeded") >= cut + 5
    assert longest < 0.2, f"PING waited {longest} s"
    for n in 0, 9_999, 19_999:
        assert r.execute_command("DQ.LEN", f"q{n}", "STATE", "ready") == 1


@alone
def test_the_tick_budget_is_a_setting(server: Server, r: redis.Redis) -> None:
    cuts = {}
    for budget_us in 1_000_000, 100:
        r.flushall()
        r.config_set("dq.tick-budget-us", budget_us)
        due = add_to_many_queues(server, 5_000)
        before = timer(r, "budget_exceeded")
        eventually(lambda: waiting(r) == 0, (due - now_ms() + 10 * LATE_MS_MAX) / 1_000)
        cuts[budget_us] = timer(r, "budget_exceeded") - before
    assert cuts[1_000_000] == 0
    assert cuts[100] >= 2


def cpu_seconds(server: Server) -> float:
    """What the process has used so far, in user and kernel mode."""
    after_name = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    user, kernel = (int(after_name[at]) for at in (11, 12))
    return (user + kernel) / os.sysconf("SC_CLK_TCK")


def test_a_job_far_in_the_future_costs_no_timer_runs(server: Server, r: redis.Redis) -> None:
    """Redis 7.0 spins when a timer is more than 35 minutes away."""
    for n in range(100):
        r.execute_command("DQ.ADD", f"q{n}", "a", "x", "DELAY", YEAR_MS)
        r.execute_command("DQ.ADD", f"leased{n}", "a", "x", "TTR", YEAR_MS)
        r.execute_command("DQ.POP", f"leased{n}")
    assert waiting(r) == 200
    runs, used = timer(r, "runs"), cpu_seconds(server)
    time.sleep(1.5)
    assert cpu_seconds(server) - used < 0.3
    assert timer(r, "runs") - runs < 5


def test_ready_jobs_that_are_not_fetched_cost_no_timer_runs(server: Server, r: redis.Redis) -> None:
    for n in range(1_000):
        r.execute_command("DQ.ADD", f"q{n}", "a", "x", "DELAY", 1)
    eventually(lambda: waiting(r) == 0)
    runs, used = timer(r, "runs"), cpu_seconds(server)
    time.sleep(1)
    assert cpu_seconds(server) - used < 0.2
    assert timer(r, "runs") - runs < 5


def test_the_timer_goes_on_after_ten_thousand_due_times(
    fresh_server: Callable[..., Server],
) -> None:
    """One job a millisecond, over and over: at no moment does the timer get lost."""
    server = fresh_server()
    with server.client() as r, closing(Pipelined(server.port)) as connection:
        begin = now_ms() + 500
        connection.call_all(
            [("DQ.ADD", f"q{n % 7}", "*", "x", "AT", begin + n // 10) for n in range(10_000)]
        )
        eventually(lambda: waiting(r) == 0, (begin + 1_000 - now_ms() + LATE_MS_MAX) / 1_000)
        assert now_ms() >= begin + 999
        assert timer(r, "runs") >= 100
        assert sum(info(r, f"q{n}")["ready"] for n in range(7)) == 10_000
