"""Groups on the pages, and what a reader may do to them."""

import html
import re
from collections.abc import Callable

import pytest
import redis
from selenium.webdriver.support.select import Select

from board import Board
from browser import PHONE, Browser
from harness.server import eventually
from samples import HOUR, every_state, pipe

RAW = b"\xff<b>ann\\x</b>\x00 \n"
SPELLED = "\\xff<b>ann\\\\x</b>\\x00 \\n"


@pytest.fixture
def writable(boards: Callable[..., Board]) -> Board:
    return boards("--writable")


def some_groups(r: redis.Redis) -> None:
    """Four groups: one that is served, one at its limit, two that are paused."""
    pipe(
        r,
        ("DQ.ALTER", "mail", "GROUPCONCURRENCY", 1, "GROUPRATE", 5, 1000, "BURST", 2),
        *[("DQ.ADD", "mail", f"ann-{n}", "x", "GROUP", "ann", "TTR", HOUR) for n in range(3)],
        ("DQ.POP", "mail"),
        ("DQ.ADD", "mail", "ann-later", "x", "GROUP", "ann", "DELAY", HOUR),
        ("DQ.ADD", "mail", "bob-1", "x", "GROUP", "bob"),
        ("DQ.PAUSE", "mail", "GROUP", "bob", "FOR", HOUR),
        ("DQ.PAUSE", "mail", "GROUP", "cid"),
        ("DQ.ADD", "mail", "dan-1", "x", "GROUP", "dan", "DELAY", HOUR),
        ("DQ.ADD", "mail", "alone", "x"),
    )


def cells(browser: Browser) -> dict[str, list[str]]:
    """What stands in each group's row."""
    rows = "[...document.querySelectorAll('tbody tr')]"
    script = f"return {rows}.map(tr => [...tr.children].map(td => td.innerText))"
    return {row[0]: row[1:] for row in browser.run(script)}


def groups(r: redis.Redis, queue: str | bytes = "mail") -> dict[bytes, dict[bytes, int | None]]:
    _, found = r.execute_command("DQ.GROUPS", queue, 0, "COUNT", 1000)
    found = [dict(zip(group[::2], group[1::2], strict=True)) for group in found]
    return {group.pop(b"group"): group for group in found}


def is_paused(r: redis.Redis, group: bytes, queue: str | bytes = "mail") -> bool:
    found = groups(r, queue).get(group)
    return bool(found and found[b"paused"])


def test_groups_are_shown_with_what_holds_them_back(board: Board, browser: Browser, r: redis.Redis):
    some_groups(r)
    browser.open(board.link("/queue", name="mail"))
    # One of them may go.
    browser.sees("4 jobs ready for a worker", "#why")
    browser.sees("groups 4", ".tabs")
    browser.press("6")
    browser.sees("ann", "tbody")
    assert browser.one(".tabs [aria-current]").text == "groups 4"
    rows = cells(browser)
    assert set(rows) == {"ann", "bob", "cid", "dan"}
    assert rows["ann"][:3] == ["2", "1", "1"] and rows["ann"][3].startswith(
        "by limits, ends in 59 min"
    )
    assert rows["bob"][:3] == ["1", "0", "0"] and rows["bob"][3].startswith(
        "paused, ends in 59 min"
    )
    assert rows["cid"] == ["0", "0", "0", "paused"]
    assert rows["dan"] == ["0", "0", "1", "no"]
    browser.sees("Of each group: 1 at a time, 5 in 1 s, 2 at once.")
    browser.sees("of a group at a time\n1\nrate of a group\n5 in 1 s, 2 at once", "aside")
    # It follows what happens, and a read-only board can't change it.
    r.execute_command("DQ.RESUME", "mail", "GROUP", "bob")
    eventually(lambda: cells(browser)["bob"][3] == "no", 6)
    assert not browser.all("main button") and not browser.all("main details:not(#words)")


