// A wall clock for a server, wrong by as much as a test says: a shim before the C library's functions.
//
// By how many microseconds, that is a number in a file that both have mapped, so that it can be set while the server
// runs. Monotonic clocks stay as they are, as when a person or NTP sets a machine's clock.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const long long *shift_us;

__attribute__((constructor)) static void map_shift(void) {
    const char *path = getenv("WALL_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *shift_us, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        // Silence would be a right clock in a test of a wrong one.
        fprintf(stderr, "wall_clock: WALL_CLOCK names no file that can be mapped\n");
        abort();
    }
    close(file);
    shift_us = mapped;
}

// What other libraries ask before they are all set up gets the true time.
static long long shifted(long long us) { return us + (shift_us ? *shift_us : 0); }

int gettimeofday(struct timeval *now, void *zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(now, zone);
    long long us = shifted(now->tv_sec * 1000000LL + now->tv_usec);
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
    long long us = shifted(now->tv_sec * 1000000LL + now->tv_nsec / 1000);
    now->tv_sec = us / 1000000;
    now->tv_nsec = us % 1000000 * 1000 + nanoseconds;
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

// Who waits until a time of day has it from the clock above, but the kernel waits by the true one: threads of jemalloc's,
// which purge in the background, would come back at once for hours, or not at all. No server has a condition that goes by
// another clock; this would be wrong for it.
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    // Beside today's conditions, x86-64 has those of 2002, which dlsym may find first.
    if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real) real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec true_until = *until;
    long long us = (shift_us ? *shift_us : 0);
    true_until.tv_sec -= us / 1000000;
    true_until.tv_nsec -= us % 1000000 * 1000;
    if (true_until.tv_nsec < 0) {
        true_until.tv_sec -= 1;
        true_until.tv_nsec += 1000000000;
    } else if (true_until.tv_nsec >= 1000000000) {
        true_until.tv_sec += 1;
        true_until.tv_nsec -= 1000000000;
    }
    return real(condition, mutex, &true_until);
}

// Valkey loads modules with RTLD_DEEPBIND: those would get the C library's functions, and so another time than their
// server.
void *dlopen(const char *file, int flags) {
    static void *(*real)(const char *, int);
    if (!real) real = dlsym(RTLD_NEXT, "dlopen");
    return real(file, flags & ~RTLD_DEEPBIND);
}
