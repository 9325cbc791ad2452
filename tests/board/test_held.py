"""Jobs that wait for others or to be resumed, notes, results, sinks."""

from collections.abc import Callable

import pytest
import redis

from board import Board
from browser import Browser
from harness.server import Server, eventually
from samples import RIGHTS, flow, kill_some, pipe


@pytest.fixture
def writable(boards: Callable[..., Board]) -> Board:
    return boards("--writable")


def rows(browser: Browser, table: str) -> list[list[str]]:
    """What stands in each cell of a table."""
    script = f"return [...document.querySelectorAll('{table} tbody tr')]"
    return browser.run(f"{script}.map(tr => [...tr.children].map(cell => cell.innerText))")


def state(r: redis.Redis, job_id: str, queue: str = "flow") -> str:
    job = r.execute_command("DQ.GET", queue, job_id)
    return job[job.index(b"state") + 1].decode()


def test_held_jobs_are_counted_and_shown_on_all_pages_in_order(
    board: Board, browser: Browser, r: redis.Redis
):
    # Nothing says `held` where there are none.
    r.execute_command("DQ.ADD", "mail", "a", "x")
    browser.open(board.url)
    browser.sees("mail", "tbody")
    assert "held" not in browser.text() and not browser.all(".is-held")

    ids = [f"job-{n:03}" for n in range(130)]
    pipe(r, *[("DQ.ADD", "flow", job_id, "x", "HOLD") for job_id in ids])
    r.execute_command("DQ.ADD", "flow", "next", "x", "AFTER", 1, "job-129")
    browser.sees("131", ".sums .is-held dd")
    eventually(lambda: browser.text("tr[data-key=flow] td.is-held") == "131")
    assert browser.text("tr[data-key=mail] td.is-held") == "0"
    browser.one("thead a[href*='sort=held']").click()
    eventually(lambda: [th.text for th in browser.all("tbody th a")] == ["flow", "mail"])

    browser.open(board.link("/queue", name="flow"))
    assert browser.one(".tabs [aria-current]").text == "held 131"
    seen = rows(browser, ".list")
    while browser.all("a[rel=next]"):
        browser.follow("a[rel=next]")
        seen += rows(browser, ".list")
    assert [row[0] for row in seen] == [*ids, "next"]
    assert seen[0][-1] == "on hold x" and seen[-1][-1] == "waits for 1 job x"
    # The page stays when the last one has gone.
    browser.open(board.link("/queue", name="flow", state="held"))
    r.execute_command("DQ.PURGE", "flow", "STATE", "held")
    browser.sees("No job is held.")
    assert browser.one(".tabs [aria-current]").text == "held 0"
    browser.open(board.link("/queue", name="mail"))
    browser.sees("ready 1", ".tabs")
    assert "held" not in browser.text(".tabs")


def test_held_jobs_behind_dead_ones_are_told_in_words(
    board: Board, browser: Browser, r: redis.Redis
):
    flow(r)
    r.execute_command("DQ.ADD", "flow", "notice", "x", "AFTER", 1, "pay")
    browser.open(board.url)
    browser.sees("2 held jobs wait for dead ones", "tr[data-key=flow] .name")
    browser.open(board.link("/queue", name="flow", state="held"))
    browser.sees(
        "2 held jobs wait for dead ones. They go on when those are done: kick the dead jobs", "#why"
    )
    browser.follow("#why a")
    assert [row[0] for row in rows(browser, ".list")] == ["pay"]
    browser.open(board.link("/job", queue="flow", id="pay"))
    browser.sees("card declined. 2 jobs wait for it.", ".lead")
    browser.open(board.link("/queue", name="flow", state="held"))
    r.execute_command("DQ.DEL", "flow", "notice")
    browser.sees("1 held job waits for a dead one", "#why")
    r.execute_command("DQ.KICKJOB", "flow", "pay")
    eventually(lambda: "dead one" not in browser.text(), 6)


