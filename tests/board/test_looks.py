"""How pages look: contrasts, a phone's width, names for all; and the pictures of docs/board.md."""

import json
import math
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis

from board import Board
from browser import DESK, PHONE, Browser
from harness.paths import TARGET
from harness.server import Server, eventually
from samples import HOUR, every_state, flow, kill_some, pipe

# WCAG 2.2, 1.4.3: contrast of each text with what is behind it, at least 4.5, for large text 3.
CONTRASTS = """
const parse = (color) => color.match(/[\\d.]+/g).map(Number);
const luminance = ([r, g, b]) => [r, g, b]
  .map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = parse(getComputedStyle(at).backgroundColor);
    if (color.length < 4 || color[3] > 0) return color;
  }
};
const bad = [];
let texts = 0;
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!own || !element.checkVisibility() || element.closest(".unseen, .skip")) continue;
  texts += 1;
  const style = getComputedStyle(element);
  const [a, b] = [luminance(parse(style.color)), luminance(behind(element))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const size = parseFloat(style.fontSize);
  const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  if (ratio < (isLarge ? 3 : 4.5)) bad.push(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
}
return [texts, bad];
"""

# What a screen reader would have no word for, and ids that stand twice.
NAMELESS = """
const named = (element) => element.textContent.trim() || element.getAttribute("aria-label")
  || element.labels?.length || element.querySelector("img[alt]:not([alt=''])");
const ids = [...document.querySelectorAll("[id]")].map((element) => element.getAttribute("id"));
return [
  ...[...document.querySelectorAll("a, button, summary, input:not([type=hidden])")]
    .concat([...document.querySelectorAll("select, textarea, svg[role]")])
    .filter((element) => element.checkVisibility() && !named(element)).map((element) => element.outerHTML),
  ...ids.filter((id, at) => ids.indexOf(id) !== at),
  ...(document.querySelectorAll("h1").length === 1 ? [] : ["not one h1"]),
];
"""


@pytest.fixture
def writable(boards: Callable[..., Board], r: redis.Redis) -> Board:
    every_state(r)
    pipe(
        r,
        ("DQ.PAUSE", "paused", "FOR", HOUR),
        ("DQ.ALTER", "full", "MAXJOBS", 1),
        ("DQ.ADD", "full", "a", b"\xff binary"),
        ("DQ.ALTER", "mail", "CONCURRENCY", 3, "RATE", 10, 1000, "BURST", 5),
        (
            "DQ.ADD",
            "mail",
            "nightly",
            "x",
            "CRON",
            "30 2 * * 1-5",
            "TZ",
            "Europe/Berlin",
            "RUNS",
            99,
        ),
        ("DQ.ADD", "x" * 300, "y" * 300, "z" * 3000, "GROUP", "g" * 300),
        ("DQ.ALTER", "groups", "GROUPCONCURRENCY", 1, "GROUPRATE", 5, 1000, "BURST", 2),
        ("DQ.ADD", "groups", "a", "x", "GROUP", "customer:7"),
        ("DQ.ADD", "groups", "b", "x", "GROUP", "customer:7"),
        ("DQ.POP", "groups"),
        ("DQ.ADD", "groups", "c", "x", "GROUP", "g" * 300),
        ("DQ.PAUSE", "groups", "GROUP", "g" * 300, "FOR", HOUR),
        ("DQ.ADD", "groups", "d", "x", "GROUP", "customer:8"),
        ("SET", "out", "no stream"),
        ("CONFIG", "SET", "maxmemory-policy", "allkeys-lru"),
    )
    flow(r)
    pipe(
        r,
        ("DQ.ALTER", "flow", "SINK", "out", "MAXLEN", 1000),
        ("DQ.ADD", "flow", "stays", "x"),
    )
    board = boards("--writable")
    eventually(lambda: ">paused</a>" in board.get("/").text)
    return board


