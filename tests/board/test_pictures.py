"""The pictures of docs/board: `make screenshots` makes them again."""

import json
import math
import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis
from selenium.webdriver.common.action_chains import ActionChains

from board import Board
from browser import DESK, PHONE, Browser
from harness.paths import TARGET
from harness.server import Server, eventually
from history import SPANS, Slot, chart, file_of
from samples import HOUR, flow, kill_some, pipe

# A picture of few queues needs no more.
LOW = (DESK[0], 560)
# Jobs a minute of each queue that has a past, and how many of a thousand attempts fail.
BUSY = {"mail": (220, 2), "webhooks": (60, 120), "thumbnails": (25, 10), "orders": (9, 5)}


def traffic(server: Server, done: list[bool]) -> None:
    """Mail that comes and goes."""
    with server.client(decode_responses=False) as r:
        while not done:
            many = random.randint(2, 9)
            body = json.dumps({"to": "ann@example.org", "template": "receipt", "order": 1000})
            pipe(
                r,
                *[
                    ("DQ.ADD", "mail", "*", body, "DELAY", random.randint(0, 3000))
                    for _ in range(many)
                ],
            )
            for queue, count in (("mail", 12), ("webhooks", 2), ("thumbnails", 1)):
                for job in r.execute_command("DQ.POP", queue, "COUNT", count) or []:
                    r.execute_command("DQ.FINISH", queue, job[0], job[2])
            time.sleep(0.4)


def fill(r: redis.Redis) -> None:
    flow(r, "parcels")
    order = {"order": 1017, "total": 42.50, "items": [{"sku": "A-17", "n": 2}], "note": "Grüße"}
    body = json.dumps(order, ensure_ascii=False)
    pipe(
        r,
        *[
            ("DQ.ADD", "reports", name, "x", "CRON", cron, "TZ", "Europe/Berlin")
            for name, cron in [
                ("nightly", "30 2 * * *"),
                ("weekly", "0 7 * * MON"),
                ("monthly", "0 6 1 * *"),
            ]
        ],
        (
            "DQ.ADD",
            "reports",
            "heartbeat",
            "x",
            "EVERY",
            15_000,
            "DELAY",
            0,
            "ATTEMPTS",
            1,
            "PRIORITY",
            0,
        ),
        *[
            ("DQ.ADD", "orders", f"order:{1000 + n}", body, "DELAY", 60_000 * n)
            for n in range(11, 240)
        ],
        *[
            ("DQ.ADD", "webhooks", f"hook:{n}", f"POST /paid/{n}", "ATTEMPTS", 1)
            for n in range(120)
        ],
        *[
            ("DQ.ADD", "thumbnails", f"img:{n}", random.randbytes(400), "KEEP", HOUR)
            for n in range(12)
        ],
        *[("DQ.ADD", "reports", f"report:{n}", "monthly") for n in range(12)],
        (
            "DQ.ALTER",
            "webhooks",
            "TTR",
            30_000,
            "ATTEMPTS",
            12,
            "BACKOFF",
            1000,
            600_000,
            "DEADKEEP",
            7 * 24 * HOUR,
        ),
    )
    # More by day than by night.
    waits = [
        HOUR * 24 * (n / 400) + HOUR * 3 * math.sin(n / 400 * 2 * math.pi) for n in range(1, 400)
    ]
    pipe(
        r,
        *[
            ("DQ.ADD", "webhooks", f"later:{n}", "POST /later", "DELAY", int(ms))
            for n, ms in enumerate(waits)
        ],
    )
    shops = {
        "bakery": 9,
        "bookshop": 4,
        "cinema": 40,
        "florist": 1,
        "harbour-taxi": 17,
        "pharmacy": 2,
    }
    pipe(
        r,
        ("DQ.ALTER", "sms", "GROUPCONCURRENCY", 2, "TTR", HOUR),
        *[
            ("DQ.ADD", "sms", "*", f"Your order from the {shop} is ready", "GROUP", f"shop:{shop}")
            for shop, many in shops.items()
            for _ in range(many)
        ],
        *[("DQ.ADD", "sms", "*", "x", "GROUP", "shop:cinema", "DELAY", HOUR) for _ in range(12)],
        ("DQ.PAUSE", "sms", "GROUP", "shop:harbour-taxi", "FOR", 3 * HOUR),
        ("DQ.POP", "sms", "COUNT", 8),
        ("DQ.ALTER", "sms", "GROUPRATE", 1, 1000),
    )
    (beat,) = r.execute_command("DQ.POP", "reports")
    r.execute_command("DQ.RELEASE", "reports", beat[0], beat[2], "REASON", "no route to host")
    r.execute_command("DQ.PAUSE", "reports", "FOR", 2 * HOUR)
    for reason, count in (
        ("HTTP 502 Bad Gateway", 40),
        ("no such mailbox", 25),
        ("timeout after 30 s", 20),
    ):
        kill_some(r, "webhooks", count, reason)
    r.execute_command("DQ.POP", "webhooks", "COUNT", 3)
    r.execute_command("DQ.ALTER", "webhooks", "CONCURRENCY", 20, "RATE", 5, 1000, "BURST", 2)