def test_a_job_tells_its_group(board: Board, browser: Browser, r: redis.Redis):
    r.execute_command("DQ.ADD", "plain", "a", "x")
    browser.open(board.link("/queue", name="plain"))
    browser.sees("a", "tbody")
    headings = "return [...document.querySelectorAll('thead th')].map(th => th.innerText)"
    assert "group" not in browser.run(headings)
    assert "groups" not in browser.text(".tabs")

    pipe(r, ("DQ.ADD", "mail", "of", "x", "GROUP", RAW), ("DQ.ADD", "mail", "alone", "x"))
    browser.open(board.link("/queue", name="mail"))
    browser.sees("alone", "tbody")
    column = browser.run(headings).index("group")
    told = {name: row[column - 1] for name, row in cells(browser).items()}
    assert told == {"of": SPELLED, "alone": ""}
    browser.sees("those of groups are shown behind the others", ".note")

    browser.open(board.link("/queue", name="mail", match="*"))
    browser.sees(SPELLED, "tbody .group")
    browser.open(board.link("/job", queue="mail", id="of"))
    browser.sees(f"group\n{SPELLED}", "aside .policy")
    browser.follow("aside .policy a")
    browser.sees(f"Jobs of the group {SPELLED}, in any state")
    assert list(cells(browser)) == ["of"]
    browser.follow(".note a")
    assert list(cells(browser)) == [SPELLED]
    browser.open(board.link("/job", queue="mail", id="alone"))
    browser.sees("priority", "aside .policy")
    assert "group" not in browser.text("aside .policy")


def walk(board: Board, queue: str) -> list[str]:
    """The names of all groups, from page to page."""
    link, names = board.link("/queue", name=queue, tab="groups"), []
    while link:
        page = board.get(link.removeprefix(board.url)).text
        names += re.findall(r'<tr data-key="([^"]*)"', page)
        found = re.search(r'rel="next" href="([^"]+)"', page)
        link = found and html.unescape(found[1])
    return names


def test_every_group_is_on_some_page(board: Board, browser: Browser, r: redis.Redis):
    pipe(r, *[("DQ.ADD", "mail", f"job-{n}", "x", "GROUP", f"group-{n}") for n in range(530)])
    # Many that have gone leave gaps for the cursor to cross.
    pipe(r, *[("DQ.DEL", "mail", f"job-{n}") for n in range(30, 430)])
    expected = sorted(f"group-{n}" for n in [*range(30), *range(430, 530)])
    assert sorted(walk(board, "mail")) == expected

    browser.open(board.link("/queue", name="mail", tab="groups"))
    assert len(browser.all("tbody tr")) == 50
    browser.sees("of about", ".pager")
    first = list(cells(browser))
    browser.press("n")
    eventually(lambda: (names := list(cells(browser))) and names != first)
    browser.press("p")
    eventually(lambda: list(cells(browser)) == first)


def test_the_groups_tab_is_in_sight_on_a_phone(board: Board, browser: Browser, r: redis.Redis):
    r.execute_command("DQ.ADD", "mail", "a", "x", "GROUP", "ann")
    browser.look(PHONE)
    browser.open(board.link("/queue", name="mail", tab="groups"))
    browser.sees("ann", "tbody")
    right = "return document.querySelector('.tabs [aria-current]').getBoundingClientRect().right"
    assert 0 < browser.run(right) <= PHONE[0]


def test_a_queue_without_groups_says_so(board: Board, browser: Browser, r: redis.Redis):
    r.execute_command("DQ.ADD", "mail", "a", "x")
    browser.open(board.link("/queue", name="mail", tab="groups"))
    browser.sees("No group has a job, and none is paused.")
    for cursor in ("999999", "4294967295", "-1", "x"):
        assert board.get("/queue", name="mail", tab="groups", cursor=cursor).status == 200
    assert (
        "cursor must be" in board.get("/queue", name="mail", tab="groups", cursor="4294967296").text
    )


def row(name: str) -> str:
    return f"tr[data-key='{name}']"


def test_a_group_is_paused_and_resumed_in_its_row(
    writable: Board, browser: Browser, r: redis.Redis
):
    pipe(
        r,
        ("DQ.ADD", "mail", "a", "x", "GROUP", "ann"),
        ("DQ.ADD", "mail", "b", "x", "GROUP", "bob"),
    )
    browser.open(writable.link("/queue", name="mail", tab="groups"))
    browser.one(f"{row('ann')} summary").click()
    browser.one(f"{row('ann')} [name=for]").send_keys("2")
    Select(browser.one(f"{row('ann')} select")).select_by_visible_text("h")
    browser.one(f"{row('ann')} button").click()
    browser.sees("Paused the group “ann” for 2 h: nothing of it is handed out.", ".banner")
    browser.sees("paused, ends in 1 h 59 min", row("ann"))
    # One is where one was, and the queue and the other group go on.
    assert browser.one(".tabs [aria-current]").text == "groups 2"
    assert is_paused(r, b"ann") and not is_paused(r, b"bob")
    assert [job[0] for job in r.execute_command("DQ.POP", "mail", "COUNT", 9)] == [b"b"]
    log_line = next(line for line in writable.log().splitlines() if 'verb="pause"' in line)
    assert (
        'queue="mail"' in log_line and 'group="ann"' in log_line and "from=127.0.0.1 " in log_line
    )

    browser.one(f"{row('ann')} button").click()
    browser.sees("Resumed the group “ann”: its jobs are handed out.", ".banner")
    assert not is_paused(r, b"ann")
    assert [job[0] for job in r.execute_command("DQ.POP", "mail", "COUNT", 9)] == [b"a"]


