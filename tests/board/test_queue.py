"""A queue's page: its jobs in order on all pages; a search for jobs; schedules, limits,
forecast.
"""

import time

import redis

from board import Board
from browser import Browser
from harness.server import eventually
from samples import HOUR, every_state, kill_some, pipe

THIN = "\u202f"


def shown(browser: Browser) -> list[str]:
    return browser.run("return [...document.querySelectorAll('tbody th')].map(th => th.innerText)")


def test_every_job_is_on_some_page_in_order(board: Board, browser: Browser, r: redis.Redis):
    """Behind the thousand that DQ.PEEK shows at most, too."""
    many = 1_130
    ids = [f"job-{n:04}" for n in range(many)]
    pipe(r, *[("DQ.ADD", "mail", job_id, "x") for job_id in ids])
    for state in ("ready", "dead"):
        if state == "dead":
            for _ in range(3):
                kill_some(r, "mail", 500, "gone")
        browser.open(board.link("/queue", name="mail", state=state))
        browser.sees(f"page 1, 1{THIN}130 jobs in all", ".pager")
        seen = shown(browser)
        while browser.all("a[rel=next]"):
            browser.follow("a[rel=next]")
            seen += shown(browser)
        assert seen == ids, state
        browser.sees(f"page 23, 1{THIN}130 jobs in all", ".pager")


def test_a_job_that_goes_leaves_the_next_page_where_it_is(
    board: Board, browser: Browser, r: redis.Redis
):
    """asynq#803: while one looks through dead jobs, others are kicked."""
    pipe(r, *[("DQ.ADD", "mail", f"job-{n:03}", "x") for n in range(150)])
    for _ in range(150):
        # Each in a millisecond of its own.
        kill_some(r, "mail", 1, "gone")
        died = time.time()
        eventually(lambda died=died: time.time() > died + 0.001)
    browser.open(board.link("/queue", name="mail", state="dead"))
    browser.sees("job-049", "tbody tr:last-child")
    r.execute_command("DQ.KICKJOB", "mail", *[f"job-{n:03}" for n in range(50)])
    browser.follow("a[rel=next]")
    assert shown(browser) == [f"job-{n:03}" for n in range(50, 100)]


def test_the_previous_link_leads_to_the_page_before(board: Board, browser: Browser, r: redis.Redis):
    due = int(time.time() * 1000) + HOUR
    pipe(r, *[("DQ.ADD", "mail", f"job-{n:03}", "x", "AT", due + n) for n in range(170)])
    browser.open(board.link("/queue", name="mail", state="delayed"))
    assert not browser.all("a[rel=prev]")
    for first in ("job-050", "job-100"):
        browser.press("n")
        browser.sees(first, "tbody tr:first-child")
    # The stream doesn't take the way back.
    browser.sees("previous", ".pager")
    r.execute_command("DQ.ADD", "mail", "job-100x", "x", "AT", due + 100)
    browser.sees("job-100x", "tbody")
    for first in ("job-050", "job-000"):
        browser.press("p")
        browser.sees(first, "tbody tr:first-child")
    browser.press("n")
    browser.sees("job-050", "tbody tr:first-child")
    browser.one("a.first").click()
    browser.sees("job-000", "tbody tr:first-child")


def test_a_page_whose_place_is_gone_begins_anew_and_says_so(
    board: Board, browser: Browser, r: redis.Redis
):
    """Workers take ready jobs from the front: nothing says where one was."""
    pipe(r, *[("DQ.ADD", "mail", f"job-{n:03}", "x") for n in range(120)])
    browser.open(board.link("/queue", name="mail", state="ready"))
    browser.follow("a[rel=next]")
    browser.sees("job-050", "tbody tr:first-child")
    r.execute_command("DQ.POP", "mail", "COUNT", 60)
    browser.sees("The job that this page began behind has left", within_s=6)
    assert shown(browser) == [f"job-{n:03}" for n in range(60, 110)]


