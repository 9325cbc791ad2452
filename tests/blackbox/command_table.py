"""What the server is told about each command, and tells clients, ACLs, cluster routing and redis-cli.

The arguments stand here as redis-cli would show them: `[]` is optional, `|` one of several, `...` repeated,
and a name that isn't a string carries its type.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Expected:
    name: str
    arity: int
    flags: set[str]
    categories: set[str]
    key_flags: set[str]
    summary: str
    complexity: str
    arguments: str
    example: str
    keys: tuple[str, ...] = ("the-key",)

    def __str__(self) -> str:
        return self.name


PER_JOB = "O(M*log(N)) with N being the number of jobs in the queue and M the number "
ONE_JOB = "O(log(N)) with N being the number of jobs in the queue"
BACKOFF = " [BACKOFF base-milliseconds:integer max-milliseconds:integer]"
STATE = "STATE delayed|ready|reserved|dead|done"
CONSUMER = "[COUNT count:integer] [BLOCK milliseconds:integer] [TTR time-to-run:integer] [NOACK]"

FAST_WRITE = {"write", "module", "fast"}
GROWING = FAST_WRITE | {"denyoom"}
FAST_READ = {"readonly", "module", "fast"}
FAST_WRITES, FAST_READS = {"@write", "@fast"}, {"@read", "@fast"}
UPDATE, TAKE, REMOVE = {"RW", "update"}, {"RW", "access", "update"}, {"RW", "delete"}
READ = {"RO", "access"}

COMMANDS = [
    Expected(
        name="dq.add",
        arity=-4,
        flags=GROWING,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        summary="Adds a job to a queue, to be handed out from its due time on",
        complexity=ONE_JOB,
        arguments="key *|id body"
        " [DELAY milliseconds:integer|AT unix-time-milliseconds:unix-time]"
        " [TTR time-to-run:integer] [PRIORITY priority:integer] [ATTEMPTS attempts:integer]"
        f"{BACKOFF} [TTL time-to-live:integer] [KEEP keep-milliseconds:integer] [NX|REPLACE]",
        example="dq.add the-key id body DELAY 5 NX",
    ),
    Expected(
        name="dq.pop",
        arity=-2,
        flags={"write", "blocking", "module"},
        categories={"@write", "@slow", "@blocking"},
        key_flags=TAKE,
        summary="Hands out the first ready jobs of a queue, each with a lease",
        complexity=PER_JOB + "handed out",
        arguments=f"key {CONSUMER}",
        example="dq.pop the-key COUNT 5",
    ),
    Expected(
        name="dq.mpop",
        arity=-3,
        flags={"write", "blocking", "module", "movablekeys"},
        categories={"@write", "@slow", "@blocking"},
        key_flags=TAKE,
        summary="Hands out the first ready jobs of the first of several queues that has one",
        complexity="O(K+M*log(N)) with K being the number of keys, N that of jobs in the queue and M that of"
        " jobs handed out",
        arguments=f"numkeys:integer key... {CONSUMER}",
        example="dq.mpop 2 the-key the-other-key COUNT 5",
        keys=("the-key", "the-other-key"),
    ),
    Expected(
        name="dq.finish",
        arity=-3,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=REMOVE,
        summary="Takes jobs whose work is done from a queue",
        complexity=PER_JOB + "of ids",
        arguments="key id [lease] [id lease...]",
        example="dq.finish the-key a * b *",
    ),
    Expected(
        name="dq.release",
        arity=-4,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        summary="Gives a job back, to be handed out again after a delay or its backoff",
        complexity=ONE_JOB,
        arguments="key id lease [DELAY milliseconds:integer|UNBEGUN] [REASON text]",
        example="dq.release the-key a * DELAY 5 REASON why",
    ),
    Expected(
        name="dq.touch",
        arity=-4,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        summary="Makes a lease last for a time to run from now on",
        complexity=ONE_JOB,
        arguments="key id lease [TTR time-to-run:integer]",
        example="dq.touch the-key a * TTR 5",
    ),
    Expected(
        name="dq.bury",
        arity=-4,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        summary="Puts a job aside as dead, for an operator to look at",
        complexity=ONE_JOB,
        arguments="key id lease [REASON text]",
        example="dq.bury the-key a * REASON why",
    ),
    Expected(
        name="dq.del",
        arity=-3,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=REMOVE,
        summary="Removes jobs from a queue, whatever their state",
        complexity=PER_JOB + "of ids",
        arguments="key id...",
        example="dq.del the-key a b",
    ),
    Expected(
        name="dq.kick",
        arity=-2,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        summary="Makes dead jobs ready, those first that died first",
        complexity=PER_JOB + "kicked",
        arguments="key [COUNT count:integer]",
        example="dq.kick the-key COUNT 5",
    ),
    Expected(
        name="dq.kickjob",
        arity=-3,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        summary="Makes dead or delayed jobs ready, by id",
        complexity=PER_JOB + "of ids",
        arguments="key id...",
        example="dq.kickjob the-key a b",
    ),
    Expected(
        name="dq.pause",
        arity=-2,
        flags=GROWING,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        summary="Makes a queue hand out nothing, for a time or until it is resumed",
        complexity="O(1)",
        arguments="key [FOR milliseconds:integer]",
        example="dq.pause the-key FOR 5",
    ),
    Expected(
        name="dq.resume",
        arity=2,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        summary="Makes a paused queue hand out jobs again",
        complexity="O(1)",
        arguments="key",
        example="dq.resume the-key",
    ),
    Expected(
        name="dq.purge",
        arity=-4,
        flags={"write", "module"},
        categories={"@write", "@slow"},
        key_flags=REMOVE,
        summary="Removes jobs by state and age, some at a time",
        complexity=PER_JOB + "removed",
        arguments=f"key {STATE} [OLDER milliseconds:integer] [COUNT count:integer]",
        example="dq.purge the-key STATE dead OLDER 5",
    ),
    Expected(
        name="dq.alter",
        arity=-3,
        flags=GROWING,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        summary="Sets a queue's defaults for jobs that are added, and its limits",
        complexity="O(1)",
        arguments=f"key [TTR time-to-run:integer] [ATTEMPTS attempts:integer]{BACKOFF}"
        " [KEEP keep-milliseconds:integer] [MAXJOBS jobs:integer] [DEADKEEP dead-milliseconds:integer]",
        example="dq.alter the-key TTR 5",
    ),
    Expected(
        name="dq.get",
        arity=3,
        flags=FAST_READ,
        categories=FAST_READS,
        key_flags=READ,
        summary="Shows a job of a queue",
        complexity=ONE_JOB,
        arguments="key id",
        example="dq.get the-key a",
    ),
    Expected(
        name="dq.peek",
        arity=-2,
        flags={"readonly", "module"},
        categories={"@read", "@slow"},
        key_flags=READ,
        summary="Shows jobs in the order in which they leave a state",
        complexity="O(M) with M being the number of jobs shown",
        arguments=f"key [{STATE}] [COUNT count:integer]",
        example="dq.peek the-key STATE dead",
    ),
    Expected(
        name="dq.scan",
        arity=-3,
        flags={"readonly", "module"},
        categories={"@read", "@slow"},
        key_flags=READ,
        summary="Goes through the ids of a queue's jobs, a part at a time",
        complexity="O(M) with M being the number of jobs looked at; O(N) for a whole scan",
        arguments=f"key cursor:integer [{STATE}] [COUNT count:integer]",
        example="dq.scan the-key 0 COUNT 5",
    ),
    Expected(
        name="dq.len",
        arity=-2,
        flags=FAST_READ,
        categories=FAST_READS,
        key_flags={"RO"},
        summary="Tells how many jobs a queue holds, or how many are in a state",
        complexity="O(1)",
        arguments=f"key [{STATE}]",
        example="dq.len the-key STATE dead",
    ),
    Expected(
        name="dq.info",
        arity=2,
        flags=FAST_READ,
        categories=FAST_READS,
        key_flags=READ,
        summary="Shows a queue: settings, counts by state, totals, next due",
        complexity="O(1)",
        arguments="key",
        example="dq.info the-key",
    ),
    Expected(
        name="dq.apply",
        arity=-4,
        flags={"write", "module", "admin"},
        categories={"@write", "@admin", "@dangerous", "@slow"},
        key_flags=TAKE,
        summary="An internal command: what replicas and the AOF get instead of DQ.ADD and DQ.POP",
        complexity=PER_JOB + "of jobs changed",
        arguments="key PUT id body record|LEASE leases|MOVE moves|DROP record|QUEUE record",
        example="dq.apply the-key PUT id body record",
    ),
]
