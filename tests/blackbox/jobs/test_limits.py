"""CONCURRENCY and RATE: how many jobs may leave a queue, and what happens to the others."""

import time
from itertools import pairwise

import redis

from harness.clock import DAY_MS, now_ms
from harness.queues import info
from harness.server import eventually
from harness.transcript import Session


def add_many(r: redis.Redis, jobs: int, *words: str | int) -> None:
    pipeline = r.pipeline(transaction=False)
    for n in range(jobs):
        pipeline.execute_command("DQ.ADD", "q", f"{n:04}", "x", *words)
    pipeline.execute()


def test_no_more_jobs_are_reserved_than_concurrency_allows(session: Session) -> None:
    session.check("""
        > DQ.ALTER q CONCURRENCY 2
        OK
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x
        "b"
        > DQ.ADD q c x
        "c"
        > DQ.POP q COUNT 10
        [["a", "x", <a>, 1], ["b", "x", <b>, 1]]
        > DQ.POP q
        (nil)
        > DQ.MPOP 1 q
        (nil)
        # What is held back is ready, and seen so.
        > DQ.LEN q STATE ready
        (integer) 1
        > DQ.FINISH q b <b>
        (integer) 1
        > DQ.POP q
        [["c", "x", <c>, 1]]
        # Lowered: those that are out may be finished.
        > DQ.ADD q d x
        "d"
        > DQ.ALTER q CONCURRENCY 1
        OK
        > DQ.TOUCH q a <a>
        (integer) 1
        > DQ.FINISH q a <a>
        (integer) 1
        > DQ.POP q
        (nil)
        > DQ.FINISH q c <c>
        (integer) 1
        > DQ.POP q NOACK
        [["d", "x", (nil), 1]]
        > DQ.ALTER q CONCURRENCY 0
        OK
    """)


def test_a_dead_workers_place_is_free_at_the_end_of_its_lease(r: redis.Redis) -> None:
    """firecrawl#1197: places of workers that had died were never free again."""
    r.execute_command("DQ.ALTER", "q", "CONCURRENCY", 1)
    r.execute_command("DQ.ADD", "q", "a", "x", "TTR", 200, "BACKOFF", DAY_MS, DAY_MS)
    r.execute_command("DQ.ADD", "q", "b", "x")
    before = now_ms()
    ((id, _, lease, _),) = r.execute_command("DQ.POP", "q")
    assert id == "a"
    until = info(r, "q")["blocked-until"]
    assert before + 200 <= until <= now_ms() + 200
    (taken,) = eventually(lambda: r.execute_command("DQ.POP", "q"))
    assert taken[0] == "b"
    assert now_ms() >= until
    # The worker was slow, not dead: its place is somebody else's, its work counts.
    assert r.execute_command("DQ.TOUCH", "q", "a", lease) == 0
    assert r.execute_command("DQ.FINISH", "q", "a", lease) == 1


def test_jobs_that_wait_for_the_rate_keep_their_order(r: redis.Redis) -> None:
    """bull#1875: a limiter delayed the jobs it held back: order lost, and more left than it
    said.
    """
    r.execute_command("DQ.ALTER", "q", "RATE", 10, 500)
    add_many(r, 30)
    left: list[tuple[str, int, int]] = []
    while len(left) < 12:
        before = now_ms()
        for id, *_ in r.execute_command("DQ.POP", "q", "COUNT", 5, "NOACK") or []:
            # The server's moment lies between before and now: for two ends of a span, each the
            # wrong way.
            left.append((id, before, now_ms()))
        assert info(r, "q")["delayed"] == 0
    assert [id for id, *_ in left] == [f"{n:04}" for n in range(len(left))]
    # In any 500 ms at most ten: the eleventh is so much later.
    for n in range(len(left) - 10):
        assert left[n + 10][2] - left[n][1] >= 499, left


