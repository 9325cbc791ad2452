"""What became of a job, what comes next, what it waits for and what waits for it: on its page."""

import time
from collections.abc import Callable

import pytest
import redis

from board import Board
from browser import PHONE, Browser
from harness.server import eventually
from samples import HOUR, flow, kill_some, pipe

TRACE = """Traceback (most recent call last):
  File "C:\\mail.py", line 17, in send
    smtp.sendmail(sender, to)
ConnectionRefusedError: [Errno 111] <refused>"""


def history(browser: Browser) -> list[str]:
    """Each step, then its time where it has one."""
    browser.one(".history li")
    return browser.run(
        "return [...document.querySelectorAll('.history li > span:first-child')].map(span => span.innerText)"
    )


def field(r: redis.Redis, queue: str, job_id: str, name: bytes) -> int:
    job = r.execute_command("DQ.GET", queue, job_id)
    return job[job.index(name) + 1]


def moments(browser: Browser) -> list[int]:
    return browser.run(
        "return [...document.querySelectorAll('.history time')].map(time => Number(time.dataset.ms))"
    )


def test_a_job_tells_its_attempts_and_who_holds_it_since_when(
    board: Board, browser: Browser, r: redis.Redis
):
    add = ("DQ.ADD", "mail", "a", "x", "TTR", 50, "ATTEMPTS", 9, "KEEP", HOUR, "TTL", 3 * HOUR)
    pipe(r, add, ("DQ.POP", "mail"))
    eventually(lambda: r.execute_command("DQ.LEN", "mail", "STATE", "ready") == 1)
    pipe(r, ("DQ.POP", "mail", "TTR", HOUR), ("DQ.RELEASE", "mail", "a", "*", "REASON", TRACE))
    browser.open(board.link("/job", queue="mail", id="a"))
    assert history(browser) == [
        "Added",
        # The reason has lines of its own, and stands beside it whole.
        "Handed out 2 times of at most 9. So far: its lease ran out once, a worker gave it back once",
        "Ready: it waits for a worker",
        "Dead, if no worker has finished it by then (time to live)",
        "Once a worker finishes it, it stays as done for 1 h",
    ]
    times = [field(r, "mail", "a", name) for name in (b"created", b"since", b"expires")]
    assert moments(browser) == times

    # With the job's own time to run the beginning of a lease follows from its end.
    pipe(r, ("DQ.ADD", "mail", "b", "x", "TTR", HOUR, "ATTEMPTS", 1, "PRIORITY", 0))
    lease = r.execute_command("DQ.POP", "mail")[0][2]
    popped = time.time() * 1000
    browser.open(board.link("/job", queue="mail", id="b"))
    told = history(browser)
    assert told[1] == "Handed out once of at most 1"
    assert told[2].startswith(
        f"A worker has it, by lease {lease}. It began or last extended the lease"
    )
    assert told[3].endswith(
        "unless the worker extends it: then it is dead, as this is its last attempt"
    )
    assert told[4] == "Once a worker finishes it, it is removed"
    created, began, ends = moments(browser)
    assert created <= began <= popped and ends == began + HOUR
    # A longer one says nothing of it.
    r.execute_command("DQ.TOUCH", "mail", "b", lease, "TTR", 2 * HOUR)
    eventually(lambda: history(browser)[2] == f"A worker has it, by lease {lease}", 6)


def test_a_job_that_was_kicked_and_one_that_is_done_say_so(
    board: Board, browser: Browser, r: redis.Redis
):
    r.execute_command("DQ.ADD", "mail", "a", "x", "KEEP", HOUR)
    kill_some(r, "mail", 1, "gone")
    browser.open(board.link("/job", queue="mail", id="a"))
    assert history(browser)[1:] == [
        "Handed out once of at most 25. So far: a worker buried it once",
        "Died",
        "It stays until it is kicked, deleted or purged",
    ]
    r.execute_command("DQ.KICK", "mail")
    eventually(
        lambda: (
            history(browser)[1]
            == "Not handed out since it was kicked. So far: a worker buried it once, somebody kicked it "
            "once"
        ),
        6,
    )
    pipe(r, ("DQ.POP", "mail"), ("DQ.FINISH", "mail", "a"))
    eventually(lambda: history(browser)[2:] == ["Finished", "Removed"], 6)
    assert moments(browser)[1:] == [
        field(r, "mail", "a", name) for name in (b"since", b"kept-until")
    ]


