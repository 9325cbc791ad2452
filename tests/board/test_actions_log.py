"""Each action, and each that a reader tried without a right, is one line of the log, whose fields no
name can forge.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from board import Board
from deeds import everything, form
from samples import every_state


@pytest.fixture
def writable(boards: Callable[..., Board]) -> Board:
    return boards("--writable")


# Each would forge fields of the line that tells of it, if these weren't in quotes.
FORGED = 'mail id="inv-1" user="ann" verb="purge" queue=billing'


def line_of(board: Board, what: str) -> str:
    return next(line for line in board.log().splitlines() if what in line)


def fields_of(line: str) -> dict[str, list[str]]:
    """The fields of a line as a program reads it that knows quotes."""
    found: dict[str, list[str]] = {}
    quoted = r'(?P<name>\w+)=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>\S+))'
    for each in re.finditer(quoted, line.partition("from=")[1] + line.partition("from=")[2]):
        found.setdefault(each["name"], []).append(each["quoted"] or each["bare"] or "")
    return found


@pytest.mark.parametrize(
    "text", [FORGED, 'a" user="root" verb="purge" x="', 'a\nINFO action user="root"', "”. user=x"]
)
def test_no_name_forges_a_field_of_the_log(writable: Board, r: redis.Redis, text: str):
    names = ("from", "user", "verb", "queue", "id", "outcome")
    fields = {
        "token": writable.get("/queue", name="x").token()
        if r.execute_command("DQ.ADD", "x", "x", "x")
        else "",
        "verb": "add",
        "queue": text,
        "id": text,
        "body": "x",
        "user": "root",
    }
    assert writable.post("/act", fields).status == 303
    told = fields_of(line_of(writable, "action"))
    assert sorted(told) == sorted(names), told
    assert told["verb"] == ["add"] and told["user"] == [""] and len(told["queue"]) == 1
    # A group, a pattern that is refused, and what the server says of it.
    writable.post("/act", {**fields, "verb": "pause", "group": text})
    told = fields_of(line_of(writable, 'verb="pause"'))
    assert sorted(told) == sorted((*names, "group")), told
    assert told["verb"] == ["pause"]
    # One that may not be done.
    assert writable.post("/act", {**fields, "verb": text, "token": "x"}).status == 403
    told = fields_of(line_of(writable, "WARN refused"))
    assert sorted(told) == sorted(names) and len(told["verb"]) == 1, told
    log = writable.log().splitlines()
    assert len([line for line in log if " INFO action " in line]) == 2


def test_what_a_reader_tries_without_the_right_is_logged(
    boards: Callable[..., Board], r: redis.Redis, tmp_path: Path
):
    every_state(r)
    actions = tmp_path / "actions"
    board = boards("--writable", "--allow", "pause", "--actions-log", str(actions))
    token = board.get("/queue", name="mail").token()
    tries = [
        ("del", lambda: board.post("/act", form(board, "del", token, id="ready"))),
        ("fly", lambda: board.post("/act", form(board, "fly", token, id="ready"))),
        ("pause", lambda: board.post("/act", form(board, "pause", "forged", id="ready"))),
        ("kick", lambda: board.get("/selected", queue="mail", do="kick", state="dead")),
        ("purge", lambda: board.get("/purge", queue="mail", state="dead")),
        ("alter", lambda: board.get("/limits", queue="mail", concurrency="3")),
        ("schedule", lambda: board.get("/schedule", queue="mail")),
        ("schedule", lambda: board.post("/schedule", form(board, "schedule", token))),
    ]
    for count, (verb, attempt) in enumerate(tries, 1):
        assert attempt().status == 403, verb
        lines = [line for line in board.log().splitlines() if " WARN refused " in line]
        assert len(lines) == count
        told = fields_of(lines[-1])
        assert told["verb"] == [verb] and told["queue"] == ["mail"]
        assert told["outcome"][0].startswith("refused: ")
    written = [json.loads(line) for line in actions.read_text().splitlines()]
    assert [line["verb"] for line in written] == [verb for verb, _ in tries]
    assert not any(line["ok"] for line in written)
    assert "Nothing was done." in board.get("/actions").text

    nothing = boards()
    assert nothing.post("/act", form(nothing, "del", "x", id="ready")).status == 403
    assert fields_of(line_of(nothing, "WARN refused"))["queue"] == ["mail"]
    assert everything(r)[0] == "ready"
