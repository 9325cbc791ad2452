"""Features of Redis that work with queues as with any key: transactions, scripts, WATCH, ACLs,
expiry, memory limits, SCAN, keys that move.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from harness.resp import fields
from harness.server import Kind, Server, eventually
from harness.shown import job
from harness.transcript import Session


def test_a_transaction_is_one_step(session: Session) -> None:
    session.check("""
        > MULTI
        OK
        > DQ.ADD q a hello
        QUEUED
        > DQ.POP q
        QUEUED
        > DQ.FINISH q a
        QUEUED
        > DQ.ADD q b x FOO
        QUEUED
        > DQ.LEN q
        QUEUED
        > EXEC
        ["a", [["a", "hello", <*>, 1]], 1, (error) ERR unknown option 'FOO', 0]
        > MULTI
        OK
        > DQ.ADD q
        (error) ERR wrong number of arguments for 'dq.add' command
        > EXEC
        (error) EXECABORT Transaction discarded because of previous errors.
        > MULTI
        OK
        > DQ.ADD q c x
        QUEUED
        > DISCARD
        OK
        > DQ.LEN q
        (integer) 0
    """)


def test_lua_scripts_see_what_clients_see(session: Session) -> None:
    session.check("""
        > EVAL "return redis.call('DQ.ADD', KEYS[1], 'a', 'hello', 'NX')" 1 q
        "a"
        > EVAL "return redis.call('DQ.ADD', KEYS[1], 'a', 'hello', 'NX')" 1 q
        (nil)
        > EVAL "return redis.call('DQ.POP', KEYS[1])" 1 q
        [["a", "hello", <lease>, 1]]
        > EVAL "return redis.call('DQ.POP', KEYS[1])" 1 q
        (nil)
        > EVAL "return redis.pcall('DQ.ADD', KEYS[1], 'a', 'x').err" 1 q
        "EXISTS id is taken in this queue"
        > EVAL "return redis.call('DQ.GET', KEYS[1], 'a')[2]" 1 q
        "a"
        > EVAL "return redis.call('DQ.FINISH', KEYS[1], 'a', ARGV[1])" 1 q <lease>
        (integer) 1
    """)


def test_a_lease_is_exact_in_lua(session: Session) -> None:
    """Its numbers are doubles."""
    session.check(
        """
        > DQ.ADD q a x
        "a"
        > EVAL "local job = redis.call('DQ.POP', KEYS[1])[1]
                return redis.call('DQ.FINISH', KEYS[1], job[1], string.format('%.0f', job[3]))" 1 q
        (integer) 1
    """.replace("\n                return", " return")
    )


def test_a_script_that_only_reads_may_look_and_not_touch(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > EVAL_RO "return redis.call('DQ.LEN', KEYS[1])" 1 q
        (integer) 1
    """)
    refused = session.call("EVAL_RO", "return redis.call('DQ.POP', KEYS[1])", 1, "q")
    assert "Write commands are not allowed from read-only scripts" in refused
    session.check("> DQ.LEN q STATE ready\n(integer) 1")


def test_server_functions_can_call_the_commands(session: Session) -> None:
    code = """#!lua name=jobs
        redis.register_function('work', function(keys)
            local jobs = redis.call('DQ.POP', keys[1], 'COUNT', '10')
            if not jobs then return 0 end
            for _, job in ipairs(jobs) do redis.call('DQ.FINISH', keys[1], job[1]) end
            return #jobs
        end)"""
    try:
        assert session.call("FUNCTION", "LOAD", code) == b"jobs"
        session.check("""
            > DQ.ADD q a x
            "a"
            > DQ.ADD q b x
            "b"
            > FCALL work 1 q
            (integer) 2
            > FCALL work 1 q
            (integer) 0
            > DQ.LEN q
            (integer) 0
        """)
    finally:
        session.check("> FUNCTION FLUSH\nOK")


# A queue with a ready job "a", a job "b" that is reserved, and a dead one.
WATCHED = """
    > DQ.ADD q dead x ATTEMPTS 1 TTR 1
    "dead"
    > DQ.POP q
    [["dead", "x", <*>, 1]]
    > DQ.ADD q b x
    "b"
    > DQ.POP q
    [["b", "x", <b>, 1]]
    > DQ.ADD q a x
    "a"
"""


