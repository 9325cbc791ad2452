"""A queue that hands out nothing says why: in a line on its page, by a mark among all queues."""

import html
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from board import Board
from browser import PHONE, Browser
from harness.server import KNOWN, Server, eventually
from samples import HOUR, flow, kill_some, pipe


def line(board: Board, queue: str) -> str:
    page = board.get("/queue", name=queue).text
    found = re.search(r'<p class="why.*?</p>', page)
    assert found, re.sub(r"<[^>]*>", " ", page)
    return html.unescape(re.sub(r"<[^>]*>", "", found[0])).replace("\u202f", " ")


def begins(board: Board, queue: str, told: str, within_s: float = 8) -> None:
    __tracebackhide__ = True
    try:
        eventually(lambda: line(board, queue).startswith(told), within_s)
    except AssertionError:
        raise AssertionError(f"{line(board, queue)!r} doesn't begin with {told!r}") from None


def marks(board: Board, queue: str) -> list[str]:
    page = board.get("/").text
    row = re.search(f'<tr data-key="{queue}">.*?</tr>', page)
    return re.findall(r'class="mark ([a-z-]+)"', row[0]) if row else []


def marked(board: Board, queue: str, *names: str) -> None:
    __tracebackhide__ = True
    try:
        eventually(lambda: marks(board, queue) == list(names), 8)
    except AssertionError:
        raise AssertionError(f"{marks(board, queue)}, not {names}") from None


def test_what_holds_all_jobs_back_is_told(board: Board, r: redis.Redis):
    add = [("DQ.ADD", n) for n in ("paused", "resumed", "busy", "rated", "sunk")]
    pipe(r, *[(*add, f"job-{n}", "x") for add in add for n in range(6)])
    pipe(
        r,
        ("DQ.PAUSE", "paused", "FOR", HOUR),
        ("DQ.PAUSE", "resumed"),
        ("DQ.ALTER", "busy", "CONCURRENCY", 5, "TTR", HOUR),
        ("DQ.POP", "busy", "COUNT", 9, "TTR", HOUR),
        ("DQ.ALTER", "rated", "RATE", 1, HOUR),
        ("DQ.POP", "rated"),
        ("SET", "out", "no stream"),
        ("DQ.ALTER", "sunk", "SINK", "out"),
    )
    begins(board, "paused", "The queue is paused. Jobs become ready, and none is handed out. The ")
    assert "The pause ends 20" in line(board, "paused") and "in 59 min" in line(board, "paused")
    begins(board, "resumed", "The queue is paused.")
    assert "somebody has to resume it" in line(board, "resumed")
    begins(
        board,
        "busy",
        "All 5 places of CONCURRENCY are taken by job-0, job-1, job-2 and 2 more. The next job may go "
        "when one of these is finished, or when its lease ends, in 59 min",
    )
    page = board.get("/queue", name="busy").text
    assert 'href="job?queue=busy&amp;id=job-1"' in page
    assert 'href="queue?name=busy&amp;state=reserved">2 more' in page
    begins(board, "rated", "The RATE is used up: 1 in 1 h. The next job may go in 59 min")
    begins(board, "sunk", "Jobs can't leave for the sink's stream: WRONGTYPE")
    for queue, name in [
        ("paused", "paused"),
        ("busy", "blocked"),
        ("rated", "blocked"),
        ("sunk", "sink-error"),
    ]:
        marked(board, queue, name)
    # It ends as it began.
    pipe(r, ("DQ.FINISH", "busy", "job-0"), ("DQ.RESUME", "paused"))
    begins(board, "busy", "1 job ready for a worker")
    begins(board, "paused", "6 jobs ready for a worker")
    marked(board, "busy", "limited")
    marked(board, "paused")


def test_what_several_causes_hold_back_names_all_in_order(board: Board, r: redis.Redis):
    flow(r)
    pipe(r, ("DQ.ADD", "flow", "late", "x"), ("DQ.ALTER", "flow", "CONCURRENCY", 1, "MAXJOBS", 1))
    r.execute_command("DQ.PAUSE", "flow")
    begins(board, "flow", "The queue is paused.")
    told = line(board, "flow")
    order = [
        "The queue is paused",
        "The one place of CONCURRENCY",
        "1 held job waits for a dead one",
        "The queue is full. It holds 5 of 1 job (MAXJOBS",
    ]
    places = [told.find(words) for words in order]
    assert -1 not in places and places == sorted(places), told
    marked(board, "flow", "paused", "blocked", "behind-dead", "full", "has-dead")
    page = board.get("/queue", name="flow").text
    assert 'href="queue?name=flow&amp;state=dead">dead jobs' in page


def test_groups_that_hold_back_all_ready_jobs_are_told(board: Board, r: redis.Redis):
    pipe(
        r,
        *[("DQ.ADD", "sms", f"{shop}-{n}", "x", "GROUP", shop) for shop in "ab" for n in range(3)],
        ("DQ.ALTER", "sms", "GROUPCONCURRENCY", 1),
        ("DQ.POP", "sms"),
        ("DQ.PAUSE", "sms", "GROUP", "b"),
    )
    begins(
        board,
        "sms",
        "Groups hold back all ready jobs (5). 1 group at the limit, 1 group paused; the first may go in",
    )
    r.execute_command("DQ.ADD", "sms", "free", "x")
    begins(board, "sms", "6 jobs ready for a worker")


