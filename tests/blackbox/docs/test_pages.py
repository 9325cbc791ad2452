"""The pages in docs/ are true: their transcripts are played, and their statements are checked.

A block marked `transcript` is played as in harness/transcript.py, and begins with an empty server.
It is played in RESP2 and in RESP3, or only in the protocol that is named after the mark.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.marks import on_one_kind
from harness.paths import ROOT
from harness.server import Server
from harness.transcript import Session, play

DOCS = ROOT / "docs"
INDEX = DOCS / "commands" / "README.md"
ALL_PAGES = sorted(DOCS.glob("**/*.md"))
OTHER_PAGES = [
    ROOT / "examples" / "README.md",
    ROOT / "helm" / "dq" / "README.md",
    *sorted(ROOT.glob("clients/*/README.md")),
    *sorted(ROOT.glob("*.md")),
]
COMMAND_PAGES = sorted(path for path in INDEX.parent.glob("*.md") if path != INDEX)

# What is wrong with a record, in the words of src/queue/value/record.rs.
RECORD_ERROR = "ERR {0}"

FENCE = re.compile(r"^```([a-z]+)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GRAMMAR = re.compile(r"```grammar\n(DQ\.[A-Z]+)(.*?)\n```", re.DOTALL)
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
def test_each_transcript_of_the_docs_is_what_happens(server: Server, block: Block) -> None:
    session = server.session(block.protocol)
    try:
        play(session, block.text)
    finally:
        session.close()


@pytest.mark.parametrize("page", COMMAND_PAGES, ids=lambda page: page.stem)
def test_a_command_page_explains_every_option_and_no_other(page: Path) -> None:
    in_grammar = re.findall(r"\b[A-Z]{2,}\b", GRAMMAR.search(page.read_text())[2])
    explained = re.findall(r"^\| `([A-Z]+)\b", section(page, "Options"), re.MULTILINE)
    # BURST belongs to two of them.
    assert sorted(explained) == sorted(set(in_grammar))


@on_one_kind
@pytest.mark.parametrize(("page", "command"), [("get", "DQ.GET q a"), ("info", "DQ.INFO q")])
def test_the_table_of_fields_of_get_is_the_map_of_its_reply(
    session: Session, page: str, command: str
) -> None:
    session.call("DQ.ADD", "q", "a", "x")
    names = [name.decode() for name in session.call(*command.split())[::2]]
    rows = re.findall(
        r"^\| (`.*?) \|", section(INDEX.parent / f"{page}.md", "Fields"), re.MULTILINE
    )
    assert re.findall(r"`([a-z0-9-]+)`", " ".join(rows)) == names


@on_one_kind
def test_the_table_of_fields_of_a_schedule_is_what_a_job_with_one_has_besides(
    session: Session,
) -> None:
    session.call("DQ.ADD", "q", "plain", "x")
    session.call("DQ.ADD", "q", "a", "x", "EVERY", 5_000)
    plain, names = (
        [name.decode() for name in session.call("DQ.GET", "q", id)[::2]] for id in ("plain", "a")
    )
    rows = re.findall(
        r"^\| (`.*?) \|", section(INDEX.parent / "get.md", "Fields of a schedule"), re.MULTILINE
    )
    assert plain + re.findall(r"`([a-z0-9-]+)`", " ".join(rows)) == names


@on_one_kind
def test_the_table_of_fields_of_edges_is_what_a_job_with_one_has_besides(session: Session) -> None:
    session.call("DQ.ADD", "q", "plain", "x")
    session.call("DQ.ADD", "q", "a", "x", "HOLD")
    plain, names = (
        [name.decode() for name in session.call("DQ.GET", "q", id)[::2]] for id in ("plain", "a")
    )
    rows = re.findall(
        r"^\| (`.*?) \|", section(INDEX.parent / "get.md", "Fields of edges"), re.MULTILINE
    )
    assert plain + re.findall(r"`([a-z0-9-]+)`", " ".join(rows)) == names


@on_one_kind
def test_the_index_says_what_the_server_refuses_on_a_replica_and_when_memory_is_full(
    session: Session,
) -> None:
    flags = {
        page.stem: session.call("COMMAND", "INFO", f"dq.{page.stem}")[0][2]
        for page in COMMAND_PAGES
    }
    assert {name for name in flags if "readonly" in flags[name]} == set(
        re.findall(r"\]\((\w+)\.md\)", section(INDEX, "Look"))
    )
    refused = re.search(r"`OOM` for (.*?) when", INDEX.read_text(), re.DOTALL).group(1)
    assert {name for name in flags if "denyoom" in flags[name]} == {
        name.lower() for name in re.findall(r"`DQ\.([A-Z]+)`", refused)
    }


def test_every_error_stands_on_some_page_and_no_other_does() -> None:
    source = (ROOT / "src" / "command" / "error.rs").read_text()
    wordings = set(re.findall(r'"((?:ERR|EXISTS|FULL|WRONGTYPE) [^"]+)"', source)) - {RECORD_ERROR}
    assert len(wordings) > 15
    pages = "".join(on_one_line(page.read_text()) for page in COMMAND_PAGES)
    # An error of one of several jobs is that error.
    pages = re.sub(r" job \d+:", "", pages)
    formats = on_one_line((DOCS / "format.md").read_text())
    unseen = [
        wording for wording in wordings if not re.search(pattern_of(wording), pages + formats)
    ]
    assert unseen == []
    records = (ROOT / "src" / "queue" / "value" / "record.rs").read_text()
    assert [
        words
        for words in re.findall(r'RecordError::\w+ => "(.*)"', records)
        if words not in formats
    ] == []
    # Those in transcripts are played; these are in the text.
    for told in re.findall(r"`((?:ERR|EXISTS|FULL|WRONGTYPE) [^`]+)`", pages):
        assert any(re.fullmatch(pattern_of(wording), told) for wording in wordings), told


@pytest.mark.parametrize(
    "page", [*ALL_PAGES, *OTHER_PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_of_the_docs_lead_somewhere(page: Path) -> None:
    for path, anchor in LINK.findall(FENCE.sub("", page.read_text())):
        if path.startswith("http"):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        if anchor:
            assert anchor in map(anchor_of, TITLE.findall(FENCE.sub("", target.read_text()))), (
                f"{path}#{anchor}"
            )


@pytest.mark.parametrize(
    "page", [*ALL_PAGES, *OTHER_PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_a_line_of_a_session_can_be_copied(page: Path) -> None:
    """redis-cli knows no comments: what follows a command is part of it."""
    commands = re.findall(r"^\S*> (DQ\..*)$", page.read_text(), re.MULTILINE)
    assert [command for command in commands if "  #" in command or " # " in command] == []


def section(page: Path, title: str) -> str:
    """What stands under a title; nothing when there is none."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def on_one_line(page: str) -> str:
    """Each paragraph: an error may stand where a line ends."""
    return re.sub(r"(?<!\n)\n *(?!\n)", " ", page)


def pattern_of(wording: str) -> str:
    """Of a format string of Rust, whatever its parts become."""
    return ".+".join(map(re.escape, re.split(r"\{[a-z_A-Z0-9]*\}", wording)))


def anchor_of(title: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
