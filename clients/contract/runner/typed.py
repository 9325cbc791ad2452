"""A command line as a typed call, by commands.json; a typed reply as the server's own.

typed_call([b"DQ.ADD", b"mail", b"a", b"hello", b"DELAY", b"50"])
{"command": "add", "key": "mail",
 "arguments": {"id": "a", "body": "hello", "delay": {"ms": 50}}}
"""

import base64
import json
from pathlib import Path
from typing import Any

from harness.resp import Failure, Status

Raw = dict[str, Any]
HERE = Path(__file__).resolve().parents[1]
CONTRACT: Raw = json.loads((HERE / "commands.json").read_text())
COMMANDS: dict[str, Raw] = CONTRACT["commands"]
SHOWN: dict[str, Raw] = CONTRACT["fields"]
# By the form of a reply.
FIELDS = {
    "job": [*SHOWN["job"], *SHOWN["edges"], *SHOWN["schedule"]],
    "jobs": [*SHOWN["job"], *SHOWN["edges"], *SHOWN["schedule"]],
    "info": list(SHOWN["info"]),
    "group-page": list(SHOWN["group"]),
}


class NotTyped(Exception):
    """A client's types leave no way to say this."""


# ---- calls ---------------------------------------------------------------------------------------


def typed_call(words: list[bytes]) -> Raw:
    """Raises NotTyped for what is no well-formed call."""
    name = words[0].decode().lower().removeprefix("dq.")
    if name not in COMMANDS:
        raise NotTyped(name)
    arguments = Reader(words[1:]).call(name)
    key = arguments.pop("key", None)
    return {"command": name, "arguments": arguments} | ({"key": key} if key is not None else {})


class Reader:
    """The words of a command, read from left to right."""

    def __init__(self, words: list[bytes]):
        self.words = words

    def take(self) -> bytes:
        if not self.words:
            raise NotTyped("too few words")
        return self.words.pop(0)

    def call(self, name: str) -> Raw:
        """All arguments of a command. Its options are named by their tokens, in any order."""
        spec = COMMANDS[name]
        positional = [one for one in spec["call"] if "token" not in one]
        options = {one["token"].encode(): one for one in spec["call"] if "token" in one}
        found = self.positional(positional, set(options))
        self.options(options, found)
        missing = [one["name"] for one in options.values() if not one.get("optional")]
        if any(each not in found for each in missing):
            raise NotTyped(f"{missing} is missing")
        for names in spec["exclusive"]:
            if len([each for each in names if each in found]) > 1:
                raise NotTyped(f"{names} exclude each other")
        return found

    def positional(self, parameters: list[Raw], tokens: set[bytes]) -> Raw:
        found: Raw = {}
        for one in parameters:
            if one["type"] == "key" and one.get("repeated"):
                found[one["name"]] = [text(self.take()) for _ in range(integer(self.take()))]
            elif one.get("repeated"):
                found[one["name"]] = self.several(one, tokens)
            elif self.is_made_by_the_server(one):
                self.take()
            else:
                found[one["name"]] = self.value(one)
        return found

    def is_made_by_the_server(self, one: Raw) -> bool:
        """`*` in place of an id. That of a lease is a lease like others."""
        absent = one.get("absent") if one["type"] == "string" else None
        return absent is not None and self.words[:1] == [absent.encode()]

    def options(self, options: dict[bytes, Raw], found: Raw) -> None:
        while self.words:
            one = options.get(self.words[0].upper())
            if one is None:
                raise NotTyped(f"unknown option {self.words[0]!r}")
            self.take()
            if one.get("repeated"):
                found.setdefault(one["name"], []).extend(self.several(one, set(options)))
                continue
            if one["name"] in found:
                raise NotTyped(f"{one['token']} is given twice")
            found[one["name"]] = self.value(one)

    def several(self, one: Raw, tokens: set[bytes]) -> list[Any]:
        if one.get("counted"):
            return [self.value(one) for _ in range(integer(self.take()))]
        if one["type"] == "add":
            return [self.value(one)]
        found = [self.value(one)]
        while self.words and self.words[0].upper() not in tokens:
            found.append(self.value(one))
        if one["type"] == "record" and len({len(each) for each in found}) > 1:
            raise NotTyped("the last one is incomplete")
        return found

    def value(self, one: Raw) -> Any:
        match one["type"]:
            case "flag":
                return True
            case "record":
                return self.record(one["fields"])
            case "add":
                return self.added()
            case "integer":
                return integer(self.take())
            case "duration":
                return {"ms": integer(self.take())}
            case "time":
                return {"unix-ms": integer(self.take())}
            case "lease":
                word = self.take()
                return "*" if word == b"*" else integer(word)
            case "choice":
                word = text(self.take())
                matching = [value for value in one["values"] if value.lower() == word.lower()]
                if not matching:
                    raise NotTyped(f"{word} is none of {one['values']}")
                return matching[0]
        return text(self.take())

    def record(self, fields: list[Raw]) -> Raw:
        found: Raw = {}
        for one in fields:
            token = one.get("token")
            if token is None:
                if self.is_made_by_the_server(one):
                    self.take()
                elif one.get("repeated"):
                    found[one["name"]] = self.several(one, set())
                elif self.words or "absent" not in one:
                    found[one["name"]] = self.value(one)
            elif self.words and self.words[0].upper() == token.encode():
                self.take()
                found[one["name"]] = self.value(one)
        return found

    def added(self) -> Raw:
        """A job of DQ.DONE: its words end where the next ADD begins."""
        end = next(
            (at for at, word in enumerate(self.words) if at > 1 and word.upper() == b"ADD"),
            len(self.words),
        )
        mine, self.words = self.words[:end], self.words[end:]
        arguments = Reader([b"key", *mine]).call("add")
        arguments.pop("key")
        return arguments