def test_a_burst_leaves_at_once_and_no_window_has_twice_the_rate(r: redis.Redis) -> None:
    """A token bucket that refills in a second lets nearly twice its size through in one."""
    r.execute_command("DQ.ALTER", "q", "RATE", 5, 600_000, "BURST", 4)
    add_many(r, 20)
    assert info(r, "q")["rate-left"] == 4
    assert len(r.execute_command("DQ.POP", "q", "COUNT", 20)) == 4
    assert r.execute_command("DQ.POP", "q") is None
    told = info(r, "q")
    assert (told["rate"], told["rate-per-ms"], told["rate-burst"], told["rate-left"]) == (
        5,
        600_000,
        4,
        0,
    )
    assert now_ms() + 110_000 < told["blocked-until"] <= now_ms() + 120_000


def test_each_deployment_may_set_the_same_rate(r: redis.Redis) -> None:
    """It goes on; another takes over what has left, and waits no longer than itself."""
    r.execute_command("DQ.ALTER", "q", "RATE", 1, DAY_MS)
    add_many(r, 3)
    assert len(r.execute_command("DQ.POP", "q", "COUNT", 3)) == 1
    until = info(r, "q")["blocked-until"]
    r.execute_command("DQ.ALTER", "q", "RATE", 1, DAY_MS)
    assert info(r, "q")["blocked-until"] == until
    r.execute_command("DQ.ALTER", "q", "RATE", 1, 60_000)
    assert r.execute_command("DQ.POP", "q") is None
    assert now_ms() + 50_000 < info(r, "q")["blocked-until"] <= now_ms() + 60_000
    r.execute_command("DQ.ALTER", "q", "RATE", 0, 0)
    assert info(r, "q")["blocked-until"] is None
    assert len(r.execute_command("DQ.POP", "q", "COUNT", 3)) == 2


def test_limits_hold_in_transactions_and_scripts(session: Session) -> None:
    session.check("""
        > DQ.ALTER q CONCURRENCY 1
        OK
        > MULTI
        OK
        > DQ.ADD q a x
        QUEUED
        > DQ.ADD q b x
        QUEUED
        > DQ.POP q BLOCK 0
        QUEUED
        > DQ.POP q BLOCK 0
        QUEUED
        > EXEC
        ["a", "b", [["a", "x", <a>, 1]], (nil)]
        > EVAL "return redis.call('DQ.POP', KEYS[1], 'BLOCK', 0)" 1 q
        (nil)
        > DQ.FINISH q a *
        (integer) 1
        > EVAL "return redis.call('DQ.POP', KEYS[1], 'COUNT', 9)" 1 q
        [["b", "x", <*>, 1]]
        > DQ.ALTER q CONCURRENCY 0 RATE 1 86400000
        OK
        > DQ.ADD q c x
        "c"
        > DQ.ADD q d x
        "d"
        > MULTI
        OK
        > DQ.POP q COUNT 5 NOACK
        QUEUED
        > DQ.POP q COUNT 5 NOACK
        QUEUED
        > EXEC
        [[["c", "x", (nil), 1]], (nil)]
    """)


def test_mpop_takes_from_the_next_queue_what_a_limit_holds_back_in_the_first(
    session: Session,
) -> None:
    session.check("""
        > DQ.ALTER first CONCURRENCY 1
        OK
        > DQ.ADD first a x
        "a"
        > DQ.ADD first b x
        "b"
        > DQ.ADD second c x
        "c"
        > DQ.MPOP 2 first second COUNT 5
        ["first", [["a", "x", <*>, 1]]]
        > DQ.MPOP 2 first second COUNT 5
        ["second", [["c", "x", <*>, 1]]]
        > DQ.MPOP 2 first second
        (nil)
    """)


def test_a_client_that_polls_gets_the_rate_to_the_millisecond(r: redis.Redis) -> None:
    """Three in 100 ms: nothing is lost by rounding, and none is early."""
    r.execute_command("DQ.ALTER", "q", "RATE", 3, 100)
    add_many(r, 40)
    times: list[int] = []
    deadline = time.monotonic() + 30
    while len(times) < 30 and time.monotonic() < deadline:
        for id, *_ in r.execute_command("DQ.POP", "q", "NOACK") or []:
            times.append(info(r, "q")["blocked-until"] or now_ms())
            assert id == f"{len(times) - 1:04}"
    # When the next may leave: after each that left, 33 or 34 ms later at the earliest.
    assert all(later - earlier >= 33 for earlier, later in pairwise(times)), times
    assert times[-1] - times[0] >= 29 * 100 // 3
