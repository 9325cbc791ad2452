"""The sessions of docs/, played through each client by its typed methods.

They are those that tests/blackbox/docs/test_pages.py plays over the bare protocol, on the same
kinds of servers, in RESP2 and RESP3. What the pages don't show of a command is in sessions/.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.paths import ROOT
from harness.transcript import play
from runner.pages import ClientSession
from runner.program import Program
from runner.typed import COMMANDS

DOCS = ROOT / "docs"
SESSIONS = sorted((Path(__file__).resolve().parents[1] / "sessions").glob("*.txt"))
FENCE = re.compile(r"^## ([^\n]+)$|^```transcript(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROTOCOLS = {None: (2, 3), "resp2": (2,), "resp3": (3,)}


@dataclass(frozen=True)
class Block:
    name: str
    section: str
    protocol: int
    text: str

    def __str__(self) -> str:
        return f"{self.name}-resp{self.protocol}"


def blocks() -> Iterator[Block]:
    for page in sorted(DOCS.glob("**/*.md")):
        section, number = "", 0
        for title, only, text in (match.groups() for match in FENCE.finditer(page.read_text())):
            if title:
                section = title
                continue
            number += 1
            for protocol in PROTOCOLS[only]:
                name = f"{page.relative_to(DOCS)}-{number}"
                yield Block(name, section, protocol, text)


@pytest.mark.parametrize("block", list(blocks()), ids=str)
def test_each_session_of_the_docs_is_what_happens_through_the_client(
    block: Block, connect: Callable[[int], Program]
) -> None:
    session = ClientSession(connect(block.protocol), block.protocol)
    play(session, block.text)
    if block.section != "Errors":
        # All of them can be said by the client's types.
        assert session.raw_calls == []


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_a_session_is_what_happens_through_the_client(
    path: Path, protocol: int, connect: Callable[[int], Program]
) -> None:
    session = ClientSession(connect(protocol), protocol)
    play(session, path.read_text())
    assert session.raw_calls == []


def test_every_command_has_a_session_that_is_played_by_types() -> None:
    text = "".join(block.text for block in blocks() if block.section != "Errors")
    missing = [name for name in COMMANDS if f"> DQ.{name.upper()}" not in text]
    assert missing == []
