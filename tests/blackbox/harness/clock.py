"""The time: ours, and the server's own, which decides when jobs are due. On one machine both are
the same clock.
"""

import time

from harness.transcript import Session

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def unix_ms(session: Session) -> int:
    """The time by the server's own clock."""
    seconds, microseconds = map(int, session.call("TIME"))
    return seconds * 1000 + microseconds // 1000
