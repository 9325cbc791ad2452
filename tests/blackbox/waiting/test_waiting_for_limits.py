"""Consumers that wait for a limit: one job wakes one consumer, at its time, without another
command.
"""

import time

import redis

from harness.clock import now_ms
from harness.consumers import Room
from harness.pipelined import Pipelined
from harness.queues import info
from harness.server import Server, eventually


def test_a_concurrency_place_that_becomes_free_goes_to_the_first_consumer(room: Room) -> None:
    room.play("""
        > DQ.ALTER q CONCURRENCY 1
        OK
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x
        "b"
        > DQ.ADD q c x
        "c"
        > DQ.ADD q d x
        "d"
        > DQ.POP q
        [["a", "x", <a>, 1]]
        one> DQ.POP q BLOCK 0
        two> DQ.POP q BLOCK 0 COUNT 5
        one waits
        > DQ.FINISH q a <a>
        (integer) 1
        one< [["b", "x", <b>, 1]]
        two waits
        > DQ.RELEASE q b <b> DELAY 86400000
        (integer) 1
        two< [["c", "x", <c>, 1]]
        one> DQ.POP q BLOCK 0
        > DQ.BURY q c <c>
        (integer) 1
        one< [["d", "x", <d>, 1]]
        one> DQ.POP q BLOCK 0
        > DQ.ADD q e x
        "e"
        one waits
        > DQ.DEL q d
        (integer) 1
        one< [["e", "x", <e>, 1]]
        one> DQ.POP q BLOCK 0
        > DQ.ADD q f x
        "f"
        one waits
        > DQ.ALTER q CONCURRENCY 2
        OK
        one< [["f", "x", <*>, 1]]
    """)


def test_a_consumer_with_noack_is_served_past_those_that_wait_for_a_place(room: Room) -> None:
    room.play("""
        > DQ.ALTER q CONCURRENCY 1
        OK
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <a>, 1]]
        one> DQ.POP q BLOCK 0
        two> DQ.POP q BLOCK 0
        three> DQ.POP q BLOCK 0 NOACK
        four> DQ.POP q BLOCK 0 NOACK
        one waits
        four waits
        > DQ.ADD q b x
        "b"
        three< [["b", "x", (nil), 1]]
        one waits
        four waits
        > DQ.ADD q c x
        "c"
        four< [["c", "x", (nil), 1]]
        three> DQ.POP q BLOCK 0 NOACK
        three waits
        > DQ.FINISH q a <a>
        (integer) 1
        > DQ.ADD q d x
        "d"
        one< [["d", "x", <*>, 1]]
        two waits
        > DQ.ADD q e x
        "e"
        three< [["e", "x", (nil), 1]]
        two waits
    """)


def test_the_end_of_a_dead_workers_lease_wakes_one_consumer(room: Room) -> None:
    room.play("""
        > DQ.ALTER q CONCURRENCY 1
        OK
        > DQ.ADD q a x TTR 200 BACKOFF 86400000 86400000
        "a"
        > DQ.ADD q b x
        "b"
        > DQ.POP q
        [["a", "x", <*>, 1]]
        one> DQ.POP q BLOCK 0
        two> DQ.POP q BLOCK 0
        one< [["b", "x", <*>, 1]]
        two waits
    """)


def test_consumers_are_woken_when_the_rate_lets_the_next_job_leave(
    server: Server, r: redis.Redis
) -> None:
    """bullmq#909: they polled. Here the timer comes for each that may leave, and rests
    otherwise.
    """
    r.execute_command("DQ.ALTER", "q", "RATE", 1, 150)
    consumers = [Pipelined(server.port) for _ in range(20)]
    for n, consumer in enumerate(consumers):
        consumer.send(("DQ.POP", "q", "BLOCK", 0, "NOACK"))
        eventually(lambda wait=n + 1: info(r, "q")["waiting-consumers"] == wait)
    runs = r.info("dq")["dq_timer_runs"]
    begin = now_ms()
    for n in range(20):
        r.execute_command("DQ.ADD", "q", n, "x")
    times = []
    for n, consumer in enumerate(consumers[:8]):
        assert consumer.receive()[0][0] == str(n).encode()
        times.append(now_ms() - begin)
        assert info(r, "q")["waiting-consumers"] >= 20 - n - 3
    assert all(at >= n * 150 for n, at in enumerate(times)), times
    took = (now_ms() - begin) / 1_000
    runs = r.info("dq")["dq_timer_runs"] - runs
    # One for each that left; and one a second, while somebody waits, to see whether the clock was
    # set.
    assert runs <= 3 * 8 + 2 * took, (runs, took)
    for consumer in consumers:
        consumer.close()


def test_a_limit_that_holds_costs_no_timer(server: Server, r: redis.Redis) -> None:
    for words in (["CONCURRENCY", 1], ["RATE", 1, 86_400_000]):
        r.flushall()
        r.execute_command("DQ.ALTER", "q", *words)
        for n in range(50):
            r.execute_command("DQ.ADD", "q", n, "x", "TTR", 86_400_000)
        assert len(r.execute_command("DQ.POP", "q", "COUNT", 5)) == 1
        consumers = [Pipelined(server.port) for _ in range(50)]
        for consumer in consumers:
            consumer.send(("DQ.POP", "q", "BLOCK", 0))
        eventually(lambda: info(r, "q")["waiting-consumers"] == 50)
        runs, begin = r.info("dq")["dq_timer_runs"], time.monotonic()
        time.sleep(1)
        runs, took = r.info("dq")["dq_timer_runs"] - runs, time.monotonic() - begin
        assert runs <= 5 + 2 * took, (words, runs, took)
        # However many jobs come.
        runs = r.info("dq")["dq_timer_runs"]
        for n in range(200):
            r.execute_command("DQ.ADD", "q", f"more-{n}", "x")
        assert r.info("dq")["dq_timer_runs"] - runs <= 20
        told = info(r, "q")
        assert (told["waiting-consumers"], told["ready"]) == (50, 249)
        for consumer in consumers:
            consumer.close()
        eventually(lambda: info(r, "q")["waiting-consumers"] == 0)


def test_a_queue_that_moves_to_a_waiting_consumer_keeps_its_limits(room: Room) -> None:
    room.play("""
        > DQ.ALTER other RATE 1 300
        OK
        > DQ.ADD other a x
        "a"
        > DQ.ADD other b x
        "b"
        > DQ.ADD other c x
        "c"
        > DQ.POP other NOACK
        [["a", "x", (nil), 1]]
        one> DQ.POP q BLOCK 0
        two> DQ.POP q BLOCK 0
        > COPY other q
        (integer) 1
        one< [["b", "x", <*>, 1]]
        two< [["c", "x", <*>, 1]]
        > DQ.POP other
        [["b", "x", <*>, 1]]
    """)
