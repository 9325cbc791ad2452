"""What a reader relies on: the focus stays where it is, the way up is the way back, what there is to do
comes first.
"""

from collections.abc import Callable

import redis
from selenium.webdriver.common.keys import Keys

from board import Board
from browser import DESK, PHONE, Browser
from harness.server import Server, eventually
from samples import HOUR, incident, kill_some, pipe
from slow import Slow

FOCUSED = "return document.activeElement.innerText || document.activeElement.getAttribute('value')"


def die(r: redis.Redis, reason: str, many: int) -> None:
    pipe(r, *[("DQ.ADD", "mail", "*", "x") for _ in range(many)])
    kill_some(r, "mail", many, reason)


def test_the_focus_stays_when_rows_change_their_places(
    board: Board, browser: Browser, r: redis.Redis
):
    die(r, "gone", 3)
    die(r, "late", 2)
    browser.open(board.link("/queue", name="mail", state="dead"))
    browser.press("j", "j")
    assert browser.run(FOCUSED) == "late"
    die(r, "late", 5)
    browser.sees("7\nlate", ".reasons li:first-child")
    assert browser.run(FOCUSED) == "late"
    assert browser.run("return document.activeElement.matches(':focus-visible')")
    browser.press("j")
    assert browser.run(FOCUSED) == "gone"


def test_the_focus_goes_to_what_is_next_when_its_row_leaves(
    board: Board, browser: Browser, r: redis.Redis
):
    pipe(r, *[("DQ.ADD", "mail", f"job-{n}", "x", "DELAY", HOUR + n) for n in range(3)])
    browser.open(board.link("/queue", name="mail", state="delayed"))
    browser.press("j", "j")
    assert browser.run(FOCUSED) == "job-1"
    for left, next_one in [("job-1", "job-2"), ("job-2", "job-0")]:
        r.execute_command("DQ.DEL", "mail", left)
        eventually(lambda left=left: left not in browser.text("tbody"), 10)
        assert browser.run(FOCUSED) == next_one
    # The page's keys go on from there.
    browser.press(Keys.ENTER)
    browser.sees("job-0", "h1")


def test_tab_begins_at_the_top_of_each_page(board: Board, browser: Browser, r: redis.Redis):
    die(r, "gone", 1)
    for size in (DESK, PHONE):
        browser.look(size)
        browser.open(board.link("/queue", name="mail", state="dead"))
        # The tab of the state is in the window, however many there are.
        box = browser.one(".tabs [aria-current]").rect
        assert box["x"] >= 0 and box["x"] + box["width"] <= size[0]
        browser.press(Keys.TAB)
        assert browser.run(FOCUSED) == "To the page"


def test_the_way_up_from_a_job_is_to_those_of_its_state(
    board: Board, browser: Browser, r: redis.Redis
):
    pipe(r, ("DQ.ADD", "mail", "later", "x", "DELAY", HOUR))
    die(r, "gone", 2)
    browser.open(board.link("/queue", name="mail"))
    browser.sees("2 jobs are dead.", "#why")
    browser.one("#why a").click()
    browser.one("tbody .id a").click()
    browser.sees("Dead since", ".lead")
    browser.press("u")
    browser.sees("Why they died")
    browser.press("u")
    browser.sees("mail", ".queues")


def test_on_a_phone_charts_come_last(board: Board, browser: Browser, r: redis.Redis):
    die(r, "gone", 2)
    browser.look(PHONE)
    for path, first in [("/", ".queues"), ("/queue?name=mail&state=dead", ".deaths")]:
        browser.open(board.link(path))
        assert browser.one(first).rect["y"] < browser.one(".charts").rect["y"]
        assert browser.one(first).rect["y"] < PHONE[1]


def test_with_shift_all_jobs_between_are_ticked(
    boards: Callable[..., Board], browser: Browser, r: redis.Redis
):
    die(r, "gone", 9)
    browser.open(boards("--writable").link("/queue", name="mail", state="dead"))
    eventually(lambda: len(browser.all("input.tick")) == 9)

    def ticked() -> list[int]:
        boxes = browser.all("input.tick")
        return [place for place, box in enumerate(boxes) if box.is_selected()]

    # The first rows are reasons: one.
    browser.press("j", "j", "j", "x", "j", "j", "j", "X")
    assert ticked() == [1, 2, 3, 4]
    browser.press("k", "k", "x", "k", "X")
    assert ticked() == [1, 2, 3, 4]
    browser.press("k", "X")
    assert ticked() == [0, 1, 2, 3, 4]


def test_a_search_goes_on_where_a_password_is_in_the_address(
    boards: Callable[..., Board], browser: Browser, server: Server, r: redis.Redis
):
    slow = Slow(server, 0.1)
    incident(r, "mail", jobs=3_000, dead=3_000)
    board = boards("--auth", "ann:see", redis=slow.url)
    page = board.link("/queue", name="mail", state="dead", find="nothing has this")
    browser.open(page.replace("//", "//ann:see@"))
    browser.sees("All 3\u202f000 dead jobs looked at: 0 found.", "#progress", 60)
    slow.close()
