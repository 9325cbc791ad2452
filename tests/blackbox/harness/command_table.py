"""What COMMAND INFO must say about each command, to clients, ACLs and cluster routing.

The part for people (summary, arguments, complexity) is on the pages in docs/commands/.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Expected:
    name: str
    arity: int
    flags: set[str]
    categories: set[str]
    key_flags: set[str]
    example: str
    keys: tuple[str, ...] = ("the-key",)
    since: str = "0.1.0"
    # The word behind which there may be one more.
    another_key: str | None = None

    def __str__(self) -> str:
        return self.name


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
        example="dq.add the-key id body DELAY 5 NX",
    ),
    Expected(
        name="dq.madd",
        arity=-5,
        flags={"write", "module", "denyoom"},
        categories={"@write", "@slow"},
        key_flags=UPDATE,
        example="dq.madd the-key 2 id body * body SPREAD 5",
        since="0.3.0",
    ),
    Expected(
        name="dq.pop",
        arity=-2,
        flags={"write", "blocking", "module"},
        categories={"@write", "@slow", "@blocking"},
        key_flags=TAKE,
        example="dq.pop the-key COUNT 5",
    ),
    Expected(
        name="dq.mpop",
        arity=-3,
        flags={"write", "blocking", "module", "movablekeys"},
        categories={"@write", "@slow", "@blocking"},
        key_flags=TAKE,
        example="dq.mpop 2 the-key the-other-key COUNT 5",
        keys=("the-key", "the-other-key"),
    ),
    Expected(
        name="dq.finish",
        arity=-3,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=REMOVE,
        example="dq.finish the-key a * b *",
    ),
    Expected(
        name="dq.done",
        arity=-4,
        flags={"write", "module"},
        categories={"@write", "@slow"},
        key_flags=UPDATE,
        example="dq.done the-key a * RESULT x ADD b y",
        since="0.3.0",
    ),
    Expected(
        name="dq.release",
        arity=-4,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        example="dq.release the-key a * DELAY 5 REASON why",
    ),
    Expected(
        name="dq.touch",
        arity=-4,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        example="dq.touch the-key a * TTR 5",
    ),
    Expected(
        name="dq.renew",
        arity=-6,
        flags={"write", "blocking", "module"},
        categories={"@write", "@slow", "@blocking"},
        key_flags=UPDATE,
        example="dq.renew the-key 0 5 a * b *",
        since="0.3.0",
    ),
    Expected(
        name="dq.bury",
        arity=-4,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        example="dq.bury the-key a * REASON why",
    ),
    Expected(
        name="dq.del",
        arity=-3,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=REMOVE,
        example="dq.del the-key a b",
    ),
    Expected(
        name="dq.kick",
        arity=-2,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        example="dq.kick the-key COUNT 5",
    ),
    Expected(
        name="dq.kickjob",
        arity=-3,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        example="dq.kickjob the-key a b",
    ),
    Expected(
        name="dq.pause",
        arity=-2,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        example="dq.pause the-key FOR 5",
    ),
    Expected(
        name="dq.resume",
        arity=-2,
        flags=FAST_WRITE,
        categories=FAST_WRITES,
        key_flags=UPDATE,
        example="dq.resume the-key",
    ),
    Expected(
        name="dq.purge",
        arity=-4,
        flags={"write", "module"},
        categories={"@write", "@slow"},
        key_flags=REMOVE,
        example="dq.purge the-key STATE dead OLDER 5",
    ),
    Expected(
        name="dq.alter",
        arity=-3,
        flags=FAST_WRITE | {"movablekeys"},
        categories=FAST_WRITES,
        key_flags=UPDATE,
        example="dq.alter the-key TTR 5",
        another_key="SINK",
    ),
    Expected(
        name="dq.get",
        arity=3,
        flags=FAST_READ,
        categories=FAST_READS,
        key_flags=READ,
        example="dq.get the-key a",
    ),
    Expected(
        name="dq.result",
        arity=-3,
        flags={"readonly", "blocking", "module"},
        categories={"@read", "@slow", "@blocking"},
        key_flags=READ,
        example="dq.result the-key a BLOCK 5",
        since="0.3.0",
    ),
    Expected(
        name="dq.deps",
        arity=-3,
        flags={"readonly", "module"},
        categories={"@read", "@slow"},
        key_flags=READ,
        example="dq.deps the-key a FROM 5",
        since="0.3.0",
    ),
    Expected(
        name="dq.peek",
        arity=-2,
        flags={"readonly", "module"},
        categories={"@read", "@slow"},
        key_flags=READ,
        example="dq.peek the-key STATE dead AFTER a FROM 5",
    ),
    Expected(
        name="dq.scan",
        arity=-3,
        flags={"readonly", "module"},
        categories={"@read", "@slow"},
        key_flags=READ,
        example="dq.scan the-key 0 MATCH a* SCHEDULED COUNT 5",
    ),
    Expected(
        name="dq.groups",
        arity=-3,
        flags={"readonly", "module"},
        categories={"@read", "@slow"},
        key_flags=READ,
        example="dq.groups the-key 0 COUNT 5",
        since="0.2.0",
    ),
    Expected(
        name="dq.len",
        arity=-2,
        flags=FAST_READ,
        categories=FAST_READS,
        key_flags={"RO"},
        example="dq.len the-key STATE dead",
    ),
    Expected(
        name="dq.forecast",
        arity=-6,
        flags={"readonly", "module"},
        categories={"@read", "@slow"},
        key_flags=READ,
        example="dq.forecast the-key STEP 5 COUNT 5 FROM 5",
        since="0.2.0",
    ),
    Expected(
        name="dq.info",
        arity=2,
        flags=FAST_READ,
        categories=FAST_READS,
        key_flags=READ,
        example="dq.info the-key",
    ),
    Expected(
        name="dq.next",
        arity=-2,
        flags=FAST_READ,
        categories=FAST_READS,
        key_flags=set(),
        example="dq.next @daily TZ UTC COUNT 5",
        keys=(),
        since="0.2.0",
    ),
    Expected(
        name="dq.apply",
        arity=-4,
        flags={"write", "module", "admin"},
        categories={"@write", "@admin", "@dangerous", "@slow"},
        key_flags=TAKE,
        example="dq.apply the-key JOBS block",
    ),
]