def test_a_job_shows_what_it_waits_for_and_what_that_came_to(
    board: Board, browser: Browser, r: redis.Redis
):
    flow(r)
    browser.open(board.link("/job", queue="flow", id="ship"))
    browser.sees("On hold until it is resumed, and waits for 2 jobs.", ".lead")
    browser.sees("Waits for\n3 jobs, 2 pending", ".deps")
    assert rows(browser, ".deps") == [
        ["pay", "dead", "card declined"],
        ["pack", "done", '{"kg": 2}'],
        ["stamp", "reserved", ""],
    ]
    # It follows what happens.
    r.execute_command("DQ.DONE", "flow", "stamp", "*", "RESULT", "2 stamps")
    eventually(lambda: rows(browser, ".deps")[2] == ["stamp", "done", "2 stamps"], 6)
    r.execute_command("DQ.DEL", "flow", "pay")
    browser.sees("job 'pay' that it waits for was removed", ".lead")
    browser.sees("Has waited for\n3 jobs", ".deps")
    assert rows(browser, ".deps")[0] == ["pay", "gone", ""]
    # What is gone is no link, the others are.
    links = browser.all(".deps tbody a")
    assert [link.text for link in links] == ["pack", "stamp"]
    links[0].click()
    browser.sees("pack", "h1")
    browser.sees("Done since", ".lead")
    assert not browser.all(".deps")


def test_what_a_job_waits_for_has_pages(board: Board, browser: Browser, r: redis.Redis):
    ids = [f"part-{n:02}" for n in range(45)]
    pipe(r, *[("DQ.ADD", "flow", job_id, "x") for job_id in ids])
    r.execute_command("DQ.ADD", "flow", "all", "x", "AFTER", len(ids), *ids)
    browser.open(board.link("/job", queue="flow", id="all"))
    browser.sees("45 jobs, 45 pending", ".deps")
    seen = rows(browser, ".deps")
    for first in ("part-20", "part-40"):
        browser.press("n")
        browser.sees(first, ".deps tbody tr:first-child")
        seen += rows(browser, ".deps")
    assert [row[0] for row in seen] == ids
    assert not browser.all("a[rel=next]")
    browser.press("p")
    browser.sees("part-20", ".deps tbody tr:first-child")


def test_a_note_and_a_result_are_shown(board: Board, browser: Browser, r: redis.Redis):
    flow(r)
    whole = b"\xff" + b"0123456789" * 10_000
    pipe(r, ("DQ.ADD", "flow", "large", "x", "KEEP", 60_000, "PRIORITY", 0), ("DQ.POP", "flow"))
    r.execute_command("DQ.DONE", "flow", "large", "*", "RESULT", whole)

    browser.open(board.link("/queue", name="flow", state="reserved"))
    assert rows(browser, ".list")[0][-1] == "page 1 of 2 print"
    browser.open(board.link("/queue", name="flow", state="done"))
    assert {row[0]: row[-1] for row in rows(browser, ".list")}["pack"] == (
        '{"kg": 2} pack the parcel'
    )
    browser.open(board.link("/job", queue="flow", id="stamp"))
    browser.sees("It says: page 1 of 2", ".lead")
    assert not browser.all("a[href*='of=result']")
    browser.open(board.link("/job", queue="flow", id="pack"))
    assert [pre.text for pre in browser.all("pre")] == ['{\n  "kg": 2\n}', "pack the parcel"]

    browser.open(board.link("/job", queue="flow", id="large"))
    browser.sees("Result\n97.7 KiB")
    browser.sees("The download is whole")
    link = browser.one("a[href*='of=result']").get_attribute("href")
    assert board.get(link.removeprefix(board.url)).body == whole
    assert board.get("/body", queue="flow", id="large").body == b"x"


def test_a_held_job_is_resumed(writable: Board, browser: Browser, r: redis.Redis):
    pipe(r, ("DQ.ADD", "flow", "ok", "x", "HOLD"), ("DQ.PAUSE", "flow", "FOR", 60_000))
    browser.open(writable.link("/job", queue="flow", id="ok"))
    browser.one("#unhold button").click()
    browser.sees("Resumed: it is due when it waits for no other job.", ".banner")
    assert state(r, "ok") == "ready" and not browser.all("#unhold")
    # Only the job was.
    info = r.execute_command("DQ.INFO", "flow")
    assert info[info.index(b"paused") + 1] == 1
    line = next(line for line in writable.log().splitlines() if 'verb="pause"' in line)
    assert 'queue="flow"' in line and 'id="ok"' in line

    token = writable.get("/queue", name="flow").token()
    form = {"token": token, "verb": "pause", "queue": "flow", "resume": "job"}
    for more, told in [({"id": "ok"}, "It isn&#39;t on hold."), ({}, "An id is needed.")]:
        answer = writable.get(writable.post("/act", form | more).headers["location"])
        assert told.replace("&#39;", "'") in answer.text.replace("&#39;", "'")
    info = r.execute_command("DQ.INFO", "flow")
    assert info[info.index(b"paused") + 1] == 1


