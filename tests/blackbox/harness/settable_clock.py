"""A server's wall clock that can be set while it runs: a shim before the C library's.

The shift, in microseconds, is the first eight bytes of a file that the shim maps. Monotonic clocks stay as
they are, as when a person or NTP sets a machine's clock.
"""

import mmap
import shutil
import struct
import subprocess
from pathlib import Path

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile const long long *shift;

__attribute__((constructor)) static void map_shift(void) {
    static const long long none;
    shift = &none;
    const char *path = getenv("SETTABLE_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) shift = mapped;
}

static long long shifted_us(long long us) { return us + (shift ? *shift : 0); }

int gettimeofday(struct timeval *now, void *zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(now, zone);
    long long us = shifted_us(now->tv_sec * 1000000LL + now->tv_usec);
    now->tv_sec = us / 1000000;
    now->tv_usec = us % 1000000;
    return result;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return result;
    long nanoseconds = now->tv_nsec % 1000;
    long long us = shifted_us(now->tv_sec * 1000000LL + now->tv_nsec / 1000);
    now->tv_sec = us / 1000000;
    now->tv_nsec = us % 1000000 * 1000 + nanoseconds;
    return result;
}

// Newer servers load modules so that these would get the C library's functions, and so another time.
void *dlopen(const char *file, int flags) {
    static void *(*real)(const char *, int);
    if (!real) real = dlsym(RTLD_NEXT, "dlopen");
    return real(file, flags & ~RTLD_DEEPBIND);
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""


class NoCompiler(RuntimeError):
    """There is no cc, so no server can be given a clock of its own."""


def shim(directory: Path) -> Path:
    """The compiled shim."""
    library = directory / "clock.so"
    if not library.exists():
        compiler = shutil.which("cc")
        if compiler is None:
            raise NoCompiler("a server with a clock of its own needs a C compiler, cc")
        source = directory / "clock.c"
        source.write_text(SHIM)
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]
        subprocess.run(command, check=True, timeout=60)
    return library


class Clock:
    """By how much the wall clock of one server is wrong."""

    def __init__(self, directory: Path, name: str):
        self._path = directory / f"{name}.clock"
        self._path.write_bytes(struct.pack("q", 0))
        with self._path.open("r+b") as file:
            self._shift = mmap.mmap(file.fileno(), 8)
        self.environment = {"LD_PRELOAD": str(shim(directory)), "SETTABLE_CLOCK": str(self._path)}
        self.shift_us = 0
        # The farthest ahead that it has been: what was due by then may have been handed out.
        self.furthest_us = 0

    def set(self, shift_us: int) -> None:
        self._shift[:8] = struct.pack("q", shift_us)
        self.shift_us = shift_us
        self.furthest_us = max(self.furthest_us, shift_us)
