"""Bad input, as in test_bad_options.py: keys of other types, and malformed entries of the log."""

import pytest

from harness.clock import now_ms
from harness.observer import Observer, check_refused
from harness.resp import Failure
from harness.server import Server
from harness.transcript import Session, split

# Keys of every other type, each with a command that makes it.
OTHERS = {
    "string": "SET string x",
    "list": "RPUSH list x",
    "set": "SADD set x",
    "hash": "HSET hash f x",
    "zset": "ZADD zset 1 x",
    "stream": "XADD stream 1-1 f x",
}

# Records that DQ.APPLY takes: an effect that is fine but for the key.
JOBS = r"\x93\xc4\x01a\xc4\x01x\x98\x00\x00\x01\x00\x00\x00\x00\x00"
QUEUE_RECORD = (
    r"\x99\x00\x92\x00\x00\x9c"
    + 12 * r"\x00"
    + r"\x00\x00\x9b\xc0\xc0\x92\x00\x00\x00\x00\xc0\x00\xc0\xc0\xc0\xc0"
    + r"\x93\x00\x92\x00\x00\x00"
    + r"\x92\x00\x00\x93\x00\x00\x00"
)

# Each command as it works; `{}` is the key.
COMMANDS = [
    "DQ.ADD {} a x",
    "DQ.ADD {} * x DELAY 1000 REPLACE",
    "DQ.ADD {} a x AFTER 1 b",
    "DQ.MADD {} 2 a x c x",
    "DQ.POP {}",
    "DQ.POP {} BLOCK 1 NOACK",
    "DQ.MPOP 1 {}",
    "DQ.MPOP 2 {} none BLOCK 1",
    "DQ.MPOP 2 none {} BLOCK 1",
    "DQ.FINISH {} a",
    "DQ.FINISH {} a 1 b *",
    "DQ.RELEASE {} a *",
    "DQ.RELEASE {} a 1 DELAY 5 REASON why",
    "DQ.TOUCH {} a *",
    "DQ.RENEW {} 0 0 a *",
    "DQ.RENEW {} 5 5 a 17 b *",
    "DQ.DONE {} a * ADD b x",
    "DQ.BURY {} a * REASON why",
    "DQ.DEL {} a",
    "DQ.KICK {} COUNT 5",
    "DQ.KICKJOB {} a",
    "DQ.PAUSE {}",
    "DQ.PAUSE {} FOR 5",
    "DQ.RESUME {}",
    "DQ.RESUME {} GROUP g",
    "DQ.RESUME {} ID a",
    "DQ.PURGE {} STATE dead",
    "DQ.ALTER {} TTR 5",
    "DQ.GET {} a",
    "DQ.RESULT {} a",
    "DQ.DEPS {} a",
    "DQ.RESULT {} a BLOCK 5",
    "DQ.PEEK {}",
    "DQ.SCAN {} 0",
    "DQ.GROUPS {} 0",
    "DQ.LEN {}",
    "DQ.LEN {} STATE dead",
    "DQ.INFO {}",
    "DQ.FORECAST {} STEP 5 COUNT 5",
    f'DQ.APPLY {{}} JOBS "{JOBS}"',
    f'DQ.APPLY {{}} QUEUE "{QUEUE_RECORD}"',
]
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"


def test_the_table_of_wrong_keys_has_every_command(lone_session: Session) -> None:
    names = lone_session.call("COMMAND", "LIST", "FILTERBY", "MODULE", "dq")
    without_a_key = {"DQ.NEXT"}
    in_table = {command.split()[0] for command in COMMANDS}
    assert {name.decode().upper() for name in names} == in_table | without_a_key


def test_the_commands_of_the_table_work_on_a_queue(lone_session: Session) -> None:
    for command in COMMANDS:
        lone_session.check("> DEL queue\n(integer) <*>")
        lone_session.check('> DQ.ADD queue b x\n"b"')
        reply = lone_session.call(*split(command.format("queue")))
        assert not isinstance(reply, Failure), command


@pytest.mark.parametrize("kind_of_key", OTHERS)
def test_every_command_refuses_keys_of_other_types(
    lone: Server, lone_session: Session, kind_of_key: str
) -> None:
    lone_session.call(*OTHERS[kind_of_key].split())
    observer = Observer(lone)
    for command in COMMANDS:
        lone_session.check(f"> {command.format(kind_of_key)}\n(error) {WRONG_TYPE}")
        observer.check_nothing_changed(command)
    # The words are read before the key.
    lone_session.check(f"> DQ.ADD {kind_of_key} a x FOO\n(error) ERR unknown option 'FOO'")


def test_every_command_refuses_a_key_of_another_modules_type(
    lone: Server, lone_session: Session
) -> None:
    if lone_session.call("COMMAND", "INFO", "VADD") == [None]:
        pytest.skip("this server brings no other module's type")
    lone_session.check("> VADD vectors VALUES 2 1 1 x\n(integer) 1")
    observer = Observer(lone)
    for command in COMMANDS:
        lone_session.check(f"> {command.format('vectors')}\n(error) {WRONG_TYPE}")
        observer.check_nothing_changed(command)


def test_the_servers_own_commands_refuse_a_queue(lone: Server, lone_session: Session) -> None:
    observer = Observer(lone)
    for command in [
        "GET q",
        "APPEND q x",
        "LPUSH q x",
        "SADD q x",
        "HSET q f x",
        "ZADD q 1 x",
        "XADD q * f x",
    ]:
        lone_session.check(f"> {command}\n(error) {WRONG_TYPE}")
        observer.check_nothing_changed(command)


def test_log_entries_that_are_malformed_are_refused(lone: Server, lone_session: Session) -> None:
    unreadable = "ERR a record is not what this version can read"
    too_long = "ERR a record has bytes after its end"
    table = [
        (
            "DQ.APPLY {} FOO x",
            "ERR unknown command 'FOO' in the log: a newer dq may have written it",
        ),
        (
            r'DQ.APPLY {} "\xff" x',
            r"ERR unknown command '\xff' in the log: a newer dq may have written it",
        ),
        ("DQ.APPLY {} JOBS y", unreadable),
        (f'DQ.APPLY {{}} JOBS "{JOBS[:-4]}"', unreadable),
        (f'DQ.APPLY {{}} JOBS "{JOBS}x"', unreadable),
        ("DQ.APPLY {} QUEUE x", unreadable),
        (f'DQ.APPLY {{}} QUEUE "{QUEUE_RECORD}x"', too_long),
    ]
    check_refused(lone, lone_session, table)


def test_log_entries_that_no_server_can_have_written_are_refused(
    lone: Server, lone_session: Session
) -> None:
    """From a client. They would stop the queue for as long, since its leases begin with the
    time.
    """
    now = now_ms()
    far, floor = now + 2 * 366 * 24 * 3_600_000, (now + 2 * 366 * 24 * 3_600_000) << 11
    check_refused(
        lone,
        lone_session,
        [
            (f"DQ.APPLY {{}} {far} check=0 DQ.POP", "ERR the time is more than a year ahead"),
            (f"DQ.APPLY {{}} {far} check=0 DQ.ADD a x", "ERR the time is more than a year ahead"),
            (
                f"DQ.APPLY {{}} {now} check=0,floor={floor} DQ.POP",
                "ERR leases are from more than a year ahead",
            ),
        ],
    )
