"""The page of all queues' schedules: what it says of them, and what a reader may do to them."""

import html
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis

from board import Answer, Board
from browser import PHONE, Browser
from harness.server import eventually
from samples import HOUR, RIGHTS, pipe

RAW = b"\xff<b>id\\x</b>\x00 \n"
SPELLED = "\\xff<b>id\\\\x</b>\\x00 \\n"
DAY = 24 * HOUR


@pytest.fixture
def writable(boards: Callable[..., Board]) -> Board:
    return boards("--writable")


def job(r: redis.Redis, queue: str | bytes, job_id: str | bytes) -> dict[str, Any]:
    fields = r.execute_command("DQ.GET", queue, job_id)
    return {name.decode(): value for name, value in zip(fields[::2], fields[1::2], strict=True)}


def rows(page: str) -> dict[str, str]:
    """The rows of a page by id, as text; in the order of the page."""
    found = {}
    for row in re.findall(r"<tr data-key=.*?</tr>", page, re.DOTALL):
        name = re.search(r'<th class="id".*?<a [^>]*>(.*?)</a>', row)
        assert name
        text = re.sub(r"<style.*?</style>|<(?!/)[^>]*data-label=\"([^\"]*)\"[^>]*>", r" \1: ", row)
        found[html.unescape(name[1])] = html.unescape(re.sub(r"<[^>]+>", " ", text))
    return found


def schedules(board: Board, **fields: str) -> dict[str, str]:
    """Once all queues have been gone through."""

    def whole() -> str | None:
        page = board.get("/schedules", **fields).text
        return page if "have been gone through" in page else None

    return rows(eventually(whole, 20))


def sees_rows(board: Board, names: list[str], **fields: str) -> dict[str, str]:
    """The poller finds new queues within two turns."""
    return eventually(
        lambda: (found := schedules(board, **fields)) and list(found) == names and found, 20
    )


def some(r: redis.Redis) -> None:
    pipe(
        r,
        ("DQ.ADD", "mail", "nightly", "x", "CRON", "30 2 * * *", "TZ", "Europe/Berlin"),
        ("DQ.ADD", "mail", "soon", "x", "EVERY", HOUR),
        ("DQ.ADD", "shop", "later", "x", "EVERY", 2 * HOUR, "JITTER", 5000, "RUNS", 2),
        ("DQ.ADD", "shop", "plain", "x", "DELAY", 5),
        ("DQ.ADD", "empty", "plain", "x"),
    )


def test_schedules_of_all_queues_are_sorted_by_their_next_run(
    board: Board, browser: Browser, r: redis.Redis
):
    # 2:30 in Berlin is at least an hour and a half from here, or the test's own clock would matter.
    some(r)
    nightly = job(r, "mail", "nightly")["due"]
    names = sorted(
        ["soon", "later", "nightly"],
        key=lambda name: nightly if name == "nightly" else job(r, queue_of(name), name)["due"],
    )
    found = sees_rows(board, names)
    assert "Europe/Berlin" in found["nightly"] and "At 02:30" in found["nightly"]
    assert "every 1 h" in found["soon"] and "last run:  never" in found["soon"]
    # RUNS 2: the next one and one more.
    assert found["later"].count("in 3 h 59 min") == 1 and "up to 5 s later" in found["later"]
    assert "·" not in found["later"].split("up to")[0].replace("· each", "")
    browser.open(board.link("/"))
    browser.follow("header .nav")
    browser.sees("nightly")
    assert not browser.all("main form[method=post]") and not browser.all("main details")
    assert [row.text for row in browser.all("tbody .id > a")] == names

    assert list(schedules(board, find="SHOP")) == ["later"]
    assert list(schedules(board, find="night")) == ["nightly"]
    assert schedules(board, find="nowhere") == {}
    for strange in ({"sort": "x", "page": "y"}, {"page": "99999999999999"}, {"find": "\\xff"}):
        assert board.get("/schedules", **strange).status == 200


def queue_of(name: str) -> str:
    return "shop" if name == "later" else "mail"


