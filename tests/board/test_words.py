"""Words that mislead: one text twice, a plural of one, the status of an error, an emoji as bytes."""

import html
import os
import re
import signal
from collections.abc import Callable

import pytest
import redis

from board import Board
from browser import Browser
from harness.server import Server, eventually
from samples import HOUR, every_state, kill_some, pipe

TRACE = "Traceback (most recent call last):\n  File 'pay.py', line 3\nValueError: card declined"


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", page)).replace("\u202f", " ")


@pytest.mark.parametrize("state", ["dead", "delayed", "ready"])
def test_a_traceback_stands_once(board: Board, r: redis.Redis, state: str):
    add = ("DQ.ADD", "mail", "a", "x", *(() if state == "dead" else ("BACKOFF", HOUR, HOUR)))
    pipe(r, add)
    ((_, _, lease, _),) = r.execute_command("DQ.POP", "mail")
    if state == "dead":
        r.execute_command("DQ.BURY", "mail", "a", lease, "REASON", TRACE)
    else:
        delay = HOUR if state == "delayed" else 0
        r.execute_command("DQ.RELEASE", "mail", "a", lease, "DELAY", delay, "REASON", TRACE)
    page = text_of(board.get("/job", queue="mail", id="a").text)
    assert page.count("ValueError: card declined") == 1
    # A short one stands in the sentence, and nowhere else.
    pipe(r, ("DQ.ADD", "mail", "b", "x", "PRIORITY", 0))
    kill_some(r, "mail", 1, "card declined")
    assert text_of(board.get("/job", queue="mail", id="b").text).count("card declined") == 1


def test_a_long_note_stands_once(board: Board, r: redis.Redis):
    pipe(r, ("DQ.ADD", "mail", "a", "x"), ("DQ.POP", "mail"))
    r.execute_command("DQ.TOUCH", "mail", "a", "*", "NOTE", "page 1\nof 2")
    assert text_of(board.get("/job", queue="mail", id="a").text).count("page 1") == 1


@pytest.mark.parametrize("emoji", ["✉\ufe0f", "1\ufe0f\u20e3", "👩🏽\u200d🚒", "❤\ufe0f\u200d🔥"])
def test_an_emoji_is_shown_as_one(board: Board, r: redis.Redis, emoji: str):
    r.execute_command("DQ.ADD", "mail", emoji, f"to {emoji}")
    kill_some(r, "mail", 1, f"no {emoji} here")
    for page in (
        board.get("/queue", name="mail", state="dead").text,
        board.get("/job", queue="mail", id=emoji).text,
    ):
        assert emoji in page and "\\xef" not in page and "\\xe2" not in page
        assert "\\u{fe0f}" not in page


def test_one_is_no_plural(boards: Callable[..., Board], r: redis.Redis):
    board = boards("--writable")
    every_state(r)
    r.execute_command("DQ.ALTER", "mail", "CONCURRENCY", 1, "MAXJOBS", 1)
    found = []
    for path in (
        "/queue?name=mail&state=dead&find=mailbox",
        "/queue?name=mail&state=dead&find=none",
        "/queue?name=mail&state=ready",
        "/queue?name=mail&find=a&all=1",
        "/selected?queue=mail&state=dead&do=kick",
        "/selected?queue=mail&state=held&do=kick",
        "/purge?queue=mail&state=dead",
        "/limits?queue=mail&group-concurrency=1",
        "/?find=mail",
        "/working",
        "/find?id=dead",
        "/job?queue=mail&id=held",
    ):
        told = text_of(board.get(path).text.split("<main")[1])
        nouns = (
            r"(?:dead |held |ready |delayed |done |ticked )*(?:jobs|queues|places|nodes|schedules)"
        )
        found += [(path, *re.findall(rf"(?<![\d  ])1 {nouns}\b", told))]
    assert [each for each in found if len(each) > 1] == []


def test_an_error_page_has_the_status_of_an_error(
    boards: Callable[..., Board], server: Server, r: redis.Redis
):
    every_state(r)
    board = boards("--writable")
    for path, status in (
        ("/queue?name=none", 404),
        ("/job?queue=mail&id=none", 404),
        ("/purge?queue=none&state=dead", 404),
        ("/selected?queue=none&state=dead&do=kick", 404),
        ("/limits?queue=none", 404),
        ("/limits?queue=mail&concurrency=x", 400),
        ("/schedule?queue=mail&id=none", 404),
        ("/nothing", 404),
    ):
        assert board.get(path).status == status, path
    r.execute_command("SET", "text", "no queue")
    assert board.get("/queue", name="text").status == 502
    reader = boards()
    for path in ("/purge?queue=mail&state=dead", "/limits?queue=mail", "/schedule?queue=mail"):
        assert reader.get(path).status == 403, path
    os.kill(server.pid, signal.SIGSTOP)
    try:
        for path in ("/queue?name=mail", "/job?queue=mail&id=dead", "/server"):
            assert board.get(path).status == 504, path
    finally:
        os.kill(server.pid, signal.SIGCONT)
    eventually(lambda: board.get("/queue", name="mail").status == 200, 20)


def test_a_preview_tells_runs_by_the_clock_of_the_schedule(
    boards: Callable[..., Board], browser: Browser, r: redis.Redis
):
    """The reader is in another zone."""
    r.execute_command("DQ.ADD", "mail", "nightly", "x", "CRON", "30 2 * * *", "TZ", "Asia/Kolkata")
    board = boards("--writable")
    browser.look(zone="America/New_York")
    browser.open(board.link("/schedule", queue="mail", id="nightly"))
    browser.one("form.plan button").click()
    browser.sees("02:30 IST, Asia/Kolkata", "#runs")
    lines = browser.text("#runs").splitlines()
    assert len(lines) == 5
    for line in lines:
        assert re.fullmatch(r"\w{3} \d{4}-\d\d-\d\d 02:30 IST, Asia/Kolkata \(in .*\)", line), line
    browser.open(board.link("/job", queue="mail", id="nightly"))
    browser.sees("02:30 IST, Asia/Kolkata", ".schedule")
    browser.look()


def test_what_comes_next_is_called_what_it_is(board: Board, r: redis.Redis):
    def told() -> str:
        page = board.get("/queue", name="mail").text
        return text_of(page.rsplit("<h2>The last hour</h2>", 1)[1].split("<h2>Settings</h2>")[0])

    pipe(r, ("DQ.ADD", "mail", "a", "x", "TTR", HOUR), ("DQ.POP", "mail"))
    assert "first lease endsin 59 min" in told() and "next due" not in told()
    r.execute_command("DQ.ADD", "mail", "b", "x", "DELAY", 2 * HOUR)
    assert "next due, or a lease endsin 59 min" in told()
    assert "delayed, due in the next hour0" in told()
    r.execute_command("DQ.DEL", "mail", "a")
    assert "next duein 1 h 59 min" in told()


def test_that_nothing_is_kept_is_said_where_it_is_seen(board: Board, r: redis.Redis):
    r.execute_command("CONFIG", "SET", "save", "")
    page = board.get("/server").text
    banner = re.search(r'<p class="banner warn">(.*?)</p>', page)
    assert banner and "its queues are lost, unless a replica has them" in text_of(banner[1])
    r.execute_command("CONFIG", "SET", "save", "3600 1")
    assert "queues are lost" not in board.get("/server").text