def pages(board: Board) -> list[str]:
    states = ("ready", "delayed", "reserved", "dead", "done", "held")
    return [
        board.url,
        board.link("/", find="nothing"),
        *(board.link("/queue", name="mail", state=state) for state in states),
        *(board.link("/job", queue="mail", id=state) for state in states),
        board.link("/queue", name="mail", tab="schedules"),
        board.link("/queue", name="mail", match="*e*"),
        board.link("/queue", name="mail", match="none"),
        board.link("/job", queue="mail", id="nightly"),
        *(board.link("/queue", name="flow", state=state) for state in ("done", "held")),
        *(board.link("/job", queue="flow", id=job_id) for job_id in ("pack", "ship")),
        board.link("/queue", name="groups", tab="groups"),
        board.link("/queue", name="groups", state="ready"),
        board.link("/queue", name="groups", match="*"),
        board.link("/job", queue="groups", id="b"),
        board.link("/queue", name="none", tab="groups"),
        board.link("/queue", name="paused"),
        board.link("/queue", name="x" * 300),
        board.link("/job", queue="x" * 300, id="y" * 300),
        board.link("/job", queue="full", id="a", body="text"),
        board.link("/purge", queue="mail", state="dead"),
        board.link("/queue", name="none"),
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(writable: Board, browser: Browser, scheme: str):
    browser.look(DESK, scheme)
    for page in pages(writable):
        browser.open(page)
        browser.run(
            "for (const details of document.querySelectorAll('details')) details.open = true"
        )
        texts, bad = browser.run(CONTRASTS)
        assert texts > 5 and bad == [], page
        assert browser.run(NAMELESS) == [], page


@pytest.mark.parametrize("size", [PHONE, (320, 640), (1024, 700)], ids=str)
def test_nothing_is_wider_than_the_window(writable: Board, browser: Browser, size: tuple[int, int]):
    browser.look(size)
    for page in pages(writable):
        browser.open(page)
        browser.run(
            "for (const details of document.querySelectorAll('details')) details.open = true"
        )
        wide = browser.run("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, page


# A picture of few queues needs no more.
LOW = (DESK[0], 360)
LOW_QUEUE = (DESK[0], 500)


def traffic(server: Server, until: float) -> None:
    """Mail that comes and goes, with a rush in the middle."""
    begin = time.monotonic()
    with server.client(decode_responses=False) as r:
        while time.monotonic() < until:
            is_rush = 0.4 < (time.monotonic() - begin) / (until - begin) < 0.6
            many = random.randint(2, 9) * (4 if is_rush else 1)
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
            for n in range(700)
        ],
        *[
            ("DQ.ADD", "thumbnails", f"img:{n}", random.randbytes(400), "KEEP", HOUR)
            for n in range(300)
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
        ("502 Bad Gateway", 40),
        ("no such mailbox", 25),
        ("timeout after 30 s", 20),
    ):
        kill_some(r, "webhooks", count, reason)
    r.execute_command("DQ.POP", "webhooks", "COUNT", 3)
    r.execute_command("DQ.ALTER", "webhooks", "CONCURRENCY", 20, "RATE", 5, 1000, "BURST", 2)


@pytest.mark.timeout(600)
def test_screenshots(
    boards: Callable[..., Board], browser: Browser, server: Server, r: redis.Redis
):
    """With DQ_SCREENSHOTS they go there, and show some minutes; else it is only seen that it can be
    done.
    """
    wanted = os.environ.get("DQ_SCREENSHOTS")
    folder = Path(wanted) if wanted else TARGET / "screenshots"
    fill(r)
    board = boards("--writable")
    executor = ThreadPoolExecutor()
    busy = executor.submit(traffic, server, time.monotonic() + (360 if wanted else 12))
    time.sleep(330 if wanted else 2)
    for name, path, size, scheme in [
        ("overview", "/", LOW, "light"),
        ("overview-dark", "/", LOW, "dark"),
        ("queue", "/queue?name=webhooks&state=dead", DESK, "light"),
        ("job", "/job?queue=orders&id=order:1017", DESK, "dark"),
        ("schedules", "/queue?name=reports&tab=schedules", LOW_QUEUE, "light"),
        ("groups", "/queue?name=sms&tab=groups", LOW_QUEUE, "light"),
        ("phone", "/queue?name=webhooks&state=dead", PHONE, "dark"),
    ]:
        browser.look(size, scheme)
        browser.open(board.url + path)
        time.sleep(2.5)
        browser.screenshot(folder / f"{name}.png")
        assert (folder / f"{name}.png").stat().st_size > 10_000
    busy.result()
