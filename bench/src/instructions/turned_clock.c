// A clock that the load generator turns, for a server under callgrind.
//
// Callgrind slows a server some fifty times. By a true clock, every tenth command would meet a new millisecond, and how
// many do would differ from run to run. So the server's clocks read a number in shared memory, to which the load
// generator adds what the commands it sends would have taken: timers fire as often a command as they do in a server that
// runs free, and two runs do the same work to the instruction.
//
// Seeds are fixed for the same reason: hashes collide and skip lists grow alike in every run.
//
// The same page carries requests for callgrind: what is counted begins and ends at the return of an epoll_wait.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

// What a reading of the clock takes. A loop that waits for the clock to move on comes to an end.
#define READING_NS 20
// Where wall clocks begin, so that ids and leases are as long today as in ten years: 2027-01-15 08:00:00 UTC.
#define EPOCH_S 1800000000
// A server that hears nothing looks about itself, so that a signal or a lost client can't leave it asleep.
#define LONGEST_WAIT_MS 1000

enum { NOTHING, COUNT_FROM_NOW, DUMP };

struct page {
    _Atomic uint64_t now_ns;
    _Atomic uint32_t request;
    _Atomic uint32_t done;
};

static struct page *page;

static void give_up(const char *why) {
    ssize_t ignored = write(STDERR_FILENO, why, strlen(why));
    (void)ignored;
    _exit(2);
}

// On the first reading, which jemalloc makes before any constructor has run. So nothing here may allocate.
static void map_page(void) {
    const char *path = getenv("DQ_BENCH_CLOCK");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) {
        give_up("turned_clock: DQ_BENCH_CLOCK names no file\n");
    }
    void *map = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (map == MAP_FAILED) {
        give_up("turned_clock: the clock's file can't be mapped\n");
    }
    page = map;
}

static uint64_t read_ns(void) {
    if (!page) map_page();
    return atomic_fetch_add_explicit(&page->now_ns, READING_NS, memory_order_relaxed);
}

static int is_wall(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    uint64_t ns = read_ns();
    now->tv_sec = (is_wall(clock) ? EPOCH_S : 1000) + ns / 1000000000;
    now->tv_nsec = ns % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *now, void *zone) {
    (void)zone;
    uint64_t ns = read_ns();
    now->tv_sec = EPOCH_S + ns / 1000000000;
    now->tv_usec = ns / 1000 % 1000000;
    return 0;
}

time_t time(time_t *out) {
    time_t now = EPOCH_S + read_ns() / 1000000000;
    if (out) *out = now;
    return now;
}

void srand(unsigned seed) {
    (void)seed;
    static void (*real)(unsigned);
    if (!real) real = dlsym(RTLD_NEXT, "srand");
    real(1);
}

void srandom(unsigned seed) {
    (void)seed;
    static void (*real)(unsigned);
    if (!real) real = dlsym(RTLD_NEXT, "srandom");
    real(1);
}

ssize_t getrandom(void *buffer, size_t length, unsigned flags) {
    (void)flags;
    memset(buffer, 0x5a, length);
    return (ssize_t)length;
}

static FILE *open_unless_random(const char *name, const char *path, const char *mode) {
    FILE *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, name);
    return real(strcmp(path, "/dev/urandom") == 0 ? "/dev/zero" : path, mode);
}

FILE *fopen(const char *path, const char *mode) { return open_unless_random("fopen", path, mode); }

FILE *fopen64(const char *path, const char *mode) { return open_unless_random("fopen64", path, mode); }

static void do_request(void) {
    switch (atomic_load(&page->request)) {
    case COUNT_FROM_NOW:
        CALLGRIND_START_INSTRUMENTATION;
        CALLGRIND_ZERO_STATS;
        break;
    case DUMP:
        CALLGRIND_DUMP_STATS;
        CALLGRIND_STOP_INSTRUMENTATION;
        break;
    default:
        return;
    }
    atomic_store(&page->request, NOTHING);
    atomic_fetch_add(&page->done, 1);
}

// While the clock stands, a timeout is no time: the server sleeps until it hears something. The clock has moved by then.
int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms) {
    static int (*real)(int, struct epoll_event *, int, int);
    if (!real) real = dlsym(RTLD_NEXT, "epoll_wait");
    int count = real(epoll, events, most, timeout_ms == 0 ? 0 : LONGEST_WAIT_MS);
    do_request();
    return count;
}