def test_jobs_are_found_by_a_pattern_of_their_ids(board: Board, browser: Browser, r: redis.Redis):
    every_state(r)
    pipe(r, *[("DQ.ADD", "mail", f"order:{n}", "x", "DELAY", HOUR) for n in range(200)])
    r.execute_command("DQ.ADD", "mail", "a*b", "x")

    browser.open(board.link("/queue", name="mail"))
    browser.press("/", "order:*", "\n")
    browser.sees("whose ids match order:*")
    seen = shown(browser)
    while browser.all("a[rel=next]"):
        browser.follow("a[rel=next]")
        seen += shown(browser)
    assert sorted(seen) == sorted(f"order:{n}" for n in range(200))

    browser.open(board.link("/queue", name="mail"))
    browser.press("/", "[dr]*e*", "\n")
    browser.sees("whose ids match")
    states = {row.text.split()[0]: row.text.split()[1] for row in browser.all("tbody tr")}
    assert states == {name: name for name in ("ready", "delayed", "reserved", "dead", "done")}

    # An id that has a star in it is an id.
    browser.open(board.link("/queue", name="mail"))
    browser.press("/", "a*b", "\n")
    browser.sees("a*b", "h1")
    # And an id that isn't there leads to those that are like it.
    browser.open(board.link("/job", queue="mail", id="order:19"))
    r.execute_command("DQ.DEL", "mail", "order:19")
    browser.open(board.link("/job", queue="mail", id="order:19"))
    browser.one("a.similar").click()
    browser.sees("order:190", "tbody")
    assert sorted(shown(browser)) == [f"order:{n}" for n in range(190, 200)]
    browser.open(board.link("/queue", name="mail", match="nobody*"))
    browser.sees("There are none.")


def test_schedules_are_shown_with_what_became_of_their_runs(
    board: Board, browser: Browser, r: redis.Redis
):
    pipe(
        r,
        *[("DQ.ADD", "reports", f"job-{n}", "x") for n in range(300)],
        ("DQ.ADD", "reports", "beat", "x", "EVERY", 20, "DELAY", 0, "ATTEMPTS", 1, "PRIORITY", 0),
    )
    begin = time.time()
    eventually(lambda: time.time() > begin + 0.2)
    ((_, _, lease, _),) = r.execute_command("DQ.POP", "reports")
    # Each run of an hour: it doesn't become another one while the page is looked at.
    r.execute_command("DQ.RELEASE", "reports", "beat", lease, "REASON", "no <route> to host")
    r.execute_command("DQ.ADD", "reports", "beat", "x", "EVERY", HOUR, "ENSURE")
    r.execute_command(
        "DQ.ADD", "reports", "nightly", "x", "CRON", "30 2 * * *", "TZ", "Asia/Tokyo", "RUNS", 9
    )

    browser.open(board.link("/queue", name="reports"))
    browser.sees("schedules 2", ".tabs")
    browser.press("6")
    browser.sees("nightly", "tbody")
    assert browser.one(".tabs [aria-current]").text == "schedules 2"
    rows = {
        th.split()[0]: row for th, row in zip(shown(browser), browser.all("tbody tr"), strict=True)
    }
    assert set(rows) == {"beat", "nightly"}
    cells = {
        name: [td.text for td in row.find_elements("css selector", "td")]
        for name, row in rows.items()
    }
    assert cells["nightly"][0] == "30 2 * * * Asia/Tokyo"
    assert cells["nightly"][1].startswith("in ")
    assert cells["nightly"][2:] == ["0/9", "0", "0", ""]
    assert cells["beat"][0] == "every 1 h"

    browser.open(board.link("/job", queue="reports", id="nightly"))
    browser.sees("comes back\n30 2 * * * Asia/Tokyo", ".schedule")
    browser.sees("runs\n0 of 9", ".schedule")


