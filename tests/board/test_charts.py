"""Charts: their figures are those of the server, they outlive the board, and a reader points at them."""

import math
import re
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from board import Board
from browser import DESK, PHONE, Browser
from harness.server import Server, eventually
from history import NOTHING, chart, file_of
from prometheus import Prometheus
from samples import RIGHTS, kill_some, pipe

FIGURES = (
    "added",
    "delivered",
    "finished",
    "failed",
    "dead",
    "ready",
    "oldest ready",
    "late p50",
    "late p99",
)

UNKNOWN = "\N{EN DASH}"


def sums(board: Board, queue: str | None = "mail", span: str = "hour") -> dict[str, str]:
    """What a page's charts say of the whole span."""
    page = board.get("/queue" if queue else "/", **({"name": queue} if queue else {}), span=span)
    found = re.findall(r'</span>([a-z0-9 ]+) <b data-values="[^"]*">([^<]*)</b>', page.text)
    return dict(found)


def rows(board: Board, page: str = "/figures", **fields: str) -> list[dict[str, str]]:
    """The page of figures, the latest first."""
    return [
        dict(re.findall(r'data-label="([^"]+)">([^<]*)</td>', row))
        for row in re.findall(r'<tr data-key="\d+">(.*?)</tr>', board.get(page, **fields).text)
    ]


def added_up(told: list[dict[str, str]]) -> dict[str, str]:
    """The sums of those figures that count jobs."""
    return {
        name: str(sum(int(row[name]) for row in told if row[name] != UNKNOWN)) for name in WORKED
    }


def ready_board(boards: Callable[..., Board], *args: str, **options: str) -> Board:
    """A board that has looked for queues: those that are made now are new to it."""
    board = boards(*args, **options)
    eventually(lambda: "Looking for queues" not in board.get("/").text)
    return board


def work(r: redis.Redis) -> None:
    """Seven jobs: four finished, one buried, one given back, one left."""
    pipe(r, *[("DQ.ADD", "mail", f"job-{n}", "x") for n in range(7)])
    for job in r.execute_command("DQ.POP", "mail", "COUNT", 4):
        r.execute_command("DQ.FINISH", "mail", job[0], job[2])
    kill_some(r, "mail", 1, "no such mailbox")
    ((job_id, _, lease, _),) = r.execute_command("DQ.POP", "mail")
    r.execute_command("DQ.RELEASE", "mail", job_id, lease, "DELAY", 3_600_000)


WORKED = {"added": "7", "delivered": "6", "finished": "4", "failed": "2", "dead": "1"}


def holds(board: Board, expected: dict[str, str], queue: str | None = "mail") -> None:
    eventually(lambda: expected.items() <= sums(board, queue).items(), 20)


def test_charts_count_what_the_server_did(boards: Callable[..., Board], r: redis.Redis):
    board = ready_board(boards)
    work(r)
    for queue in ("mail", None):
        holds(board, WORKED, queue)
        told = sums(board, queue)
        assert told["p99"].endswith("ms")
        eventually(lambda queue=queue: sums(board, queue)["oldest"] not in (UNKNOWN, "0 ms"), 20)
    for span in ("hour", "day", "week"):
        assert WORKED.items() <= sums(board, span=span).items()
        told = rows(board, name="mail", span=span)
        assert tuple(told[0]) == FIGURES and int(told[0]["ready"]) in range(1, 8)
        assert added_up(told) == WORKED

    # Made anew, a queue counts from 0: what was counted stays.
    r.delete("mail")
    eventually(lambda: board.get("/queue", name="mail").status == 404)
    work(r)
    holds(board, {name: str(2 * int(value)) for name, value in WORKED.items()})
    # Another reading of the same adds nothing.
    told = sums(board)
    eventually(lambda: board.metrics()['dq_added_total{queue="mail"}'] == 7)
    assert {name: sums(board)[name] for name in WORKED} == {name: told[name] for name in WORKED}


def test_charts_outlive_the_board(boards: Callable[..., Board], tmp_path: Path, r: redis.Redis):
    file = tmp_path / "history"
    board = ready_board(boards, "--history", str(file))
    work(r)
    holds(board, WORKED)
    board.stop()
    assert file.stat().st_mode & 0o777 == 0o600 and b"mail" in file.read_bytes()
    assert b"job-0" not in file.read_bytes()
    # What happens without a board, no chart tells.
    r.execute_command("DQ.ADD", "mail", "unseen", "x")
    board.start()
    holds(board, WORKED)
    holds(board, WORKED, None)
    r.execute_command("DQ.ADD", "mail", "seen", "x")
    holds(board, {**WORKED, "added": "8"})


