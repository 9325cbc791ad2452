"""A wall clock for one server, which a test sets, also while the server runs: wall_clock.c is
loaded before the C library.

Both the server and the module use it. Their timers use the monotonic clock, which is left alone.
"""

import mmap
import struct
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

SHIM = Path(__file__).with_suffix(".c")
US_PER_S = 1_000_000
# Valkey 9.1 reads the wall clock when a millisecond has passed since it last did, and counts on by
# the processor's own counter meanwhile. So this long after the clock was set, every server goes by
# it.
HEARD_WITHIN_S = 0.002


class WallClock:
    """By how much the wall clock of one server is wrong."""

    def __init__(self, directory: Path, name: str = "wall", *, shift_us: int = 0):
        """The shim and the shift are in this directory. It may hold several clocks; each has its
        own name.
        """
        path = directory / f"{name}.clock"
        path.write_bytes(struct.pack("q", 0))
        with path.open("r+b") as file:
            self._shift = mmap.mmap(file.fileno(), 8)
        # Of the program that is to have this clock.
        self.environment: Mapping[str, str] = {
            "LD_PRELOAD": str(_shim(directory)),
            "WALL_CLOCK": str(path),
        }
        # The farthest ahead that it has been: what was due by then may have been handed out.
        self.furthest_us = 0
        self.set(shift_us)

    def set(self, shift_us: int) -> None:
        """Sets the clock ahead, or back if negative. It holds for every later reading of the
        server.
        """
        self._shift[:] = struct.pack("q", shift_us)
        self.shift_us = shift_us
        self.furthest_us = max(self.furthest_us, shift_us)
        time.sleep(HEARD_WITHIN_S)


def shifted_clock(directory: Path, by_s: int) -> Mapping[str, str]:
    """The environment of a program whose clock is wrong by the same amount all the time."""
    return WallClock(directory, f"{by_s}s", shift_us=by_s * US_PER_S).environment


def _shim(directory: Path) -> Path:
    """The compiled shim."""
    library = directory / "wall_clock.so"
    if not library.exists():
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", library, SHIM, "-ldl"]
        subprocess.run(command, check=True, timeout=60)
    return library