def test_what_became_of_runs_is_told(board: Board, r: redis.Redis):
    ago = int(time.time() * 1000) - 10 * 60_000
    pipe(
        r,
        ("DQ.ADD", "q", "failed", "x", "EVERY", 3_600_000, "AT", ago, "ATTEMPTS", 1),
        ("DQ.ADD", "q", "late", "x", "EVERY", 100),
        ("DQ.ADD", "q", "runs", "x", "EVERY", 60_000, "AT", ago),
        ("DQ.ADD", "q", "buried", "x", "EVERY", 60_000, "AT", ago),
    )
    # Five of its times pass before a worker comes, and as one.
    due = job(r, "q", "late")["due"]
    eventually(lambda: r.time()[0] * 1000 + r.time()[1] // 1000 > due + 500)
    leases = {name: lease for name, _, lease, _ in r.execute_command("DQ.POP", "q", "COUNT", 4)}
    r.execute_command("DQ.RELEASE", "q", "failed", leases[b"failed"], "REASON", "HTTP <503>")
    r.execute_command("DQ.PAUSE", "q")
    r.execute_command("DQ.FINISH", "q", "late", leases[b"late"])
    r.execute_command("DQ.BURY", "q", "buried", leases[b"buried"], "REASON", "no such address")
    found = eventually(lambda: (rows_ := schedules(board)) and len(rows_) == 4 and rows_, 20)
    assert "failed: 1" in found["failed"] and "HTTP <503>" in found["failed"]
    missed = re.search(r"missed: (\d+)", found["late"])
    assert missed and int(missed[1]) == job(r, "q", "late")["missed"] >= 4
    assert "running: that of" in found["runs"]
    assert "none: it is dead" in found["buried"] and "no such address" in found["buried"]
    assert list(found)[-1] == "buried"
    assert next(iter(schedules(board, sort="failed"))) == "failed"
    assert list(schedules(board, sort="name")) == ["buried", "failed", "late", "runs"]
    assert next(iter(schedules(board, sort="missed"))) == "late"


def test_the_last_run_is_told_by_the_rule(board: Board, r: redis.Redis):
    for name, rule in [("cron", ("CRON", "* * * * * *")), ("every", ("EVERY", 1000))]:
        r.execute_command("DQ.ADD", "q", name, "x", *rule)
    done = 0
    while done < 2:
        popped = r.execute_command("DQ.POP", "q", "BLOCK", 20000, "COUNT", 2)
        r.execute_command("DQ.FINISH", "q", *[part for job in popped for part in (job[0], job[2])])
        done = min(job(r, "q", name)["runs-begun"] for name in ("cron", "every")) * 2
    r.execute_command("DQ.PAUSE", "q")
    for name in ("cron", "every"):
        page = board.get("/job", queue="q", id=name).text
        last = re.search(r"last run</dt><dd>.*?data-rel=\"(\d+)\"", page)
        assert last and int(last[1]) == job(r, "q", name)["occurrence"] - 1000


def walk(board: Board, **fields: str) -> list[str]:
    link, names = board.link("/schedules", **fields), []
    while link:
        page = board.get(link.removeprefix(board.url)).text
        names += list(rows(page))
        found = re.search(r'rel="next" href="([^"]+)"', page)
        link = found and board.link("/" + html.unescape(found[1]))
    return names


def test_few_among_very_many_are_found_and_none_is_left_out(board: Board, r: redis.Redis):
    """230 queues with one schedule each, and 300 in the middle of 60,000 jobs."""
    pipe(r, *[("DQ.ADD", f"own-{n}", f"own-{n}", "x", "EVERY", HOUR) for n in range(230)])
    for part in range(6):
        add = [("DQ.ADD", "big", f"job-{part}-{n}", "x", "DELAY", HOUR) for n in range(10_000)]
        pipe(r, *add)
        names = [f"big-{part}-{n}" for n in range(50)]
        pipe(r, *[("DQ.ADD", "big", name, "x", "EVERY", DAY) for name in names])
    eventually(lambda: board.metrics().get("dq_queues") == 231)
    eventually(lambda: "530 schedules." in board.get("/schedules").text, 30)
    names = walk(board)
    assert len(names) == len(set(names)) == 530
    assert all(name.startswith("own-") for name in names[:230])
    assert len(walk(board, find="big-3-")) == 50
    # What is gone is forgotten, by its page at once.
    r.execute_command("DEL", "big")
    eventually(lambda: "230 schedules." in board.get("/schedules").text, 30)


def click(browser: Browser, name: str, button: str) -> None:
    row = f"//tr[.//th/a[normalize-space()='{name}']]"
    element = eventually(
        lambda: browser.driver.find_elements("xpath", f"{row}//*[normalize-space()='{button}']")
    )
    element[-1].click()


def test_a_schedule_is_run_now_and_goes_on_as_before(
    writable: Board, browser: Browser, r: redis.Redis
):
    some(r)
    due = job(r, "mail", "nightly")["due"]
    browser.open(writable.link("/schedules", find="mail"))
    browser.sees("nightly", within_s=20)
    click(browser, "nightly", "Run now")
    browser.sees("It is ready now. When it will run next is in its row.", ".banner")
    assert browser.run("return location.search").startswith("?find=mail&")
    browser.sees("ready: it waits for a worker", "tbody")
    line = next(line for line in writable.log().splitlines() if 'verb="kick"' in line)
    assert 'queue="mail"' in line and 'id="nightly"' in line
    _, _, lease, _ = r.execute_command("DQ.POP", "mail")[0]
    browser.sees("running: that of", "tbody")
    # It runs: there is no second run beside it, so no button for one.
    assert browser.text("tbody").count("Run now") == 1
    r.execute_command("DQ.FINISH", "mail", "nightly", lease)
    assert job(r, "mail", "nightly")["due"] == due


def test_a_schedule_is_paused_by_its_group_or_its_queue(
    writable: Board, browser: Browser, r: redis.Redis
):
    pipe(
        r,
        ("DQ.ADD", "mail", "alone", "x", "EVERY", HOUR, "GROUP", RAW),
        ("DQ.ADD", "mail", "other", "x", "EVERY", HOUR),
    )
    browser.open(writable.link("/schedules"))
    browser.sees("alone", within_s=20)
    click(browser, "other", "Pause…")
    browser.sees(
        "DQ pauses groups and queues, not one job. Runs that it misses meanwhile come as one."
    )
    browser.sees("give it a group of its own")
    click(browser, "alone", "Pause…")
    click(browser, "alone", f"Pause its group, {SPELLED}")
    browser.sees("Paused the group", ".banner")
    browser.sees("group paused", "tbody")
    r.execute_command("DQ.KICKJOB", "mail", "alone", "other")
    assert [name for name, *_ in r.execute_command("DQ.POP", "mail", "COUNT", 9)] == [b"other"]
    click(browser, "alone", "Resume group")
    browser.sees("Resumed the group", ".banner")
    assert r.execute_command("DQ.POP", "mail")[0][0] == b"alone"

    click(browser, "other", "Pause…")
    click(browser, "other", "Pause all jobs of mail")
    browser.sees("Paused until it is resumed", ".banner")
    browser.sees("queue paused", "tbody")
    r.execute_command("DQ.KICKJOB", "mail", "other")
    assert r.execute_command("DQ.POP", "mail") is None
    click(browser, "alone", "Resume queue")
    browser.sees("Resumed: jobs are handed out.", ".banner")


def test_a_schedule_is_changed_as_it_was_previewed(
    writable: Board, browser: Browser, r: redis.Redis
):
    pipe(
        r,
        ("DQ.ADD", "mail", "nightly", "\nto <b>Ann</b>\n", "CRON", "30 2 * * *", "TZ",
         "Europe/Berlin", "TTR", 5000, "PRIORITY", 7, "ATTEMPTS", 3, "BACKOFF", 1000, 60_000,
         "LATE", 90_000, "JITTER", 250, "UNTIL", 4_102_444_800_123, "MISFIRE", "ALL"),
    )  # fmt: skip
    before = job(r, "mail", "nightly")
    browser.open(writable.link("/job", queue="mail", id="nightly"))
    browser.follow(".actions a.button")
    # Nothing typed: nothing is another, though times, zones and lines went through a form.
    browser.one("form.plan > button").click()
    browser.sees("Nothing is another than it is now.")
    browser.one("#confirm button").click()
    browser.sees("Saved the schedule.", ".banner")
    assert job(r, "mail", "nightly") == before

    browser.open(writable.link("/schedule", queue="mail", id="nightly"))
    field = browser.one("[name=cron]")
    field.clear()
    field.send_keys("15 4 * * *")
    browser.one("[name=body]").send_keys("and Bob")
    browser.one("form.plan > button").click()
    browser.sees("comes back by 15 4 * * * (at 04:15), Europe/Berlin.")
    browser.sees("It is another schedule: its counts of runs begin anew.")
    told = browser.run(
        "return [...document.querySelectorAll('#runs time')].map(t => Number(t.dataset.rel))"
    )
    expected = r.execute_command("DQ.NEXT", "15 4 * * *", "TZ", "Europe/Berlin", "COUNT", 5)
    assert told == expected
    assert job(r, "mail", "nightly") == before, "a preview changes nothing"
    browser.one("#confirm button").click()
    browser.sees("Saved the schedule.", ".banner")
    after = job(r, "mail", "nightly")
    assert after["cron"] == b"15 4 * * *" and after["occurrence"] == told[0]
    assert after["body"] == b"\nto <b>Ann</b>\nand Bob"
    same = ("tz", "ttr", "priority", "attempts", "backoff-base", "backoff-max", "late", "jitter",
            "until", "misfire", "group")  # fmt: skip
    assert [after.get(field) for field in same] == [before.get(field) for field in same]


def typed(board: Board, queue: str | bytes, job_id: str | bytes = b"") -> dict[str, str]:
    """What the form has in it, as a browser without a script would send it."""
    fields = {"queue": queue, "id": job_id} if job_id else {"queue": queue}
    page = board.get("/schedule", **fields).text
    form = page.split('<form class="panel plan"', 1)[1].split("</form>", 1)[0]
    sent = {}
    for tag in re.findall(r"<input ([^>]*)>", form):
        name = re.search(r'name="([^"]*)"', tag)
        value = re.search(r'value="([^"]*)"', tag)
        assert name
        sent[name[1]] = html.unescape(value[1]) if value else ""
    for name, options in re.findall(r'<select name="([^"]*)".*?>(.*?)</select>', form):
        chosen = re.search(r'<option(?: value="(\w+)")? selected>(\w+)', options)
        first = re.search(r'<option(?: value="(\w+)")?>(\w+)', options)
        picked = chosen or first
        assert picked
        sent[name] = picked[1] or picked[2]
    body = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", form, re.DOTALL)
    if body:
        sent["body"] = html.unescape(body[1]).replace("\n", "\r\n")
    return sent


def confirm(board: Board, page: Answer, headers: dict[str, str] | None = None) -> Answer:
    form = page.text.split('id="confirm"', 1)[1].split("</form>", 1)[0]
    pairs = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form)
    return board.post("/act", {name: html.unescape(value) for name, value in pairs}, headers)