def test_several_servers_have_charts_of_their_own_in_one_file(
    boards: Callable[..., Board], servers: Callable[..., Server], tmp_path: Path
):
    eu, us = servers(), servers()
    file = tmp_path / "history"
    redis = f"eu=redis://127.0.0.1:{eu.port} us=redis://127.0.0.1:{us.port}"
    board = boards("--history", str(file), redis=redis)
    eventually(lambda: "There are no queues yet" in board.get("/on/us/").text)
    with us.client(decode_responses=False) as r:
        work(r)

    def told(server: str) -> str:
        return board.get(f"/on/{server}/", span="week").text

    eventually(lambda: '">7</b>' in told("us"), 20)
    board.stop()
    board.start()
    assert '">7</b>' in told("us") and '">7</b>' not in told("eu")
    assert added_up(rows(board, "/on/us/figures", name="mail")) == WORKED


@pytest.mark.parametrize("what", ["damaged", "foreign", "later"])
def test_a_file_that_can_t_be_read_is_put_aside(
    boards: Callable[..., Board], tmp_path: Path, r: redis.Redis, what: str
):
    file = tmp_path / "history"
    board = ready_board(boards, "--history", str(file))
    work(r)
    holds(board, WORKED)
    board.stop()
    whole = file.read_bytes()
    bad = {
        "damaged": whole[:60] + bytes([whole[60] ^ 1]) + whole[61:],
        "foreign": b"REDIS0011 of somebody else",
        "later": file_of("x", chart(0, {}), []).replace(b"dqcharts\x01", b"dqcharts\x02"),
    }[what]
    if what == "later":
        bad = bad[:-4] + zlib.crc32(bad[:-4]).to_bytes(4, "little")
    file.write_bytes(bad)
    board.start()
    why = {
        "damaged": "it is damaged",
        "foreign": "it isn't a history of dq-board",
        "later": "it is of version 2",
    }[what]
    assert why in board.log()
    assert (tmp_path / "history.damaged").read_bytes() == bad
    assert sums(board)["added"] in (UNKNOWN, "0")
    board.stop()
    assert file.read_bytes().startswith(b"dqcharts\x01")


def test_a_file_that_can_t_be_written_is_said_at_once(boards: Callable[..., Board], tmp_path: Path):
    with pytest.raises(RuntimeError, match=r"--history .*/none/history: No such file"):
        boards("--history", str(tmp_path / "none" / "history"))


@pytest.fixture
def past(boards: Callable[..., Board], server: Server, tmp_path: Path, r: redis.Redis) -> Board:
    """A board that has looked at `mail` for a week: three jobs a minute, at night none, and for some
    hours it didn't look.
    """
    now = time.time()

    def slots(many: int, seconds: int) -> list:
        slots = []
        for at in range(many):
            jobs = round(seconds / 20 * (1 + math.sin(at / many * 12)))
            gap = many // 4 < at < many // 3
            slots.append(NOTHING if gap else (jobs, jobs, jobs, 0, 0, 1, 1_500, 700, 20_000))
        return slots

    spans = {"hour": slots(120, 30), "day": slots(288, 300), "week": slots(168, 3600)}
    one = chart(now, spans)
    file = tmp_path / "history"
    file.write_bytes(file_of(f"redis://127.0.0.1:{server.port}", one, [(b"mail", one)]))
    r.execute_command("DQ.ADD", "mail", "a", "x")
    board = ready_board(boards, "--history", str(file))
    assert "history" not in board.log()
    return board


def test_a_day_and_a_week_are_kept(past: Board):
    for span, many in (("hour", 120), ("day", 288), ("week", 168)):
        told = rows(past, name="mail", span=span)
        gaps = many // 3 - many // 4 - 1
        assert many - gaps <= len(told) <= many - gaps + 1, span
        assert told[10]["late p50"] == "0.7 ms" and told[10]["oldest ready"] == "1.5 s"
    assert len(rows(past, span="day")) > 250, "and of all queues"
    assert past.get("/").text.count("<polyline") == 2, "the small charts know it, too"