def test_workers_are_told_after_a_while(board: Board, browser: Browser, r: redis.Redis):
    pipe(
        r,
        *[("DQ.ADD", queue, job, "x") for queue in ("none", "busy") for job in "ab"],
        ("DQ.POP", "busy", "TTR", HOUR),
    )
    begins(board, "none", "2 jobs ready for a worker, the oldest for")
    # Both for 15 seconds.
    browser.open(board.link("/queue", name="none"))
    browser.sees("No worker takes jobs.", "#why", within_s=30)
    begins(
        board, "busy", "All workers are busy: they are held by a, and none waits for another job."
    )
    marked(board, "none", "no-workers")
    marked(board, "busy", "busy")


def test_a_queue_without_a_ready_job_says_when_one_comes(board: Board, r: redis.Redis):
    pipe(
        r,
        ("DQ.ADD", "later", "a", "x", "DELAY", HOUR),
        ("DQ.PAUSE", "empty"),
        ("DQ.RESUME", "empty"),
        ("DQ.ADD", "leased", "a", "x", "TTR", HOUR),
        ("DQ.POP", "leased"),
        ("DQ.ADD", "both", "a", "x", "TTR", HOUR),
        ("DQ.POP", "both"),
        ("DQ.ADD", "both", "b", "x", "DELAY", 2 * HOUR),
        ("DQ.ADD", "dead", "a", "x"),
    )
    kill_some(r, "dead", 1, "gone")
    begins(board, "later", "No job is ready. The next one is due in 59 min")
    begins(
        board, "leased", "No job is ready. Workers have all that there are: 1 job. The first lease"
    )
    begins(
        board,
        "both",
        "No job is ready. Workers have 1 job. The first lease ends, or the next delayed job is due, in 59 min",
    )
    begins(board, "dead", "No job is ready. None comes due by itself")
    r.execute_command("DQ.ALTER", "empty", "MAXJOBS", 9)
    begins(board, "empty", "The queue is empty.")
    marked(board, "later")


def test_a_replica_and_a_server_that_lacks_them_say_so(
    boards: Callable[..., Board], server: Server, r: redis.Redis, tmp_path: Path
):
    r.execute_command("DQ.ADD", "mail", "a", "x")
    (tmp_path / "replica").mkdir()
    replica = Server(KNOWN["redis-7.0"], tmp_path / "replica")
    try:
        with replica.client() as other:
            other.replicaof("127.0.0.1", server.port)
            eventually(lambda: other.info("replication")["master_link_status"] == "up", 20)
        board = boards(redis=f"redis://127.0.0.1:{replica.port}")
        begins(
            board, "mail", f"The server is a replica of 127.0.0.1:{server.port}. It hands out noth"
        )
        marked(board, "mail", "replica")
    finally:
        replica.kill9()
    r.config_set("min-replicas-to-write", 1)
    primary = boards()
    begins(primary, "mail", "No replica follows the server. min-replicas-to-write asks for some")
    r.config_set("min-replicas-to-write", 0)
    r.config_set("maxmemory", "1mb")
    primary = boards()
    begins(primary, "mail", "The server's memory is full. DQ.ADD is refused (OOM)")
    marked(primary, "mail", "memory-full")


@pytest.mark.parametrize("size", [(1280, 800), PHONE], ids=str)
def test_the_line_changes_and_nothing_below_it_moves(
    board: Board, browser: Browser, r: redis.Redis, size: tuple[int, int]
):
    browser.look(size)
    r.execute_command("DQ.ADD", "mail", "a", "x")
    browser.open(board.link("/queue", name="mail"))
    browser.sees("1 job ready for a worker", "#why")
    top = "return document.querySelector('.tabs').getBoundingClientRect().top"
    before = browser.run(top)
    r.execute_command("DQ.ALTER", "mail", "MAXJOBS", 1)
    browser.sees("The queue is full.", "#why")
    assert size == PHONE or browser.run(top) == before


def test_a_limit_that_was_lowered_says_how_many_jobs_have_to_end_first(
    board: Board, r: redis.Redis
):
    pipe(r, *[("DQ.ADD", "busy", f"job-{n}", "x", "TTR", HOUR) for n in range(8)])
    leases = r.execute_command("DQ.POP", "busy", "COUNT", 5)
    r.execute_command("DQ.ALTER", "busy", "CONCURRENCY", 3)
    begins(board, "busy", "All 3 places of CONCURRENCY are taken by ")
    told = "The next job may go when 3 of these are finished, or when their leases end, in "
    assert told in line(board, "busy")
    # It is so: two free no place, the third does.
    for at, left in enumerate(("2 of these are", "one of these is")):
        r.execute_command("DQ.FINISH", "busy", leases[at][0], leases[at][2])
        assert r.execute_command("DQ.POP", "busy") is None
        assert f"may go when {left} finished, or when " in line(board, "busy")
    r.execute_command("DQ.FINISH", "busy", leases[2][0], leases[2][2])
    assert r.execute_command("DQ.POP", "busy") is not None
