"""Bad input gets one clear error that names what is wrong, and changes nothing.

After every error stands the same check: all keys, the queue, its totals, the AOF and the module's
counters are as they were.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resp import Failure
from server import Server
from transcript import Session

TIME_MAX = 2**48 - 1
COUNT_MAX = 2**32 - 1

QUEUE = """
    > DQ.ADD q delayed x DELAY 3600000
    "delayed"
    > DQ.ADD q reserved x TTR 3600000
    "reserved"
    > DQ.POP q
    [["reserved", "x", <lease>, 1]]
    > DQ.ADD q ready x
    "ready"
"""

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
JOB_RECORD = r"\x99\x00\x00\x01\x00\x00\x00\x00\x00\xc2"
QUEUE_RECORD = r"\x94\x00\x00\x00\x96\x00\x00\x00\x00\x00\x00"
NO_LEASES = r"\x90"

# Each command as it works; `{}` is the key.
COMMANDS = [
    "DQ.ADD {} a x",
    "DQ.ADD {} * x DELAY 1000 REPLACE",
    "DQ.POP {}",
    "DQ.FINISH {} a",
    "DQ.FINISH {} a 1 b *",
    "DQ.DEL {} a",
    "DQ.GET {} a",
    "DQ.LEN {}",
    "DQ.LEN {} STATE dead",
    "DQ.INFO {}",
    f'DQ.APPLY {{}} PUT a x "{JOB_RECORD}"',
    f'DQ.APPLY {{}} LEASE "{NO_LEASES}"',
    f'DQ.APPLY {{}} QUEUE "{QUEUE_RECORD}"',
]


@pytest.fixture
def lone(fresh_server: Callable[..., Server]) -> Server:
    """A server of one's own, which writes down every change."""
    return fresh_server("appendonly yes", "appendfsync always")


@pytest.fixture
def lone_session(lone: Server) -> Iterator[Session]:
    session = lone.session()
    session.check(QUEUE)
    yield session
    session.close()


class Observer:
    """All there is to see of a server, by a connection of its own."""

    def __init__(self, server: Server):
        self._client = server.client()
        self._before = self._state()

    def check_nothing_changed(self, after: str) -> None:
        __tracebackhide__ = True
        assert self._state() == self._before, f"changed by {after}"

    def _state(self) -> dict[str, Any]:
        call = self._client.execute_command
        persistence, counters = self._client.info("persistence"), self._client.info("dq")
        return {
            "keys": call("DBSIZE"),
            "digest": call("DEBUG", "DIGEST"),
            "queue": call("DQ.INFO", "q"),
            "aof": persistence["aof_current_size"],
            "changes": persistence["rdb_changes_since_last_save"],
            "counters": {name: n for name, n in counters.items() if "_jobs_" in name},
        }


Refused = tuple[str, str]


def check_refused(server: Server, session: Session, table: list[Refused]) -> None:
    """Each command gets its error, on a queue and where there is no key, and changes nothing."""
    __tracebackhide__ = True
    observer = Observer(server)
    for command, error in table:
        for key in "q", "none":
            session.check(f"> {command.format(key)}\n(error) {error}")
            observer.check_nothing_changed(command.format(key))


def test_the_observer_sees_every_change(lone: Server, lone_session: Session) -> None:
    for change in [
        "DQ.ADD q a x",
        "DQ.ADD none a x",
        "DQ.POP q",
        "DQ.FINISH q reserved",
        "DQ.DEL q delayed",
        "SET other x",
    ]:
        observer = Observer(lone)
        assert not isinstance(lone_session.call(*change.split()), Failure)
        with pytest.raises(AssertionError, match="changed by"):
            observer.check_nothing_changed(change)


def test_the_observer_overlooks_what_changes_nothing(lone: Server, lone_session: Session) -> None:
    observer = Observer(lone)
    for command in [
        "DQ.GET q ready",
        "DQ.LEN q",
        "DQ.INFO q",
        "DQ.ADD q ready x NX",
        "DQ.FINISH q ready",
        "DQ.DEL q nobody",
        "DQ.POP none",
    ]:
        assert not isinstance(lone_session.call(*command.split()), Failure)
        observer.check_nothing_changed(command)


@pytest.mark.parametrize(
    ("command", "tails"),
    [
        ("dq.add", ["", " {}", " {} a"]),
        ("dq.pop", [""]),
        ("dq.finish", ["", " {}"]),
        ("dq.del", ["", " {}"]),
        ("dq.get", ["", " {}", " {} a b"]),
        ("dq.len", [""]),
        ("dq.info", ["", " {} a"]),
        ("dq.apply", ["", " {}", " {} PUT", " {} PUT a", " {} PUT a x"]),
    ],
)
def test_wrong_arity(lone: Server, lone_session: Session, command: str, tails: list[str]) -> None:
    error = f"ERR wrong number of arguments for '{command}' command"
    table = [(name + tail, error) for tail in tails for name in (command, command.upper())]
    check_refused(lone, lone_session, table)


