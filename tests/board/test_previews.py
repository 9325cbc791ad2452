"""What is done to many jobs is shown before: how many, and which. A page of some jobs does nothing to
others, and no key that is held confirms anything.
"""

import html
import re
import urllib.parse
from collections.abc import Callable

import pytest
import redis
from selenium.webdriver.common.keys import Keys

from board import Board
from browser import Browser
from deeds import everything, form, passes_a_millisecond, state
from samples import HOUR, every_state, kill_some, pipe


@pytest.fixture
def writable(boards: Callable[..., Board]) -> Board:
    return boards("--writable")


def test_no_act_on_more_than_one_job_is_without_a_preview(writable: Board, r: redis.Redis):
    """Each button on a queue's pages that posts at once is about one job, a pause or a new job."""
    pipe(r, ("DQ.ADD", "mail", "grouped", "x", "GROUP", "ann"))
    every_state(r)
    kinds = set()
    for state_ in ("ready", "delayed", "reserved", "dead", "done", "held"):
        page = writable.get("/queue", name="mail", state=state_).text
        for form_ in re.findall(r'<form[^>]*action="act".*?</form>', page, re.DOTALL):
            kinds |= set(re.findall(r'name="verb" value="(\w+)"', form_))
    assert kinds == {"pause", "add"}
    # Nor is there one behind the page.
    for more in ({"count": "9"}, {"count": "9", "state": "dead"}):
        writable.post("/act", form(writable, "kick", **more))
        assert r.execute_command("DQ.LEN", "mail", "STATE", "dead") == 1


FILTERED = [
    {"state": "dead", "why": "gone"},
    {"state": "dead", "find": "job-1"},
    {"state": "dead", "find": "job-1", "why": "gone", "order": "newest"},
    {"state": "ready", "find": "later"},
    {"state": "delayed", "find": "later"},
    {"match": "job-1*"},
    {"group": "ann"},
    {"tab": "schedules"},
]


@pytest.mark.parametrize("fields", FILTERED, ids=lambda fields: ",".join(fields.values()))
def test_on_a_filtered_page_every_action_means_the_filter(
    writable: Board, r: redis.Redis, fields: dict[str, str]
):
    """150 of 4,400 dead jobs fit: nothing on the page is about the others."""
    pipe(r, *[("DQ.ADD", "mail", f"job-{n:04}", "x") for n in range(400)])
    kill_some(r, "mail", 350, "other")
    kill_some(r, "mail", 50, "gone")
    pipe(
        r,
        ("DQ.ADD", "mail", "later-1", "x", "DELAY", HOUR),
        ("DQ.ADD", "mail", "later-2", "x", "GROUP", "ann"),
        ("DQ.ADD", "mail", "nightly", "x", "EVERY", HOUR),
    )
    page = writable.get("/queue", name="mail", **fields).text
    posts = re.findall(r'<form[^>]*action="act".*?</form>', page, re.DOTALL)
    # The page of a group can pause the group, which its form names.
    assert all('name="group.hex"' in each for each in posts)
    assert bool(posts) == ("group" in fields)
    assert 'id="kick"' not in page and 'id="purge"' not in page and 'id="pause"' not in page
    assert 'id="limits"' not in page
    links = [html.unescape(link) for link in re.findall(r'href="(selected\?[^"]*)"', page)]
    for link in links:
        told = dict(urllib.parse.parse_qsl(link.partition("?")[2]))
        assert all(told.get(name) == fields[name] for name in ("why", "find") if name in fields)
    if fields.get("state") == "dead" or fields.get("find") == "later":
        assert links
    # All dead ones are kicked by a reader who says so on the page of all.
    assert 'id="whole"' in page


def test_all_that_fit_are_those_and_no_others(writable: Board, browser: Browser, r: redis.Redis):
    pipe(r, *[("DQ.ADD", "mail", f"job-{n:04}", "x") for n in range(4_400)])
    kill_some(r, "mail", 4_250, "other")
    kill_some(r, "mail", 150, "gone")
    browser.open(writable.link("/queue", name="mail", state="dead", why="gone"))
    browser.sees("50 found", "#progress", 30)
    browser.one(".bar a.all-kick").click()
    browser.sees("150 dead jobs of mail will be kicked", ".lead", 30)
    assert len(browser.all("tbody tr")) == 50
    browser.one("#confirm button").click()
    browser.sees("Kicked 150 dead jobs whose reason is “gone”: ready now.", ".banner", 30)
    assert r.execute_command("DQ.LEN", "mail", "STATE", "dead") == 4_250


