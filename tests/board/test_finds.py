"""What an operator looks for in a hurry: queues that need a look, what is being worked on, a job by its
id, a text in any state, and what a chain of held jobs waits for in the end.
"""

import html
import os
import re
import signal
import time
from collections.abc import Callable

import pytest
import redis

from board import Board
from browser import Browser
from harness.server import Server, eventually
from plain import pages, rows
from samples import HOUR, every_state, kill_some, pipe
from slow import Slow

THIN = "\u202f"


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", page)).replace(THIN, " ")


def test_queues_that_need_a_look_are_first_and_marked(board: Board, r: redis.Redis):
    pipe(r, *[("DQ.ADD", f"queue-{n:02}", "a", "x") for n in range(60)])
    pipe(r, *[("DQ.ADD", "z-dead", f"job-{n}", "x") for n in range(5_000)])
    kill_some(r, "z-dead", 5_000, "gone")
    pipe(r, ("DQ.ADD", "y-dead", "a", "x"))
    kill_some(r, "y-dead", 1, "gone")
    pipe(r, ("SET", "out", "no stream"), ("DQ.ADD", "x-sunk", "a", "x"))
    r.execute_command("DQ.ALTER", "x-sunk", "SINK", "out")
    want = ["x-sunk", "z-dead", "y-dead", "queue-00", "queue-01"]
    eventually(lambda: rows(board.get("/"))[:5] == want, 10)
    page = board.get("/").text
    marks = {
        queue: re.findall(r'class="mark ([a-z-]+)"[^>]*>([^<]*)<', row)
        for queue, row in re.findall(r'<tr data-key="([^"]*)">(.*?)</tr>', page, re.DOTALL)
    }
    assert ("has-dead", f"5{THIN}000 dead") in marks["z-dead"]
    assert ("has-dead", "1 dead") in marks["y-dead"]
    assert not [mark for mark in marks["queue-00"] if mark[0] == "has-dead"]
    # All are there, each once; by name they still are.
    found = [name for at in range(2) for name in rows(board.get("/", page=at))]
    assert sorted(found) == sorted(set(found)) and len(found) == 63
    assert rows(board.get("/", sort="name"))[:2] == ["queue-00", "queue-01"]


def test_what_is_being_worked_on_is_on_one_page(board: Board, r: redis.Redis, browser: Browser):
    for n, queue in enumerate(("mail", "orders", "reports")):
        pipe(r, ("DQ.ADD", queue, f"{queue}-job", "x", "TTR", HOUR), ("DQ.POP", queue))
        r.execute_command("DQ.TOUCH", queue, f"{queue}-job", "*", "NOTE", f"page {n}")
        began = time.time()
        eventually(lambda began=began: time.time() > began + 0.01)
    pipe(r, *[("DQ.ADD", "many", f"many-{n:03}", "x", "TTR", HOUR) for n in range(30)])
    r.execute_command("DQ.POP", "many", "COUNT", 30)
    pipe(r, ("DQ.ADD", "idle", "a", "x"))
    eventually(lambda: len(rows(board.get("/working"))) == 23, 10)
    keys = [key.split("\n") for key in rows(board.get("/working"))]
    assert [job for _, job in keys[:3]] == ["mail-job", "orders-job", "reports-job"]
    page = text_of(board.get("/working").text)
    assert "33 jobs are reserved, in 4 queues." in page and "page 1" in page
    assert "There are more in many (30)." in page

    browser.open(board.url)
    browser.one("header a[href=working]").click()
    browser.sees("in 59 min", "tbody tr:nth-child(1) td[data-label='lease ends']")
    browser.sees("ago", "tbody tr:nth-child(1) td[data-label='since']")
    browser.one("tbody tr:nth-child(2) a").click()
    browser.sees("A worker has it", ".lead")


