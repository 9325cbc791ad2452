"""What the server says about the commands to clients, ACLs, cluster routing and redis-cli.

command_table.py has the expected values. test_command_docs_written.py checks the text for people.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.command_table import COMMANDS, Expected
from harness.server import Kind, Server
from harness.transcript import Session


@pytest.fixture
def resp3(server: Server) -> Iterator[Session]:
    session = server.session(protocol=3)
    yield session
    session.close()


def test_the_table_of_the_test_has_every_command_of_the_module(session: Session) -> None:
    names = session.call("COMMAND", "LIST", "FILTERBY", "MODULE", "dq")
    assert sorted(name.decode() for name in names) == sorted(c.name for c in COMMANDS)


@pytest.mark.parametrize("expected", COMMANDS, ids=str)
def test_command_info_is_what_the_table_says(
    resp3: Session, kind: Kind, expected: Expected
) -> None:
    (told,) = resp3.call("COMMAND", "INFO", expected.name.upper())
    name, arity, flags, first, last, step, categories, tips, key_specs, subcommands = told
    assert name.decode() == expected.name
    assert arity == expected.arity
    assert set(flags) == expected.flags
    is_alone = expected.keys == ("the-key",)
    is_routed_by_first = len(expected.keys) > 1 and kind.name != "redis-7.0"
    the_first_of_many = (2, 2, 1) if is_routed_by_first else (0, 0, 0)
    assert (first, last, step) == ((1, 1, 1) if is_alone else the_first_of_many)
    # Redis 7.0 has no way for a module to tell the categories of its commands.
    assert set(categories) == (set() if kind.name == "redis-7.0" else expected.categories)
    assert (tips, subcommands) == ([], [])
    if not expected.keys:
        assert key_specs == []
        return
    the_first = {"type": "range", "spec": {"lastkey": 0, "keystep": 1, "limit": 0}}
    key, *others = map(decoded, key_specs)
    if is_routed_by_first:
        (other,) = others
        assert set(other.pop("flags")) == {*expected.key_flags, "not_key"}
        assert other == {
            "begin_search": {"type": "index", "spec": {"index": 2}},
            "find_keys": the_first,
        }
    if expected.another_key is not None:
        (another,) = others
        assert set(another.pop("flags")) == expected.key_flags
        assert another == {
            "begin_search": {
                "type": "keyword",
                "spec": {"keyword": expected.another_key, "startfrom": 2},
            },
            "find_keys": the_first,
        }
    assert len(others) == is_routed_by_first + (expected.another_key is not None)
    assert set(key.pop("flags")) == expected.key_flags
    counted = {"type": "keynum", "spec": {"keynumidx": 0, "firstkey": 1, "keystep": 1}}
    assert key == {
        "begin_search": {"type": "index", "spec": {"index": 1}},
        "find_keys": the_first if is_alone else counted,
    }


@pytest.mark.parametrize("expected", COMMANDS, ids=str)
def test_command_docs_are_what_the_table_says(
    resp3: Session, kind: Kind, expected: Expected
) -> None:
    ((name, docs),) = decoded(resp3.call("COMMAND", "DOCS", expected.name)).items()
    assert name == expected.name
    assert docs.items() >= {"since": expected.since, "group": "module", "module": "dq"}.items()
    assert set(docs) == {"summary", "since", "group", "module", "complexity", "arguments"}
    check_details(docs["arguments"], has_display_text=kind.name != "redis-7.0")


@pytest.mark.parametrize("expected", COMMANDS, ids=str)
def test_command_getkeys_finds_the_keys(session: Session, expected: Expected) -> None:
    words = expected.example.split()
    if not expected.keys:
        assert "no key arguments" in str(session.call("COMMAND", "GETKEYS", *words))
        return
    assert decoded(session.call("COMMAND", "GETKEYS", *words)) == list(expected.keys)
    told = decoded(session.call("COMMAND", "GETKEYSANDFLAGS", *words))
    assert [(key, set(flags)) for key, flags in told] == [
        (key, expected.key_flags) for key in expected.keys
    ]


def test_acl_categories_have_the_commands(kind: Kind, session: Session) -> None:
    if kind.name == "redis-7.0":
        pytest.skip("this server has no way for a module to tell the categories of its commands")
    for category in "read", "write", "fast", "slow", "admin", "dangerous":
        ours = {
            name for name in decoded(session.call("ACL", "CAT", category)) if name.startswith("dq.")
        }
        assert ours == {
            expected.name for expected in COMMANDS if f"@{category}" in expected.categories
        }


def check_details(arguments: list[dict[str, Any]], *, has_display_text: bool) -> None:
    """What the syntax doesn't show: names, their display, which one is the key."""
    for argument in arguments:
        assert argument["name"]
        if argument["name"].endswith("ms"):
            assert argument["type"] in ("integer", "unix-time")
        spec = 1 if argument["name"] == "stream" else 0
        assert argument.get("key_spec_index") == (spec if argument["type"] == "key" else None)
        is_group = argument["type"] in ("oneof", "block")
        display_text = argument["name"] if has_display_text and not is_group else None
        assert argument.get("display_text") == display_text
        assert set(argument.get("flags", [])) <= {"optional", "multiple", "multiple_token"}
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