NUMBERS = [
    ("DQ.ADD {} a x", "DELAY", 0, TIME_MAX),
    ("DQ.ADD {} a x", "AT", 0, TIME_MAX),
    ("DQ.ADD {} a x", "TTR", 1, TIME_MAX),
    ("DQ.ADD {} a x", "PRIORITY", 0, 255),
    ("DQ.ADD {} a x", "ATTEMPTS", 0, 2**32 - 1),
    ("DQ.POP {}", "COUNT", 1, COUNT_MAX),
    ("DQ.POP {}", "TTR", 1, TIME_MAX),
]
NO_NUMBERS = [
    '""',
    "-1",
    "+1",
    "x",
    "1x",
    "1.0",
    "1e3",
    "0x1",
    "01",
    "00",
    '" 1"',
    '"1 "',
    r'"1\x00"',
    r'"\xd9\xa1"',  # one, in Arabic
    r'"\xff"',
    "*",
    "NX",
    "-9223372036854775809",
    str(2**63),
    str(2**64),
    str(2**64 + 1),
    "9" * 40,
]


@pytest.mark.parametrize(
    ("command", "option", "least", "most"),
    NUMBERS,
    ids=[f"{command.split()[0]} {option}" for command, option, _, _ in NUMBERS],
)
def test_numbers(
    lone: Server, lone_session: Session, command: str, option: str, least: int, most: int
) -> None:
    error = f"ERR {option} must be an integer from {least} to {most}"
    values = [*NO_NUMBERS, str(least - 1), str(most + 1)]
    table = [(f"{command} {option} {value}", error) for value in values]
    # Also when others before and behind it are right.
    other = "TTR 5" if option != "TTR" else "ATTEMPTS 5" if "ADD" in command else "COUNT 5"
    table += [(f"{command} {other} {option} x", error), (f"{command} {option} x {other}", error)]
    check_refused(lone, lone_session, table)


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        ("DQ.ADD {} a x", "DELAY", "5"),
        ("DQ.ADD {} a x", "AT", "5"),
        ("DQ.ADD {} a x", "TTR", "5"),
        ("DQ.ADD {} a x", "PRIORITY", "5"),
        ("DQ.ADD {} a x", "ATTEMPTS", "5"),
        ("DQ.ADD {} a x", "NX", None),
        ("DQ.ADD {} a x", "REPLACE", None),
        ("DQ.POP {}", "COUNT", "5"),
        ("DQ.POP {}", "TTR", "5"),
        ("DQ.LEN {}", "STATE", "dead"),
    ],
)
def test_options_without_a_value_and_options_given_twice(
    lone: Server, lone_session: Session, command: str, option: str, value: str | None
) -> None:
    whole = f"{option} {value}" if value else option
    table = [
        (f"{command} {whole} {whole}", f"ERR option {option} is given twice"),
        (f"{command} {whole.lower()} {whole}", f"ERR option {option} is given twice"),
    ]
    if value:
        table += [
            (f"{command} {option}", f"ERR option {option} needs a value"),
            (f"{command} {option.lower()}", f"ERR option {option} needs a value"),
            (f"{command} {whole} {option} 6", f"ERR option {option} is given twice"),
        ]
    if option == "STATE":
        table[-1] = (f"{command} {whole} {option} ready", f"ERR option {option} is given twice")
    if "ADD" in command:
        gap = "PRIORITY 1" if option != "PRIORITY" else "TTR 1"
        twice = f"{command} {whole} {gap} {whole}"
        table.append((twice, f"ERR option {option} is given twice"))
    check_refused(lone, lone_session, table)


@pytest.mark.parametrize("command", ["DQ.ADD {} a x", "DQ.POP {}", "DQ.LEN {}"])
def test_unknown_options(lone: Server, lone_session: Session, command: str) -> None:
    words = {
        "FOO": "FOO",
        "foo": "foo",
        "5": "5",
        '""': "",
        '"NX "': "NX ",
        "TTRS": "TTRS",
        "BLOCK": "BLOCK",
        "NOACK": "NOACK",
        "BACKOFF": "BACKOFF",
        "EVERY": "EVERY",
        # An error is one line that a terminal can show, whatever the word.
        r'"a\r\nb"': r"a\r\nb",
        r'"\x00\xff\x1b"': r"\x00\xff\x1b",
        r'"\xc3\xa9"': r"\xc3\xa9",
        '"it\'s"': r"it\'s",
        "x" * 64: "x" * 64,
        "x" * 65: "x" * 64 + "...",
        "x" * 100_000: "x" * 64 + "...",
    }
    table = [(f"{command} {word}", f"ERR unknown option '{shown}'") for word, shown in words.items()]
    check_refused(lone, lone_session, table)


