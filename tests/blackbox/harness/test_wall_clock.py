"""When a test sets a server's clock, the module sees the same clock.

The module asks its server for the time of a command, and the C library for how long its timer may
sleep. Valkey keeps modules apart from libraries that are loaded before the C library. With two
clocks an hour apart, the timer would look every millisecond, or sleep too long. So would a thread
that waits until a time of day, such as those of jemalloc.
"""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from harness.clock import HOUR_MS, now_ms, unix_ms
from harness.pipelined import Pipelined
from harness.queues import waiting
from harness.server import Server, eventually
from harness.wall_clock import US_PER_S, WallClock, shifted_clock

HOUR_S = 3_600
DUE_IN_MS = 1_500
# It looks once a second at least, and a few times more around the due time. Every millisecond would
# be 1,500.
RUNS_MAX = 150


@pytest.mark.parametrize("by_s", [-HOUR_S, HOUR_S])
def test_the_module_sleeps_by_the_clock_that_its_server_shows(
    fresh_server: Callable[..., Server], tmp_path: Path, by_s: int
) -> None:
    server = fresh_server(environment=shifted_clock(tmp_path, by_s))
    with server.client() as r, closing(server.session()) as session:
        assert abs(unix_ms(session) - now_ms() - by_s * 1_000) < 60_000
        before = r.info("dq")["dq_timer_runs"]
        due = unix_ms(session) + DUE_IN_MS
        r.execute_command("DQ.ADD", "q", "a", "x", "AT", due)
        eventually(lambda: waiting(r) == 0, 30)
        assert unix_ms(session) >= due
        assert r.info("dq")["dq_timer_runs"] - before < RUNS_MAX


def test_the_wall_clock_can_be_set_while_the_server_runs(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    clock = WallClock(tmp_path)
    server = fresh_server(environment=clock.environment)
    with closing(server.session()) as session, closing(Pipelined(server.port)) as consumer:
        assert abs(unix_ms(session) - now_ms()) < 60_000
        session.call("DQ.ADD", "q", "a", "x", "DELAY", HOUR_MS)
        # Without an end: the server measures that of a BLOCK by its wall clock.
        consumer.send(("DQ.POP", "q", "BLOCK", 0))
        clock.set(2 * HOUR_S * US_PER_S)
        ((id, _, _, attempt),) = consumer.receive()
        assert (id, attempt) == (b"a", 1)
        assert abs(unix_ms(session) - now_ms() - 2 * HOUR_MS) < 60_000
        # At once, each time, though the server was asked a moment before.
        for hours in [-1, 1] * 10:
            clock.set(hours * HOUR_S * US_PER_S)
            assert abs(unix_ms(session) - now_ms() - hours * HOUR_MS) < 60_000


# What the C library is asked for, in a program of its own: prints how long it has slept, and what
# came of it.
SLEEP = """\
import ctypes, time
c = ctypes.CDLL(None)
mutex, condition = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
until, began = time.time_ns() + 500_000_000, time.monotonic()
deadline = (ctypes.c_long * 2)(until // 10**9, until % 10**9)
c.pthread_mutex_lock(mutex)
told = 0
while not told:
    told = c.pthread_cond_timedwait(condition, mutex, deadline)
print(told, time.monotonic() - began)
"""


@pytest.mark.parametrize("by_s", [-HOUR_S, HOUR_S])
def test_a_thread_that_waits_until_a_time_of_day_waits_by_the_shifted_clock(
    tmp_path: Path, by_s: int
) -> None:
    environment = os.environ | shifted_clock(tmp_path, by_s)
    told = subprocess.check_output(
        [sys.executable, "-c", SLEEP], text=True, env=environment, timeout=60
    )
    error, slept_s = told.split()
    assert int(error) == errno.ETIMEDOUT
    assert float(slept_s) >= 0.4
