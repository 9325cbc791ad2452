"""Limits and defaults are set: first the page says what that does, then it does just that."""

import html
import re
from collections.abc import Callable

import pytest
import redis
from selenium.webdriver.support.select import Select

from board import Answer, Board
from browser import PHONE, Browser
from samples import HOUR, kill_some, pipe

RAW = b"\xff<b>ann\\x</b>\x00"
SPELLED = "\\xff<b>ann\\\\x</b>\\x00"


@pytest.fixture
def writable(boards: Callable[..., Board]) -> Board:
    return boards("--writable")


def info(r: redis.Redis, queue: str | bytes, *fields: str) -> list[int | bytes | None]:
    reply = r.execute_command("DQ.INFO", queue)
    found = dict(zip(reply[::2], reply[1::2], strict=True))
    return [found[field.encode()] for field in fields]


def reserve(r: redis.Redis, queue: str, many: int) -> None:
    pipe(r, *[("DQ.ADD", queue, f"job-{n}", "x", "TTR", HOUR) for n in range(many)])
    r.execute_command("DQ.POP", queue, "COUNT", many)


def put(browser: Browser, name: str, value: str, unit: str | None = None) -> None:
    field = browser.one(f"#limits [name={name}]")
    field.clear()
    field.send_keys(value)
    if unit:
        Select(browser.one(f"#limits [name={name}-unit]")).select_by_visible_text(unit)


def preview(board: Board, queue: str | bytes = "mail", **fields: str | bytes) -> Answer:
    return board.get("/limits", queue=queue, **fields)


def words(page: Answer) -> dict[str, str]:
    """What each setting's row of a preview says that it does."""
    rows = re.findall(r'<tr data-key="(\w+)">.*?<td class="text">(.*?)</td>', page.text)
    return {option: html.unescape(text) for option, text in rows}


def confirm(board: Board, page: Answer, headers: dict[str, str] | None = None) -> Answer:
    """What the button of a preview sends, without a script."""
    form = page.text.split('id="confirm"', 1)[1].split("</form>", 1)[0]
    pairs = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form)
    assert pairs, "nothing to confirm"
    fields = {name: html.unescape(value) for name, value in pairs}
    return board.post("/act", fields, headers)


def test_what_concurrency_does_is_said_and_then_done(
    writable: Board, browser: Browser, r: redis.Redis
):
    reserve(r, "mail", 7)
    r.execute_command("DQ.ADD", "mail", "next", "x")
    browser.open(writable.link("/queue", name="mail"))
    browser.one("#limits summary").click()
    assert browser.one("#limits [name=ttr]").get_attribute("value") == "1"
    assert Select(browser.one("#limits [name=ttr-unit]")).first_selected_option.text == "min"
    put(browser, "concurrency", "5")
    browser.one("#limits form button").click()
    browser.sees("7 are reserved now. They go on; nothing is handed out until 3 of them end.")
    # Only what differs is there, and nothing has been done yet.
    assert len(browser.all(".effects tbody tr")) == 1
    assert info(r, "mail", "concurrency") == [0]
    browser.one("#confirm button").click()
    browser.sees("Set: jobs at a time 5.", ".banner")
    assert info(r, "mail", "concurrency", "default-ttr") == [5, 60_000]
    line = next(line for line in writable.log().splitlines() if 'verb="alter"' in line)
    assert 'queue="mail"' in line and "Set: jobs at a time 5." in line

    # It was the truth: with two done nothing goes, with the third one job does.
    for n, goes in [(0, False), (1, False), (2, True)]:
        r.execute_command("DQ.FINISH", "mail", f"job-{n}")
        assert (r.execute_command("DQ.POP", "mail") is not None) == goes


def test_every_setting_is_set_as_it_was_previewed(writable: Board, r: redis.Redis):
    r.execute_command("DQ.ADD", "mail", "a", "x")
    page = preview(
        writable,
        concurrency="5", rate="10", per="1500", burst="3", **{
            "per-unit": "ms", "group-concurrency": "2", "group-rate": "1", "group-per": "2",
            "group-per-unit": "min", "group-burst": "4", "max-jobs": "1000", "ttr": "30",
            "ttr-unit": "s", "attempts": "", "backoff": "1", "backoff-unit": "s",
            "backoff-max": "10", "backoff-max-unit": "min", "keep": "1", "keep-unit": "h",
            "late": "5", "late-unit": "min", "dead-keep": "7", "dead-keep-unit": "d",
            "sink": SPELLED, "maxlen": "99",
        },
    )  # fmt: skip
    assert len(words(page)) == 12
    assert "1 of" not in page.text and "The 1 job in the queue keep" in page.text
    assert confirm(writable, page).status == 303
    assert info(
        r, "mail", "concurrency", "rate", "rate-per-ms", "rate-burst", "group-concurrency",
        "group-rate", "group-rate-per-ms", "group-rate-burst", "max-jobs", "default-ttr",
        "default-attempts", "default-backoff-base", "default-backoff-max", "default-keep",
        "default-late", "dead-keep", "sink", "sink-maxlen",
    ) == [
        5, 10, 1500, 3, 2, 1, 120_000, 4, 1000, 30_000, 0, 1000, 600_000, HOUR, 300_000,
        7 * 24 * HOUR, RAW, 99,
    ]  # fmt: skip

    # The same again changes nothing, and the form has what is set.
    again = preview(writable, concurrency="5", sink=RAW, maxlen="99", rate="10", per="1500",
                    burst="3", **{"per-unit": "ms"})  # fmt: skip
    assert "nothing would change" in again.text and 'id="confirm"' not in again.text
    assert html.escape(SPELLED) in again.text and RAW not in again.body
    # Empty fields end limits.
    end = preview(writable, concurrency="", rate="", **{"group-rate": "", "sink": "", "keep": ""})
    assert set(words(end)) == {"CONCURRENCY", "RATE", "GROUPRATE", "SINK", "KEEP"}
    assert confirm(writable, end).status == 303
    assert info(r, "mail", "concurrency", "rate", "group-rate", "sink", "default-keep") == [
        0, 0, 0, None, 0,
    ]  # fmt: skip
    # What wasn't named has stayed.
    assert info(r, "mail", "group-concurrency", "max-jobs", "default-ttr") == [2, 1000, 30_000]


