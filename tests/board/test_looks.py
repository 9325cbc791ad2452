"""How pages look: contrasts, a phone's width, names for all."""

from collections.abc import Callable

import pytest
import redis

from board import Board
from browser import DESK, PHONE, Browser
from gallery import OPEN_ALL, hung, pages
from harness.server import eventually
from samples import kill_some, pipe

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
    return hung(boards, r)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(writable: Board, browser: Browser, scheme: str):
    browser.look(DESK, scheme)
    for page in pages(writable):
        browser.open(page)
        browser.run(OPEN_ALL)
        texts, bad = browser.run(CONTRASTS)
        assert texts > 5 and bad == [], page
        assert browser.run(NAMELESS) == [], page


@pytest.mark.parametrize("size", [PHONE, (320, 640), (1024, 700)], ids=str)
def test_nothing_is_wider_than_the_window(writable: Board, browser: Browser, size: tuple[int, int]):
    browser.look(size)
    for page in pages(writable):
        browser.open(page)
        browser.run(OPEN_ALL)
        wide = browser.run("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, page


# Where each button stands, and what is below them: under the line above, whose words may change.
PLACES = """
const own = ["form > button", "details > summary"].map((button) => `:is(.actions, .act) > ${button}`);
const { top } = document.querySelector(".actions").getBoundingClientRect();
return [...document.querySelectorAll(`${own}, .columns`)]
  .map((element) => element.getBoundingClientRect()).map(({ x, y }) => [x, y - top])
"""
# In one go: a live update in between may take away a mark, and with it a line.
CLICK = f"""
const places = () => {{ {PLACES} }};
const before = places();
arguments[0].click();
return [before, places()]
"""


@pytest.mark.parametrize("size", [PHONE, (1280, 800)], ids=str)
def test_no_button_moves_when_a_panel_opens(
    writable: Board, browser: Browser, size: tuple[int, int]
):
    browser.look(size)
    for page in (
        writable.link("/queue", name="mail", state="dead"),
        writable.link("/queue", name="groups", tab="groups"),
        writable.link("/job", queue="groups", id="b"),
    ):
        browser.open(page)
        # On a busy machine a page may be read a moment before its style is there.
        eventually(lambda: browser.run("return getComputedStyle(document.body).margin") == "0px")
        for summary in browser.all(":is(.actions, .act) summary"):
            before, places = browser.run(CLICK, summary)
            assert places == before
            (panel,) = browser.all("details[open] .panel")
            assert panel.is_displayed() and panel.rect["x"] >= 0
            assert panel.rect["x"] + panel.rect["width"] <= size[0]
            summary.click()
        # Escape does, too, and what was typed stays.
        summary = browser.one(".actions summary")
        summary.click()
        field = browser.one(".actions details[open] .panel :is(input:not([type=hidden]), button)")
        field.send_keys("\ue00c")
        assert not browser.all(".actions details[open]")
        assert browser.run("return document.activeElement.localName") == "summary"
        # One closes the other.
        for summary in browser.one(".actions").find_elements("css selector", "summary"):
            summary.click()
            assert len(browser.all(".actions details[open]")) == 1


def test_an_id_stays_on_one_line_beside_all_columns(board: Board, browser: Browser, r: redis.Redis):
    browser.look((1280, 800))
    pipe(
        r,
        *[("DQ.ADD", "mail", "*", "x" * 500, "GROUP", "customer:1234567") for _ in range(3)],
        ("DQ.ADD", "mail", "order-0123456789abcdef-" * 5, "x"),
    )
    browser.open(board.link("/queue", name="mail"))
    heights = browser.run(
        "return [...document.querySelectorAll('.list tbody tr')].map(tr => tr.getBoundingClientRect().height)"
    )
    assert len(heights) == 4 and len(set(heights)) == 1
    # What is cut off can be read whole.
    whole = "order-0123456789abcdef-" * 5
    assert whole in [a.get_attribute("title") for a in browser.all(".list .id a")]


def test_numbers_of_jobs_lead_to_the_jobs(board: Board, browser: Browser, r: redis.Redis):
    pipe(r, *[("DQ.ADD", "mail", f"job-{n}", "x") for n in range(5)], ("DQ.PAUSE", "empty"))
    kill_some(r, "mail", 3, "gone")
    browser.open(board.url)
    browser.sees("empty", "tbody")
    for state, many in [("dead", "3"), ("ready", "2")]:
        browser.open(board.url)
        # What was read just now is taken as it is.
        browser.sees(many, f"tr[data-key=mail] td.is-{state} a")
        link = browser.one(f"tr[data-key=mail] td.is-{state} a")
        line, color = (
            link.value_of_css_property(name) for name in ("text-decoration-line", "color")
        )
        assert line == "underline" and color == link.find_element(
            "xpath", ".."
        ).value_of_css_property("color")
        link.click()
        browser.sees(f"{state} {many}", ".tabs [aria-current]")
    browser.open(board.url)
    assert not browser.all("tr[data-key=empty] td a") and not browser.all("td.zero a")
    browser.one(".sums .is-dead a").click()
    browser.sees("dead", "th[aria-sort=descending]")


def test_words_are_explained_where_they_stand(writable: Board, browser: Browser):
    for path, words in [
        ({"state": "dead"}, "Out of attempts or of time, or buried by a worker"),
        ({"state": "reserved"}, "Workers have them, each for the time of a lease."),
        ({"state": "ready"}, "They are due, and wait for a worker."),
    ]:
        browser.open(writable.link("/queue", name="mail", **path))
        browser.sees(words, ".jobs .note")
    for page in pages(writable)[:4]:
        browser.open(page)
        browser.one("#words summary").click()
        browser.sees("Kicking makes a dead job ready again", "#words")
    browser.open(writable.link("/queue", name="mail", state="dead"))
    browser.one("#kick summary").click()
    browser.sees("Kicking makes a dead job ready again", "#kick")