def spelled_ms(span: str) -> float:
    """`1 min 5 s` in milliseconds."""
    units = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000}
    return sum(float(many) * units[unit] for many, unit in re.findall(r"([\d.]+) (\w+)", span))


def test_no_chart_of_lateness_is_above_the_latest_job(boards: Callable[..., Board], r: redis.Redis):
    """A job that is 1.2 s late is in the step from 1 s to 10 s, of which nothing is known but that the
    latest was 1.2 s late.
    """
    board = ready_board(boards)
    r.execute_command("DQ.ADD", "mail", "late", "x")
    ready = time.time()
    eventually(lambda: time.time() > ready + 1.2)
    r.execute_command("DQ.POP", "mail")
    info = r.execute_command("DQ.INFO", "mail")
    latest = info[info.index(b"lateness-max-ms") + 1]
    assert latest >= 1_000
    for queue in ("mail", None):
        eventually(lambda queue=queue: sums(board, queue).get("p99", UNKNOWN) != UNKNOWN)
        told = [spelled_ms(sums(board, queue)[name]) for name in ("p50", "p99")]
        assert all(900 < ms <= latest for ms in told), (told, latest)


def point(browser: Browser, at: float) -> None:
    """The mouse on a chart: 0 is its left end, 1 its right one."""
    plot = browser.one(".plots .plot")
    offset = int((at - 0.5) * plot.size["width"])
    ActionChains(browser.driver).move_to_element_with_offset(plot, offset, 0).perform()


def shown(browser: Browser) -> dict[str, str]:
    """The time above the figures, and each figure by its name."""
    script = (
        "return [...document.querySelectorAll('.key li')]"
        ".map((item) => [item.childNodes[1].data.trim(), item.querySelector('b').textContent])"
    )
    return {"when": browser.text(".when"), **dict(browser.run(script))}


def jobs(figure: str) -> int:
    return int(figure.replace("\u202f", ""))


def test_a_reader_points_at_a_time(past: Board, browser: Browser, r: redis.Redis):
    browser.open(past.link("/queue", name="mail", span="day"))
    before = shown(browser)
    assert before["when"] == "sums and maxima of this day"
    place = browser.run("return document.querySelector('.columns').getBoundingClientRect().top")
    point(browser, 0.9)
    there = shown(browser)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", there["when"])
    assert jobs(there["added"]) < jobs(before["added"])
    crosses = browser.run(
        "return [...document.querySelectorAll('.cross')]"
        ".map((line) => getComputedStyle(line).visibility + line.getAttribute('x1'))"
    )
    assert len(crosses) == 4 and set(crosses) == {crosses[0]} and "visible" in crosses[0]
    # A live update changes the sums, and not what the reader points at.
    r.execute_command("DQ.ADD", "mail", "b", "x")
    browser.sees("2", ".tabs .is-ready .count")
    assert shown(browser) == there
    where = "return document.querySelector('.columns').getBoundingClientRect().top"
    assert browser.run(where) == place
    # In a gap nothing is known.
    point(browser, 0.3)
    assert shown(browser)["added"] == UNKNOWN
    ActionChains(browser.driver).move_to_element(browser.one("h1")).perform()
    after = shown(browser)
    assert after["when"] == before["when"] and jobs(after["added"]) > jobs(before["added"])


def test_the_arrow_keys_and_a_finger_do_the_same(past: Board, browser: Browser):
    browser.look(PHONE)
    browser.open(past.link("/queue", name="mail"))
    browser.run("document.querySelector('.plots').focus()")
    browser.press(Keys.ARROW_LEFT)
    newest = shown(browser)["when"]
    browser.press(Keys.ARROW_LEFT)
    assert shown(browser)["when"] < newest and len(newest) == 19
    spoken = browser.text("body > [role=status].unseen")
    assert shown(browser)["when"] in spoken and "p99 20 ms" in spoken
    browser.press(Keys.HOME, Keys.ARROW_LEFT)
    first = shown(browser)["when"]
    assert first < newest
    browser.press(Keys.ESCAPE)
    assert shown(browser)["when"] == "sums and maxima of this hour"

    box = browser.run(
        "const box = document.querySelectorAll('.plots .plot')[1].getBoundingClientRect();"
        "return [box.left + box.width / 2, box.top + 20]"
    )
    touch = {"type": "touchStart", "touchPoints": [{"x": box[0], "y": box[1]}]}
    browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", touch)
    browser.driver.execute_cdp_cmd(
        "Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []}
    )
    assert first < shown(browser)["when"] < newest


