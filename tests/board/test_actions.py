"""What a reader may do with --writable, and what no other reader can do. test_previews.py has what is
done to many jobs, test_actions_log.py what is logged.
"""

from collections.abc import Callable

import pytest
import redis
from selenium.webdriver.support.select import Select

from board import Board
from browser import Browser
from deeds import everything, form, passes_a_millisecond, state
from harness.server import eventually
from samples import HOUR, every_state, kill_some, pipe


@pytest.fixture
def writable(boards: Callable[..., Board]) -> Board:
    return boards("--writable")


def test_a_job_is_added(writable: Board, browser: Browser, r: redis.Redis):
    r.execute_command("DQ.PAUSE", "mail", "FOR", HOUR)
    browser.open(writable.link("/queue", name="mail"))
    browser.one("#add summary").click()
    browser.one("#add [name=body]").send_keys("line one\nline <b>two</b>")
    browser.one("#add [name=id]").send_keys("my job")
    browser.one("#add [name=delay]").send_keys("90")
    Select(browser.one("#add [name=delay-unit]")).select_by_visible_text("min")
    browser.one("#add [name=priority]").send_keys("7")
    browser.one("#add button").click()
    browser.sees("Added “my job”.", ".banner")
    browser.sees("Due ", ".lead")
    browser.sees("in 1 h 29 min", ".lead")
    job = r.execute_command("DQ.GET", "mail", "my job")
    assert job[job.index(b"body") + 1] == b"line one\nline <b>two</b>"
    assert job[job.index(b"priority") + 1] == 7
    log_line = next(line for line in writable.log().splitlines() if 'verb="add"' in line)
    assert 'queue="mail" id="my job" outcome="Added “my job”."' in log_line
    assert " INFO action from=127.0.0.1 " in log_line

    # What the server refuses is said in its words; an id that is taken stays with its job.
    browser.open(writable.link("/queue", name="mail"))
    browser.one("#add summary").click()
    browser.one("#add [name=id]").send_keys("my job")
    browser.one("#add button").click()
    browser.sees("EXISTS id is taken in this queue", ".banner")
    assert r.execute_command("DQ.LEN", "mail") == 1


def test_a_name_that_is_no_name_is_in_no_log(writable: Board, r: redis.Redis):
    pipe(r, ("DQ.ADD", "mail", "job", "x"))
    token = writable.get("/queue", name="mail").token()
    for name in ("queue", "id", "group"):
        fields = {"queue": "mail", "id": "job", "token": token, "verb": "del"}
        assert writable.post("/act", {**fields, name: "z" * 100_000}).status == 400
    assert len(writable.log()) < 100_000 and state(r, "mail", "job") == "ready"


def test_dead_jobs_are_kicked(writable: Board, browser: Browser, r: redis.Redis):
    pipe(r, *[("DQ.ADD", "mail", f"job-{n}", "x", "PRIORITY", n) for n in range(5)])
    for _ in range(5):
        kill_some(r, "mail", 1, "gone")
        passes_a_millisecond()
    browser.open(writable.link("/queue", name="mail", state="dead"))
    browser.one("#kick summary").click()
    browser.one("#kick [name=most]").send_keys("2")
    browser.one("#kick button").click()
    # Which they are is said before.
    browser.sees("2 dead jobs of mail will be kicked", ".lead")
    assert [row.text for row in browser.all("tbody th")] == ["job-0", "job-1"]
    assert r.execute_command("DQ.LEN", "mail", "STATE", "dead") == 5
    # A job that has left meanwhile takes none in its place.
    r.execute_command("DQ.DEL", "mail", "job-0")
    browser.one("#confirm button").click()
    browser.sees("Kicked 1 dead job: ready now.", ".banner")
    assert r.execute_command("DQ.LEN", "mail", "STATE", "dead") == 3

    browser.open(writable.link("/job", queue="mail", id="job-4"))
    browser.one("#kickjob button").click()
    browser.sees("It is ready now.", ".banner")
    assert state(r, "mail", "job-4") == "ready"