@pytest.mark.parametrize(
    ("command", "breaks"),
    [
        ("DQ.GET q a", False),
        ("DQ.LEN q", False),
        ("DQ.INFO q", False),
        ("DQ.ADD q a x", False),
        ("DQ.ADD q a x NX", False),
        ("DQ.ADD q c x FOO", False),
        ("DQ.FINISH q a", False),
        ("DQ.FINISH q b 1", False),
        ("DQ.DEL q nobody", False),
        ("DQ.ADD q c x", True),
        ("DQ.ADD q a x REPLACE", True),
        ("DQ.POP q", True),
        ("DQ.FINISH q b", True),
        ("DQ.DEL q b", True),
    ],
)
def test_only_a_change_breaks_a_watch(
    server: Server, session: Session, command: str, breaks: bool
) -> None:
    session.check(WATCHED)
    with closing(server.session()) as other:
        session.check("> WATCH q\nOK")
        other.call(*command.split())
        session.check(f"""
            > MULTI
            OK
            > ECHO done
            QUEUED
            > EXEC
            {"(nil)" if breaks else '["done"]'}
        """)


@pytest.mark.parametrize("key", ["q", "none"])
def test_an_empty_pop_does_not_break_a_watch(server: Server, session: Session, key: str) -> None:
    session.check('> DQ.ADD q a x DELAY 60000\n"a"')
    with closing(server.session()) as other:
        session.check(f"> WATCH {key}\nOK")
        other.check(f"> DQ.POP {key}\n(nil)")
        session.check('> MULTI\nOK\n> ECHO done\nQUEUED\n> EXEC\n["done"]')


def test_time_does_not_break_a_watch(server: Server, session: Session) -> None:
    """A job that falls due is no write."""
    session.check("""
        > DQ.ADD q a x DELAY 20
        "a"
        > WATCH q
        OK
    """)
    with closing(server.session()) as other:
        other.eventually("> DQ.LEN q STATE ready\n(integer) 1")
        with server.client() as client:
            eventually(lambda: client.info("dq")["dq_queues_waiting"] == 0)
    session.check('> MULTI\nOK\n> ECHO done\nQUEUED\n> EXEC\n["done"]')


@pytest.fixture
def dry_run(session: Session) -> Iterator[Callable[[str, str], dict[str, bool]]]:
    """Which commands a user with these rules may give."""
    commands = {
        "add": "DQ.ADD q * x",
        "pop": "DQ.POP q",
        "finish": "DQ.FINISH q a",
        "del": "DQ.DEL q a",
        "get": "DQ.GET q a",
        "len": "DQ.LEN q",
        "info": "DQ.INFO q",
        "apply": "DQ.APPLY q QUEUE x",
    }

    def allowed(rules: str) -> set[str]:
        session.check(f"> ACL SETUSER worker reset {rules}\nOK")
        replies = {
            name: session.call("ACL", "DRYRUN", "worker", *command.split())
            for name, command in commands.items()
        }
        return {name for name, reply in replies.items() if reply == "OK"}

    yield allowed
    session.call("ACL", "DELUSER", "worker")


LOOK = {"get", "len", "info"}
WRITE = {"add", "pop", "finish", "del"}
ALL = LOOK | WRITE | {"apply"}


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ("~* +@all", ALL),
        ("~q* +@all", ALL),
        ("~other* +@all", set()),
        ("~q* -@all", set()),
        ("~q* +dq.get +dq.pop", {"get", "pop"}),
        ("~q* +@all -dq.apply", LOOK | WRITE),
        # To look, or to write without looking.
        ("%R~q* +@all", LOOK),
        ("%W~q* +@all", {"add", "finish", "del", "len"}),
    ],
)
def test_acl_rules_for_commands_and_keys_hold(
    dry_run: Callable[[str], set[str]], rules: str, allowed: set[str]
) -> None:
    assert dry_run(rules) == allowed


@pytest.mark.parametrize(
    ("rules", "allowed", "allowed_by_redis_7_0"),
    [
        ("~q* +@read", LOOK, set()),
        ("~q* +@write", WRITE | {"apply"}, set()),
        ("~q* +@read +@write -@dangerous", LOOK | WRITE, set()),
        ("~q* +@all -@write", LOOK, ALL),
        ("~q* +@all -@admin", LOOK | WRITE, ALL),
        ("~q* +@all -@dangerous", LOOK | WRITE, ALL),
    ],
)
def test_acl_rules_for_categories_hold(
    dry_run: Callable[[str], set[str]],
    kind: Kind,
    rules: str,
    allowed: set[str],
    allowed_by_redis_7_0: set[str],
) -> None:
    """Redis 7.0 leaves the commands of modules out of all categories but @all."""
    assert dry_run(rules) == (allowed_by_redis_7_0 if kind.name == "redis-7.0" else allowed)


