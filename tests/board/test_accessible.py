"""No page has a barrier that axe-core finds, in light and dark, with all panels closed and open."""

from collections.abc import Callable

import pytest
import redis

from barriers import violations
from board import Board
from browser import DESK, PHONE, Browser
from gallery import OPEN_ALL, hang, hung, pages
from harness.server import Server, eventually


@pytest.fixture
def board(boards: Callable[..., Board], r: redis.Redis) -> Board:
    return hung(boards, r)


def test_axe_finds_what_is_wrong(board: Board, browser: Browser):
    """It is the judge of the test below."""
    browser.open(board.url)
    browser.run(
        """
        const main = document.querySelector("main");
        main.append(document.createElement("button"));
        const pale = Object.assign(document.createElement("p"), { textContent: "pale" });
        pale.setAttribute("class", "pale");
        main.append(pale);
        pale.style.color = "rgb(190, 190, 190)";
        """
    )
    found = {rule for rule, _ in violations(browser)}
    assert {"button-name", "color-contrast"} <= found


def test_no_page_has_a_barrier(board: Board, browser: Browser):
    bad = {}
    for page in pages(board):
        browser.look(DESK, "light")
        browser.open(page)
        found = violations(browser)
        browser.look(DESK, "dark")
        found += violations(browser, "color-contrast", "link-in-text-block")
        browser.run(OPEN_ALL)
        found += violations(browser, within="details[open]")
        if found:
            bad[page] = found
    assert bad == {}


def test_no_page_has_a_barrier_on_a_phone(board: Board, browser: Browser):
    browser.look(PHONE, "dark")
    for page in (
        board.url,
        board.link("/queue", name="mail", state="dead"),
        board.link("/job", queue="flow", id="ship"),
        board.link("/queue", name="groups", tab="groups"),
    ):
        browser.open(page)
        assert violations(browser) == [], page


def test_no_page_of_several_servers_has_a_barrier(
    boards: Callable[..., Board], browser: Browser, server: Server, r: redis.Redis
):
    hang(r)
    url = f"redis://127.0.0.1:{server.port}"
    board = boards("--writable", redis=f"orders={url} mail={url} gone=redis://127.0.0.1:1")
    eventually(lambda: "no answer since" in board.get("/").text)
    token = board.get("/on/mail/queue", name="mail").token()
    for job_id in ("dead", "none"):
        form = {"token": token, "verb": "kick", "queue": "mail", "id": job_id}
        assert board.post("/on/mail/act", form).status == 303
    for size, scheme in ((DESK, "light"), (DESK, "dark"), (PHONE, "dark")):
        browser.look(size, scheme)
        for path in ("/", "/on/mail/", "/on/mail/server", "/on/mail/actions", "/on/gone/server"):
            browser.open(board.link(path))
            browser.run(OPEN_ALL)
            assert violations(browser) == [], (path, size, scheme)


def test_no_page_of_an_error_has_a_barrier(board: Board, browser: Browser, r: redis.Redis):
    r.set("text", "no queue")
    for page in (
        board.link("/queue", name="text"),
        board.link("/job", queue="none", id="none"),
        board.link("/purge", queue="text", state="dead"),
    ):
        browser.open(page)
        assert violations(browser) == [], page
    # The last page is read while the server is gone.
    r.shutdown(nosave=True)
    browser.open(board.link("/queue", name="mail"))
    browser.sees("can't be reached")
    assert violations(browser) == []
