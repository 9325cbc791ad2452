"""A wall clock for a server that the test sets while it runs: hours pass in seconds.

A shim before the C library's functions adds what it finds in a small file, which both have mapped. The
server's timers go by the monotonic clock, and that stays as it is.
"""

import mmap
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static long shift(void) {
    static volatile long *seconds;
    if (!seconds) {
        int file = open(getenv("DRIVEN_CLOCK"), O_RDONLY);
        seconds = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    }
    return *seconds;
}

int gettimeofday(struct timeval *now, void *zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(now, zone);
    now->tv_sec += shift();
    return result;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += shift();
    return result;
}

time_t time(time_t *out) {
    static time_t (*real)(time_t *);
    if (!real) real = dlsym(RTLD_NEXT, "time");
    time_t now = real(NULL) + shift();
    if (out) *out = now;
    return now;
}
"""


class DrivenClock:
    def __init__(self, directory: Path):
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("needs a C compiler, cc, for a clock that can be set")
        source, self._library, self._file = (directory / name for name in ("clock.c", "clock.so", "shift"))
        source.write_text(SHIM)
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", self._library, source, "-ldl"]
        subprocess.run(command, check=True, timeout=60)
        self._file.write_bytes(bytes(8))
        with self._file.open("r+b") as file:
            self._shift = mmap.mmap(file.fileno(), 8)

    @property
    def environment(self) -> dict[str, str]:
        """Of the program that is to have this clock."""
        return {"LD_PRELOAD": str(self._library), "DRIVEN_CLOCK": str(self._file)}

    def shift(self, seconds: int) -> None:
        """Makes it fast by so much, or slow."""
        self._shift[:] = struct.pack("l", seconds)