def test_a_job_is_found_by_its_id_in_all_queues(
    boards: Callable[..., Board], slow: Slow, browser: Browser, r: redis.Redis
):
    """By a server that is far away it takes several pages, which go on by themselves."""
    pipe(r, *[("DQ.ADD", f"queue-{n:04}", "other", "x") for n in range(1_200)])
    pipe(r, ("DQ.ADD", "queue-0007", "inv-1", "here"), ("DQ.ADD", "queue-1111", "inv-1", "there"))
    pipe(r, ("DQ.ADD", b"\xffraw", b"\xff<b>", "raw"))
    board = boards(redis=slow.url)
    eventually(lambda: "queues</dt><dd>1\u202f201</dd>" in board.get("/").text, 20)
    walked = list(pages(board, board.link("/find", id="inv-1")))
    assert len(walked) > 1 and f"of 1{THIN}201 queues searched: 1 found so far." in walked[0].text
    assert f"All 1{THIN}201 queues searched: 2 found." in walked[-1].text
    found = [key.split("\n")[0] for page in walked for key in rows(page)]
    assert found == ["queue-0007", "queue-1111"]

    browser.open(board.link("/", find="inv-1"))
    browser.one("#find-id").click()
    browser.sees("queue-1111", "tbody", 30)
    browser.sees(f"All 1{THIN}201 queues searched: 2 found.", "#progress", 30)
    browser.one("tbody tr:nth-child(2) a").click()
    browser.sees("there", "pre")

    slow.delay_s = 0.0
    for spelled in ("\\xff<b>", b"\xff<b>"):
        assert [rows(page) for page in pages(board, board.link("/find", id=spelled))][-1]
    *_, none = pages(board, board.link("/find", id="nobody"))
    assert "No queue has a job with the id" in none.text
    assert "Type the whole id" in board.get("/find").text


def test_what_was_not_asked_for_an_id_is_said(
    server: Server, boards: Callable[..., Board], r: redis.Redis
):
    """A job that isn't found may be in a queue that tells nothing, or that isn't known."""
    pipe(r, *[("DQ.ADD", f"queue-{n}", f"inv-{n}", "x") for n in range(4)])
    few = boards("--max-queues", "1")
    eventually(lambda: "3 queues are only counted" in text_of(few.get("/").text), 10)
    told = [text_of(few.get("/find", id=f"inv-{n}").text) for n in range(4)]
    assert all("1 queue searched: " in page for page in told)
    assert all("3 queues aren't among these: see --max-queues." in page for page in told)
    assert sum("It may be in another one." in page for page in told) == 3
    assert not [page for page in told if "No queue has" in page]
    for path in ("/working", "/schedules"):
        assert "3 queues aren't among these" in text_of(few.get(path).text), path

    r.execute_command("ACL", "SETUSER", "blind", "on", ">x", "~*", "+@all", "-dq.get")
    blind = boards(redis=f"redis://blind:x@127.0.0.1:{server.port}")
    eventually(lambda: ">queue-3</a>" in blind.get("/").text, 10)
    page = blind.get("/find", id="inv-1")
    assert page.status == 502
    assert "0 queues searched: 0 found. 4 queues told nothing: NOPERM" in text_of(page.text)

    board = boards()
    eventually(lambda: ">queue-3</a>" in board.get("/").text, 10)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        page = board.get("/find", id="inv-1")
        assert page.status == 504 and "4 queues told nothing" in text_of(page.text)
        assert "It may be in another one." in page.text
    finally:
        os.kill(server.pid, signal.SIGCONT)