def times(browser: Browser) -> list[str]:
    """Of all four charts."""
    script = "return [...document.querySelectorAll('.time')].map((text) => text.textContent)"
    return [text for text in browser.run(script) if text]


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns", "Asia/Kolkata"])
def test_times_on_axes_are_whole_in_the_reader_s_zone(past: Board, browser: Browser, zone: str):
    browser.look(DESK, zone=zone)
    for span, pattern in (("hour", r"\d\d:(00|15|30|45)"), ("day", r"(00|06|12|18):00")):
        browser.open(past.link("/queue", name="mail", span=span))
        ticks = times(browser)
        assert len(ticks) >= 12 and all(re.fullmatch(pattern, tick) for tick in ticks), ticks
    browser.open(past.link("/queue", name="mail", span="week"))
    days = times(browser)
    assert len(set(days)) >= 6
    assert all(re.fullmatch(r"[A-Z][a-z]{2} \d+", day) for day in days), days


def test_who_may_not_read_a_queue_gets_no_figures(
    boards: Callable[..., Board], server: Server, r: redis.Redis
):
    rights = RIGHTS.replace("~*", "~open*").split()
    r.execute_command("ACL", "SETUSER", "board", "on", ">sEcReT", *rights)
    pipe(r, ("DQ.ADD", "secret", "a", "x"), ("DQ.ADD", "open", "a", "x"))
    board = boards(redis=f"redis://board:sEcReT@127.0.0.1:{server.port}")
    eventually(lambda: rows(board, name="open"), 20)
    page = board.get("/figures", name="secret").text
    assert "NOPERM" in page and "<table" not in page


def test_with_few_places_the_charts_of_others_are_not_there(
    boards: Callable[..., Board], r: redis.Redis
):
    board = ready_board(boards, "--history-queues", "1")
    r.execute_command("DQ.ADD", "first", "a", "x")
    eventually(lambda: sums(board, "first").get("added") == "1")
    r.execute_command("DQ.ADD", "second", "a", "x")
    eventually(lambda: sums(board, None)["added"] == "2")
    assert "Charts are kept of 1 other queues" in board.get("/queue", name="second").text


def test_charts_come_from_prometheus(
    prometheus: Prometheus, boards: Callable[..., Board], r: redis.Redis
):
    names = [b"mail", b'a"b\\c\nd']
    pipe(r, *[("DQ.ADD", name, "first", "x") for name in names])
    eventually(lambda: len(prometheus.query("dq_added_total >= 1")) == 2, 20)
    pipe(r, *[("DQ.ADD", name, f"job-{n}", "x") for name in names for n in range(20)])
    for name in names:
        for job in r.execute_command("DQ.POP", name, "COUNT", 10):
            r.execute_command("DQ.FINISH", name, job[0], job[2])
    seen = "count_over_time((dq_finished_total >= 10)[1m:1s]) >= 6"
    eventually(lambda: len(prometheus.query(seen)) == 2, 40)

    board = ready_board(boards, "--prometheus", prometheus.url)

    def figures(**fields: str | bytes) -> dict[str, float]:
        page = board.get("/queue" if fields else "/", **fields, span="day").text
        found = re.findall(r'</span>([a-z0-9 ]+) <b data-values="[^"]*">([^<]*)</b>', page)
        return {name: float(re.match(r"[\d.]*", value)[0] or "nan") for name, value in found}

    # Prometheus estimates: it takes what it has seen to go on until the edge of the window, and what
    # happens as one slot ends and the next begins is in both.
    for name in names:
        told = figures(name=name)
        assert 10 <= told["added"] <= 45 and 5 <= told["finished"] <= 23, told
        assert told["p99"] > 0 and told["failed"] == 0
    assert 20 <= figures()["added"] <= 90

    prometheus.stop()
    page = ready_board(boards, "--prometheus", prometheus.url).get("/queue", name="mail")
    assert page.status == 200 and "Prometheus can't be read" in page.text
    assert "Connection refused" in page.text and "job-19" in page.text


def test_what_prometheus_says_against_a_question_is_shown(
    prometheus: Prometheus, boards: Callable[..., Board]
):
    match = ("--prometheus-match", "no labels <b>")
    board = boards("--prometheus", prometheus.url, *match)
    page = board.get("/").text
    assert "Prometheus can't be read: it says:" in page and "parse error" in page
    assert "<b>" not in page
