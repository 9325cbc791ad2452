"""What the server tells about the commands: to clients, to ACLs, to cluster routing, to redis-cli.

The arguments are compared as redis-cli would show them: `[]` is optional, `|` one of several, `...`
repeated, and a name that isn't a string carries its type.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from server import Kind, Server
from transcript import Session


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

    def __str__(self) -> str:
        return self.name


PER_JOB = "O(M*log(N)) with N being the number of jobs in the queue and M the number "
ONE_JOB = "O(log(N)) with N being the number of jobs in the queue"

COMMANDS = [
    Expected(
        name="dq.add",
        arity=-4,
        flags={"write", "denyoom", "module", "fast"},
        categories={"@write", "@fast"},
        key_flags={"RW", "update"},
        summary="Adds a job to a queue, to be handed out from its due time on",
        complexity=ONE_JOB,
        arguments="key *|id body"
        " [DELAY milliseconds:integer|AT unix-time-milliseconds:unix-time]"
        " [TTR time-to-run:integer] [PRIORITY priority:integer] [ATTEMPTS attempts:integer]"
        " [NX|REPLACE]",
        example="dq.add the-key id body DELAY 5 NX",
    ),
    Expected(
        name="dq.pop",
        arity=-2,
        flags={"write", "module", "fast"},
        categories={"@write", "@fast"},
        key_flags={"RW", "access", "update"},
        summary="Hands out the first ready jobs of a queue, each with a lease",
        complexity=PER_JOB + "handed out",
        arguments="key [COUNT count:integer] [TTR time-to-run:integer]",
        example="dq.pop the-key COUNT 5",
    ),
    Expected(
        name="dq.finish",
        arity=-3,
        flags={"write", "module", "fast"},
        categories={"@write", "@fast"},
        key_flags={"RW", "delete"},
        summary="Takes jobs whose work is done from a queue",
        complexity=PER_JOB + "of ids",
        arguments="key id [lease] [id lease...]",
        example="dq.finish the-key a * b *",
    ),
    Expected(
        name="dq.del",
        arity=-3,
        flags={"write", "module", "fast"},
        categories={"@write", "@fast"},
        key_flags={"RW", "delete"},
        summary="Removes jobs from a queue, whatever their state",
        complexity=PER_JOB + "of ids",
        arguments="key id...",
        example="dq.del the-key a b",
    ),
    Expected(
        name="dq.get",
        arity=3,
        flags={"readonly", "module", "fast"},
        categories={"@read", "@fast"},
        key_flags={"RO", "access"},
        summary="Shows a job of a queue",
        complexity=ONE_JOB,
        arguments="key id",
        example="dq.get the-key a",
    ),
    Expected(
        name="dq.len",
        arity=-2,
        flags={"readonly", "module", "fast"},
        categories={"@read", "@fast"},
        key_flags={"RO"},
        summary="Tells how many jobs a queue holds, or how many are in a state",
        complexity="O(1)",
        arguments="key [STATE delayed|ready|reserved|dead]",
        example="dq.len the-key STATE dead",
    ),
    Expected(
        name="dq.info",
        arity=2,
        flags={"readonly", "module", "fast"},
        categories={"@read", "@fast"},
        key_flags={"RO", "access"},
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
        key_flags={"RW", "access", "update"},
        summary="An internal command: what replicas and the AOF get instead of DQ.ADD and DQ.POP",
        complexity=PER_JOB + "of jobs changed",
        arguments="key PUT id body record|LEASE leases|QUEUE record",
        example="dq.apply the-key PUT id body record",
    ),
]


@pytest.fixture
def resp3(server: Server) -> Iterator[Session]:
    session = server.session(protocol=3)
    yield session
    session.close()


def test_these_are_all_commands(session: Session) -> None:
    names = session.call("COMMAND", "LIST", "FILTERBY", "MODULE", "dq")
    assert sorted(name.decode() for name in names) == sorted(c.name for c in COMMANDS)


@pytest.mark.parametrize("expected", COMMANDS, ids=str)
def test_command_info(resp3: Session, kind: Kind, expected: Expected) -> None:
    (told,) = resp3.call("COMMAND", "INFO", expected.name.upper())
    name, arity, flags, first, last, step, categories, tips, key_specs, subcommands = told
    assert name.decode() == expected.name
    assert arity == expected.arity
    assert set(flags) == expected.flags
    assert (first, last, step) == (1, 1, 1)
    # Redis 7.0 has no way for a module to tell the categories of its commands.
    assert set(categories) == (set() if kind.name == "redis-7.0" else expected.categories)
    assert (tips, subcommands) == ([], [])
    (key,) = map(decoded, key_specs)
    assert set(key.pop("flags")) == expected.key_flags
    assert key == {
        "begin_search": {"type": "index", "spec": {"index": 1}},
        "find_keys": {"type": "range", "spec": {"lastkey": 0, "keystep": 1, "limit": 0}},
    }


@pytest.mark.parametrize("expected", COMMANDS, ids=str)
def test_command_docs(resp3: Session, kind: Kind, expected: Expected) -> None:
    ((name, docs),) = decoded(resp3.call("COMMAND", "DOCS", expected.name)).items()
    assert name == expected.name
    arguments = docs.pop("arguments")
    assert docs == {
        "summary": expected.summary,
        "since": "0.1.0",
        "group": "module",
        "complexity": expected.complexity,
        "module": "dq",
    }
    assert syntax(arguments) == expected.arguments
    check_details(arguments, has_display_text=kind.name != "redis-7.0")


@pytest.mark.parametrize("expected", COMMANDS, ids=str)
def test_the_key_is_found(session: Session, expected: Expected) -> None:
    words = expected.example.split()
    assert session.call("COMMAND", "GETKEYS", *words) == [b"the-key"]
    ((key, flags),) = session.call("COMMAND", "GETKEYSANDFLAGS", *words)
    assert key == b"the-key"
    assert set(flags) == expected.key_flags


def syntax(arguments: list[dict[str, Any]]) -> str:
    return " ".join(map(syntax_of_one, arguments))


def syntax_of_one(argument: dict[str, Any]) -> str:
    """How redis-cli would show an argument."""
    kind, flags = argument["type"], argument.get("flags", [])
    match kind:
        case "oneof":
            shown = "|".join(map(syntax_of_one, argument["arguments"]))
        case "block":
            shown = syntax(argument["arguments"])
        case "pure-token":
            shown = argument["token"]
        case "string" | "key":
            shown = argument["name"]
        case _:
            shown = f"{argument['name']}:{kind}"
    if "token" in argument and kind != "pure-token":
        shown = f"{argument['token']} {shown}"
    if "multiple" in flags:
        shown += "..."
    return f"[{shown}]" if "optional" in flags else shown


def check_details(arguments: list[dict[str, Any]], *, has_display_text: bool) -> None:
    """What the syntax doesn't show: names, their display, which one is the key."""
    for argument in arguments:
        assert argument["name"]
        assert argument.get("key_spec_index") == (0 if argument["type"] == "key" else None)
        is_group = argument["type"] in ("oneof", "block")
        display_text = argument["name"] if has_display_text and not is_group else None
        assert argument.get("display_text") == display_text
        assert set(argument.get("flags", [])) <= {"optional", "multiple"}
        check_details(argument.get("arguments", []), has_display_text=has_display_text)


def decoded(reply: Any) -> Any:
    match reply:
        case bytes():
            return reply.decode()
        case list():
            return [decoded(part) for part in reply]
        case dict():
            return {decoded(key): decoded(value) for key, value in reply.items()}
    return reply