def test_a_group_is_paused_by_its_name_as_it_is_shown(
    writable: Board, browser: Browser, r: redis.Redis
):
    r.execute_command("DQ.ADD", "mail", "a", "x", "GROUP", RAW)
    browser.open(writable.link("/queue", name="mail", tab="groups"))
    browser.one("#pausegroup summary").click()
    browser.one("#pausegroup [name=group]").send_keys(SPELLED)
    browser.one("#pausegroup button").click()
    browser.sees(f"Paused the group “{SPELLED}” until it is resumed", ".banner")
    assert list(groups(r)) == [RAW] and is_paused(r, RAW)
    browser.one("#pausegroup summary").click()
    browser.one("#pausegroup [name=group]").send_keys(SPELLED)
    browser.one("#pausegroup [name=resume]").click()
    browser.sees(f"Resumed the group “{SPELLED}”", ".banner")
    assert not is_paused(r, RAW)
    # What the server refuses is said in its words.
    browser.one("#pausegroup summary").click()
    browser.one("#pausegroup [name=group]").send_keys("g" * 513)
    browser.one("#pausegroup button").click()
    browser.sees("GROUP must be 1 to 512 bytes long", ".banner")


def test_a_job_s_group_is_paused_on_its_page(writable: Board, browser: Browser, r: redis.Redis):
    pipe(r, ("DQ.ADD", "mail", RAW, "x", "GROUP", RAW), ("DQ.ADD", "mail", "alone", "x"))
    browser.open(writable.link("/job", queue="mail", id="alone"))
    browser.sees("Ready since", ".lead")
    assert not browser.all("#group")
    browser.open(writable.link("/job", queue="mail", id=RAW))
    browser.one("#group summary").click()
    browser.one("#group button").click()
    browser.sees("Paused the group", ".banner")
    browser.sees(SPELLED, "h1")
    assert is_paused(r, RAW)
    browser.one("#group summary").click()
    browser.one("#group [name=resume]").click()
    browser.sees("Resumed the group", ".banner")
    assert not is_paused(r, RAW)


def test_a_group_leads_to_its_jobs_in_every_state(
    writable: Board, browser: Browser, r: redis.Redis
):
    add = ("DQ.ADD", "mail")
    r.execute_command(*add, "dead", "x", "GROUP", RAW)
    lease = r.execute_command("DQ.POP", "mail")[0][2]
    r.execute_command("DQ.BURY", "mail", "dead", lease, "REASON", "no <b>such</b> box")
    pipe(r, (*add, "reserved", "x", "GROUP", RAW, "TTR", HOUR), ("DQ.POP", "mail"))
    pipe(
        r,
        (*add, "ready", "x", "GROUP", RAW),
        (*add, "delayed", "x", "GROUP", RAW, "DELAY", HOUR),
        (*add, "held", "x", "GROUP", RAW, "HOLD"),
        (*add, "not-of-it", "x", "GROUP", "ann"),
        (*add, "alone", "x"),
    )
    browser.open(writable.link("/queue", name="mail", tab="groups"))
    browser.sees("ann", "tbody")
    groups_rows = browser.all("tbody th.id a")
    browser.open(next(a for a in groups_rows if a.text == SPELLED).get_attribute("href"))
    browser.sees("All jobs of the queue have been looked at.")
    rows = cells(browser)
    assert {name: row[0] for name, row in rows.items()} == {
        state: state for state in ("dead", "reserved", "ready", "delayed", "held")
    }
    assert "no <b>such</b> box" in rows["dead"][2]
    assert browser.one(".tabs [aria-current]").text.startswith("groups")
    # Paused and resumed there, and one stays there.
    browser.one("#group summary").click()
    browser.one("#group button").click()
    browser.sees("Paused the group", ".banner")
    browser.sees(f"Jobs of the group {SPELLED}")
    assert is_paused(r, RAW)
    browser.one("#group summary").click()
    browser.one("#group [name=resume]").click()
    browser.sees("Resumed the group", ".banner")
    assert not is_paused(r, RAW)


