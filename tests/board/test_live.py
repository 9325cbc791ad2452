"""Pages update themselves without flicker, also when the server or the board goes away and comes
back.
"""

import http.client
import os
import signal
import time
from collections.abc import Callable

import redis

from board import Board
from browser import Browser
from harness.server import Server, eventually
from samples import every_state, pipe

# Writes down each node that is taken out of the page or put into it.
OBSERVE = """
window.changes = [];
new MutationObserver((records) => records.forEach((record) => {
  for (const [what, nodes] of [["out", record.removedNodes], ["in", record.addedNodes]])
    for (const node of nodes) {
      const name = node.nodeName === "SPAN" ? node.className : node.nodeName;
      window.changes.push(what + " " + (node.dataset?.key ?? name));
    }
})).observe(document.getElementById("main"), { childList: true, subtree: true });
"""


def test_a_page_updates_what_has_changed_and_nothing_else(
    board: Board, browser: Browser, r: redis.Redis
):
    every_state(r)
    browser.open(board.link("/queue", name="mail", state="ready"))
    browser.sees("ready 1", ".tabs")
    time.sleep(4.5)  # two turns: rates and the line of the last hour are there now
    browser.run(OBSERVE)
    browser.run("window.first = document.querySelector('tbody tr')")
    r.execute_command("DQ.ADD", "mail", "second", "to Eve")
    browser.sees("second", "tbody")
    browser.sees("ready 2", ".tabs")
    r.execute_command("DQ.ADD", "mail", "zeroth", "urgent", "PRIORITY", 0)
    browser.sees("zeroth", "tbody")
    assert browser.run("return window.first === document.querySelectorAll('tbody tr')[1]")
    # Charts go on with the time: each half minute a point, each minute a bar. And the job that is
    # delayed by an hour comes into that of the next one, which then says how many it is at most.
    drawn = ("text", "polygon", "line", "rect", "title", "in most")
    rows = [change for change in browser.run("return window.changes") if not change.endswith(drawn)]
    assert rows == ["in second", "in zeroth"]


def test_focus_scroll_typing_and_selection_survive(board: Board, browser: Browser, r: redis.Redis):
    pipe(r, *[("DQ.ADD", "mail", f"job-{n:02}", "x") for n in range(50)])
    browser.open(board.link("/queue", name="mail"))
    browser.sees("job-49")
    browser.run("document.getElementById('jump').value = 'half-typed'; scrollTo(0, 300)")
    browser.press("j", "j", "j")
    at = browser.run("return [scrollY, document.activeElement.innerText]")
    for job in range(5):
        r.execute_command("DQ.ADD", "mail", f"new-{job}", "x", "PRIORITY", 0)
    browser.sees("new-4", "tbody")
    assert browser.run("return document.activeElement.innerText") == at[1] == "job-02"
    assert browser.run("return document.getElementById('jump').value") == "half-typed"
    assert browser.one("tr.at").get_attribute("data-key") == "job-02"

    # Who is about to copy something keeps it; the page goes on afterwards.
    browser.run("getSelection().selectAllChildren(document.querySelector('h1'))")
    r.execute_command("DQ.DEL", "mail", "new-4")
    time.sleep(4.5)
    assert browser.run("return getSelection().toString()") == "mail"
    browser.run("getSelection().removeAllRanges()")
    r.execute_command("DQ.DEL", "mail", "new-3")
    eventually(lambda: "new-4" not in browser.text("tbody"))


def test_a_queue_that_is_removed_and_one_that_is_made_are_noticed(
    board: Board, browser: Browser, r: redis.Redis
):
    r.execute_command("DQ.ADD", "mail", "a", "x")
    browser.open(board.url)
    browser.sees("mail")
    r.delete("mail")
    browser.sees("There are no queues yet")
    r.execute_command("DQ.ADD", "post", "a", "x")
    browser.sees("post")
    browser.one("tbody a").click()
    browser.sees("1 min", "aside")
    r.delete("post")
    browser.sees("There is no such queue")
    r.execute_command("DQ.ADD", "post", "b", "x")
    browser.sees("b", "tbody")


def test_a_server_goes_away_and_comes_back(
    board: Board, browser: Browser, server: Server, r: redis.Redis
):
    every_state(r)
    browser.open(board.url)
    browser.sees("mail", "tbody")
    server.kill9()
    browser.sees("No answer since")
    browser.sees("mail", "tbody")  # what was known is still there
    assert board.metrics()["dq_up"] == 0
    assert not [name for name in board.metrics() if name.startswith("dq_jobs")]
    browser.open(board.link("/queue", name="mail"))
    browser.sees("can't be reached")

    server.start()
    r.execute_command("DQ.ADD", "mail", "anew", "x")
    browser.sees("anew", "tbody")
    eventually(lambda: "No answer" not in browser.text())
    eventually(lambda: board.metrics().get('dq_jobs{queue="mail",state="ready"}') == 1)
    assert board.log().count("the servers answer again") == 1


def test_a_server_that_hangs_holds_no_page_up_for_long(
    board: Board, server: Server, r: redis.Redis
):
    every_state(r)
    eventually(lambda: ">mail</a>" in board.get("/").text)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        eventually(lambda: "No answer since" in board.get("/").text, 30)
        began = time.monotonic()
        assert ">mail</a>" in board.get("/").text
        assert time.monotonic() - began < 1
        assert "can&#39;t be reached" in board.get("/queue", name="mail").text.replace("'", "&#39;")
        assert time.monotonic() - began < 10
    finally:
        os.kill(server.pid, signal.SIGCONT)
    eventually(lambda: board.metrics()["dq_up"] == 1, 20)


def test_the_board_goes_away_and_comes_back(
    boards: Callable[..., Board], browser: Browser, r: redis.Redis
):
    board = boards()
    r.execute_command("DQ.ADD", "mail", "a", "x")
    browser.open(board.url)
    browser.sees("mail")
    board.stop()
    browser.sees("dq-board doesn't answer", "#gone", within_s=30)
    board.start()
    r.execute_command("DQ.ADD", "post", "a", "x")
    browser.sees("post", within_s=30)
    eventually(lambda: browser.text("#gone") == "" or not browser.one("#gone").is_displayed(), 15)


def test_streams_are_bounded_and_end_with_their_readers(board: Board, r: redis.Redis):
    r.execute_command("DQ.ADD", "mail", "a", "x")
    host = board.url.removeprefix("http://")
    streams, statuses = [], []
    for _ in range(105):
        stream = http.client.HTTPConnection(host, timeout=10)
        stream.request("GET", "/", headers={"Accept": "text/event-stream"})
        statuses.append(stream.getresponse().status)
        streams.append(stream)
    assert statuses == [200] * 100 + [503] * 5
    for stream in streams:
        stream.close()
    accept = {"Accept": "text/event-stream"}

    def is_free() -> bool:
        stream = http.client.HTTPConnection(host, timeout=10)
        stream.request("GET", "/", headers=accept)
        status = stream.getresponse().status
        stream.close()
        return status == 200

    eventually(is_free, 10)
