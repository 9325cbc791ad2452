"""Names, ids, bodies and reasons may be any bytes: pages show them as text, and they do nothing."""

import re

import pytest
import redis

from board import Board
from browser import Browser
from harness.server import eventually
from samples import pipe

# Each would call `alert` or change the page, if it were anything but text somewhere.
HOSTILE = [
    b"<script>alert(1)</script>",
    b"<img src=x onerror=alert(1)>",
    b'"><svg onload=alert(1)>',
    b"' autofocus onfocus=alert(1) x='",
    b"</title><script>alert(1)</script>",
    b"</pre></textarea><iframe srcdoc='<script>alert(1)</script>'>",
    b"javascript:alert(1)",
    b"&lt;script&gt;alert(1)&lt;/script&gt;",
    b"{{7*7}}${7*7}<%= 7*7 %>",
    b"<!-- --><style>*{display:none}</style>",
    b"<base href=//evil.example><form action=//evil.example><input type=submit>",
    b'data: x\n\nevent: page\ndata: ["x","<script>alert(1)</script>"]\n\n',
    b"\r\nSet-Cookie: a=b\r\n\r\n<script>alert(1)</script>",
    b"\xff\xfe<script>alert(1)</script>",
    b"\x00<script>alert(1)</script>",
    "\u202e\u2066<script>alert(1)</script>".encode(),
    "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e\u2028".encode(),
    b"../../etc/passwd",
    b"..",
    b"%2e%2e%2f%00",
    b"?&=#+ ;",
    b"",
]


def shown(raw: bytes) -> str:
    """As the pages spell it."""
    special = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    unseen = "\u202e\u2066\u2028\x00"
    text = ""
    for char in raw.decode(errors="surrogateescape"):
        if char in unseen or "\udc80" <= char <= "\udcff":
            text += "".join(f"\\x{byte:02x}" for byte in char.encode(errors="surrogateescape"))
        else:
            text += special.get(char, char)
    return text


def on_a_line(raw: bytes) -> str:
    """As lists show what a client wrote."""
    ended = re.sub(rb"\r\n|\r|\n", " ⏎ ".encode(), raw)
    return re.sub(" +", " ", shown(ended).replace("\\\\", "\\")).strip()


@pytest.fixture
def watched(browser: Browser) -> Browser:
    """A browser in which the first alert fails the test, as does anything that isn't ours."""
    script = "window.alert = () => { document.documentElement.dataset.hit = 'alert' }"
    browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    return browser


def is_unharmed(browser: Browser) -> None:
    assert browser.run("return document.documentElement.dataset.hit") is None
    assert (
        browser.run(
            "return document.querySelectorAll('iframe, base, style, main img, main script').length"
        )
        == 0
    )
    assert browser.run("return getComputedStyle(document.body).display") == "block"


@pytest.mark.parametrize("raw", HOSTILE, ids=lambda raw: repr(raw)[:40])
def test_hostile_names_bodies_and_reasons_are_shown_as_text(
    board: Board, watched: Browser, r: redis.Redis, raw: bytes
):
    job_id = raw or b"empty"
    pipe(
        r,
        ("DQ.ADD", raw, job_id, raw, "PRIORITY", 0, "GROUP", job_id),
        ("DQ.POP", raw),
        ("DQ.BURY", raw, job_id, "*", "REASON", raw),
    )
    watched.open(board.url)
    watched.sees(shown(raw) or "(empty name)", "tbody th")
    is_unharmed(watched)

    watched.one("tbody th a").click()
    watched.sees(shown(raw) or "(empty name)", "h1")
    assert watched.text("tbody .reason") == on_a_line(raw)
    is_unharmed(watched)

    watched.one("tbody th a").click()
    watched.sees(shown(job_id), "h1")
    is_unharmed(watched)
    for view in ("text", "json", "hex"):
        watched.open(board.link("/job", queue=raw, id=job_id, body=view))
        watched.sees(f"{len(raw)} bytes")
        is_unharmed(watched)

    watched.open(board.link("/queue", name=raw, tab="groups"))
    watched.sees(shown(job_id).strip(), "tbody th")
    is_unharmed(watched)

    # The stream brings the same, into a page that is open.
    watched.open(board.link("/queue", name=raw, state="ready"))
    r.execute_command("DQ.ADD", raw, job_id, raw, "REPLACE")
    eventually(lambda: len(watched.all("tbody tr")) == 1)
    is_unharmed(watched)
    assert board.get("/body", queue=raw, id=job_id).body == raw