@pytest.mark.parametrize(
    ("state_", "do", "told"),
    [
        ("delayed", "kick", "Made ready 2 delayed jobs."),
        ("delayed", "del", "Deleted 2 delayed jobs."),
        ("ready", "del", "Deleted 2 ready jobs."),
        ("held", "kick", "Made ready 2 held jobs."),
        ("done", "del", "Deleted 2 done jobs."),
    ],
)
def test_jobs_of_other_states_can_be_ticked(
    writable: Board, browser: Browser, r: redis.Redis, state_: str, do: str, told: str
):
    more = {"delayed": ("DELAY", HOUR), "held": ("HOLD",), "done": ("KEEP", HOUR)}.get(state_, ())
    pipe(r, *[("DQ.ADD", "mail", f"job-{n}", "x", *more) for n in range(4)])
    if state_ == "done":
        for job in r.execute_command("DQ.POP", "mail", "COUNT", 4):
            r.execute_command("DQ.FINISH", "mail", job[0], job[2])
    browser.open(writable.link("/queue", name="mail", state=state_))
    for box in browser.all("input.tick")[1:4]:
        box.click()
    browser.sees("3 ticked", "#ticked")
    ticked = [box.get_attribute("aria-label").split()[1] for box in browser.all("input.tick")[1:4]]
    browser.one(f".bar button[value={do}]").click()
    browser.sees(f"3 ticked {state_} jobs of mail will be", ".lead")
    # One has left, and is another by now.
    r.execute_command("DQ.DEL", "mail", ticked[0])
    r.execute_command("DQ.ADD", "mail", ticked[0], "x", "DELAY", 2 * HOUR)
    browser.one("#confirm button").click()
    browser.sees(told, ".banner")
    browser.sees("1 job left alone", ".banner")
    assert state(r, "mail", ticked[0]) == "delayed"
    after = {"kick": "ready", "del": None}[do]
    assert [state(r, "mail", each) for each in ticked[1:]] == [after, after]


def test_a_purge_leaves_alone_what_comes_after_its_preview(writable: Board, r: redis.Redis):
    """Also when what was previewed has left meanwhile."""
    pipe(r, ("DQ.ADD", "mail", "a", "x"), ("DQ.ADD", "mail", "b", "x"))
    kill_some(r, "mail", 1, "gone")
    passes_a_millisecond()
    page = writable.get("/purge", queue="mail", state="dead")
    assert '<strong id="extent">1 job</strong>' in page.text and ">a</a>" in page.text
    hidden = dict(re.findall(r'type="hidden" name="([\w.]+)" value="([^"]*)"', page.text))
    passes_a_millisecond()
    r.execute_command("DQ.KICKJOB", "mail", "a")
    kill_some(r, "mail", 2, "later")
    writable.post("/act", {**hidden, "confirm": "mail"})
    assert [state(r, "mail", each) for each in "ab"] == ["dead", "dead"]


@pytest.mark.parametrize(
    "page",
    [
        "/selected?queue=mail&do=kick&state=dead",
        "/selected?queue=mail&do=del&state=delayed",
        "/purge?queue=mail&state=dead",
        "/limits?queue=mail&concurrency=3",
    ],
)
def test_a_held_key_confirms_nothing(writable: Board, browser: Browser, r: redis.Redis, page: str):
    every_state(r)
    before = everything(r)
    browser.open(writable.url + page)
    browser.one("[id=confirm]")
    for _ in range(20):
        browser.press(Keys.ENTER, " ")
    for site in ("cross-site", "same-site"):
        answer = writable.get(page, {"Sec-Fetch-Site": site})
        assert answer.status == 403 and "Another site led here" in answer.text
        assert "token" not in answer.text
    for site in ("none", "same-origin"):
        assert writable.get(page, {"Sec-Fetch-Site": site}).status == 200
    assert everything(r) == before
    assert "autofocus" not in re.sub("<main[^>]*>", "", writable.get(page).text)


def test_another_site_leads_to_no_confirmation(writable: Board, browser: Browser, r: redis.Redis):
    """In a browser: a link elsewhere leads to the refusal, and to a queue's page as before."""
    every_state(r)
    for path, told in (
        ("/selected?queue=mail&do=kick&state=dead", "Another site led here"),
        ("/queue?name=mail", "jobs"),
    ):
        browser.open("data:text/html,<a href='" + writable.url + path + "'>go</a>")
        browser.one("a").click()
        browser.sees(told)
    assert state(r, "mail", "dead") == "dead"
    browser.complaints()
