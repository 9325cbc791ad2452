"""Downloads of dead jobs: each byte of them, in bounded memory."""

import base64
import http.client
import json
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from board import Board
from harness.server import Server
from plain import ticks
from samples import dead, incident, kill_some, pipe
from slow import Slow

HOSTILE = [
    b"\xff<b>\x00",
    b'"quoted" \\ \n\r',
    "Größe \u2028\u202e".encode(),
    b"<script>alert(1)</script>",
    b"plain",
]


def test_a_download_has_all_bytes(boards: Callable[..., Board], r: redis.Redis):
    """Also on a board that changes nothing: to read is no verb."""
    queue = b"mail <\xff>"
    texts = [HOSTILE[n % 5] + str(n).encode() for n in range(2_300)]
    pipe(
        r,
        *[
            ("DQ.ADD", queue, text, text * 2, "ATTEMPTS", 1, "GROUP", HOSTILE[n % 3])
            for n, text in enumerate(texts)
        ],
    )
    leases = r.execute_command("DQ.POP", queue, "COUNT", 2_300)
    pipe(
        r,
        *[
            ("DQ.RELEASE", queue, job_id, lease, "REASON", b"because " + job_id)
            for job_id, _, lease, _ in leases
        ],
    )

    board = boards()
    answer = board.get("/jobs.ndjson", queue=queue)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["content-disposition"] == 'attachment; filename="dead-mail____.ndjson"'
    want = dead(r, queue)
    assert [line_of(line) for line in answer.body.splitlines()] == want_lines(want)
    assert len(want) == 2_300

    # Those that fit; those that were ticked.
    found = board.get("/jobs.ndjson", queue=queue, find=b"\xff<B>\x0017")
    assert [line_of(line)["id"] for line in found.body.splitlines()] == [
        job[b"id"] for job in want if b"\xff<b>\x0017" in job[b"id"]
    ]
    page = board.get("/queue", name=queue, state="dead")
    boxes = list(ticks(page).values())
    sent = board.send_form(
        "/jobs.ndjson", [("queue.hex", queue.hex()), ("job", boxes[3]), ("job", boxes[0])]
    )
    assert {line_of(line)["id"] for line in sent.body.splitlines()} == {
        want[3][b"id"],
        want[0][b"id"],
    }
    assert board.get("/jobs.ndjson", queue="no such queue").status == 404
    assert board.get("/jobs.ndjson").status == 400


def test_downloads_take_little_memory_whatever_bytes_are_in_the_bodies(
    board: Board, r: redis.Redis
):
    # As JSON, each byte takes six.
    for n in range(16):
        r.execute_command("DQ.ADD", "mail", f"job-{n}", b"\0" * 1_000_000)
    kill_some(r, "mail", 16, "gone")
    with ExitStack() as downloads:
        for _ in range(8):
            link = board.link("/jobs.ndjson", queue="mail")
            answer = downloads.enter_context(urllib.request.urlopen(link, timeout=30))
            assert answer.read(1) == b"{"
        status = Path(f"/proc/{board.pid}/status").read_text()
    peak_kb = int(status.split("VmHWM:")[1].split()[0])
    assert peak_kb < 400_000


def test_a_download_that_ends_early_is_no_whole_file(
    boards: Callable[..., Board], server: Server, slow: Slow, r: redis.Redis
):
    incident(r, "mail", jobs=4_000, dead=4_000)
    board = boards(redis=slow.url)
    slow.delay_s = 0.2
    with urllib.request.urlopen(board.link("/jobs.ndjson", queue="mail"), timeout=30) as answer:
        assert json.loads(answer.readline())["id"] == "job-0000000"
        server.kill9()
        with pytest.raises(http.client.IncompleteRead):
            answer.read()


def line_of(line: bytes) -> dict[str, Any]:
    """A line as docs/board/dead.md says it is read."""
    fields: dict[str, Any] = {}
    for name, value in json.loads(line).items():
        if name.endswith("_base64"):
            fields[name.removesuffix("_base64")] = base64.b64decode(value)
        else:
            fields[name] = value.encode() if isinstance(value, str) else value
    return fields


def want_lines(jobs: list[dict[bytes, Any]]) -> list[dict[str, Any]]:
    names = ["id", "state", "reason", "attempt", "attempts", "created", "priority", "group", "body"]
    return [
        {name: job[name.encode()] for name in names} | {"died": job[b"since"], "note": None}
        for job in jobs
    ]
