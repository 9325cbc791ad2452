"""Dead jobs: why they died, in which order, a search in them; those that are ticked, or all that fit,
are kicked and deleted. test_downloads.py has their downloads.
"""

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
from selenium.webdriver.common.keys import Keys

from board import Board
from browser import PHONE, Browser
from harness.server import eventually
from plain import form_of, link_of, pages, rows, ticks
from samples import CAUSES, HOUR, dead, incident, kill_some, pipe
from slow import Slow

THIN = "\u202f"
BAD_GATEWAY = "HTTP 502 Bad Gateway"


@pytest.fixture
def writable(boards: Callable[..., Board]) -> Board:
    return boards("--writable")


def ids_of(jobs: list[dict[bytes, Any]]) -> list[str]:
    return [job[b"id"].decode() for job in jobs]


def len_dead(r: redis.Redis) -> int:
    return r.execute_command("DQ.LEN", "mail", "STATE", "dead")


def die(r: redis.Redis, *reasons: str, queue: str = "mail") -> None:
    """One job for each reason, called job-0 and so on, each dies in a millisecond of its own."""
    for n, reason in enumerate(reasons):
        r.execute_command("DQ.ADD", queue, f"job-{n}", f"body {n}")
        die_again(r, reason, queue)


def die_again(r: redis.Redis, reason: str, queue: str = "mail") -> None:
    kill_some(r, queue, 1, reason)
    died = time.time()
    eventually(lambda: time.time() > died + 0.002)


def shown(browser: Browser) -> list[str]:
    return browser.run("return [...document.querySelectorAll('tbody th')].map(th => th.innerText)")


def test_reasons_are_counted_and_lead_to_their_jobs(
    writable: Board, browser: Browser, r: redis.Redis
):
    """test_incident.py goes on from there to the cure."""
    died = incident(r, "mail", jobs=10_000, dead=10_000)
    browser.open(writable.link("/queue", name="mail", state="dead"))
    browser.sees(f"10{THIN}000 dead looked through.", ".deaths", 60)
    causes = [
        (
            item.find_element("css selector", "a").text,
            item.find_element("css selector", ".count").text,
        )
        for item in browser.all(".reasons li")
    ]
    assert causes == [(why, f"{died[why]:,}".replace(",", THIN)) for why in CAUSES]

    # Each leads to its jobs, and to no others.
    found = [
        row
        for page in pages(writable, link_to(writable, "card cus_# declined"))
        for row in rows(page)
    ]
    fits = [job for job in dead(r) if b"declined" in job[b"reason"]]
    assert found == ids_of(fits) and len(found) == 400


def link_to(board: Board, why: str, **more: str) -> str:
    return board.link("/queue", name="mail", state="dead", why=why, **more)


def test_newest_first_has_every_job_once_however_many_died_at_a_time(board: Board, r: redis.Redis):
    pipe(r, *[("DQ.ADD", "mail", f"job-{n:04}", "x", "ATTEMPTS", 1) for n in range(700)])
    for count in (1, 300, 1, 1, 130, 2, 1, 264):
        # Those of a transaction die in the same millisecond, or in few.
        popped = r.execute_command("DQ.POP", "mail", "COUNT", count)
        together = r.pipeline(transaction=True)
        for job_id, _, lease, _ in popped:
            together.execute_command("DQ.RELEASE", "mail", job_id, lease)
        together.execute()
        died = time.time()
        eventually(lambda died=died: time.time() > died + 0.002)
    since = {job[b"id"].decode(): job[b"since"] for job in dead(r)}
    assert max(list(since.values()).count(time) for time in set(since.values())) > 100

    first = board.link("/queue", name="mail", state="dead", order="newest")
    found = [rows(page) for page in pages(board, first)]
    assert max(len(page) for page in found) == 50
    names = [row for page in found for row in page]
    assert sorted(names) == sorted(since) and len(names) == 700
    times = [since[name] for name in names]
    assert times == sorted(times, reverse=True)

    # With a filter, too.
    sought = board.link("/queue", name="mail", state="dead", order="newest", find="JOB-00")
    found_too = [row for page in pages(board, sought) for row in rows(page)]
    assert found_too == [name for name in names if name.startswith("job-00")]


def test_a_page_of_the_newest_stays_up_to_date(board: Board, browser: Browser, r: redis.Redis):
    die(r, "first", "second")
    browser.open(board.link("/queue", name="mail", state="dead"))
    browser.sees("Those that died first are first.")
    assert shown(browser) == ["job-0", "job-1"]
    browser.one(".toolbar .views a:last-child").click()
    browser.sees("Those that died last are first.")
    assert shown(browser) == ["job-1", "job-0"]
    die_again_as(r, "job-2", "third")
    eventually(lambda: shown(browser) == ["job-2", "job-1", "job-0"], 10)
    browser.sees("third", ".deaths")


