"""What the server tells about the commands: to clients, to ACLs, to cluster routing, to redis-cli.

It is what command_table.py says, and so are the grammars in the sources and in the README.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_table import COMMANDS, Expected
from server import Kind, Server
from transcript import Session

ROOT = Path(__file__).resolve().parents[2]


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
    is_alone = expected.keys == ("the-key",)
    assert (first, last, step) == ((1, 1, 1) if is_alone else (0, 0, 0))
    # Redis 7.0 has no way for a module to tell the categories of its commands.
    assert set(categories) == (set() if kind.name == "redis-7.0" else expected.categories)
    assert (tips, subcommands) == ([], [])
    (key,) = map(decoded, key_specs)
    assert set(key.pop("flags")) == expected.key_flags
    the_first = {"type": "range", "spec": {"lastkey": 0, "keystep": 1, "limit": 0}}
    counted = {"type": "keynum", "spec": {"keynumidx": 0, "firstkey": 1, "keystep": 1}}
    assert key == {
        "begin_search": {"type": "index", "spec": {"index": 1}},
        "find_keys": the_first if is_alone else counted,
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
def test_the_keys_are_found(session: Session, expected: Expected) -> None:
    words = expected.example.split()
    assert decoded(session.call("COMMAND", "GETKEYS", *words)) == list(expected.keys)
    told = decoded(session.call("COMMAND", "GETKEYSANDFLAGS", *words))
    assert [(key, set(flags)) for key, flags in told] == [(key, expected.key_flags) for key in expected.keys]


def test_acl_categories_have_them(kind: Kind, session: Session) -> None:
    if kind.name == "redis-7.0":
        pytest.skip("this server has no way for a module to tell the categories of its commands")
    for category in "read", "write", "fast", "slow", "admin", "dangerous":
        ours = {name for name in decoded(session.call("ACL", "CAT", category)) if name.startswith("dq.")}
        assert ours == {expected.name for expected in COMMANDS if f"@{category}" in expected.categories}


@pytest.mark.parametrize("expected", COMMANDS, ids=str)
def test_the_sources_state_the_same_grammar(resp3: Session, expected: Expected) -> None:
    (docs,) = decoded(resp3.call("COMMAND", "DOCS", expected.name)).values()
    assert skeleton(grammar_in_sources(expected.name)) == skeleton_of(docs["arguments"])


@pytest.mark.parametrize("expected", COMMANDS, ids=str)
def test_the_readme_states_the_same_grammar(expected: Expected) -> None:
    stated = grammars_in_readme()
    if expected.name == "dq.apply":
        assert expected.name not in stated
    else:
        assert stated.get(expected.name) == grammar_in_sources(expected.name)


def grammar_in_sources(name: str) -> str:
    """The first words in the head of the command's file, in backticks."""
    source = (ROOT / "src" / "command" / f"{name.removeprefix('dq.')}.rs").read_text()
    head = "\n".join(line.removeprefix("//!") for line in source.splitlines() if line.startswith("//!"))
    grammar = " ".join(re.match(r"\s*`(.*?)`", head, re.DOTALL)[1].split())
    assert grammar.startswith(f"{name.upper()} ")
    return grammar.removeprefix(f"{name.upper()} ")


def grammars_in_readme() -> dict[str, str]:
    rows = re.findall(r"^\| `(DQ\.[A-Z]+) (.*?)` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    return {name.lower(): grammar.replace("\\|", "|") for name, grammar in rows}


def skeleton(grammar: str) -> str:
    """A grammar without the names of its values: `_` for each."""
    grammar = re.sub(r"(?<![\w.])(?![A-Z]+\b)\w[\w.-]*", "_", grammar)
    for ours, servers in SAME:
        grammar = grammar.replace(ours, servers)
    return grammar


# How we write what the server has another way, or no way, to say.
SAME = [("_|*", "*|_"), ("_ [_ [_ _ ...]]", "_ [_] [_ _...]"), ("_ [_ ...]", "_...")]


def skeleton_of(arguments: list[dict[str, Any]]) -> str:
    return " ".join(map(skeleton_of_one, arguments))


def skeleton_of_one(argument: dict[str, Any]) -> str:
    shown = argument.get("token", "")
    match argument["type"]:
        case "pure-token":
            shown = shown if shown.isupper() or shown == "*" else "_"
        case "oneof":
            parts = list(map(skeleton_of_one, argument["arguments"]))
            is_tight = not any(" " in part for part in parts) and "_" in parts
            choice = "_" if set(parts) == {"_"} else ("|" if is_tight else " | ").join(parts)
            shown = f"{shown} {choice}".strip()
        case "block":
            shown = f"{shown} {skeleton_of(argument['arguments'])}".strip()
        case _:
            shown = f"{shown} _".strip()
    flags = argument.get("flags", [])
    if "multiple" in flags:
        shown += "..."
    return f"[{shown}]" if "optional" in flags else shown


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