@pytest.mark.parametrize(
    ("command", "foreign"),
    [
        ("DQ.ADD {} a x TTR 5", "COUNT"),
        ("DQ.ADD {} a x", "STATE"),
        ("DQ.POP {} COUNT 5", "DELAY"),
        ("DQ.POP {}", "PRIORITY"),
        ("DQ.POP {}", "NX"),
        ("DQ.LEN {} STATE dead", "TTR"),
        ("DQ.LEN {}", "dead"),
    ],
)
def test_options_of_other_commands(lone: Server, lone_session: Session, command: str, foreign: str) -> None:
    error = f"ERR unknown option '{foreign}'"
    check_refused(lone, lone_session, [(f"{command} {foreign} 5", error)])


def test_contradictions(lone: Server, lone_session: Session) -> None:
    when = "ERR options DELAY and AT exclude each other"
    taken = "ERR options NX and REPLACE exclude each other"
    table = [
        ("DQ.ADD {} a x DELAY 5 AT 5", when),
        ("DQ.ADD {} a x AT 5 DELAY 5", when),
        ("DQ.ADD {} a x at 5 TTR 5 delay 0", when),
        ("DQ.ADD {} a x NX REPLACE", taken),
        ("DQ.ADD {} a x REPLACE NX", taken),
        ("DQ.ADD {} ready x replace PRIORITY 1 nx", taken),
        ("DQ.ADD {} * x NX REPLACE", taken),
    ]
    check_refused(lone, lone_session, table)


def test_sums_past_the_last_time(lone: Server, lone_session: Session) -> None:
    error = "ERR {} reaches past the last time there is, 281474976710655"
    table = [
        (f"DQ.ADD {{}} a x DELAY {TIME_MAX}", error.format("DELAY")),
        (f"DQ.ADD {{}} a x DELAY {TIME_MAX - 10**12}", error.format("DELAY")),
        (f"DQ.POP {{}} TTR {TIME_MAX}", error.format("TTR")),
        (f"DQ.POP {{}} COUNT 5 TTR {TIME_MAX - 10**12}", error.format("TTR")),
    ]
    check_refused(lone, lone_session, table)


@pytest.mark.parametrize("word", ['""', "i" * 513, "i" * 100_000])
def test_ids(lone: Server, lone_session: Session, word: str) -> None:
    error = "ERR id must be 1 to 512 bytes long"
    table = [
        (f"DQ.ADD {{}} {word} x", error),
        (f"DQ.ADD {{}} {word} x NX DELAY 5", error),
        (f"DQ.FINISH {{}} {word}", error),
        (f"DQ.FINISH {{}} {word} *", error),
        (f"DQ.FINISH {{}} reserved * {word} *", error),
        (f"DQ.DEL {{}} {word}", error),
        (f"DQ.DEL {{}} ready {word}", error),
        (f"DQ.DEL {{}} {word} ready", error),
        (f"DQ.GET {{}} {word}", error),
        (f'DQ.APPLY {{}} PUT {word} x "{JOB_RECORD}"', error),
    ]
    check_refused(lone, lone_session, table)


def test_a_body_over_the_limit(lone: Server, lone_session: Session) -> None:
    observer = Observer(lone)
    for job_id in "new", "ready", "*":
        for options in ["", "REPLACE", "NX DELAY 5"]:
            reply = lone_session.call("DQ.ADD", "q", job_id, b"b" * 1_048_577, *options.split())
            assert reply == "ERR body must be at most 1048576 bytes long (dq.max-body-bytes)"
            assert isinstance(reply, Failure)
            observer.check_nothing_changed(f"DQ.ADD {job_id} {options}")


def test_the_limit_of_a_body_is_a_setting(lone: Server, lone_session: Session) -> None:
    lone_session.check("> CONFIG SET dq.max-body-bytes 3\nOK")
    error = "ERR body must be at most 3 bytes long (dq.max-body-bytes)"
    check_refused(lone, lone_session, [("DQ.ADD {} a abcd", error)])
    lone_session.check("""
        > DQ.ADD q a abc
        "a"
        > CONFIG SET dq.max-body-bytes 0
        OK
        > DQ.ADD q b x
        (error) ERR body must be at most 0 bytes long (dq.max-body-bytes)
        > DQ.ADD q b ""
        "b"

        # It speaks of new jobs.
        > DQ.POP q COUNT 5
        [["ready", "x", <*>, 1], ["a", "abc", <*>, 1], ["b", "", <*>, 1]]
    """)