def test_hostile_edges_notes_results_and_sinks_are_shown_as_text(
    board: Board, watched: Browser, r: redis.Redis
):
    ids = [raw for raw in HOSTILE if raw]
    for raw in ids:
        pipe(r, ("DQ.ADD", "flow", raw, "x", "KEEP", 3_600_000), ("DQ.POP", "flow"))
        r.execute_command("DQ.TOUCH", "flow", raw, "*", "NOTE", raw)
        r.execute_command("DQ.DONE", "flow", raw, "*", "RESULT", raw)
    r.execute_command("DQ.ADD", "flow", "all", "x", "AFTER", len(ids), *ids)
    for place in (0, 20):
        watched.open(board.link("/job", queue="flow", id="all", **{"from": place}))
        for raw in ids[place : place + 20]:
            watched.sees(shown(raw).strip(), ".deps")
        is_unharmed(watched)
    watched.open(board.link("/queue", name="flow", state="done"))
    watched.sees(shown(ids[0]), ".told")
    is_unharmed(watched)
    for raw in ids:
        r.execute_command("DQ.ALTER", "flow", "SINK", raw)
        watched.open(board.link("/queue", name="flow"))
        watched.sees(shown(raw).strip(), "aside .sink")
        is_unharmed(watched)
        watched.open(board.link("/job", queue="flow", id=raw))
        # What has lines of its own is shown whole.
        watched.sees("Note of its worker") if b"\n" in raw else watched.sees("It says: ", ".lead")
        is_unharmed(watched)
        assert board.get("/body", queue="flow", id=raw, of="result").body == raw


def test_a_hostile_query_is_shown_as_text(board: Board, watched: Browser, r: redis.Redis):
    r.execute_command("DQ.ADD", "mail", "a", "x")
    for path, fields in [
        ("/", {"find": "<script>alert(1)</script>"}),
        ("/queue", {"name": "<script>alert(1)</script>"}),
        ("/job", {"queue": "<script>alert(1)</script>", "id": "<script>alert(1)</script>"}),
        ("/queue", {"name": "mail", "match": "*<script>alert(1)</script>"}),
        ("/queue", {"name": "mail", "id": "*<script>alert(1)</script>"}),
    ]:
        watched.open(board.link(path, **fields))
        watched.sees("<script>alert(1)</script>")
        is_unharmed(watched)


def test_the_content_security_policy_blocks_scripts_and_images(
    board: Board, browser: Browser, r: redis.Redis
):
    r.execute_command("DQ.ADD", "mail", "a", "x")
    browser.open(board.url)
    blocked = browser.run(
        """
        const script = document.createElement("script");
        const image = Object.assign(document.createElement("img"), { src: "https://evil.example/x.png" });
        document.body.append(image);
        try {
          script.text = "document.documentElement.dataset.hit = 1";
          document.body.append(script);
        } catch {}
        try { document.body.innerHTML += "<p>x"; return "markup from a string" } catch { return "blocked" }
        """
    )
    assert blocked == "blocked"
    assert browser.run("return document.documentElement.dataset.hit") is None
    said = " ".join(browser.complaints())
    assert "evil.example" in said and "TrustedHTML" in said
    for path in (
        "/",
        "/queue?name=mail",
        "/job?queue=mail&id=a",
        "/body?queue=mail&id=a",
        "/metrics",
        "/none",
    ):
        headers = board.get(path).headers
        assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"], path
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_bodies_of_any_size_leave_pages_small(board: Board, browser: Browser, r: redis.Redis):
    pipe(r, *[("DQ.ADD", "large", f"job-{n:02}", b"<b>" * 300_000) for n in range(60)])
    r.execute_command("DQ.ADD", "large", "deep", b"[" * 100 + b"1," * 20_000 + b"1" + b"]" * 100)
    page = board.get("/queue", name="large")
    assert page.status == 200 and len(page.body) < 100_000
    assert len(board.get("/job", queue="large", id="job-00").body) < 700_000
    assert len(board.get("/job", queue="large", id="deep").body) < 2_000_000
    browser.open(board.link("/queue", name="large"))
    seen = set()
    while True:
        seen |= {th.text for th in browser.all("tbody th")}
        if not browser.all("a[rel=next]"):
            break
        browser.follow("a[rel=next]")
    assert len(seen) == 61