def test_a_text_is_found_in_all_states(board: Board, browser: Browser, r: redis.Redis):
    every_state(r)
    pipe(r, *[("DQ.ADD", "mail", f"needle-{n}", "x", "DELAY", HOUR) for n in range(2)])
    pipe(r, *[("DQ.ADD", "mail", f"hay-{n:05}", "x", "DELAY", HOUR) for n in range(3_000)])
    r.execute_command("DQ.ADD", "mail", "ready-one", "a NEEDLE in the body")
    found = [
        row
        for page in pages(board, board.link("/queue", name="mail", find="needle", all="1"))
        for row in rows(page)
    ]
    assert sorted(found) == ["needle-0", "needle-1", "ready-one"]
    browser.open(board.link("/queue", name="mail", state="dead"))
    browser.one("#find").send_keys("needle")
    browser.one("#find-all").click()
    browser.sees("Jobs in any state in which needle is found")
    browser.sees("All jobs of the queue have been looked at.", "#progress", 30)
    browser.sees("ready-one", "tbody")


@pytest.mark.parametrize("length", [1, 2, 12])
def test_a_chain_of_held_jobs_names_its_dead_root(board: Board, r: redis.Redis, length: int):
    pipe(r, ("DQ.ADD", "flow", "pay", "x"))
    before = "pay"
    for n in range(length):
        r.execute_command("DQ.ADD", "flow", f"step-{n}", "x", "AFTER", 1, before)
        before = f"step-{n}"
    r.execute_command("DQ.ADD", "flow", "beside", "x", "AFTER", 1, "pay")
    kill_some(r, "flow", 1, "card declined")
    told = text_of(board.get("/job", queue="flow", id=before).text)
    begins = "In the end it waits for" if length > 1 else "It waits for"
    many = length + 1
    behind = f"{many} held jobs wait for that, straight or through others."
    assert f"{begins} pay, which is dead: card declined. {behind}" in told
    root = text_of(board.get("/job", queue="flow", id="pay").text)
    assert f"{many} held jobs wait for it, straight or through others." in root

    # A chain that goes on says what it waits for.
    r.execute_command("DQ.KICK", "flow")
    told = text_of(board.get("/job", queue="flow", id=before).text)
    assert f"{begins} pay, which is ready. {behind}" in told


def test_a_chain_that_is_wide_is_followed(board: Board, r: redis.Redis):
    """Wide and deep: each of a hundred waits for three before it."""
    pipe(r, ("DQ.ADD", "flow", "job-0", "x"))
    for n in range(1, 100):
        after = [f"job-{m}" for m in range(max(0, n - 3), n)]
        r.execute_command("DQ.ADD", "flow", f"job-{n}", "x", "AFTER", len(after), *after)
    kill_some(r, "flow", 1, "gone")
    told = text_of(board.get("/job", queue="flow", id="job-99").text)
    assert "In the end it waits for job-0, which is dead: gone. 99 held jobs wait for that" in told


def test_a_dead_root_is_found_among_many(board: Board, r: redis.Redis):
    """The server tells 20 edges of a job at a time."""
    ids = [f"job-{n}" for n in range(50)]
    pipe(r, *[("DQ.ADD", "flow", job_id, "x") for job_id in ids])
    pipe(r, ("DQ.ADD", "flow", "last", "x", "AFTER", len(ids), *ids))
    leases = {job[0]: job[2] for job in r.execute_command("DQ.POP", "flow", "COUNT", 50)}
    r.execute_command("DQ.BURY", "flow", "job-45", leases[b"job-45"], "REASON", "gone")
    told = text_of(board.get("/job", queue="flow", id="last").text)
    assert "It waits for job-45, which is dead: gone. At least " in told


def test_what_waits_for_a_job_is_said_before_it_is_deleted(
    boards: Callable[..., Board], r: redis.Redis
):
    pipe(r, ("DQ.ADD", "flow", "pay", "x"))
    pipe(r, *[("DQ.ADD", "flow", f"ship-{n}", "x", "AFTER", 1, "pay") for n in range(3)])
    board = boards("--writable")
    panel = text_of(board.get("/job", queue="flow", id="pay").text).split("Delete…")[1]
    assert "The job is gone for good. 3 jobs wait for it. Without it they can't go on" in panel
    panel = text_of(board.get("/job", queue="flow", id="ship-0").text).split("Delete…")[1]
    assert "can't go on" not in panel