def outcome(board: Board, answer: Answer) -> str:
    page = board.get(answer.headers["location"]).text
    found = re.search(r'<p class="banner[^"]*" role="status">(.*?)</p>', page)
    assert found, page
    return html.unescape(found[1])


def test_a_schedule_of_any_bytes_is_added_and_changed_without_a_script(
    writable: Board, r: redis.Redis
):
    r.execute_command("DQ.ADD", RAW, "other", "x")
    form = typed(writable, RAW) | {"id": SPELLED, "every": "90", "every-unit": "min",
                                   "body": "a\r\nb", "group": SPELLED}  # fmt: skip
    page = writable.post("/schedule", form)
    assert page.status == 200 and page.text.count("<li>") == 5
    assert "each 1 h 30 min" in page.text and RAW not in page.body and b"<b>" not in page.body
    assert r.execute_command("DQ.LEN", RAW) == 1
    assert "Added the schedule" in outcome(writable, confirm(writable, page))
    added = job(r, RAW, RAW)
    assert (added["every"], added["body"], added["group"]) == (90 * 60_000, b"a\nb", RAW)
    assert abs(added["due"] - added["created"] - 90 * 60_000) < 2
    # An id that is taken stays with its job.
    assert "EXISTS" in outcome(writable, confirm(writable, page))

    # A body that isn't text stays as it is.
    r.execute_command("DQ.ADD", RAW, RAW, b"\xff\r\n\0", "EVERY", 90 * 60_000, "ENSURE")
    form = typed(writable, RAW, RAW)
    assert "body" not in form
    page = writable.post("/schedule", form | {"priority": "5"})
    assert "128 → " in html.unescape(page.text) and ">5<" in page.text
    assert outcome(writable, confirm(writable, page)) == "Saved the schedule."
    changed = job(r, RAW, RAW)
    assert (changed["body"], changed["priority"], changed["due"]) == (
        b"\xff\r\n\0",
        5,
        added["due"],
    )
    # One that is gone meanwhile isn't made anew.
    r.execute_command("DQ.DEL", RAW, RAW)
    assert "the job is gone" in outcome(writable, confirm(writable, page))
    assert r.execute_command("DQ.LEN", RAW) == 1