def test_a_user_without_the_right_is_refused(server: Server, session: Session) -> None:
    session.check("""
        > DQ.ADD q a hello
        "a"
        > ACL SETUSER viewer reset on nopass %R~q* +dq.get +dq.add
        OK
    """)
    try:
        with closing(server.session()) as viewer:
            viewer.check("> AUTH viewer x\nOK")
            assert viewer.call("DQ.GET", "q", "a")[3] == b"hello"
            for command in ["DQ.ADD q b x", "DQ.GET other a", "DQ.POP q"]:
                assert viewer.call(*command.split()).startswith("NOPERM ")
        session.check("> DQ.LEN q\n(integer) 1")
    finally:
        session.check("> ACL DELUSER viewer\n(integer) 1")


def test_a_queue_can_expire(server: Server, session: Session) -> None:
    session.check("""
        > DQ.ADD q a x DELAY 60
        "a"
        > PEXPIRE q 30
        (integer) 1
        > DQ.ADD q b x DELAY 60
        "b"

        # As with every type, adding to it doesn't prolong its life.
        > PTTL q
        (integer) <left>
    """)
    assert 0 < session["left"] <= 30
    session.eventually("> DQ.INFO q\n(nil)")
    session.check("""
        > EXISTS q
        (integer) 0
        > DQ.POP q
        (nil)
        > DQ.GET q a
        (nil)
    """)
    # The timer finds nobody there, and goes on with the next queue.
    session.check('> DQ.ADD next c x DELAY 60\n"c"')
    with server.client() as client:
        eventually(lambda: client.info("dq")["dq_queues_waiting"] == 0)


def test_a_full_server_takes_no_jobs_and_goes_on_handing_out(
    fresh_server: Callable[..., Server],
) -> None:
    session = fresh_server().session()
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x DELAY 20
        "b"
        > CONFIG SET maxmemory 1
        OK
        > DQ.ADD q c x
        (error) OOM command not allowed when used memory > 'maxmemory'.
        > DQ.ADD q a x REPLACE
        (error) OOM command not allowed when used memory > 'maxmemory'.
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > DQ.FINISH q a <lease>
        (integer) 1
    """)
    session.eventually('> DQ.POP q\n[["b", "x", <*>, 1]]')
    session.check("""
        > DQ.DEL q b
        (integer) 1
        > DQ.LEN q
        (integer) 0
        > CONFIG SET maxmemory 0
        OK
        > DQ.ADD q c x
        "c"
    """)


def test_scan_finds_the_queues(session: Session) -> None:
    session.check("""
        > SET string x
        OK
        > DQ.ADD q a x
        "a"
        > DQ.ADD r a x
        "a"
    """)
    cursor, found = session.call("SCAN", 0, "TYPE", "delayq-dq", "COUNT", 1_000)
    assert (cursor, sorted(found)) == (b"0", [b"q", b"r"])


def test_the_slow_log_and_the_statistics_know_the_commands(session: Session) -> None:
    session.check("""
        > CONFIG RESETSTAT
        OK
        > DQ.ADD q a x
        "a"
        > DQ.ADD q a x
        (error) EXISTS id is taken in this queue
    """)
    calls = re.search(rb"cmdstat_dq.add:calls=(\d+),.*failed_calls=(\d+)", commandstats(session))
    assert calls.groups() == (b"2", b"1")
    assert b"errorstat_EXISTS:count=1" in session.call("INFO", "errorstats")


def commandstats(session: Session) -> bytes:
    return session.call("INFO", "commandstats")


def test_a_queue_keeps_its_jobs_when_it_moves(session: Session) -> None:
    """Where a key goes its jobs go, and come on time there."""
    session.check("""
        > DQ.ADD q a x DELAY 300
        "a"
        > COPY q copy
        (integer) 1
        > RENAME q renamed
        OK
        > DQ.POP renamed
        (nil)
    """)
    assert job(session, "copy", "a") == job(session, "renamed", "a")
    session.eventually('> DQ.POP renamed\n[["a", "x", <lease>, 1]]')
    session.eventually('> DQ.POP copy\n[["a", "x", <other>, 1]]')
    assert session["lease"] < session["other"]
    assert fields(session.call("DQ.INFO", "copy"))["total-added"] == 1