@pytest.mark.parametrize("size", [(1280, 800), PHONE], ids=str)
def test_texts_of_many_lines_are_shown_with_their_lines(
    board: Board, browser: Browser, r: redis.Redis, size: tuple[int, int]
):
    browser.look(size)
    pipe(r, ("DQ.ADD", "mail", "a", "x"), ("DQ.ADD", "mail", "b", "x\ny"))
    kill_some(r, "mail", 1, TRACE)
    r.execute_command("DQ.POP", "mail")
    r.execute_command("DQ.TOUCH", "mail", "b", "*", "NOTE", "step 1\nstep 2")
    browser.open(board.link("/job", queue="mail", id="a"))
    assert browser.all("pre")[0].get_property("textContent") == TRACE
    browser.sees("Reason of the last failure")
    browser.sees("Dead since ", ".lead")
    browser.open(board.link("/job", queue="mail", id="b"))
    assert [pre.text for pre in browser.all("pre")] == ["step 1\nstep 2", "x\ny"]
    browser.sees("Note of its worker")
    assert "It says" not in browser.text(".lead"), "once is enough"
    for state, told in [
        ("dead", "Traceback (most recent call last): ⏎ File"),
        ("reserved", "x ⏎ y"),
    ]:
        browser.open(board.link("/queue", name="mail", state=state))
        assert told in browser.one("tbody .text").get_property("textContent")


def test_edges_are_a_picture_and_a_list(board: Board, browser: Browser, r: redis.Redis):
    flow(r)
    r.execute_command("DQ.ADD", "flow", "thank", "x", "AFTER", 1, "ship")
    browser.open(board.link("/job", queue="flow", id="ship"))
    nodes = [node.text.split() for node in browser.all("svg.edges g")]
    assert nodes == [
        ["pay", "dead"],
        ["pack", "done"],
        ["stamp", "reserved"],
        ["ship", "held"],
        ["1", "job", "waits", "for", "it"],
    ]
    assert [row.text for row in browser.all(".deps tbody th")] == ["pay", "pack", "stamp"]
    # A reader of the picture clicks; one by keyboard, or who can't see it, has the list.
    assert browser.one("svg.edges").get_attribute("aria-hidden") == "true"
    browser.run(
        "arguments[0].querySelector('rect').parentElement.parentElement.dispatchEvent("
        "new MouseEvent('click', { bubbles: true, cancelable: true }))",
        browser.one("svg.edges a"),
    )
    browser.sees("pay", "h1")
    # What others wait for, and waits for nothing, has it too.
    browser.sees("Waits for no other job", ".deps h2")
    browser.sees("1 job waits for it. The server counts these", ".deps")
    browser.follow(".deps .note a")
    browser.sees("ship", "tbody")


def test_a_picture_of_very_many_edges_is_bounded(
    boards: Callable[..., Board], browser: Browser, r: redis.Redis
):
    ids = [f"part-{n:04}" for n in range(1_000)]
    pipe(r, *[("DQ.ADD", "flow", job_id, "x") for job_id in ids])
    r.execute_command("DQ.ADD", "flow", "all", "x", "AFTER", len(ids), *ids)
    pipe(r, *[("DQ.ADD", "flow", f"then-{n}", "x", "AFTER", 1, "all") for n in range(1_200)])
    board = boards()
    for size in (PHONE, (1280, 800)):
        browser.look(size)
        browser.open(board.link("/job", queue="flow", id="all"))
        nodes = [node.text for node in browser.all("svg.edges g")]
        assert len(nodes) == 12 + 3 and "and 988 more" in nodes
        assert "1\u202f200 jobs wait for it" in nodes
        box = browser.one("svg.edges").rect
        assert box["x"] >= 0 and box["x"] + box["width"] <= size[0]
    # Behind the first part there is the list alone.
    browser.follow("a[rel=next]")
    browser.sees("part-0020", ".deps")
    assert not browser.all("svg.edges")