def test_what_would_never_run_or_is_under_way_is_said(writable: Board, r: redis.Redis):
    r.execute_command("DQ.ADD", "mail", "tick", "x", "EVERY", HOUR, "TTR", HOUR)
    form = typed(writable, "mail", "tick")
    over = writable.post("/schedule", form | {"until": "2020-01-01T00:00"})
    assert "the schedule is over" in over.text
    for wrong, why in [
        ({"every": ""}, "either a period or a cron expression"),
        ({"cron": "@daily"}, "either a period or a cron expression"),
        ({"every": "", "cron": "61 * * * *"}, "CRON can't be read"),
        ({"every": "", "cron": "@daily", "zone": "Mars/Olympus"}, "TZ must be the name"),
        ({"runs": "-1"}, "must be whole"),
        ({"until": "soon"}, "Until must be a time"),
    ]:
        page = writable.post("/schedule", form | wrong)
        assert why in html.unescape(page.text) and 'id="confirm"' not in page.text, wrong
    r.execute_command("DQ.KICKJOB", "mail", "tick")
    lease = r.execute_command("DQ.POP", "mail")[0][2]
    page = writable.post("/schedule", form | {"body": "new"})
    assert "A run is under way: it goes on as it began" in page.text
    assert outcome(writable, confirm(writable, page)) == "Saved the schedule."
    assert r.execute_command("DQ.FINISH", "mail", "tick", lease) == 1
    assert job(r, "mail", "tick")["body"] == b"new"
    # Saved although it is over, it goes: as the preview said.
    assert "no run is left" in outcome(writable, confirm(writable, over))
    assert r.execute_command("DQ.LEN", "mail") == 0
    never = writable.post("/schedule", typed(writable, "mail") | {
        "id": "a", "every": "5", "until": "2020-01-01T00:00"})  # fmt: skip
    assert "It would never run" in never.text and 'id="confirm"' not in never.text