def test_states(lone: Server, lone_session: Session) -> None:
    def unknown(shown: str) -> str:
        return f"ERR unknown state '{shown}': one of delayed, ready, reserved, dead"

    table = [
        ("DQ.LEN {} STATE foo", unknown("foo")),
        ("DQ.LEN {} STATE done", unknown("done")),
        ('DQ.LEN {} STATE ""', unknown("")),
        ("DQ.LEN {} STATE STATE", unknown("STATE")),
        (r'DQ.LEN {} STATE "ready\x00"', unknown(r"ready\x00")),
        (f"DQ.LEN {{}} STATE {'x' * 100}", unknown("x" * 64 + "...")),
    ]
    check_refused(lone, lone_session, table)


def test_leases(lone: Server, lone_session: Session) -> None:
    error = "ERR lease must be a positive integer or *"
    words = [*NO_NUMBERS, "0", "**", "1,2"]
    words = [word for word in words if word not in ("*", str(2**63))]
    table = [(f"DQ.FINISH {{}} reserved {word}", error) for word in words]
    # What is right before and behind it isn't done either.
    table += [
        ("DQ.FINISH {} reserved * ready x", error),
        ("DQ.FINISH {} ready x reserved *", error),
        ("DQ.FINISH {} reserved <lease> ready -1", error),
    ]
    check_refused(lone, lone_session, table)


def test_ids_without_their_leases(lone: Server, lone_session: Session) -> None:
    error = "ERR each id needs its lease: id lease [id lease ...]"
    table = [
        ("DQ.FINISH {} reserved * ready", error),
        ("DQ.FINISH {} reserved <lease> reserved", error),
        ("DQ.FINISH {} reserved ready delayed", error),
        ("DQ.FINISH {} a * b * c", error),
    ]
    check_refused(lone, lone_session, table)


def test_effects_that_are_none(lone: Server, lone_session: Session) -> None:
    unreadable = "ERR a record is not what this version can read"
    table = [
        ("DQ.APPLY {} FOO x", "ERR unknown effect 'FOO': a newer dq may have written it"),
        (r'DQ.APPLY {} "\xff" x', r"ERR unknown effect '\xff': a newer dq may have written it"),
        ("DQ.APPLY {} PUT a x y", unreadable),
        ('DQ.APPLY {} PUT a x ""', unreadable),
        (f'DQ.APPLY {{}} PUT a x "{JOB_RECORD[:-4]}"', unreadable),
        (f'DQ.APPLY {{}} PUT a x "{JOB_RECORD}x"', "ERR a record has bytes after its end"),
        ("DQ.APPLY {} LEASE x", unreadable),
        (r'DQ.APPLY {} LEASE "\xdd\xff\xff\xff\xff"', unreadable),
        (r'DQ.APPLY {} LEASE "\x91\x93\xa1a\x00\x05"', "ERR a lease is not a possible one"),
        ("DQ.APPLY {} QUEUE x", unreadable),
        (f'DQ.APPLY {{}} QUEUE "{QUEUE_RECORD}x"', "ERR a record has bytes after its end"),
    ]
    check_refused(lone, lone_session, table)


WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"


@pytest.mark.parametrize("kind_of_key", OTHERS)
def test_keys_of_other_types(lone: Server, lone_session: Session, kind_of_key: str) -> None:
    lone_session.call(*OTHERS[kind_of_key].split())
    observer = Observer(lone)
    for command in COMMANDS:
        lone_session.check(f"> {command.format(kind_of_key)}\n(error) {WRONG_TYPE}")
        observer.check_nothing_changed(command)
    # The words are read before the key.
    lone_session.check(f"> DQ.ADD {kind_of_key} a x FOO\n(error) ERR unknown option 'FOO'")


def test_a_key_of_another_modules_type(lone: Server, lone_session: Session) -> None:
    if lone_session.call("COMMAND", "INFO", "VADD") == [None]:
        pytest.skip("this server brings no other module's type")
    lone_session.check("> VADD vectors VALUES 2 1 1 x\n(integer) 1")
    observer = Observer(lone)
    for command in COMMANDS:
        lone_session.check(f"> {command.format('vectors')}\n(error) {WRONG_TYPE}")
        observer.check_nothing_changed(command)


def test_the_commands_of_the_table_work_on_a_queue(lone_session: Session) -> None:
    for command in COMMANDS:
        lone_session.check("> DEL queue\n(integer) <*>")
        lone_session.check('> DQ.ADD queue b x\n"b"')
        words = command.format("queue").replace('"', "").split()
        reply = lone_session.call(
            *[word.encode().decode("unicode_escape").encode("latin-1") for word in words]
        )
        assert not isinstance(reply, Failure), command


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
