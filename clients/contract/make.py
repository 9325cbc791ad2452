"""Writes commands.json, the typed call of each command, or checks that it is up to date.

    make.py --write|--check [--server redis://HOST:PORT]

The module tells its grammar (COMMAND DOCS), and this script derives from it what a client's method
takes: names, types, what excludes what. So a change of the grammar changes commands.json, and the
tests of every client fail until the client knows it. What the grammar can't say stands in
described.json: the replies, the types of the fields that GET, INFO and GROUPS show, and for some
parameters the list of those that stand in their place.

README.md has the rules by which a parameter gets its name and its type.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
for folder in ("scripts", "tests/blackbox"):
    sys.path.insert(0, str(ROOT / folder))

import command_docs  # noqa: E402

Raw = dict[str, Any]
OUTPUT = HERE / "commands.json"
DESCRIBED: Raw = json.loads((HERE / "described.json").read_text())

# A string that the grammar calls by one of these names is more than text.
STRINGS = {"lease": "lease", "body": "bytes", "bytes": "bytes", "place": "integer"}


class Undescribed(Exception):
    """Something new that a person has to describe in described.json."""


# ---- parameters ----------------------------------------------------------------------------------


def parameters(arguments: list[Raw]) -> list[Raw]:
    """The parameters of a call, in the order of the grammar."""
    found: list[Raw] = []
    for argument in arguments:
        if "numkeys" in argument["name"]:
            continue
        found += parameters_of(argument)
    return found


def parameters_of(argument: Raw) -> list[Raw]:
    parts = argument.get("arguments", [])
    token = argument.get("token")
    if argument["type"] == "oneof" and not token:
        star = next((part for part in parts if part.get("token") == "*"), None)
        if star:
            (other,) = [part for part in parts if part is not star]
            return [spelled(argument, other["name"], "string") | {"optional": True, "absent": "*"}]
        return [
            parameter | {"optional": True} for part in parts for parameter in parameters_of(part)
        ]
    if argument["type"] == "oneof":
        values = [part["token"] for part in parts]
        return [spelled(argument, token.lower(), "choice") | {"values": values}]
    if argument["type"] == "block":
        if is_counted(parts):
            return [
                spelled(argument, token.lower(), type_of(parts[1]))
                | {"counted": True, "repeated": True}
            ]
        name = (token or argument["name"]).lower()
        fields = [
            # The call is about one key. Another one, such as that of a sink, is a name.
            part | {"type": "string"} if part["type"] == "key" else part
            for part in parameters(parts)
        ]
        return [spelled(argument, name, "record") | {"fields": fields}]
    return [spelled(argument, (token or argument["name"]).lower(), type_of(argument))]


def is_counted(parts: list[Raw]) -> bool:
    """`n id [id ...]`: the count follows from the list."""
    return (
        len(parts) == 2
        and parts[0]["type"] == "integer"
        and "multiple" in parts[1].get("flags", [])
    )


def spelled(argument: Raw, name: str, kind: str) -> Raw:
    """The name without its unit, which the type says."""
    found = {"name": name.removesuffix("-ms"), "type": kind}
    if argument.get("token") and kind != "key":
        found["token"] = argument["token"]
    if "optional" in argument.get("flags", []):
        found["optional"] = True
    if "multiple" in argument.get("flags", []):
        found["repeated"] = True
    return found


def type_of(argument: Raw) -> str:
    match argument["type"]:
        case "pure-token":
            return "flag"
        case "key":
            return "string" if argument.get("token") else "key"
        case "unix-time":
            return "time"
        case "integer":
            name = argument.get("display_text", argument["name"])
            return "duration" if name == "ms" or name.endswith("-ms") else "integer"
        case "string" | "pattern":
            return STRINGS.get(argument["name"], "string")
    raise Undescribed(f"an argument of type {argument['type']}")


def exclusive(arguments: list[Raw]) -> list[list[str]]:
    """Options of which a call has one at most."""
    return [
        [parameter["name"] for part in argument["arguments"] for parameter in parameters_of(part)]
        for argument in arguments
        if argument["type"] == "oneof"
        and not argument.get("token")
        and all("token" in part and part["token"] != "*" for part in argument["arguments"])
    ]


# ---- the file ------------------------------------------------------------------------------------


def described(server: Any) -> Raw:
    """What commands.json has to be, by this server."""
    names = sorted(server.execute_command("COMMAND LIST", "FILTERBY", "MODULE", "dq"))
    told = server.execute_command("COMMAND DOCS", *names)
    commands = {
        name.removeprefix("dq."): one_command(name.removeprefix("dq."), told[name])
        for name in names
        if name.removeprefix("dq.") not in command_docs.INTERNAL
    }
    unknown = set(commands) - set(DESCRIBED["replies"])
    if unknown:
        raise Undescribed(f"`replies` says nothing of {sorted(unknown)}")
    return {"commands": commands, "fields": fields(server)}


def one_command(name: str, docs: Raw) -> Raw:
    arguments = command_docs.with_flags(docs["arguments"])
    for argument in arguments:
        argument.pop("key_spec_index", None)
    replaced = DESCRIBED["parameters"].get(name, {})
    call = [
        each
        for parameter in parameters(arguments)
        for each in replaced.get(parameter["name"], [parameter])
    ]
    return {
        "summary": docs["summary"],
        "grammar": " ".join(["DQ." + name.upper(), *command_docs.grammar(arguments)]),
        "since": docs["since"],
        "call": call,
        "exclusive": exclusive(arguments) + DESCRIBED["exclusive"].get(name, []),
        "reply": DESCRIBED["replies"].get(name),
    }


def fields(server: Any) -> Raw:
    """The fields of what GET, INFO and GROUPS show, in their order, each with its type."""
    server.flushall()
    server.execute_command("DQ.ADD", "q", "plain", "x")
    server.execute_command("DQ.ADD", "q", "timed", "x", "EVERY", 5_000)
    server.execute_command("DQ.ADD", "q", "rich", "x", "GROUP", "g", "KEEP", 60_000)
    plain, timed = (server.execute_command("DQ.GET", "q", id) for id in ("plain", "timed"))
    (_, _, lease, *_) = server.execute_command("DQ.POP", "q", "ID", "rich")[0]
    server.execute_command("DQ.TOUCH", "q", "rich", lease, "NOTE", "n")
    server.execute_command("DQ.DONE", "q", "rich", lease, "RESULT", "r")
    rich = server.execute_command("DQ.GET", "q", "rich")
    server.execute_command("DQ.ADD", "q", "edged", "x", "AFTER", 1, "plain")
    edged = server.execute_command("DQ.GET", "q", "edged")
    server.execute_command("DQ.PAUSE", "q", "GROUP", "g")
    (group,) = server.execute_command("DQ.GROUPS", "q", 0)[1]
    shown = {
        "job": list(rich),
        "edges": [name for name in edged if name not in plain],
        "schedule": [name for name in timed if name not in plain],
        "info": list(server.execute_command("DQ.INFO", "q")),
        "group": list(group),
    }
    return {
        what: {name: type_of_field(what, name) for name in names} for what, names in shown.items()
    }


def type_of_field(what: str, name: str) -> str:
    types: dict[str, str] = DESCRIBED["fields"][what]
    if name not in types:
        raise Undescribed(f"`fields` says nothing of {name} of {what}")
    return types[name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    parser.add_argument("--server", metavar="URL", help="an empty one; without, one is started")
    options = parser.parse_args()
    with command_docs.connection(options.server) as server:
        text = as_text(described(server))
    if options.write:
        OUTPUT.write_text(text)
    elif OUTPUT.read_text() != text:
        print("commands.json differs from what the module says: make contract", file=sys.stderr)
        return 1
    return 0


def as_text(told: Raw) -> str:
    """JSON with one parameter or field a line, so that a change shows in a diff."""

    def block(pairs: Raw, indent: str, shown: Any) -> str:
        lines = [f"{indent}  {json.dumps(name)}: {shown(value)}" for name, value in pairs.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"

    def command(one: Raw) -> str:
        def part(value: Any) -> str:
            if isinstance(value, list) and value and isinstance(value[0], dict):
                lines = [f"        {json.dumps(each)}" for each in value]
                return "[\n" + ",\n".join(lines) + "\n      ]"
            return json.dumps(value)

        return block(one, "    ", part)

    def shapes(each: Raw) -> str:
        return block(each, "    ", json.dumps)

    body = {
        "commands": block(told["commands"], "  ", command),
        "fields": block(told["fields"], "  ", shapes),
    }
    return (
        "{\n" + ",\n".join(f"  {json.dumps(name)}: {text}" for name, text in body.items()) + "\n}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
