"""A queue of each kind, and all pages there are: for tests that look at every page."""

from collections.abc import Callable

import redis

from board import Board
from harness.server import eventually
from samples import HOUR, every_state, flow, incident, pipe

# Panels as readers open them: all at once, though a click on one closes the others.
OPEN_ALL = """
for (const details of document.querySelectorAll("details")) {
  details.removeAttribute("name");
  details.open = true;
}
"""


def hang(r: redis.Redis) -> None:
    every_state(r)
    pipe(
        r,
        ("DQ.PAUSE", "paused", "FOR", HOUR),
        ("DQ.ALTER", "full", "MAXJOBS", 1),
        ("DQ.ADD", "full", "a", b"\xff binary"),
        ("DQ.ALTER", "mail", "CONCURRENCY", 3, "RATE", 10, 1000, "BURST", 5),
        (
            "DQ.ADD",
            "mail",
            "nightly",
            "x",
            "CRON",
            "30 2 * * 1-5",
            "TZ",
            "Europe/Berlin",
            "RUNS",
            99,
        ),
        ("DQ.ADD", "x" * 300, "y" * 300, "z" * 3000, "GROUP", "g" * 300),
        ("DQ.ALTER", "groups", "GROUPCONCURRENCY", 1, "GROUPRATE", 5, 1000, "BURST", 2),
        ("DQ.ADD", "groups", "a", "x", "GROUP", "customer:7"),
        ("DQ.ADD", "groups", "b", "x", "GROUP", "customer:7"),
        ("DQ.POP", "groups"),
        ("DQ.ADD", "groups", "c", "x", "GROUP", "g" * 300),
        ("DQ.PAUSE", "groups", "GROUP", "g" * 300, "FOR", HOUR),
        ("DQ.ADD", "groups", "d", "x", "GROUP", "customer:8"),
        ("SET", "out", "no stream"),
        ("CONFIG", "SET", "maxmemory-policy", "allkeys-lru"),
    )
    flow(r)
    incident(r, "dead", jobs=100, dead=100)
    pipe(
        r,
        ("DQ.ALTER", "flow", "SINK", "out", "MAXLEN", 1000),
        ("DQ.ADD", "flow", "stays", "x"),
    )


def pages(board: Board) -> list[str]:
    states = ("ready", "delayed", "reserved", "dead", "done", "held")
    return [
        board.url,
        board.link("/", find="nothing"),
        *(board.link("/queue", name="mail", state=state) for state in states),
        *(board.link("/job", queue="mail", id=state) for state in states),
        board.link("/queue", name="mail", tab="schedules"),
        board.link("/queue", name="mail", match="*e*"),
        board.link("/queue", name="mail", match="none"),
        board.link("/job", queue="mail", id="nightly"),
        *(board.link("/queue", name="flow", state=state) for state in ("done", "held")),
        *(board.link("/job", queue="flow", id=job_id) for job_id in ("pack", "ship")),
        board.link("/queue", name="groups", tab="groups"),
        board.link("/queue", name="groups", state="ready"),
        board.link("/queue", name="groups", match="*"),
        board.link("/job", queue="groups", id="b"),
        board.link("/queue", name="none", tab="groups"),
        board.link("/queue", name="paused"),
        board.link("/queue", name="x" * 300),
        board.link("/job", queue="x" * 300, id="y" * 300),
        board.link("/job", queue="full", id="a", body="text"),
        board.link("/purge", queue="mail", state="dead"),
        board.link("/limits", queue="mail", concurrency=1),
        board.link("/schedules"),
        board.link("/schedules", find="nothing"),
        board.link("/schedule", queue="mail", id="nightly"),
        board.link("/schedule", queue="none"),
        board.link("/queue", name="groups", group="customer:7"),
        board.link("/server"),
        board.link("/figures", name="mail"),
        board.link("/", span="week"),
        board.link("/actions"),
        board.link("/figures", name="mail"),
        board.link("/", span="week"),
        board.link("/queue", name="dead", state="dead"),
        board.link("/queue", name="dead", state="dead", order="newest"),
        board.link("/queue", name="dead", state="dead", why="HTTP 502 Bad Gateway", find="user"),
        board.link("/queue", name="mail", state="ready", find="nothing"),
        board.link("/selected", queue="dead", state="dead", do="del"),
        board.link("/queue", name="none"),
    ]


def hung(boards: Callable[..., Board], r: redis.Redis) -> Board:
    """A writable board of these queues that has read them."""
    hang(r)
    board = boards("--writable")
    eventually(lambda: ">paused</a>" in board.get("/").text)
    return board