def die_again_as(r: redis.Redis, job_id: str, reason: str) -> None:
    r.execute_command("DQ.ADD", "mail", job_id, "x")
    die_again(r, reason)


def test_a_search_goes_on_by_itself_and_keeps_what_it_found(
    boards: Callable[..., Board], browser: Browser, slow: Slow, r: redis.Redis
):
    incident(r, "mail", jobs=6_500, dead=6_000)
    board = boards("--writable", redis=slow.url)
    path = board.link("/queue", name="mail", state="dead", find='999"')
    want = [f"job-{n:07}" for n in range(999, 6_000, 1_000)]

    # Without JavaScript: by a link.
    walked = list(pages(board, path))
    assert link_of(walked[0], "data-goes-on")
    assert re.search(r"of 6\u202f000 dead jobs looked at: \d found so far\.", walked[0].text)
    assert f"All 6{THIN}000 dead jobs looked at: 6 found." in walked[-1].text
    assert [row for page in walked for row in rows(page)] == want

    browser.open(path)
    browser.sees("found so far.", "#progress")
    browser.one("input.tick").click()
    browser.sees(f"All 6{THIN}000 dead jobs looked at: 6 found.", "#progress", 60)
    assert shown(browser) == want
    assert [box.is_selected() for box in browser.all("input.tick")] == [True] + [False] * 5
    browser.sees("1 ticked", "#ticked")
    assert not browser.all("[data-goes-on]")

    # So does the count before a deed.
    browser.one(".bar a.all-del").click()
    browser.sees("At least", ".lead")
    browser.sees("6 dead jobs of mail will be deleted, for good.", ".lead", 60)
    eventually(lambda: "At least" not in browser.text("main"), 60)
    browser.one("#confirm button").click()
    browser.sees('Deleted 6 dead jobs in which “999"” is found.', ".banner", 60)
    assert len_dead(r) == 5_994


def test_what_takes_long_is_done_in_parts(boards: Callable[..., Board], slow: Slow, r: redis.Redis):
    incident(r, "mail", jobs=6_000, dead=6_000)
    board = boards("--writable", redis=slow.url)
    *_, preview = pages(board, board.link("/selected", queue="mail", state="dead", do="kick"))
    assert '<strong id="extent">6\u202f000</strong> dead jobs' in preview.text
    slow.delay_s = 1.5
    answer = board.send_form("/act", form_of(preview, "confirm"))
    slow.delay_s = 0.1
    left = len_dead(r)
    assert 0 < left < 6_000
    page = board.get(f"/{answer.headers['location']}")
    kicked = f"{6_000 - left:,}".replace(",", THIN)
    assert f"Kicked {kicked} dead jobs: ready now. There was no time for all" in page.text
    *_, preview = pages(board, f"/{answer.headers['location']}")
    assert f'<strong id="extent">{left:,}</strong> dead'.replace(",", THIN) in preview.text
    board.send_form("/act", form_of(preview, "confirm"))
    assert len_dead(r) == 0


def test_readers_who_come_at_once_do_not_read_one_after_the_other(
    boards: Callable[..., Board], slow: Slow, r: redis.Redis
):
    incident(r, "mail", jobs=6_000, dead=6_000)
    board = boards(redis=slow.url)
    slow.delay_s = 0.4

    def looked_at(_: int) -> list[str]:
        page = board.get("/queue", name="mail", state="dead").text
        return re.findall(r"([^>]*) of [^<]* looked at so far", page)

    with ThreadPoolExecutor(6) as readers:
        told = list(readers.map(looked_at, range(6)))
    # One of them has read; the others show that, or what was read when it had gone on once more.
    assert len({numbers[0] for numbers in told}) <= 2


def test_of_very_many_dead_jobs_the_first_are_looked_at(board: Board, r: redis.Redis):
    incident(r, "mail", jobs=5_000, dead=5_000)
    path = board.link("/queue", name="mail", state="dead", look=1_000)
    eventually(lambda: "that died first." in board.get(path).text, 60)
    page = board.get(path)
    assert re.search(r"Of the 1\u202f\d+ of 5\u202f000 that died first\.", page.text)
    more = link_of(page, 'id="look-on"')
    assert more and "look=101" in more
    eventually(lambda: f"5{THIN}000 dead looked through." in board.get(f"/{more}").text, 60)


