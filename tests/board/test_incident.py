"""An incident from alert to cure: 10,000 of a million jobs are dead, of six reasons. It is played with a
mouse, on a phone and by keyboard alone, and axe-core looks at each page on the way.
"""

import base64
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

import outage
from barriers import violations
from board import Board
from browser import DESK, PHONE, Browser
from hands import Finger, Keyboard, Mouse
from harness.paths import ROOT
from harness.server import KNOWN, Server, eventually
from outage import DEAD, DIED, HOPELESS, QUEUE, RETRYABLE, TRACE, WAITING
from samples import dead, pipe

THIN = "\u202f"
# How each of the six is shown, the most first.
RETRIED = next(iter(DIED))
# Clicks, touches or keys from the first page to the page of actions. By hand it takes under a minute.
STROKES_MAX = {Mouse: 18, Finger: 26, Keyboard: 90}


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return outage.dump(tmp_path_factory.mktemp("outage"))


@pytest.fixture
def server(dump: bytes, tmp_path: Path) -> Iterator[Server]:
    directory = tmp_path / "server"
    directory.mkdir()
    server = Server(KNOWN["redis-7.0"], directory, files={"dump.rdb": dump})
    yield server
    server.kill9()


def spell(many: int) -> str:
    return f"{many:,}".replace(",", THIN)


def reasons_shown(browser: Browser) -> list[list[str]]:
    return browser.run(
        """
        return [...document.querySelectorAll(".reasons li")]
          .map((item) => [item.querySelector("a").innerText, item.querySelector(".count").innerText]);
        """
    )