def past() -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """What dq-board saw in a week: more by day than by night, and a rush half an hour ago."""
    random.seed(17)
    now = time.time()
    queues = {
        name: {span: slots(*busy, many, s) for span, many, s in SPANS}
        for name, busy in BUSY.items()
    }
    every = {
        span: [
            together(slots)
            for slots in zip(*(spans[span] for spans in queues.values()), strict=True)
        ]
        for span, _, _ in SPANS
    }
    return chart(now, every), [(name.encode(), chart(now, spans)) for name, spans in queues.items()]


def slots(per_minute: int, failing: int, many: int, seconds: int) -> list[Slot]:
    told: list[Slot] = []
    for at in range(many):
        ago_s = (many - at) * seconds
        rush = 5 * math.exp(-(((ago_s - 1_700) / 350) ** 2))
        day = 1 + 0.7 * math.sin(ago_s / 86_400 * 2 * math.pi)
        jobs = round(per_minute * seconds / 60 * (day + rush) * random.uniform(0.85, 1.15))
        failed = round(jobs * failing / 1_000 * random.uniform(0.3, 1.7))
        wait_us = int((2_000 + 400_000 * rush / 5) * random.uniform(0.8, 1.2))
        died = failed // 12
        told.append(
            (
                jobs,
                jobs,
                jobs - failed,
                failed,
                died,
                int(jobs * rush),
                wait_us // 400,
                wait_us // 9,
                wait_us,
            )
        )
    return told


def together(slots: tuple[Slot, ...]) -> Slot:
    """Sums of what is counted, the most of what is waited."""
    columns = list(zip(*slots, strict=True))
    return [*map(sum, columns[:6]), *map(max, columns[6:])]


@pytest.fixture
def busy(
    boards: Callable[..., Board], server: Server, r: redis.Redis, tmp_path: Path
) -> Iterator[Board]:
    """A board with a past, of a server on which much happens."""
    fill(r)
    every, queues = past()
    history = tmp_path / "history"
    history.write_bytes(file_of(f"redis://127.0.0.1:{server.port}", every, queues))
    board = boards("--writable", "--history", str(history))
    assert "history" not in board.log()
    with ThreadPoolExecutor() as executor:
        done = []
        traffic_ends = executor.submit(traffic, server, done)
        yield board
        done.append(True)
        traffic_ends.result()


PICTURES = [
    ("overview", "/", LOW, "light"),
    ("overview-dark", "/", LOW, "dark"),
    ("queue", "/queue?name=webhooks&state=dead", (DESK[0], 960), "light"),
    ("job", "/job?queue=parcels&id=ship", (DESK[0], 600), "dark"),
    ("schedules", "/queue?name=reports&tab=schedules", (DESK[0], 360), "light"),
    ("schedules-all", "/schedules", (DESK[0], 470), "light"),
    ("groups", "/queue?name=sms&tab=groups", (DESK[0], 420), "light"),
    (
        "limits",
        "/limits?queue=webhooks&concurrency=2&rate=2&per=1&per-unit=s&burst=4&attempts=6",
        (DESK[0], 520),
        "light",
    ),
    ("server", "/server", (DESK[0], 760), "light"),
    ("phone", "/queue?name=webhooks&state=dead", PHONE, "dark"),
]
# These show what is below the charts.
BELOW_CHARTS = {"schedules", "groups"}


@pytest.mark.timeout(300)
def test_screenshots(busy: Board, browser: Browser):
    """With DQ_SCREENSHOTS they go there; else it is only seen that it can be done."""
    wanted = os.environ.get("DQ_SCREENSHOTS")
    folder = Path(wanted) if wanted else TARGET / "screenshots"
    eventually(lambda: ">webhooks</a>" in busy.get("/").text, 20)
    time.sleep(30 if wanted else 0)
    for name, path, size, scheme in PICTURES:
        browser.look(size, scheme)
        browser.open(busy.url + path)
        # Until what takes its time, as counting reasons, is there.
        time.sleep(3 if wanted else 0)
        if name in BELOW_CHARTS:
            browser.run("document.querySelector('.tabs').scrollIntoView()")
        take(browser, folder / f"{name}.png")
    browser.look((DESK[0], 380))
    browser.open(busy.link("/", span="day"))
    plot = browser.one(".plots .plot")
    ActionChains(browser.driver).move_to_element(plot).perform()
    browser.one(".plots.pointed")
    take(browser, folder / "charts.png")


def take(browser: Browser, picture: Path) -> None:
    browser.screenshot(picture)
    assert picture.stat().st_size > 10_000