@pytest.mark.parametrize("state", ["ready", "delayed", "reserved", "done", "held"])
def test_a_text_is_found_in_jobs_of_any_state(board: Board, r: redis.Redis, state: str):
    options = {"delayed": ("DELAY", HOUR), "held": ("HOLD",), "done": ("KEEP", HOUR)}.get(state, ())
    many = 600
    adds = [("DQ.ADD", "mail", f"job-{n:03}", f"To: User-{n}.", *options) for n in range(many)]
    pipe(r, *adds)
    if state in ("reserved", "done"):
        for job_id, _, lease, _ in r.execute_command("DQ.POP", "mail", "COUNT", many, "TTR", HOUR):
            if state == "done":
                r.execute_command("DQ.FINISH", "mail", job_id, lease)
    path = board.link("/queue", name="mail", state=state, find="user-1")
    found = [row for page in pages(board, path) for row in rows(page)]
    assert sorted(found) == [f"job-{n:03}" for n in (1, *range(10, 20), *range(100, 200))]


def test_ticked_jobs_are_kicked_and_those_that_changed_are_left_alone(
    writable: Board, browser: Browser, r: redis.Redis
):
    die(r, *[f"gone {n}" for n in range(6)])
    browser.open(writable.link("/queue", name="mail", state="dead"))
    for n in range(5):
        browser.one(f"tr[data-key=job-{n}] input.tick").click()
    browser.sees("5 ticked", "#ticked")
    # What is ticked stays so when the page updates itself.
    die_again_as(r, "job-6", "gone")
    browser.sees("job-6", "tbody")
    browser.sees("5 ticked", "#ticked")
    # Meanwhile one is kicked, and another one has died again.
    r.execute_command("DQ.KICKJOB", "mail", "job-0")
    die_again(r, "again")
    r.execute_command("DQ.KICKJOB", "mail", "job-1")
    eventually(lambda: "job-1" not in shown(browser), 10)
    browser.one(".bar button[value=kick]").click()
    browser.sees("3 ticked dead jobs of mail will be kicked", ".lead")
    assert shown(browser) == ["job-2", "job-3", "job-4"]
    # And between the preview and the deed.
    r.execute_command("DQ.DEL", "mail", "job-2")
    r.execute_command("DQ.KICKJOB", "mail", "job-3")
    eventually(lambda: r.execute_command("DQ.LEN", "mail", "STATE", "ready") == 2)
    browser.one("#confirm button").click()
    browser.sees("Kicked 1 dead job: ready now.", ".banner")
    browser.sees("2 jobs left alone: not dead any more, or dead again since.", ".banner")
    assert ids_of(dead(r)) == ["job-5", "job-6", "job-0"]


def test_jobs_that_die_after_the_preview_are_left_alone(
    writable: Board, browser: Browser, r: redis.Redis
):
    die(r, "timeout after 1 ms", "gone", "timeout after 20 ms")
    browser.open(link_to(writable, "timeout after # ms"))
    browser.one(".bar a.all-del").click()
    browser.sees("2 dead jobs of mail will be deleted, for good.", ".lead")
    die_again_as(r, "late", "timeout after 3 ms")
    browser.one("#confirm button").click()
    browser.sees("Deleted 2 dead jobs whose reason is “timeout after # ms”.", ".banner")
    assert ids_of(dead(r)) == ["job-1", "late"]


def test_of_a_job_that_is_ticked_many_times_there_is_one(
    boards: Callable[..., Board], r: redis.Redis
):
    board = boards("--writable")
    die(r, "gone", "bo\0om")
    tick = ticks(board.get("/queue", name="mail", state="dead"))["job-1"]
    form = [("queue", "mail"), ("do", "kick"), *[("job", tick)] * 2_000]
    assert len(board.send_form("/jobs.ndjson", form).body.splitlines()) == 1
    assert 'id="extent">1<' in board.send_form("/selected", form).text
    many = [("queue", "mail"), *(("job", f"{n}.61") for n in range(1_001))]
    assert board.send_form("/jobs.ndjson", many).status == 400


def test_a_reason_with_a_nul_can_be_kicked(writable: Board, browser: Browser, r: redis.Redis):
    die(r, "gone", "bo\0om")
    browser.open(writable.link("/selected", queue="mail", do="kick", why="bo\0om"))
    browser.one("#confirm button").click()
    browser.sees("Kicked 1 dead job")
    assert ids_of(dead(r)) == ["job-0"]


