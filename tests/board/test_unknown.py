"""A server that stands still while an action is under way: whether it was done isn't known, and the page
and the log say so. When the server goes on, dq-board looks and says what it found.
"""

import html
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from board import Board
from deeds import form, state
from harness.server import Server, eventually
from plain import form_of
from samples import HOUR, every_state, pipe
from slow import Slow

COMMANDS = {
    "pause": b"DQ.PAUSE",
    "resume": b"DQ.RESUME",
    "add": b"DQ.ADD",
    "kick": b"DQ.KICKJOB",
    "del": b"DQ.DEL",
    "alter": b"DQ.ALTER",
    "purge": b"DQ.PURGE",
}


class Stall:
    """A board behind a relay. The server stands still from the moment at which a command comes to it."""

    def __init__(self, server: Server, slow: Slow, board: Board, actions: Path):
        self.server, self.slow, self.board, self.actions = server, slow, board, actions

    def stop(self) -> None:
        os.kill(self.server.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        self.slow.passes = lambda _: True
        os.kill(self.server.pid, signal.SIGCONT)

    def stop_at(self, command: bytes) -> None:
        def passes(data: bytes) -> bool:
            if command in data:
                self.stop()
            return True

        self.slow.passes = passes

    def lose(self, command: bytes, after: int = 0) -> None:
        """Of these commands the first so many come to the server, and no other one."""
        left = [after]

        def passes(data: bytes) -> bool:
            left[0] -= command in data
            return command not in data or left[0] >= 0

        self.slow.passes = passes

    def written(self) -> list[dict[str, object]]:
        lines = self.actions.read_text().splitlines() if self.actions.exists() else []
        return [json.loads(line) for line in lines]


@pytest.fixture
def stall(
    server: Server, slow: Slow, boards: Callable[..., Board], tmp_path: Path
) -> Iterator[Stall]:
    slow.delay_s = 0.0
    actions = tmp_path / "actions"
    board = boards("--writable", "--actions-log", str(actions), redis=slow.url)
    yield (stall := Stall(server, slow, board, actions))
    stall.go_on()


# What is done, whether it can be told afterwards that it was, and what is said then.
ACTS = [
    ("pause", {}, True, "the queue is paused."),
    ("pause", {"resume": "1"}, True, "the queue isn't paused."),
    ("pause", {"for": "1", "for-unit": "s"}, None, "isn't paused. The pause may be over."),
    ("pause", {"group": "ann"}, True, "the group “ann” is paused."),
    ("pause", {"resume": "job", "id": "held"}, True, "the job isn't on hold."),
    ("add", {"id": "new", "body": "x"}, True, "a job was added since. The job is ready now."),
    ("add", {"body": "x"}, None, "1 job was added since. Others may have done that."),
    ("kick", {"id": "dead"}, True, "a job was kicked since. The job is ready now."),
    ("del", {"id": "ready"}, True, "the job is gone."),
    ("alter", {"concurrency": "3"}, True, "all of it is set."),
    (
        "purge",
        {"state": "dead", "count": "1", "older": "0", "confirm": "mail"},
        None,
        "1 job was purged",
    ),
]


@pytest.mark.parametrize(("verb", "more", "ok", "found"), ACTS, ids=lambda value: str(value)[:30])
def test_what_a_server_does_when_it_goes_on_is_found_out(
    stall: Stall, r: redis.Redis, verb: str, more: dict[str, str], ok: bool | None, found: str
):
    every_state(r)
    pipe(r, ("DQ.ADD", "mail", "grouped", "x", "GROUP", "ann"))
    if more.get("resume") == "1":
        r.execute_command("DQ.PAUSE", "mail")
    fields = form(stall.board, verb, **more)
    stall.stop_at(COMMANDS["resume" if "resume" in more else verb])
    to = f"/{stall.board.post('/act', fields).headers['location']}"
    (line,) = stall.written()
    assert line["ok"] is None and str(line["outcome"]).startswith("It isn't known whether")
    assert "outcome=\"It isn't known whether this was done" in stall.board.log()
    page = stall.board.get(to)
    assert '<p class="banner warn" role="status">It isn\'t known' in html.unescape(page.text)

    stall.go_on()
    eventually(lambda: len(stall.written()) == 2, 20)
    after = stall.written()[1]
    assert str(after["outcome"]).startswith("The server answers again: ")
    assert found in str(after["outcome"]) and after["ok"] is ok
    assert (after["verb"], after["queue"], after["id"]) == (verb, "mail", more.get("id"))
    assert "The server answers again: " in stall.board.get(to).text
    assert "The server answers again: " in stall.board.get("/actions").text
    assert ">unknown<" in stall.board.get("/actions").text


def test_what_a_server_never_did_is_found_out(stall: Stall, r: redis.Redis):
    """The command is lost on its way."""
    every_state(r)
    fields = form(stall.board, "del", id="ready")
    stall.lose(b"DQ.DEL")
    stall.board.post("/act", fields)
    eventually(lambda: len(stall.written()) == 2, 20)
    first, second = stall.written()
    assert (first["ok"], second["ok"]) == (None, False)
    assert "the job is still there, ready." in str(second["outcome"])
    assert state(r, "mail", "ready") == "ready"


def test_what_was_not_sent_was_not_done(stall: Stall, r: redis.Redis):
    """A server that stood still before: then the outcome is known."""
    every_state(r)
    fields = form(stall.board, "del", id="ready")
    stall.stop()
    stall.board.post("/act", fields)
    (line,) = stall.written()
    assert line["ok"] is False and "can't be reached" in str(line["outcome"])
    stall.go_on()
    eventually(lambda: "No answer" not in stall.board.get("/").text, 15)
    assert state(r, "mail", "ready") == "ready" and len(stall.written()) == 1


def test_of_many_jobs_it_is_said_how_many_were_done_before(stall: Stall, r: redis.Redis):
    pipe(r, *[("DQ.ADD", "mail", f"job-{n:05}", "x", "DELAY", HOUR) for n in range(3_000)])
    preview = stall.board.get("/selected", queue="mail", state="delayed", do="del")
    stall.lose(b"DQ.DEL", after=1)
    stall.board.send_form("/act", form_of(preview, "confirm"))
    line = stall.written()[0]
    left = r.execute_command("DQ.LEN", "mail")
    assert line["ok"] is None and 0 < left < 3_000
    told = f"Deleted {3_000 - left:,} delayed jobs. Of the rest: it isn't known whether"
    assert str(line["outcome"]).startswith(told.replace(",", "\u202f"))


def test_an_action_goes_on_and_is_logged_when_its_reader_goes_away(stall: Stall, r: redis.Redis):
    every_state(r)
    fields = form(stall.board, "del", id="ready")
    stall.slow.delay_s = 1.0
    with pytest.raises(OSError, match="timed out"):
        stall.board.post("/act", fields, within_s=0.3)
    stall.slow.delay_s = 0.0
    eventually(stall.written, 15)
    assert stall.written()[0]["ok"] is True
    assert state(r, "mail", "ready") is None
