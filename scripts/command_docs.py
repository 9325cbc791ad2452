"""Writes what the server says of DQ's commands wherever it is written down, or checks that it is
there.

    command_docs.py --write|--check [--server redis://HOST:PORT] [PATH ...]

What a command is called, takes and does is said once: in its SPEC in src/command/. The module tells
the server, and the server tells this script (COMMAND DOCS, COMMAND INFO), which renders it into

    docs/commands/README.md               the tables of commands
    docs/commands/<name>.md               its head: summary, grammar, complexity, categories
    src/command/<name>.rs                 the grammar, the first code span of the first doc comment

On pages it writes only between the two marker lines. With PATHs, it does so only to files at or
below them. Without --server it starts one of the servers of the tests, with the module of `make
build`.
"""

import argparse
import difflib
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

# Servers are started as the tests start theirs.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "blackbox"))

from harness.server import KNOWN, Server

ROOT = Path(__file__).resolve().parents[1]

# Which commands there are, in the order and under the titles of the tables.
GROUPS = {
    "Produce": ["add", "madd"],
    "Consume": ["pop", "mpop", "finish", "done", "release", "touch", "renew", "bury"],
    "Manage": ["del", "kick", "kickjob", "pause", "resume", "purge", "alter"],
    "Look": ["get", "result", "deps", "peek", "scan", "groups", "len", "forecast", "info", "next"],
}
# Not for clients: it has a head in the sources, and no page.
INTERNAL = ["apply"]

BEGIN = "<!-- From COMMAND DOCS: `make docs` writes this part. -->"
END = "<!-- The end of that part. -->"
PAGE_WIDTH = 100
SOURCE_WIDTH = 100

Raw = dict[str, Any]


class Wrong(Exception):
    """Something that a person has to put right first."""


# ---- the notation --------------------------------------------------------------------------------


def grammar(arguments: list[Raw]) -> list[str]:
    """The arguments in the notation of the docs, in pieces between which a line may end.

    `[x]` is optional, `(a | b)` and `a|b` are one of them, `x [x ...]` is one or more.
    """
    return [shown(argument) for argument in arguments]


def shown(argument: Raw) -> str:
    is_optional = "optional" in argument["flags"]
    token, value = argument.get("token"), value_of(argument)
    text = " ".join(filter(None, [token, value]))
    if "multiple" in argument["flags"]:
        more = text if "multiple_token" in argument["flags"] else value
        text = f"{text} ..." if is_optional and more == text else f"{text} [{more} ...]"
    return f"[{text}]" if is_optional else text


def value_of(argument: Raw) -> str:
    """What stands behind its token, if it has one."""
    match argument["type"]:
        case "pure-token":
            return ""
        case "block":
            return " ".join(grammar(argument["arguments"]))
        case "oneof":
            return choice(argument, is_alone=argument.get("token") is None)
        case _:
            return str(argument.get("display_text", argument["name"]))


def choice(argument: Raw, *, is_alone: bool) -> str:
    options = grammar(argument["arguments"])
    # Words in capitals are part of the command. Words in small letters are values, and stand under
    # the name of the choice, as numbers and texts do.
    if all(option.isalpha() and option.islower() for option in options) and not is_alone:
        return str(argument["name"])
    is_wide = any(" " in option for option in options) or (
        is_alone and "optional" in argument["flags"]
    )
    text = (" | " if is_wide else "|").join(options)
    is_bare = is_wide and is_alone and "optional" not in argument["flags"]
    return f"({text})" if is_bare else text


def wrapped(pieces: list[str], width: int, indent: str) -> str:
    """The pieces in lines of at most this width; each line but the first begins with the indent."""
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + 1 + len(piece) <= width:
            lines[-1] += " " + piece
        else:
            lines.append(indent + piece)
    return "\n".join(lines)


# ---- what the server says ------------------------------------------------------------------------


@dataclass(frozen=True)
class Command:
    name: str
    summary: str
    complexity: str
    since: str
    # The name in capitals, and the arguments.
    pieces: list[str]
    # None where a server has no way for modules to tell them.
    categories: list[str] | None

    @property
    def title(self) -> str:
        return self.pieces[0]


def commands(server: redis.Redis) -> dict[str, Command]:
    """All commands of the module, by their names without the prefix."""
    # As one word, so that redis-py doesn't take the reply for that of COMMAND.
    names = sorted(server.execute_command("COMMAND LIST", "FILTERBY", "MODULE", "dq"))
    if not names:
        raise Wrong("this server has no module `dq`")
    told = server.execute_command("COMMAND DOCS", *names)
    infos = server.execute_command("COMMAND INFO", *names)
    found = {
        name.removeprefix("dq."): command(name, told[name], info)
        for name, info in zip(names, infos, strict=True)
    }
    listed = [name for group in GROUPS.values() for name in group] + INTERNAL
    if sorted(found) != sorted(listed):
        odd = sorted(set(found) ^ set(listed))
        raise Wrong(f"GROUPS and INTERNAL of this script and the module don't agree about {odd}")
    return found