def test_each_button_needs_its_right(boards: Callable[..., Board], r: redis.Redis):
    r.execute_command("DQ.ADD", "mail", "tick", "x", "EVERY", HOUR, "GROUP", "g")
    others = boards("--writable", "--allow", "add,del,release,purge,alter")
    eventually(lambda: "tick" in others.get("/schedules").text)
    page = others.get("/schedules").text
    assert "Run now" not in page and "Pause" not in page and "Edit" not in page
    assert "You may not add or change" in others.get("/schedule", queue="mail").text
    token = others.get("/queue", name="mail").token()
    form = {"token": token, "verb": "schedule", "queue": "mail", "id": "b", "every": "5",
            "every-unit": "s"}  # fmt: skip
    assert others.post("/act", form).status == 403
    assert others.post("/schedule", form).status == 403

    one = boards("--writable", "--allow", "schedule")
    eventually(lambda: "Edit" in one.get("/schedules").text)
    page = one.get("/schedules").text
    assert "Run now" not in page and "Pause" not in page
    assert one.post("/schedule", form).status == 403, "another board's token"
    shown = one.post("/schedule", typed(one, "mail") | {"id": "b", "every": "5"})
    assert confirm(one, shown, {"Origin": "http://evil.example"}).status == 403
    assert r.execute_command("DQ.LEN", "mail") == 1
    assert confirm(one, shown, {"Origin": one.url}).status == 303
    assert r.execute_command("DQ.LEN", "mail") == 2
    for verb in ("kick", "pause", "add"):
        kick = {"token": shown.token(), "verb": verb, "queue": "mail", "id": "tick"}
        assert one.post("/act", kick).status == 403


def test_without_the_right_to_ask_for_times_the_next_run_is_there(
    boards: Callable[..., Board], server: Any, r: redis.Redis
):
    some(r)
    rights = RIGHTS.replace(" +dq.next", "").split()
    r.execute_command("ACL", "SETUSER", "board", "on", ">secret", *rights)
    board = boards(redis=f"redis://board:secret@127.0.0.1:{server.port}")
    found = eventually(lambda: (rows_ := schedules(board)) and len(rows_) == 3 and rows_, 20)
    assert "in " in found["nightly"] and "·" not in found["nightly"].split("comes back")[1]


@pytest.mark.parametrize("right", ["dq.scan", "dq.get", "dq.info"])
def test_without_a_right_it_is_not_said_that_there_are_no_schedules(
    boards: Callable[..., Board], server: Any, r: redis.Redis, right: str
):
    some(r)
    rights = RIGHTS.replace(f" +{right}", "").split()
    r.execute_command("ACL", "SETUSER", "board", "on", ">secret", *rights)
    board = boards(redis=f"redis://board:secret@127.0.0.1:{server.port}")
    page = eventually(
        lambda: (text := board.get("/schedules").text) and "may see" in text and text, 20
    )
    assert "lacks a right" in page or "may not look at" in page
    assert "No job comes back" not in page


def test_schedules_fit_on_a_phone(writable: Board, browser: Browser, r: redis.Redis):
    some(r)
    browser.look(PHONE)
    browser.open(writable.link("/schedules"))
    browser.sees("nightly", within_s=20)
    width = "return document.documentElement.scrollWidth"
    assert browser.run(width) <= PHONE[0]
    click(browser, "nightly", "Pause…")
    browser.sees("not one job")
    assert browser.run(width) <= PHONE[0]
    browser.open(writable.link("/schedule", queue="mail", id="nightly"))
    assert browser.run(width) <= PHONE[0]