def test_a_held_job_is_made_ready(writable: Board, browser: Browser, r: redis.Redis):
    flow(r)
    browser.open(writable.link("/job", queue="flow", id="ship"))
    assert browser.one("#unhold button").text == "Resume"
    assert browser.one("#kickjob button").text == "Make ready now"
    browser.one("#kickjob button").click()
    browser.sees("It is ready now.", ".banner")
    assert state(r, "ship") == "ready"


def test_a_held_job_is_resumed_only_with_the_right_to_pause(
    boards: Callable[..., Board], r: redis.Redis
):
    flow(r)
    others = boards("--writable", "--allow", "kick,del,add,purge,release")
    page = others.get("/job", queue="flow", id="ship")
    assert "unhold" not in page.text and "kickjob" in page.text
    form = {"token": page.token(), "verb": "pause", "queue": "flow", "id": "ship", "resume": "job"}
    assert others.post("/act", form).status == 403
    assert 'action="act"' not in boards().get("/job", queue="flow", id="ship").text
    assert state(r, "ship") == "held"


def test_held_jobs_are_purged_by_age(writable: Board, browser: Browser, r: redis.Redis):
    pipe(r, *[("DQ.ADD", "flow", f"job-{n}", "x", "HOLD") for n in range(3)])
    for older, words in [("1000", "0 jobs"), ("0", "3 jobs")]:
        browser.open(writable.link("/purge", queue="flow", state="held", older=older))
        browser.sees(words, "#extent")
    browser.one("#confirm").send_keys("flow\n")
    browser.sees("Purged 3 jobs in state held.", ".banner")
    assert r.execute_command("DQ.LEN", "flow") == 0


def test_a_sink_is_shown_with_its_error(board: Board, browser: Browser, r: redis.Redis):
    pipe(r, ("DQ.ALTER", "flow", "SINK", "out", "MAXLEN", 5000), ("SET", "out", "no stream"))
    browser.open(board.link("/queue", name="flow"))
    browser.sees("stream\nout\nmost entries\nabout 5\u202f000\njobs leave\nyes", "aside .sink")
    r.execute_command("DQ.ADD", "flow", "a", "x")
    browser.sees("jobs leave\nno: WRONGTYPE Operation against a key", "aside .sink")
    browser.sees("Jobs can't leave for the sink's stream: WRONGTYPE", "#why")
    browser.open(board.url)
    browser.sees("sink error", "tr[data-key=flow] .name")
    r.delete("out")
    eventually(lambda: "sink error" not in browser.text("tr[data-key=flow]"), 10)
    browser.open(board.link("/queue", name="flow"))
    browser.sees("jobs leave\nyes", "aside .sink")
    r.execute_command("DQ.ALTER", "flow", "NOSINK")
    eventually(lambda: not browser.all("aside .sink"), 6)


def test_without_the_right_to_read_edges_the_rest_of_the_job_is_shown(
    boards: Callable[..., Board], server: Server, r: redis.Redis
):
    flow(r)
    rights = RIGHTS.replace(" +dq.deps", "").split()
    r.execute_command("ACL", "SETUSER", "board", "on", ">sEcReT", *rights)
    board = boards(redis=f"redis://board:sEcReT@127.0.0.1:{server.port}")
    page = board.get("/job", queue="flow", id="ship")
    assert page.status == 200
    assert "dq.deps" in page.text.lower() and "send the parcel" in page.text


def test_a_dead_job_kicks_all_behind_it_going(writable: Board, browser: Browser, r: redis.Redis):
    """What the line in words asks for is done on the page that it leads to."""
    pipe(r, ("DQ.ADD", "flow", "pay", "x"))
    kill_some(r, "flow", 1, "card declined")
    r.execute_command("DQ.ADD", "flow", "ship", "x", "AFTER", 1, "pay")
    browser.open(writable.link("/queue", name="flow", state="held"))
    browser.follow("#why a")
    browser.one("#kick summary").click()
    browser.one("#kick button").click()
    browser.one("#confirm button").click()
    browser.sees("Kicked 1 dead job", ".banner")
    (job,) = r.execute_command("DQ.POP", "flow")
    r.execute_command("DQ.FINISH", "flow", job[0], job[2])
    assert state(r, "ship") == "ready"
