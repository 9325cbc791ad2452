"""The queues of the golden files, as the sessions that make them (make.py).

The files are looked at an hour later: what takes ten minutes is over by then, and what takes a day
isn't.
"""

# One session after the other; a command after `# Later` is repeated until it gives its reply.
SESSIONS = [
    r"""
    # A job in each stage, and in each way to it.
    > DQ.ADD stages buried x
    "buried"
    > DQ.POP stages
    [["buried", "x", <*>, 1]]
    > DQ.BURY stages buried * REASON "no such customer"
    (integer) 1
    > DQ.ADD stages buried-without-a-word x ATTEMPTS 0 TTL 86400000
    <*>
    > DQ.POP stages
    [["buried-without-a-word", "x", <lease>, 1]]
    > DQ.BURY stages buried-without-a-word <lease>
    (integer) 1
    > DQ.ADD stages released-for-the-last-time x ATTEMPTS 1
    <*>
    > DQ.POP stages
    [[<*>, "x", <*>, 1]]
    > DQ.RELEASE stages released-for-the-last-time * REASON "\x00\xff\r\n"
    (integer) 1
    > DQ.ADD stages dead-by-ttl-before x TTL 1 DELAY 86400000
    <*>
    # Later its life is over.
    > DQ.LEN stages STATE dead
    (integer) 4
    > DQ.ADD stages dead-by-ttl-after x TTL 600000 DELAY 86400000
    <*>
    > DQ.ADD stages dead-by-ttl-in-hand x TTL 600000
    <*>
    > DQ.POP stages TTR 86400000
    [[<*>, "x", <*>, 1]]

    > DQ.ADD stages done x KEEP 86400000
    "done"
    > DQ.POP stages
    [["done", "x", <*>, 1]]
    > DQ.FINISH stages done
    (integer) 1
    > DQ.ADD stages done-without-acknowledgement x KEEP 172800000 TTL 86400000
    <*>
    > DQ.POP stages NOACK
    [[<*>, "x", (nil), 1]]

    > DQ.ADD stages leased x TTR 86400000
    "leased"
    > DQ.POP stages
    [["leased", "x", <*>, 1]]
    > DQ.ADD stages leased-at-the-last-attempt x TTR 1 ATTEMPTS 1
    <*>
    > DQ.POP stages TTR 86400000
    [[<*>, "x", <*>, 1]]
    > DQ.ADD stages leased-without-limit x TTR 86400000 ATTEMPTS 0
    <*>
    > DQ.POP stages
    [[<*>, "x", <*>, 1]]
    > DQ.ADD stages leased-twice x TTR 1 ATTEMPTS 2
    "leased-twice"
    > DQ.POP stages
    [["leased-twice", "x", <*>, 1]]
    # Later the first lease has ended.
    > DQ.POP stages TTR 86400000
    [["leased-twice", "x", <*>, 2]]
    > DQ.ADD stages touched x TTR 600000 TTL 172800000
    "touched"
    > DQ.POP stages
    [["touched", "x", <*>, 1]]
    > DQ.TOUCH stages touched * TTR 86400000
    (integer) 1

    > DQ.ADD stages timed-out-after x TTR 600000 PRIORITY 3
    <*>
    > DQ.ADD stages timed-out-at-the-last-attempt x TTR 600000 ATTEMPTS 1 PRIORITY 4
    <*>
    > DQ.POP stages COUNT 2
    [["timed-out-after", <...>], ["timed-out-at-the-last-attempt", "x", <*>, 1]]
    > DQ.ADD stages dead-at-the-last-attempt x TTR 1 ATTEMPTS 1
    <*>
    > DQ.POP stages
    [[<*>, "x", <*>, 1]]
    # Later it is dead.
    > DQ.LEN stages STATE dead
    (integer) 5
    > DQ.ADD stages timed-out-before x TTR 1
    <*>
    > DQ.POP stages
    [[<*>, "x", <*>, 1]]
    # Later it is ready again.
    > DQ.LEN stages STATE ready
    (integer) 1

    > DQ.ADD stages ready "a body\r\n\x00\xff" PRIORITY 2
    "ready"
    > DQ.ADD stages delayed "" DELAY 86400000
    "delayed"
    > DQ.ADD stages due-after x DELAY 600000
    "due-after"
    > DQ.ADD stages mortal x DELAY 86400000 TTL 172800000
    "mortal"

    # Gone: these show in the totals.
    > DQ.ADD stages gone-1 x PRIORITY 0
    "gone-1"
    > DQ.ADD stages gone-2 x PRIORITY 0
    "gone-2"
    > DQ.ADD stages gone-3 x PRIORITY 0
    "gone-3"
    > DQ.POP stages COUNT 2
    [["gone-1", "x", <gone_1>, 1], ["gone-2", "x", <gone_2>, 1]]
    > DQ.FINISH stages gone-1 <gone_1> gone-2 <gone_2> nobody *
    (integer) 2
    > DQ.POP stages NOACK
    [["gone-3", "x", (nil), 1]]
    > DQ.ADD stages gone-4 x
    "gone-4"
    > DQ.DEL stages gone-4 nobody
    (integer) 1
    """,
    r"""
    # Ids are any bytes, or made by the queue.
    > DQ.ADD ids "\x00" x DELAY 86400000
    "\x00"
    > DQ.ADD ids "\r\n$5\r\n" x DELAY 86400000
    "\r\n$5\r\n"
    > DQ.ADD ids "\xff\xfe\x80" x DELAY 86400000
    "\xff\xfe\x80"
    > DQ.ADD ids <any_bytes> x
    <any_bytes>
    > DQ.ADD ids <long> x
    <long>
    > DQ.ADD ids "two words" x
    "two words"
    > DQ.ADD ids 7 x
    "7"
    > MULTI
    OK
    > DQ.ADD ids * one
    QUEUED
    > DQ.ADD ids * two DELAY 86400000
    QUEUED
    > DQ.ADD ids * three
    QUEUED
    > EXEC
    [<*>, <*>, <*>]
    > DQ.ADD ids "\"quoted\"" x
    "\"quoted\""
    > DQ.ADD ids 7 y NX
    (nil)
    """,
    r"""
    # The order: priority, due time, order of scheduling. No id tells it.
    > DQ.ADD order z x AT <far>
    "z"
    > DQ.ADD order a x AT <far>
    "a"
    > DQ.ADD order m x AT <far>
    "m"
    > DQ.ADD order urgent x AT <far> PRIORITY 0
    "urgent"
    > DQ.ADD order lazy x PRIORITY 255
    "lazy"
    > DQ.ADD order replaced old PRIORITY 3
    "replaced"
    > DQ.ADD order replaced new PRIORITY 130 REPLACE
    "replaced"
    > DQ.ADD order kicked-z x PRIORITY 200 DELAY 86400000
    "kicked-z"
    > DQ.ADD order kicked-a x PRIORITY 200 DELAY 86400000 TTL 86400000
    "kicked-a"
    > DQ.KICKJOB order kicked-z nobody kicked-a
    (integer) 2
    > DQ.ADD order kicked-when-dead x ATTEMPTS 1
    <*>
    > DQ.POP order
    [["kicked-when-dead", "x", <*>, 1]]
    > DQ.BURY order kicked-when-dead * REASON "kept by a kick"
    (integer) 1
    > DQ.ADD order released-z x PRIORITY 5
    "released-z"
    > DQ.ADD order released-a x PRIORITY 5
    "released-a"
    > DQ.ADD order unbegun x PRIORITY 5
    "unbegun"
    > DQ.POP order COUNT 3
    [["released-z", "x", <*>, 1], ["released-a", "x", <*>, 1], ["unbegun", "x", <*>, 1]]
    > DQ.RELEASE order unbegun * UNBEGUN
    (integer) 1
    > DQ.RELEASE order released-a * REASON "try again"
    (integer) 1
    > DQ.RELEASE order released-z * DELAY 600000
    (integer) 1
    > DQ.KICK order COUNT 5
    (integer) 1
    > DQ.ADD order the-last-time-there-is "" AT 281474976710655
    <*>
    > DQ.ADD order second x DELAY 600001 PRIORITY 7
    "second"
    > DQ.ADD order first x DELAY 600000 PRIORITY 7
    "first"
    """,
    r"""
    # Policies, and the wait after an attempt that failed: its jitter follows from the lease.
    > DQ.ADD policies backing-off x TTR 600000 BACKOFF 86400000 172800000
    <*>
    > DQ.POP policies
    [["backing-off", "x", <*>, 1]]
    > DQ.ADD policies backed-off x TTR 600000 BACKOFF 1200000 172800000
    <*>
    > DQ.POP policies
    [["backed-off", "x", <*>, 1]]
    > DQ.ADD policies released-with-backoff x BACKOFF 86400000 86400000
    <*>
    > DQ.POP policies
    [["released-with-backoff", "x", <*>, 1]]
    > DQ.RELEASE policies released-with-backoff *
    (integer) 1
    > DQ.ADD policies third-attempt x TTR 1 BACKOFF 2 20000000
    <*>
    > DQ.POP policies
    [["third-attempt", "x", <*>, 1]]
    # Later the wait after the first attempt is over.
    > DQ.POP policies
    [["third-attempt", "x", <*>, 2]]
    # Later that after the second, too.
    > DQ.POP policies TTR 600000
    [["third-attempt", "x", <*>, 3]]
    > DQ.ADD policies all x AT <far> TTR 5 PRIORITY 1 ATTEMPTS 3 BACKOFF 10 60000 TTL 172800000 KEEP 86400000
    "all"
    > DQ.ADD policies longest x DELAY 86400000 TTR 281474976710655 ATTEMPTS 4294967295
    "longest"
    > DQ.ADD policies none x
    "none"
    """,
    r"""
    # Settings: what jobs get that were added before, and after.
    > DQ.ADD settings before x DELAY 86400000
    "before"
    > DQ.ALTER settings TTR 5000 ATTEMPTS 7 BACKOFF 10 1000 KEEP 86400000 MAXJOBS 3 DEADKEEP 864000000
    OK
    > DQ.ADD settings after x DELAY 86400000
    "after"
    > DQ.ADD settings own x TTR 86400000 ATTEMPTS 0 KEEP 0 BACKOFF 0 0
    "own"
    > DQ.ADD settings one-too-many x
    (error) FULL the queue holds as many jobs as it may
    > DQ.POP settings
    [["own", "x", <*>, 1]]
    > DQ.ALTER defaults TTR 1
    OK
    """,
    r"""
    # Pauses: without end, until tomorrow, until a time that is over when it is looked at, and
    # resumed.
    > DQ.ADD paused a x
    "a"
    > DQ.PAUSE paused
    OK
    > DQ.ADD paused-for-a-day a x
    "a"
    > DQ.PAUSE paused-for-a-day FOR 86400000
    OK
    > DQ.ADD paused-for-ten-minutes a x
    "a"
    > DQ.PAUSE paused-for-ten-minutes FOR 600000
    OK
    > DQ.ADD resumed a x
    "a"
    > DQ.PAUSE resumed
    OK
    > DQ.RESUME resumed
    OK
    """,
    r"""
    # Queues without jobs: their last lease and their totals stay.
    > DQ.ADD emptied a x
    "a"
    > DQ.POP emptied
    [["a", "x", <emptied>, 1]]
    > DQ.FINISH emptied a <emptied>
    (integer) 1
    > DQ.ADD deleted a x
    "a"
    > DQ.POP deleted
    [["a", "x", <*>, 1]]
    > DEL deleted
    (integer) 1
    > DQ.ADD deleted a x
    "a"
    > DQ.DEL deleted a
    (integer) 1
    """,
    r"""
    # Purges: by hand, and by time (of dead jobs, of a job that is done).
    > DQ.ADD purged a x ATTEMPTS 1
    "a"
    > DQ.ADD purged b x ATTEMPTS 1
    "b"
    > DQ.POP purged COUNT 2
    [["a", "x", <*>, 1], ["b", "x", <*>, 1]]
    > DQ.RELEASE purged a *
    (integer) 1
    > DQ.PURGE purged STATE dead
    (integer) 1
    > DQ.ALTER purged DEADKEEP 1
    OK
    > DQ.RELEASE purged b *
    (integer) 1
    # Later nothing is left.
    > DQ.LEN purged
    (integer) 0
    > DQ.ADD purged c x KEEP 1
    "c"
    > DQ.POP purged NOACK
    [["c", "x", (nil), 1]]
    # Later that, too, is gone.
    > DQ.LEN purged
    (integer) 0
    """,
    r"""
    # Schedules: by EVERY and by CRON, one that is being worked on, one that failed, one that ended.
    > DQ.ADD schedules every x EVERY 86400000 JITTER 1000 RUNS 9 UNTIL 4102444800000 MISFIRE ALL
    "every"
    > DQ.ADD schedules cron x CRON "30 2 1 1 *" TZ America/Santiago
    "cron"
    > DQ.ADD schedules begun x CRON @yearly TTR 86400000
    "begun"
    > DQ.KICKJOB schedules begun
    (integer) 1
    > DQ.POP schedules
    [["begun", "x", <*>, 1]]
    > DQ.ADD schedules failed x EVERY 86400000 DELAY 0 ATTEMPTS 1
    "failed"
    > DQ.POP schedules
    [["failed", "x", <*>, 1]]
    > DQ.RELEASE schedules failed * REASON "not today"
    (integer) 1
    > DQ.ADD schedules ended x EVERY 86400000 DELAY 0
    "ended"
    > DQ.POP schedules
    [["ended", "x", <*>, 1]]
    > DQ.BURY schedules ended *
    (integer) 1
    """,
    r"""
    # Limits: places that are taken, a rate that has got somewhere, and one that was changed.
    > DQ.ALTER limits CONCURRENCY 2 RATE 7 86400000 BURST 3
    OK
    > DQ.ADD limits a x TTR 86400000
    "a"
    > DQ.ADD limits b x TTR 86400000
    "b"
    > DQ.ADD limits c x TTR 86400000
    "c"
    > DQ.POP limits COUNT 9
    [["a", "x", <*>, 1], ["b", "x", <*>, 1]]
    > DQ.FINISH limits a *
    (integer) 1
    > DQ.ALTER limits RATE 11 86400000 BURST 2
    OK
    > DQ.ALTER places CONCURRENCY 5
    OK
    """,
    r"""
    # A sink, of which nothing is due.
    > DQ.ALTER sink SINK "a stream" MAXLEN 1000
    OK
    > DQ.ADD sink a x DELAY 86400000
    "a"
    """,
    r"""
    # Many jobs in one step: each with its time, spread over a time, and beside those that are there.
    > DQ.MADD many 3 each-after x each-before y each-ready z DELAYS 86400000 600000 0 TTL 172800000
    ["each-after", "each-before", "each-ready"]
    > DQ.MADD many 2 at-once x at-a-time y ATS 0 <far> PRIORITY 7 GROUP g
    ["at-once", "at-a-time"]
    > DQ.MADD many 3 spread-1 x spread-2 y spread-3 z SPREAD 7200000 DELAY 1 LATE 172800000
    ["spread-1", "spread-2", "spread-3"]
    > DQ.MADD many 3 at-once new spread-1 new fresh x NX
    [(nil), (nil), "fresh"]
    > DQ.MADD many 2 * made at-a-time new REPLACE AT <far>
    [<*>, "at-a-time"]
    > DQ.MADD many 2 refused x each-ready y
    (error) EXISTS job 2: id is taken in this queue
    """,
    r"""
    # Many that wait for others, and others for many; some are held no more, and keep their times.
    > DQ.ADD fans first x KEEP 172800000
    "first"
    > DQ.MADD fans 2 part-1 x part-2 y AFTER 1 first ONDEAD RUN SPREAD 14400000
    ["part-1", "part-2"]
    > DQ.ADD fans last x HOLD
    "last"
    > DQ.MADD fans 2 before-1 x before-2 y BEFORE 1 last DELAYS 86400000 600000
    ["before-1", "before-2"]
    > DQ.MADD fans 2 held-1 x held-2 y HOLD SPREAD 14400000
    ["held-1", "held-2"]
    > DQ.RESUME fans ID held-2
    (integer) 1
    > DQ.POP fans
    [["first", "x", <*>, 1]]
    > DQ.FINISH fans first *
    (integer) 1
    """,
    r"""
    # Dead jobs that come back one after the other.
    > DQ.MADD kicked 4 a x b x c x d x ATTEMPTS 1
    ["a", "b", "c", "d"]
    > DQ.POP kicked COUNT 4
    [["a", <...>], ["b", <...>], ["c", <...>], ["d", "x", <*>, 1]]
    > DQ.BURY kicked a *
    (integer) 1
    > DQ.BURY kicked b * REASON "kept by a kick"
    (integer) 1
    > DQ.BURY kicked c *
    (integer) 1
    > DQ.BURY kicked d *
    (integer) 1
    > DQ.KICK kicked COUNT 3 SPREAD 7200000
    (integer) 3
    """,
    r"""
    # Keys that the server moved, copied and restored.
    > DQ.ADD renamed-from a x DELAY 86400000
    "a"
    > RENAME renamed-from renamed
    OK
    > COPY policies copied
    (integer) 1
    > DUMP settings
    <dump>
    > RESTORE restored 0 <dump>
    OK
    """,
    r"""
    # Several queues at once, and scripts.
    > DQ.ADD several a x TTR 86400000
    "a"
    > DQ.ADD several b x
    "b"
    > DQ.MPOP 2 nothing several
    ["several", [["a", "x", <*>, 1]]]
    > EVAL "return redis.call('DQ.ADD', KEYS[1], '*', 'by a script', 'DELAY', 86400000)" 1 several
    <*>
    """,
]

# Consumers that wait (consumers.py): what is handed out to them, and what comes back because they
# have gone.
WAITED = """
    one> DQ.POP waited BLOCK 0
    two> DQ.MPOP 2 nothing waited BLOCK 0 TTR 600000
    three> DQ.POP waited BLOCK 0 NOACK
    > DQ.ADD waited leased x TTR 86400000
    "leased"
    one< [["leased", "x", <*>, 1]]
    > DQ.ADD waited timed-out x
    "timed-out"
    two< ["waited", [["timed-out", "x", <*>, 1]]]
    > DQ.ADD waited gone x
    "gone"
    three< [["gone", "x", (nil), 1]]
    three> DQ.POP waited BLOCK 0 NOACK
    > DQ.ADD waited done x KEEP 86400000
    "done"
    three< [["done", "x", (nil), 1]]
"""
# Its consumer is killed in the turn in which it is served: the job is given back.
GIVEN_BACK = "given-back"
