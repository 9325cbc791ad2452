"""The pages in docs/ are true: their transcripts are played, and what they state of a command is what the
server and the sources say of it.

A block marked `transcript` is as transcript.py reads it, and begins with an empty server. It is played in
RESP2 and in RESP3, or only in the one that is named behind the mark. After a comment that begins with
`# Later` a command is repeated until it gives its reply.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from server import Server
from transcript import Session, parse

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
INDEX = DOCS / "commands" / "README.md"
GUIDE = DOCS / "guide.md"
ALL_PAGES = sorted(DOCS.glob("**/*.md"))
COMMAND_PAGES = sorted(path for path in INDEX.parent.glob("*.md") if path != INDEX)

INTERNAL = {"dq.apply"}
# Errors of the internal command.
INTERNAL_ERRORS = {"ERR unknown effect {}: a newer dq may have written it", "ERR {error}"}
LATER = "# Later"
LATER_AT_MOST_S = 20

FENCE = re.compile(r"^```([a-z]+)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEAD = re.compile(
    r"# (?P<name>DQ\.[A-Z]+)\n\n(?P<summary>.+)\.\n\n```grammar\n(?P<grammar>(?:.|\n)+?)\n```\n\n"
    r"- Since: (?P<since>.+)\n- Complexity: (?P<complexity>.+)\n\n"
)
TITLE = re.compile(r"^#+ (.+)$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
PROTOCOLS = {None: (2, 3), "resp2": (2,), "resp3": (3,)}


@dataclass(frozen=True)
class Block:
    """A transcript on a page, in a version of the protocol."""

    page: Path
    number: int
    protocol: int
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(DOCS)}-{self.number}-resp{self.protocol}"


def blocks() -> Iterator[Block]:
    for page in ALL_PAGES:
        fences = [match.groups() for match in FENCE.finditer(page.read_text())]
        transcripts = [(only, text) for mark, only, text in fences if mark == "transcript"]
        for number, (only, text) in enumerate(transcripts, start=1):
            for protocol in PROTOCOLS[only]:
                yield Block(page, number, protocol, text)


@pytest.mark.parametrize("block", list(blocks()), ids=str)
def test_a_transcript_is_what_happens(server: Server, block: Block) -> None:
    session = server.session(block.protocol)
    try:
        play(session, block.text)
    finally:
        session.close()


def play(session: Session, transcript: str) -> None:
    __tracebackhide__ = True
    is_later = False
    for step in parse(transcript):
        if step.is_comment:
            session.check(step.text)
            is_later = is_later or step.text.startswith(LATER)
        elif is_later:
            session.eventually(f"> {step.text}\n{step.reply}", LATER_AT_MOST_S)
            is_later = False
        else:
            session.check(f"> {step.text}\n{step.reply}")


def test_every_command_has_a_page_and_every_page_a_command(session: Session) -> None:
    names = {name.decode() for name in session.call("COMMAND", "LIST", "FILTERBY", "MODULE", "dq")}
    assert {f"dq.{page.stem}" for page in COMMAND_PAGES} == names - INTERNAL


@pytest.mark.parametrize("page", COMMAND_PAGES, ids=lambda page: page.stem)
def test_a_page_begins_with_what_the_server_says_of_the_command(session: Session, page: Path) -> None:
    head = head_of(page)
    assert head["name"] == f"DQ.{page.stem.upper()}"
    _, docs = session.call("COMMAND", "DOCS", head["name"])
    told = dict(zip(docs[::2], docs[1::2], strict=True))
    for field in ("summary", "since", "complexity"):
        assert head[field] == told[field.encode()].decode()


@pytest.mark.parametrize("page", COMMAND_PAGES, ids=lambda page: page.stem)
def test_the_grammar_is_that_of_the_source(page: Path) -> None:
    source = (ROOT / "src" / "command" / f"{page.stem}.rs").read_text()
    comment = " ".join(re.match(r"(?://! ?.*\n)+", source).group().split("//!"))
    grammar = re.match(r"\s*`([^`]+)`", comment).group(1)
    assert head_of(page)["grammar"].split() == grammar.split()


@pytest.mark.parametrize("page", COMMAND_PAGES, ids=lambda page: page.stem)
def test_a_page_explains_every_option_and_no_other(page: Path) -> None:
    head = head_of(page)
    in_grammar = re.findall(r"\b[A-Z]{2,}\b", head["grammar"].removeprefix(head["name"]))
    explained = re.findall(r"^\| `([A-Z]+)\b", section(page, "Options"), re.MULTILINE)
    assert sorted(explained) == sorted(in_grammar)


@pytest.mark.parametrize("page", COMMAND_PAGES, ids=lambda page: page.stem)
def test_a_page_has_all_that_a_page_has(page: Path) -> None:
    text = page.read_text()
    for title in ("Replies", "Example", "Errors"):
        assert f"\n## {title}\n" in text
    for title in ("Example", "Errors"):
        assert "```transcript" in section(page, title)
    for protocol in ("RESP2", "RESP3"):
        assert protocol in section(page, "Replies")
    errors = section(page, "Errors")
    assert "WRONGTYPE" in errors
    assert "wrong number of arguments" in errors


@pytest.mark.parametrize(("page", "command"), [("get", "DQ.GET q a"), ("info", "DQ.INFO q")])
def test_the_table_of_fields_is_the_map(session: Session, page: str, command: str) -> None:
    session.call("DQ.ADD", "q", "a", "x")
    names = [name.decode() for name in session.call(*command.split())[::2]]
    rows = re.findall(r"^\| (`.*?) \|", section(INDEX.parent / f"{page}.md", "Fields"), re.MULTILINE)
    assert re.findall(r"`([a-z0-9-]+)`", " ".join(rows)) == names


def test_the_index_has_every_command_with_its_summary() -> None:
    rows = re.findall(r"^\| \[`(DQ\.[A-Z]+)`\]\((\w+)\.md\) \| (.+) \|$", INDEX.read_text(), re.MULTILINE)
    heads = [(page.stem, head_of(page)) for page in COMMAND_PAGES]
    assert sorted(rows) == sorted((head["name"], stem, head["summary"]) for stem, head in heads)


def test_the_index_says_what_the_server_refuses_on_a_replica_and_when_memory_is_full(
    session: Session,
) -> None:
    flags = {page.stem: session.call("COMMAND", "INFO", f"dq.{page.stem}")[0][2] for page in COMMAND_PAGES}
    assert {name for name in flags if "readonly" in flags[name]} == set(
        re.findall(r"\]\((\w+)\.md\)", section(INDEX, "Look"))
    )
    refused = re.search(r"`OOM` for (.*?) when", INDEX.read_text(), re.DOTALL).group(1)
    assert {name for name in flags if "denyoom" in flags[name]} == {
        name.lower() for name in re.findall(r"`DQ\.([A-Z]+)`", refused)
    }


def test_every_error_stands_on_some_page_and_no_other_does() -> None:
    source = (ROOT / "src" / "command" / "error.rs").read_text()
    wordings = set(re.findall(r'"((?:ERR|EXISTS|FULL|WRONGTYPE) [^"]+)"', source)) - INTERNAL_ERRORS
    assert len(wordings) > 15
    pages = "".join(page.read_text() for page in COMMAND_PAGES)
    unseen = [wording for wording in wordings if not re.search(pattern_of(wording), pages)]
    assert unseen == []
    # Those in transcripts are played; these are in the text.
    for told in re.findall(r"`((?:ERR|EXISTS|FULL|WRONGTYPE) [^`]+)`", pages):
        assert any(re.fullmatch(pattern_of(wording), told) for wording in wordings), told


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in LINK.findall(FENCE.sub("", page.read_text())):
        if path.startswith("http"):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        if anchor:
            assert anchor in map(anchor_of, TITLE.findall(FENCE.sub("", target.read_text()))), (
                f"{path}#{anchor}"
            )


def test_the_worker_of_the_guide_does_what_is_due_and_stops_when_told(
    server: Server, session: Session
) -> None:
    program = re.search(r"<!-- worker: .*?```python\n(.*?)```", GUIDE.read_text(), re.DOTALL).group(1)
    worker = subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"REDIS_URL": f"redis://127.0.0.1:{server.port}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        session.check("""
            > DQ.ADD mail a Ann DELAY 50
            "a"
            > DQ.ADD mail b fail ATTEMPTS 1
            "b"
            > DQ.ADD mail c Bob PRIORITY 0
            "c"
        """)
        play(session, "# Later\n> DQ.LEN mail STATE dead\n(integer) 1")
        play(session, "# Later\n> DQ.LEN mail\n(integer) 1")
        worker.send_signal(signal.SIGTERM)
        output, _ = worker.communicate(timeout=LATER_AT_MOST_S)
    finally:
        worker.kill()
    assert worker.returncode == 0
    assert sorted(output.splitlines()) == ["working on Ann", "working on Bob", "working on fail"]


def head_of(page: Path) -> dict[str, str]:
    head = HEAD.match(page.read_text())
    assert head, f"{page} doesn't begin as the others"
    return head.groupdict()


def section(page: Path, title: str) -> str:
    """What stands under a title; nothing when there is none."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def pattern_of(wording: str) -> str:
    """Of a format string of Rust, whatever its parts become."""
    return ".+".join(map(re.escape, re.split(r"\{[a-z_A-Z]*\}", wording)))


def anchor_of(title: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
