"""Each page shows what the server has."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
import redis

from board import Board
from browser import Browser
from harness.server import eventually
from samples import every_state, pipe


def test_the_overview_has_a_line_for_each_queue(board: Board, browser: Browser, r: redis.Redis):
    every_state(r)
    r.execute_command("DQ.PAUSE", "halted", "FOR", 3_600_000)
    r.execute_command("DQ.ALTER", "small", "MAXJOBS", 1)
    r.execute_command("DQ.ADD", "small", "a", "x")
    r.set("no-queue", "text")
    browser.open(board.url)
    browser.sees("small")
    names = eventually(lambda: len(found := browser.all("tbody th a")) == 3 and found)
    # Those that need a look are first: one is full, one has a dead job.
    eventually(lambda: rows_of(browser) == ["small", "mail", "halted"])
    assert len(names) == 3
    browser.sees("paused, ends in 59 min", "tr[data-key=halted]")
    browser.sees("full", "tr[data-key=small]")
    counts = {
        state: browser.text(f"tr[data-key=mail] td.is-{state}")
        for state in ("ready", "delayed", "reserved", "dead", "done", "held")
    }
    assert counts == dict.fromkeys(counts, "1")
    eventually(lambda: browser.text(".sums .is-ready dd") == "2")


def rows_of(browser: Browser) -> list[str]:
    return browser.run("return [...document.querySelectorAll('tbody th a')].map(a => a.innerText)")


def test_queues_are_found_and_sorted(board: Board, browser: Browser, r: redis.Redis):
    pipe(r, *[("DQ.ADD", f"q{n:02}", f"{job}", "x") for n in range(60) for job in range(n + 1)])
    browser.open(board.url)
    browser.sees("1 to 50 of 60")
    browser.one("thead a[href*='sort=ready']").click()
    eventually(lambda: browser.all("tbody th a")[0].text == "q59")
    browser.one("a[rel=next]").click()
    browser.sees("51 to 60 of 60")
    assert [each.text for each in browser.all("tbody th a")] == [
        f"q{n:02}" for n in range(9, -1, -1)
    ]
    browser.press("/", "Q5", "\n")
    browser.sees("10 queues with “Q5” in the name")
    assert len(browser.all("tbody tr")) == 10


def test_a_queue_shows_its_jobs_by_state(board: Board, browser: Browser, r: redis.Redis):
    every_state(r)
    for state, text in {
        "ready": "to Dan",
        "delayed": "in 59 min",
        "reserved": "to Bob",
        "dead": "no such mailbox",
        "done": "in 59 min",
        "held": "on hold",
    }.items():
        browser.open(board.link("/queue", name="mail", state=state))
        browser.sees(text)
        assert [each.text for each in browser.all("tbody th a")] == [state]
        assert browser.one(".tabs [aria-current]").text == f"{state} 1"
    browser.sees("time to run\n1 min", "aside")
    browser.sees("attempts\n25", "aside")
    browser.sees("handed out\n3", "aside .totals")


def test_a_typed_id_leads_to_its_job(board: Board, browser: Browser, r: redis.Redis):
    every_state(r)
    r.execute_command("DQ.ADD", "mail", b"caf\xe9\\x", "body")
    for typed, heading in [("done", "done"), ("caf\\xe9\\\\x", "caf\\xe9\\\\x")]:
        browser.open(board.link("/queue", name="mail"))
        browser.press("/", typed, "\n")
        browser.sees(heading, "h1")
        browser.sees("Body")
    browser.open(board.link("/queue", name="mail"))
    browser.press("/", "nobody", "\n")
    browser.sees("There is no such job")


def test_a_job_is_told_in_words(board: Board, browser: Browser, r: redis.Redis):
    every_state(r)
    job = dict(zip(*[iter(r.execute_command("DQ.GET", "mail", "delayed"))] * 2, strict=True))
    browser.look(zone="America/St_Johns")
    due = datetime.fromtimestamp(job[b"due"] / 1000, ZoneInfo("America/St_Johns"))
    browser.open(board.link("/job", queue="mail", id="delayed"))
    browser.sees(f"Due {due:%Y-%m-%d %H:%M:%S}.{job[b'due'] % 1000:03}", ".lead")
    browser.sees("in 59 min", ".lead")
    browser.sees(
        '{\n  "to": "Cid",\n  "lines": [\n    1,\n    2.5,\n    true\n  ],\n  "note": "Grüße"\n}',
        "pre",
    )
    browser.sees("time to live\n2 h", "aside")

    for state, told in {
        "ready": "Ready since ",
        "reserved": "A worker has it: its lease ends ",
        "dead": "no such mailbox",
        "done": "kept until ",
        "held": "On hold until it is resumed.",
    }.items():
        browser.open(board.link("/job", queue="mail", id=state))
        browser.sees(told, ".lead")
        browser.sees(state, ".state")


def test_a_body_is_text_json_or_hex_and_can_be_had_whole(
    board: Board, browser: Browser, r: redis.Redis
):
    every_state(r)
    whole = bytes(range(256)) * 1000
    r.execute_command("DQ.ADD", "mail", "bin", whole)
    browser.open(board.link("/job", queue="mail", id="delayed"))
    browser.one(".views a[href*='body=hex']").click()
    browser.sees(
        '00000000  7b 22 74 6f 22 3a 20 22  43 69 64 22 2c 20 22 6c  {"to": "Cid", "l', "pre"
    )
    browser.one(".views a[href*='body=text']").click()
    browser.sees('{"to": "Cid", "lines": [1, 2.5, true], "note": "Grüße"}', "pre")

    browser.open(board.link("/job", queue="mail", id="bin"))
    browser.sees("00000000  00 01 02", "pre")
    browser.sees("The download is whole")
    answer = board.get("/body", queue="mail", id="bin")
    assert answer.body == whole
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == 'attachment; filename="job-bin.bin"'


def test_pages_of_missing_queues_and_jobs_say_so(board: Board, r: redis.Redis):
    r.set("text", "no queue")
    assert board.get("/queue", name="none").status == 404
    assert board.get("/job", queue="none", id="none").status == 404
    assert board.get("/body", queue="none", id="none").status == 404
    assert board.get("/figures", name="none").status == 404
    assert board.get("/jobs.ndjson", queue="none").status == 404
    assert board.get("/nothing").status == 404
    assert "WRONGTYPE" in board.get("/queue", name="text").text
    for bad in (
        "/queue?name=%zz",
        "/job?queue=a",
        "/job?queue=a&id=",
        "/queue?name=a&page=99999999999999999999",
    ):
        assert board.get(bad).status in (200, 303, 400, 404), bad


def test_keyboard_keys_move_and_open(board: Board, browser: Browser, r: redis.Redis):
    pipe(r, *[("DQ.ADD", queue, "job", "x") for queue in ("a", "b", "c")])
    browser.open(board.url)
    eventually(lambda: len(browser.all("tbody tr")) == 3)
    browser.press("j", "j", "j", "k")
    assert browser.one("tr.at").get_attribute("data-key") == "b"
    browser.press("\n")
    browser.sees("b", "h1")
    browser.press("2")
    eventually(lambda: browser.one(".tabs [aria-current]").text.startswith("delayed"))
    browser.press("u")
    eventually(lambda: len(browser.all("tbody tr")) == 3)
    browser.press("?")
    assert browser.one("dialog[open]").is_displayed()
    browser.press("\ue00c")  # Escape
    eventually(lambda: not browser.all("dialog[open]"))


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/", ">mail</a>"),
        ("/queue?name=mail", ">to Dan<"),
        ("/job?queue=mail&id=delayed", " UTC</time>"),
    ],
)
def test_pages_are_whole_without_script(board: Board, r: redis.Redis, path: str, told: str):
    every_state(r)
    eventually(lambda: told in board.get(path).text)