def integer(word: bytes) -> int:
    digits = word.removeprefix(b"-")
    if not digits.isdigit():
        raise NotTyped(f"{word!r} is no integer")
    return int(word)


def text(word: bytes) -> Any:
    """Strings and bytes as JSON has them: text where they are text."""
    try:
        return word.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(word).decode()}


# ---- replies -------------------------------------------------------------------------------------


def served(form: str, reply: Any, protocol: int, command: Raw) -> Any:
    """What the server must have replied for a client to reply this."""

    def mapped(shown: Raw) -> Any:
        # In the server's order. What it doesn't have is what a client knows of newer ones.
        pairs = [(name.encode(), plain(shown[name])) for name in FIELDS[form] if name in shown]
        unknown = {name for name in shown if name not in FIELDS[form] and shown[name] is not None}
        assert not unknown, f"no fields of the server: {unknown}"
        return dict(pairs) if protocol == 3 else [word for pair in pairs for word in pair]

    def page(shown: Any) -> list[Any]:
        return [str(reply["cursor"]).encode(), [shown(item) for item in reply["items"]]]

    match form:
        case "ok":
            return Status("OK")
        case "ok-or-integer":
            return Status("OK") if reply is None else reply
        case "boolean":
            return int(reply)
        case "added":
            return plain(reply.get("added"))
        case "deliveries" | "keyed-deliveries" if "finish" in command["arguments"]:
            return [reply["finished"], taken(form, reply["taken"], command)]
        case "deliveries" | "keyed-deliveries":
            return taken(form, reply, command)
        case "done":
            return done(reply)
        case "job" | "info":
            return reply and mapped(reply)
        case "jobs":
            return [mapped(job) for job in reply]
        case "outcome":
            return reply and [plain(reply["state"]), plain(reply.get("what"))]
        case "deps":
            return reply and deps(reply)
        case "ids" | "added-ids":
            return [plain(id) for id in reply]
        case "id-page":
            return page(plain)
        case "group-page":
            return page(mapped)
        case "integer" | "integers" | "times":
            return reply
    raise ValueError(f"no such form of a reply: {form}")


def taken(form: str, reply: Any, command: Raw) -> Any:
    if not reply:
        return None
    if form == "deliveries":
        return deliveries(reply, command)
    return [plain(reply["key"]), deliveries(reply["jobs"], command)]


def deliveries(reply: list[Raw], command: Raw) -> list[Any]:
    names = ["id", "body", "lease", "attempt"]
    if command["arguments"].get("withdue"):
        names.append("due")
    return [[plain(job.get(name)) for name in names] for job in reply]


def deps(reply: Raw) -> list[Any]:
    shown = [[plain(each[name]) for name in ("id", "state", "what")] for each in reply["items"]]
    return [reply["next"], shown]


def done(reply: Raw | None) -> Any:
    if reply is None:
        return 0
    return [plain(one.get("added")) for one in reply["added"]] or 1


def plain(value: Any) -> Any:
    """A value of a reply, as the harness reads it from the wire."""
    match value:
        case str():
            return value.encode()
        case bool():
            return int(value)
        case {"base64": encoded}:
            return base64.b64decode(encoded)
    return value


def failure(error: Raw) -> Failure:
    return Failure(f"{error['code']} {error['message']}")