def test_without_javascript_all_of_it_works(writable: Board, r: redis.Redis):
    die(r, "gone 1", "gone 2", "other", "gone 3")
    page = writable.get("/queue", name="mail", state="dead")
    boxes = ticks(page)
    fields = form_of(page, "selection")
    chosen = [("do", "del"), ("job", boxes["job-0"]), ("job", boxes["job-2"])]
    preview = writable.send_form("/selected", fields + chosen)
    assert '<strong id="extent">2</strong> ticked dead jobs' in preview.text
    confirm = form_of(preview, "confirm")
    assert writable.send_form("/act", confirm).status == 303
    assert ids_of(dead(r)) == ["job-1", "job-3"]
    # Sent once more, it finds nothing to do.
    again = writable.send_form("/act", confirm)
    assert "Deleted 0 dead jobs." in writable.get(f"/{again.headers['location']}").text
    assert ids_of(dead(r)) == ["job-1", "job-3"]

    none = writable.send_form("/selected", [*fields, ("do", "del")])
    assert "No job was ticked." in none.text
    for value in ("", ".", "1.", "x.6a", "1.zz", "1.6"):
        answer = writable.send_form("/selected", [*fields, ("do", "kick"), ("job", value)])
        assert answer.status in (200, 400), value

    link = link_of(writable.get(link_to(writable, "gone #")), 'class="button all-kick"')
    assert link
    preview = writable.get(f"/{link}")
    confirm = form_of(preview, "confirm")
    assert writable.send_form("/act", confirm).status == 303
    assert len_dead(r) == 0


def test_by_keyboard_alone(writable: Board, browser: Browser, r: redis.Redis):
    die(r, "timeout after 1 ms", "gone", "timeout after 2 ms", "timeout after 3 ms")
    browser.open(writable.link("/queue", name="mail", state="dead"))
    browser.press("j", Keys.ENTER)
    browser.sees("timeout after # ms", ".chosen")
    browser.press("j", "x")
    browser.sees("1 ticked", "#ticked")
    browser.press("j", " ")
    browser.sees("2 ticked", "#ticked")
    # A box that has the focus is a row like others.
    browser.run("document.querySelector('tbody tr:nth-child(2) input').focus()")
    browser.press("k", "x", "x", "s", Keys.ENTER)
    browser.sees("2 ticked dead jobs of mail will be kicked", ".lead")
    # A key that is held presses nothing: the button is some tabs away.
    browser.press(Keys.ENTER, Keys.ENTER)
    for _ in range(6):
        browser.press(Keys.TAB)
        if browser.run("return document.activeElement.matches('#confirm button')"):
            break
    browser.press(Keys.ENTER)
    browser.sees("Kicked 2 dead jobs: ready now.", ".banner")
    assert sorted(ids_of(dead(r))) == ["job-1", "job-3"]
    browser.press("f", "nothing has it", Keys.ENTER)
    browser.sees("There are none.")


def test_each_deed_needs_its_right(boards: Callable[..., Board], r: redis.Redis):
    die(r, "gone", "gone")
    for args, can in [((), set()), (("--writable", "--allow", "kick"), {"kick"})]:
        board = boards(*args)
        page = board.get("/queue", name="mail", state="dead")
        assert set(re.findall(r'<button name="do" value="(\w+)"', page.text)) == can
        assert set(re.findall(r'class="button all-(\w+)"', page.text)) == {"download"} | can
        for verb in {"kick", "del"} - can:
            preview = board.get("/selected", queue="mail", do=verb)
            assert (
                "You may not do that here." in preview.text
                and '<form id="confirm"' not in preview.text
            )
            token = board.get("/selected", queue="mail", do="kick").token() if can else "x"
            asked = {
                "token": token,
                "verb": verb,
                "queue": "mail",
                "selected": "all",
                "until": "9" * 13,
            }
            assert board.post("/act", asked).status == 403
    # A verb that isn't for selections does nothing to them.
    board = boards("--writable")
    asked = {"token": board.get("/queue", name="mail").token(), "queue": "mail", "selected": "all"}
    for more in (
        {"verb": "purge", "until": "9" * 13},
        {"verb": "del"},
        {"verb": "del", "selected": "ticked", "job": "?"},
    ):
        assert board.post("/act", asked | more).status == 303
    assert len_dead(r) == 2


def test_on_a_phone_nothing_is_out_of_reach(writable: Board, browser: Browser, r: redis.Redis):
    incident(r, "mail", jobs=200, dead=100)
    browser.look(PHONE)
    for path in (
        writable.link("/queue", name="mail", state="dead"),
        link_to(writable, BAD_GATEWAY),
        writable.link("/selected", queue="mail", state="dead", do="kick"),
    ):
        browser.open(path)
        assert browser.run("return document.documentElement.scrollWidth") <= PHONE[0]
    browser.open(link_to(writable, BAD_GATEWAY))
    browser.one("#tick-all").click()
    browser.sees("30 ticked", "#ticked")
    browser.one(".bar button[value=del]").click()
    browser.sees("30 ticked dead jobs of mail will be deleted", ".lead")
