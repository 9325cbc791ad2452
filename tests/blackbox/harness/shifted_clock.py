"""A wrong wall clock for a server: a shim before the C library's, compiled where it is needed."""

import subprocess
from pathlib import Path

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long shift(void) {
    static long seconds;
    static int is_known;
    if (!is_known) {
        const char *text = getenv("CLOCK_SHIFT_S");
        seconds = text ? atol(text) : 0;
        is_known = 1;
    }
    return seconds;
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


def shifted_clock(directory: Path, by_s: int) -> dict[str, str]:
    """The environment of a program that is to have the wrong time; the shim is kept in the directory."""
    library = directory / "clock.so"
    if not library.exists():
        source = directory / "clock.c"
        source.write_text(SHIM)
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, timeout=60
        )
    return {"LD_PRELOAD": str(library), "CLOCK_SHIFT_S": str(by_s)}
