"""docs/board names every option, every verb and every metric, and none that there isn't."""

import re
import subprocess
from pathlib import Path

import redis

from board import BINARY, Board
from harness.server import eventually
from samples import RIGHTS, every_state

DOCS = Path(__file__).resolve().parents[2] / "docs"


def page(name: str) -> str:
    return (DOCS / "board" / f"{name}.md").read_text()


def rows(name: str) -> set[str]:
    """What stands in code in the first columns of a page's tables."""
    cells = [line.split(" | ")[0] for line in page(name).splitlines() if line.startswith("| `")]
    return {word.split()[0] for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def test_the_board_page_has_all_options_and_verbs():
    told = subprocess.run([BINARY, "--help"], capture_output=True, text=True, check=True).stdout
    assert rows("options") == set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", told, re.MULTILINE)) - {
        "--help",
        "--version",
    }
    verbs = re.search(r"\[possible values: (.*?)\]", told)
    assert verbs and rows("actions") == set(verbs[1].split(", "))


def test_the_board_page_has_the_rights_that_the_tests_use():
    assert f"ACL SETUSER board on >password {RIGHTS}\n" in page("access")


def test_the_role_for_a_board_on_the_security_page_has_all_that_a_board_asks():
    role = re.search(r"ACL SETUSER board reset (.*)", (DOCS / "security.md").read_text())
    assert role
    # HELLO is in @connection there, and the keys are those of one application.
    needed = set(RIGHTS.split()) - {"~*", "+hello"}
    assert needed - set(role[1].split()) == set()


def test_the_board_page_has_all_metrics(board: Board, r: redis.Redis):
    every_state(r)
    eventually(lambda: 'dq_paused{queue="mail"}' in board.metrics())
    # A histogram is three series.
    told = {re.sub(r"_(bucket|count|sum)$", "", name.split("{")[0]) for name in board.metrics()}
    assert rows("metrics") == told - {"# EOF"}