class Play:
    """One reader, and what the reader sees on the way."""

    def __init__(self, hand: Mouse, browser: Browser, r: redis.Redis, downloads: Path):
        self.hand = hand
        self.browser = browser
        self.r = r
        self.downloads = downloads
        browser.driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)}
        )

    def look(self) -> None:
        """No barrier, and nothing beside the window."""
        if isinstance(self.hand, Keyboard):
            return
        assert violations(self.browser) == []
        wide = self.browser.run("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0

    def to_the_reasons(self) -> None:
        """From all queues, by the one that is in trouble and what its first line says."""
        self.browser.sees(spell(DEAD), "td.is-dead:not(.zero)")
        in_trouble = self.browser.all("tbody tr:has(td.is-dead:not(.zero))")
        assert [row.get_attribute("data-key") for row in in_trouble] == [QUEUE]
        self.look()
        self.hand.use(f"tr[data-key={QUEUE}] .name a", "j")
        self.browser.sees(f"{spell(DEAD)} jobs are dead.", "#why")
        self.look()
        self.hand.use("#why a")
        self.browser.sees(f"{spell(DEAD)} dead looked through.", ".deaths", 60)
        assert reasons_shown(self.browser) == [[why, spell(many)] for why, many in DIED.items()]
        self.look()

    def to_a_job_and_back(self) -> None:
        self.hand.use(".reasons li:nth-child(1) a", "j")
        self.browser.sees(RETRYABLE, ".chosen")
        self.browser.sees(f"All {spell(DIED[RETRIED])}", "#all")
        self.look()
        self.hand.use("tbody tr:nth-child(1) .id a", "j")
        self.browser.sees("Handed out 2 times of at most 2", ".history")
        self.browser.sees("timed out after 0 ms" + TRACE, ".jobs pre")
        self.look()
        self.hand.back()
        self.browser.sees(RETRYABLE, ".chosen")

    def retry_ten(self) -> list[bytes]:
        boxes = self.browser.all("input.tick")[:10]
        ids = self.browser.run(
            "return [...document.querySelectorAll('tbody .id a')].slice(0, 10).map(a => a.innerText)"
        )
        self.hand.tick(boxes)
        self.browser.sees("10 ticked", "#ticked")
        assert [box.is_selected() for box in self.browser.all("input.tick")[:11]] == [
            *[True] * 10,
            False,
        ]
        self.hand.use(".bar button[value=kick]", "s")
        self.browser.sees(f"10 ticked dead jobs of {QUEUE} will be kicked", ".lead")
        self.look()
        self.hand.use("#confirm button")
        self.browser.sees("Kicked 10 dead jobs: ready now.", ".banner")
        return [job_id.encode() for job_id in ids]

    def retry_all(self, many: int) -> None:
        self.browser.sees("All that fit", "#all")
        self.hand.use(".bar a.all-kick", "s")
        self.browser.sees(f"{spell(many)} dead jobs of {QUEUE} will be kicked", ".lead", 60)
        self.counted()
        self.look()
        self.hand.use("#confirm button")
        self.browser.sees(f"Kicked {spell(many)} dead jobs whose reason is", ".banner", 60)

    def counted(self) -> None:
        eventually(lambda: "At least" not in self.browser.text(".lead"), 60)

    def delete_the_hopeless(self, place: int) -> list[dict[str, object]]:
        """A file of them first."""
        self.hand.use(f".reasons li:nth-child({place}) a", *["j"] * place)
        self.browser.sees(HOPELESS, ".chosen")
        self.hand.use(".bar a.all-download", "s")
        file = self.downloads / f"dead-{QUEUE}.ndjson"
        eventually(file.exists, 60)
        self.hand.use(".bar a.all-del", "s")
        many = DIED[HOPELESS]
        self.browser.sees(f"{spell(many)} dead jobs of {QUEUE} will be deleted", ".lead", 60)
        self.counted()
        self.look()
        self.hand.use("#confirm button")
        self.browser.sees(f"Deleted {spell(many)} dead jobs whose reason is", ".banner", 60)
        return [json.loads(line) for line in file.read_text().splitlines()]


def died(board: Board) -> dict[str, str]:
    """How many jobs of each queue have died."""
    password = {"authorization": f"Basic {base64.b64encode(b'ann:see').decode()}"}
    told = board.get("/metrics", headers=password).text
    return dict(re.findall(r'^dq_dead_total{queue="(\w+)"} (\d+)', told, re.MULTILINE))


def patterns_of_the_dead(r: redis.Redis) -> Counter[str]:
    """What is left, as the server tells it."""
    folded = Counter[str]()
    for job in dead(r, QUEUE):
        reason = job[b"reason"].decode()
        folded[next(why for why in DIED if matches(why, reason))] += 1
    return folded


def matches(why: str, reason: str) -> bool:
    parts = [re.escape(part) for part in why.split("#")]
    return bool(re.fullmatch(".+".join(parts), " ".join(reason.split())))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("hand_of", [Mouse, Finger, Keyboard], ids=["mouse", "phone", "keyboard"])
def test_an_incident_from_alert_to_cure(
    boards: Callable[..., Board],
    browser: Browser,
    r: redis.Redis,
    tmp_path: Path,
    hand_of: type[Mouse],
    capsys: pytest.CaptureFixture[str],
):
    board = boards("--writable", "--auth", "ann:see", "--actions-log", str(tmp_path / "actions"))
    alert(board)
    browser.look(PHONE if hand_of is Finger else DESK, "dark" if hand_of is Finger else "light")
    hand = hand_of(browser)
    play = Play(hand, browser, r, tmp_path)
    began = time.monotonic()
    browser.open(board.url.replace("//", "//ann:see@"))
    play.to_the_reasons()
    play.to_a_job_and_back()

    # The cause was mended: ten as a trial, then all of that reason.
    trial = play.retry_ten()
    jobs = r.execute_command("DQ.POP", QUEUE, "COUNT", 100)
    assert sorted(job[0] for job in jobs) == sorted(trial)
    pipe(r, *[("DQ.FINISH", QUEUE, job[0], job[2]) for job in jobs])
    left = DIED[RETRIED] - 10
    play.retry_all(left)
    assert r.execute_command("DQ.LEN", QUEUE, "STATE", "ready") == left

    # Those that can't succeed are deleted. What they were is kept in a file.
    browser.sees(f"{spell(DEAD - DIED[RETRIED])} dead looked through.", ".deaths", 60)
    lines = play.delete_the_hopeless(place=2)
    assert len({line["id"] for line in lines}) == DIED[HOPELESS]
    assert all(matches(HOPELESS, str(line["reason"])) for line in lines)

    # All others are as they were.
    others = {why: many for why, many in DIED.items() if why not in (RETRIED, HOPELESS)}
    browser.sees(f"{spell(sum(others.values()))} dead looked through.", ".deaths", 60)
    assert reasons_shown(browser) == [[why, spell(many)] for why, many in others.items()]
    assert patterns_of_the_dead(r) == others
    for queue, many in WAITING.items():
        assert r.execute_command("DQ.LEN", queue, "STATE", "delayed") == many
    assert r.execute_command("DQ.LEN", QUEUE) == WAITING[QUEUE] + left + sum(others.values())

    hand.use("header a[href=actions]")
    browser.sees(f"Deleted {spell(DIED[HOPELESS])} dead jobs", "tbody tr:nth-child(1)")
    browser.sees("ann", "tbody tr:nth-child(1)")
    play.look()
    took_s = time.monotonic() - began
    logged = [json.loads(line) for line in (tmp_path / "actions").read_text().splitlines()]
    assert [(line["user"], line["verb"], line["queue"], line["ok"]) for line in logged] == [
        ("ann", verb, QUEUE, True) for verb in ("kick", "kick", "del")
    ]
    with capsys.disabled():
        print(
            f"\n{hand_of.__name__}: {hand.strokes} strokes, {took_s:.1f} s with all that is checked"
        )
    assert hand.strokes <= STROKES_MAX[hand_of]


def alert(board: Board) -> None:
    """DqDeadGrowing is about this queue alone, and what it links to says where to look."""
    eventually(lambda: died(board).keys() == WAITING.keys(), 30)
    assert {queue for queue, many in died(board).items() if int(many) > 10} == {QUEUE}
    page = (ROOT / "docs" / "alerts.md").read_text().split("\n## DqDeadGrowing\n")[1]
    assert "(board/dead.md)" in page.split("\n## ")[0]