def test_a_delayed_job_is_made_ready(writable: Board, browser: Browser, r: redis.Redis):
    every_state(r)
    browser.open(writable.link("/job", queue="mail", id="delayed"))
    assert browser.one("#kickjob button").text == "Make ready now"
    browser.one("#kickjob button").click()
    browser.sees("ready", ".state")
    assert state(r, "mail", "delayed") == "ready"


def test_a_job_is_deleted(writable: Board, browser: Browser, r: redis.Redis):
    raw = b"\xff<b>\x00"
    pipe(r, ("DQ.ADD", raw, raw, "x"), ("DQ.ADD", raw, "other", "x"))
    browser.open(writable.link("/job", queue=raw, id=raw))
    browser.one("#del summary").click()
    browser.one("#del button").click()
    browser.sees("Deleted.", ".banner")
    browser.sees("There is no such job")
    assert r.execute_command("DQ.LEN", raw) == 1
    assert 'id="\\\\xff<b>\\\\x00"' in writable.log()


def test_a_dead_lease_is_released_and_no_other(writable: Board, browser: Browser, r: redis.Redis):
    r.execute_command("DQ.ADD", "mail", "a", "x", "TTR", HOUR)
    r.execute_command("DQ.POP", "mail")
    browser.open(writable.link("/job", queue="mail", id="a"))
    browser.one("#release summary").click()
    # Meanwhile the worker gives it back, and another gets it.
    r.execute_command("DQ.RELEASE", "mail", "a", "*")
    r.execute_command("DQ.POP", "mail")
    form = browser.run("return document.querySelector('#release form [name=lease]').value")
    browser.run("document.querySelector('#release form [name=lease]').value = arguments[0]", form)
    browser.one("#release button").click()
    first = eventually(lambda: browser.text(".banner"))
    if first != "Released.":
        assert first == "Its lease is another by now."
        assert state(r, "mail", "a") == "reserved"
        browser.one("#release summary").click()
        browser.one("#release button").click()
        browser.sees("Released.", ".banner")
    assert state(r, "mail", "a") == "ready"


def test_a_queue_is_paused_and_resumed(writable: Board, browser: Browser, r: redis.Redis):
    r.execute_command("DQ.ADD", "mail", "a", "x")
    browser.open(writable.link("/queue", name="mail"))
    browser.one("#pause summary").click()
    browser.one("#pause [name=for]").send_keys("2")
    Select(browser.one("#pause select")).select_by_visible_text("h")
    browser.one("#pause button").click()
    browser.sees("Paused for 2 h", ".banner")
    browser.sees("The queue is paused.", "#why")
    browser.sees("in 1 h 59 min", "#why")
    assert r.execute_command("DQ.POP", "mail") is None
    browser.one("#resume button").click()
    browser.sees("Resumed", ".banner")
    assert r.execute_command("DQ.POP", "mail") is not None


def test_a_purge_is_previewed_and_typed(writable: Board, browser: Browser, r: redis.Redis):
    pipe(r, *[("DQ.ADD", "mail", f"job-{n}", "x") for n in range(12_050)])
    for _ in range(2):
        kill_some(r, "mail", 10_000, "gone")
    r.execute_command("DQ.ADD", "mail", "stays", "x")
    browser.open(writable.link("/queue", name="mail", state="dead"))
    browser.one("#purge summary").click()
    browser.one("#purge button").click()
    browser.sees("12\u202f050 jobs", "#extent")
    browser.one("#confirm").send_keys("mial\n")
    browser.sees("Nothing was purged", ".banner")
    assert r.execute_command("DQ.LEN", "mail") == 12_051

    browser.one("#purge summary").click()
    browser.one("#purge button").click()
    browser.one("#confirm").send_keys("mail\n")
    browser.sees("Purged 12\u202f050 jobs in state dead.", ".banner")
    assert r.execute_command("DQ.LEN", "mail") == 1


