"""The server's wall clock is set while it runs: its timers go by another one."""

from collections.abc import Callable
from pathlib import Path

from harness.clock import HOUR_MS
from harness.server import Server, eventually
from harness.wall_clock import WallClock


def test_what_was_due_before_the_clock_was_set_back_comes_when_it_is_due_again(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    """The timer has seen it become ready, and would come again for the next job only."""
    clock = WallClock(tmp_path, "server")
    server = fresh_server(environment=clock.environment)
    with server.client() as r:
        r.execute_command("DQ.ADD", "q", "next", "x", "DELAY", HOUR_MS)
        r.execute_command("DQ.ADD", "q", "due", "x", "DELAY", 100)
        # Nobody has asked for the queue: so it is the timer that has counted it.
        eventually(lambda: r.info("dq")["dq_jobs_ready"] == 1)
        clock.set(-2_000_000)
        assert r.execute_command("DQ.POP", "q") is None
        popped = r.execute_command("DQ.POP", "q", "BLOCK", 8_000)
        assert popped is not None, "nobody served who waited"
        assert popped[0][0] == "due"