def test_a_run_that_failed_and_times_that_were_missed(
    board: Board, browser: Browser, r: redis.Redis
):
    r.execute_command("DQ.ADD", "reports", "beat", "x", "EVERY", 20, "DELAY", 0, "ATTEMPTS", 1)
    begin = time.time()
    eventually(lambda: time.time() > begin + 0.3)
    ((_, _, lease, _),) = r.execute_command("DQ.POP", "reports")
    r.execute_command("DQ.RELEASE", "reports", "beat", lease, "REASON", "no <route> to host")
    # So that it stays as it is.
    r.execute_command("DQ.PAUSE", "reports", "FOR", HOUR)
    browser.open(board.link("/job", queue="reports", id="beat"))
    browser.sees("failed runs\n1", ".schedule")
    browser.sees("last error\nno <route> to host", ".schedule")
    browser.sees("those that are missed\ncome as one", ".schedule")
    browser.open(board.link("/queue", name="reports", tab="schedules"))
    cells = [td.text for td in browser.all("tbody td")]
    assert (cells[0], cells[2], cells[3], cells[5]) == (
        "every 20 ms",
        "1",
        "1",
        "no <route> to host",
    )
    assert int(cells[4]) >= 10
    browser.sees(f"missed runs\n{cells[4]}", "aside .totals")


def test_limits_are_shown_and_what_they_hold_back(board: Board, browser: Browser, r: redis.Redis):
    pipe(
        r,
        *[("DQ.ADD", "mail", f"job-{n}", "x") for n in range(9)],
        ("DQ.ALTER", "mail", "CONCURRENCY", 3),
        ("DQ.POP", "mail", "COUNT", 2),
        ("DQ.ADD", "rated", "a", "x"),
        ("DQ.ADD", "rated", "b", "x"),
        ("DQ.ALTER", "rated", "RATE", 1, HOUR),
    )
    browser.open(board.link("/queue", name="mail"))
    browser.sees("in use\n2 of 3", "aside .limits")
    browser.sees("next may leave\nnow", "aside .limits")
    r.execute_command("DQ.POP", "mail", "COUNT", 2)
    r.execute_command("DQ.POP", "mail")
    browser.sees("in use\n3 of 3", "aside .limits")
    browser.sees("next may leave\nin ", "aside .limits")
    browser.sees("All 3 places of CONCURRENCY are taken by", "#why")

    r.execute_command("DQ.POP", "rated")
    assert r.execute_command("DQ.POP", "rated") is None
    browser.open(board.link("/queue", name="rated"))
    browser.sees("rate\n1 in 1 h", "aside .limits")
    browser.sees("may leave now\n0", "aside .limits")
    browser.sees("next may leave\nin 59 min", "aside .limits")
    browser.open(board.url)
    browser.sees("blocked, ends in 59 min", "tbody tr[data-key=rated] .name")


def test_what_comes_due_is_a_bar_chart(board: Board, browser: Browser, r: redis.Redis):
    pipe(
        r,
        # Away from where one step ends and the next begins.
        *[("DQ.ADD", "mail", f"soon-{n}", "x", "DELAY", 90_000 + n) for n in range(7)],
        *[("DQ.ADD", "mail", f"later-{n}", "x", "DELAY", 5 * HOUR) for n in range(30)],
        ("DQ.ADD", "mail", "far", "x", "DELAY", 100 * HOUR),
        ("DQ.ADD", "mail", "now", "x"),
    )
    browser.open(board.link("/queue", name="mail"))
    browser.sees("in the next hour\n7", "aside .forecast")
    browser.sees("in the next day\n37", "aside .forecast")
    hour, day = browser.all("aside .forecast svg")
    assert hour.get_attribute("aria-label").startswith("7 jobs in the next 60 min: at most ")
    assert day.get_attribute("aria-label") == "37 jobs in the next 24 h: at most 30 an hour"
    tops = browser.run(
        "return [...arguments[0].querySelectorAll('rect')].map(rect => rect.getBoundingClientRect().height)",
        day,
    )
    assert len(tops) == 2 and tops[1] > 3 * tops[0] > 0
    titles = browser.run(
        "return [...arguments[0].querySelectorAll('title')].map(title => title.textContent)", day
    )
    assert titles[1] == "30 jobs in 5 to 6 h" or titles[1] == "30 jobs in 4 to 5 h"
    # It follows what happens.
    r.execute_command("DQ.ADD", "mail", "another", "x", "DELAY", 5 * HOUR)
    browser.sees("in the next day\n38", "aside .forecast")