def test_a_purge_by_age_says_how_many(writable: Board, browser: Browser, r: redis.Redis):
    every_state(r)
    for older, words in [("1000", "0 jobs"), ("0", "1 job")]:
        browser.open(writable.link("/purge", queue="mail", state="dead", older=older))
        browser.sees(words, "#extent")
    # Only the jobs that were previewed go: one that dies meanwhile isn't among them.
    browser.open(writable.link("/purge", queue="mail", state="dead"))
    kill_some(r, "mail", 1, "later")
    assert r.execute_command("DQ.LEN", "mail", "STATE", "dead") == 2
    browser.one("#confirm").send_keys("mail\n")
    browser.sees("Purged 1 job in state dead.", ".banner")
    assert r.execute_command("DQ.LEN", "mail", "STATE", "dead") == 1


def test_an_open_form_survives_the_stream(writable: Board, browser: Browser, r: redis.Redis):
    every_state(r)
    browser.open(writable.link("/queue", name="mail"))
    browser.one("#add summary").click()
    browser.one("#add [name=body]").send_keys("half")
    r.execute_command("DQ.ADD", "mail", "another", "x")
    browser.sees("another", "tbody")
    browser.one("#add [name=body]").send_keys(" typed")
    assert browser.run("return document.querySelector('#add [name=body]').value") == "half typed"


def test_without_the_right_a_form_changes_nothing(boards: Callable[..., Board], r: redis.Redis):
    every_state(r)
    before = everything(r)
    some = boards("--writable", "--allow", "pause,add")
    page = some.get("/queue", name="mail").text
    assert 'id="pause"' in page and 'id="kick"' not in page and 'id="purge"' not in page
    for verb in ("kick", "del", "release", "purge", "fly", ""):
        assert (
            some.post(
                "/act", form(some, verb, id="dead", count="9", state="dead", confirm="mail")
            ).status
            == 403
        )

    none = boards()
    page = none.get("/queue", name="mail").text
    assert "<form" in page and "/act" not in page and "token" not in page
    for verb in ("add", "kick", "del", "release", "pause", "purge"):
        assert none.post("/act", form(none, verb, "x", id="dead", count="9")).status == 403
    assert everything(r) == before
    assert none.get("/act").status == 405


def test_a_form_from_elsewhere_does_nothing(writable: Board, r: redis.Redis):
    every_state(r)
    good = form(writable, "del", id="ready")
    for made, headers in [
        (good | {"token": "0" * 64}, {}),
        (good | {"token": ""}, {}),
        (good, {"Origin": "http://evil.example"}),
        (good, {"Origin": "null"}),
        (good, {"Sec-Fetch-Site": "cross-site"}),
    ]:
        assert writable.post("/act", made, headers).status == 403
    assert state(r, "mail", "ready") == "ready"
    assert writable.post("/act", good, {"Origin": writable.url}).status == 303
    assert state(r, "mail", "ready") is None


def test_a_web_site_can_t_send_a_form(writable: Board, browser: Browser, r: redis.Redis):
    """A page of another origin posts to the board, with a token that it can't know, and reads
    nothing.
    """
    every_state(r)
    browser.open("data:text/html,<p>elsewhere")
    outcome = browser.driver.execute_async_script(
        """
        const [url, done] = arguments;
        fetch(url + "/queue?name=mail").then(() => done("read"), () => done("kept out"));
        """,
        writable.url,
    )
    assert outcome == "kept out"
    browser.complaints()


def test_a_server_that_is_gone_is_said_to_be(
    writable: Board, browser: Browser, server, r: redis.Redis
):
    every_state(r)
    browser.open(writable.link("/job", queue="mail", id="ready"))
    browser.one("#del summary").click()
    server.kill9()
    browser.one("#del button").click()
    browser.sees("can't be reached", ".banner")
    server.start()
    eventually(lambda: "No answer" not in browser.text(), 15)