def command(name: str, docs: Raw, info: list[Any]) -> Command:
    return Command(
        name=name,
        summary=docs["summary"],
        complexity=docs["complexity"],
        since=docs["since"],
        pieces=[name.upper(), *grammar(with_flags(docs["arguments"]))],
        categories=sorted(info[6]) or None,
    )


def with_flags(arguments: list[Raw]) -> list[Raw]:
    """The server leaves out what is empty."""
    return [
        {"flags": []} | argument | {"arguments": with_flags(argument.get("arguments", []))}
        for argument in arguments
    ]


# ---- the files -----------------------------------------------------------------------------------


def rewritten(found: dict[str, Command]) -> Iterator[tuple[Path, Callable[[str], str]]]:
    """Each file, and what makes of its text what it should be."""
    pages = ROOT / "docs" / "commands"
    yield pages / "README.md", lambda text: between_markers(text, index(found))
    for name, one in found.items():
        if name not in INTERNAL:
            yield pages / f"{name}.md", lambda text, one=one: between_markers(text, head(one, text))
        source = ROOT / "src" / "command" / f"{name}.rs"
        yield source, lambda text, one=one: with_grammar(text, one)


def between_markers(text: str, part: str) -> str:
    pattern = re.compile(f"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise Wrong(f"needs these two lines, once:\n{BEGIN}\n{END}")
    return pattern.sub(lambda _: f"\n{part}\n", text)


def index(found: dict[str, Command]) -> str:
    tables = []
    for title, names in GROUPS.items():
        rows = [
            f"| [`{found[name].title}`]({page_of(found[name])}) | {found[name].summary} |\n"
            for name in names
        ]
        tables.append(f"## {title}\n\n| command | what it does |\n| --- | --- |\n" + "".join(rows))
    return "\n".join(tables)


def page_of(one: Command) -> str:
    return one.name.removeprefix("dq.") + ".md"


def head(one: Command, text: str) -> str:
    indent = " " * (len(one.title) + 1)
    categories = ", ".join(f"`@{name.removeprefix('@')}`" for name in one.categories or [])
    line = f"- ACL categories: {categories}"
    if one.categories is None:
        # This server can't say: what stands there is left as it is.
        line = next(iter(re.findall(r"^- ACL categories: .*$", text, re.MULTILINE)), line)
    return (
        f"{one.summary}.\n\n"
        f"```grammar\n{wrapped(one.pieces, PAGE_WIDTH, indent)}\n```\n\n"
        f"- Since: {one.since}\n- Complexity: {one.complexity}\n{line}\n"
    )


def with_grammar(text: str, one: Command) -> str:
    comment = re.match(r"(?://!.*\n)+", text)
    span = re.search(r"^//! `[^`]*`", comment[0], re.MULTILINE) if comment else None
    if span is None:
        raise Wrong("has no code span at the beginning of a line of its first doc comment")
    # The closing backtick needs its place, too.
    pieces = [f"//! `{one.title}", *one.pieces[1:]]
    pieces[-1] += "`"
    return text[: span.start()] + wrapped(pieces, SOURCE_WIDTH, "//! ") + text[span.end() :]


# ---- the program ---------------------------------------------------------------------------------


@contextmanager
def connection(address: str | None) -> Iterator[redis.Redis]:
    # RESP3: maps come as maps.
    options: dict[str, Any] = {"protocol": 3, "decode_responses": True}
    if address is not None:
        with redis.Redis.from_url(address, **options) as client:
            yield client
        return
    with tempfile.TemporaryDirectory() as directory:
        # One that tells the ACL categories of modules' commands.
        server = Server(KNOWN["redis-8.2"], Path(directory))
        try:
            with server.client(**options) as client:
                yield client
        finally:
            server.kill9()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true", help="rewrite what differs")
    mode.add_argument(
        "--check", action="store_true", help="show what differs, and fail if anything does"
    )
    parser.add_argument("--server", metavar="URL", help="the server to ask")
    parser.add_argument(
        "paths", metavar="PATH", nargs="*", type=Path, help="only these files and folders"
    )
    options = parser.parse_args()

    with connection(options.server) as server:
        found = commands(server)
    wanted = [path.resolve() for path in options.paths] or [ROOT]
    differing = 0
    for path, rewrite in rewritten(found):
        if not any(path.is_relative_to(one) for one in wanted):
            continue
        name = str(path.relative_to(ROOT))
        old = path.read_text()
        try:
            new = rewrite(old)
        except Wrong as wrong:
            raise Wrong(f"{name} {wrong}") from None
        if new == old:
            continue
        differing += 1
        if options.write:
            path.write_text(new)
            print(f"written: {name}")
        else:
            lines = difflib.unified_diff(
                old.splitlines(True), new.splitlines(True), name, f"{name}, from the module"
            )
            sys.stdout.writelines(lines)
    if options.check and differing:
        print(f"\n{differing} files differ from what the module says: make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Wrong, OSError, redis.RedisError) as wrong:
        sys.exit(f"command_docs: {wrong}")