def test_few_jobs_of_a_group_among_many_are_all_found(board: Board, r: redis.Redis):
    pipe(r, *[("DQ.ADD", "mail", f"other-{n}", "x" * 100, "GROUP", f"g{n}") for n in range(30_000)])
    pipe(r, *[("DQ.ADD", "mail", f"of-{n}", "x", "GROUP", "few") for n in range(120)])
    pipe(r, *[("DQ.ADD", "mail", f"more-{n}", "x" * 100) for n in range(10_000)])
    link, found, pages = board.link("/queue", name="mail", group="few"), [], 0
    while link:
        page = board.get(link.removeprefix(board.url)).text
        found += re.findall(r'<tr data-key="([^"]*)"', page)
        pages += 1
        # Not full yet: it goes on by itself. Full: there is a next page.
        on = re.search(r'(?:data-goes-on|rel="next") href="([^"]+)"', page)
        link = on and board.link("/" + html.unescape(on[1]))
        assert ("looked at" in page) and (on is not None or "All jobs of the queue" in page)
    assert sorted(found) == sorted(f"of-{n}" for n in range(120)) and pages > 1
    nobody = board.get("/queue", name="empty", group="few")
    assert nobody.status == 404
    for strange in ({"looked": "x", "kept": "-1"}, {"cursor": "9"}, {"kept": str(2**64 - 1)}):
        assert board.get("/queue", name="mail", group="nobody", **strange).status == 200


def test_a_form_that_names_no_group_does_not_pause_the_queue(writable: Board, r: redis.Redis):
    """A form that was to name a group, and doesn't, pauses nothing."""
    every_state(r)
    token = writable.get("/queue", name="mail").token()
    for named in ({"group": ""}, {"group.hex": ""}, {"group.hex": "abc"}, {"group.hex": "zz"}):
        for resume in ({}, {"resume": "1"}):
            form = {"token": token, "verb": "pause", "queue": "mail"} | named | resume
            answer = writable.post("/act", form)
            assert "Say which group." in writable.get(answer.headers["location"]).text, form
    info = r.execute_command("DQ.INFO", "mail")
    assert info[info.index(b"paused") + 1] == 0
    assert groups(r) == {}


def test_a_group_is_paused_only_with_the_right_to_pause(
    boards: Callable[..., Board], r: redis.Redis
):
    r.execute_command("DQ.ADD", "mail", "a", "x", "GROUP", "ann")
    others = boards("--writable", "--allow", "kick,del,add,purge,release")
    page = others.get("/queue", name="mail", tab="groups").text
    assert "pausegroup" not in page and "Pause" not in page
    token = others.get("/queue", name="mail").token()
    form = {"token": token, "verb": "pause", "queue": "mail", "group": "ann"}
    assert others.post("/act", form).status == 403

    one = boards("--writable", "--allow", "pause")
    form["token"] = one.get("/queue", name="mail", tab="groups").token()
    for made, headers in [
        (form | {"token": token}, {}),
        (form | {"token": ""}, {}),
        (form, {"Origin": "http://evil.example"}),
        (form, {"Sec-Fetch-Site": "cross-site"}),
    ]:
        assert one.post("/act", made, headers).status == 403
    assert not is_paused(r, b"ann")
    assert one.post("/act", form, {"Origin": one.url}).status == 303
    assert is_paused(r, b"ann")


def test_an_open_form_of_a_row_survives_the_stream(
    writable: Board, browser: Browser, r: redis.Redis
):
    r.execute_command("DQ.ADD", "mail", "a", "x", "GROUP", "ann")
    browser.open(writable.link("/queue", name="mail", tab="groups"))
    browser.one(f"{row('ann')} summary").click()
    browser.one(f"{row('ann')} [name=for]").send_keys("1")
    r.execute_command("DQ.ADD", "mail", "b", "x", "GROUP", "bob")
    browser.sees("bob", "tbody")
    browser.one(f"{row('ann')} [name=for]").send_keys("7")
    value = "return document.querySelector(arguments[0] + ' [name=for]').value"
    assert browser.run(value, row("ann")) == "17"