def test_previews_count(writable: Board, r: redis.Redis):
    pipe(r, *[("DQ.ADD", "mail", f"job-{n}", "x") for n in range(12)])
    kill_some(r, "mail", 3, "gone")
    r.execute_command("DQ.PAUSE", "mail")
    page = preview(writable, rate="1", per="10", **{
        "per-unit": "s", "max-jobs": "10", "dead-keep": "1", "dead-keep-unit": "ms",
    })  # fmt: skip
    told = words(page)
    assert "For the 9 jobs that are ready that takes at least 1 min 20 s." in told["RATE"]
    assert "The queue has 12 jobs" in told["MAXJOBS"]
    assert "refused (FULL) until 3 have left" in told["MAXJOBS"]
    assert "Of the 3 dead now, 3 have been long enough: they go at once." in told["DEADKEEP"]
    assert "The queue is paused" in page.text
    assert 'class="danger"' in page.text.split('id="confirm"')[1]
    later = preview(writable, **{"dead-keep": "1", "dead-keep-unit": "d"})
    assert "None of the 3 dead now has been so long." in words(later)["DEADKEEP"]
    # It does what it says: full until three have left.
    confirm(writable, preview(writable, **{"max-jobs": "10"}))
    for n, is_full in [(3, True), (4, True), (5, False)]:
        r.execute_command("DQ.DEL", "mail", f"job-{n}")
        if is_full:
            with pytest.raises(redis.ResponseError, match="queue holds as many"):
                r.execute_command("DQ.ADD", "mail", "more", "x")
    assert r.execute_command("DQ.ADD", "mail", "more", "x") == b"more"


def test_what_can_t_be_meant_is_said(writable: Board, r: redis.Redis):
    r.execute_command("DQ.ADD", RAW, "a", "x")
    for fields, why in [
        ({"rate": "5"}, "A rate needs the time"),
        ({"concurrency": "many"}, "must be a whole number"),
        ({"ttr": "", "ttr-unit": "s"}, "Time to run must be at least 1 ms"),
    ]:
        page = preview(writable, RAW, **fields)
        assert why in page.text and 'id="confirm"' not in page.text
    # What only the server knows is said in its words.
    page = preview(writable, RAW, sink=SPELLED)
    refused = confirm(writable, page)
    assert "SINK must be another key" in writable.get(refused.headers["location"]).text
    nothing = writable.post(
        "/act", {"token": page.token(), "verb": "alter", "queue.hex": RAW.hex()}
    )
    assert "Nothing was set" in writable.get(nothing.headers["location"]).text
    assert preview(writable, "nowhere", concurrency="5").text.count("There is no such queue.") == 1
    assert r.exists("nowhere") == 0


def test_limits_are_set_only_with_the_right_to(boards: Callable[..., Board], r: redis.Redis):
    r.execute_command("DQ.ADD", "mail", "a", "x")
    others = boards("--writable", "--allow", "kick,del,add,purge,release,pause")
    page = others.get("/queue", name="mail")
    assert 'id="limits"' not in page.text
    assert "You may not" in preview(others, concurrency="5").text
    form = {"token": page.token(), "verb": "alter", "queue": "mail", "concurrency": "5"}
    assert others.post("/act", form).status == 403
    assert boards().get("/limits", queue="mail").text.count("You may not") == 1

    one = boards("--writable", "--allow", "alter")
    assert 'id="limits"' in one.get("/queue", name="mail").text
    shown = preview(one, concurrency="5")
    assert confirm(one, shown, {"Origin": "http://evil.example"}).status == 403
    assert one.post("/act", form).status == 403, "another board's token"
    assert info(r, "mail", "concurrency") == [0]
    assert confirm(one, shown, {"Origin": one.url}).status == 303
    assert info(r, "mail", "concurrency") == [5]


def test_the_form_fits_on_a_phone(writable: Board, browser: Browser, r: redis.Redis):
    reserve(r, "mail", 2)
    browser.look(PHONE)
    browser.open(writable.link("/queue", name="mail"))
    browser.one("#limits summary").click()
    width = "return document.documentElement.scrollWidth"
    assert browser.run(width) <= PHONE[0]
    put(browser, "rate", "5")
    put(browser, "per", "1", "s")
    browser.one("#limits form button").click()
    browser.sees("At most 5 jobs in 1 s: one each 200 ms.")
    assert browser.run(width) <= PHONE[0]
