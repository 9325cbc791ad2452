"""Who is let in, and how dq-board is started."""

import base64
import subprocess
from collections.abc import Callable

import pytest
import redis

from board import BINARY, Board


def basic(words: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(words.encode()).decode()}


def test_a_password_is_asked_for_everywhere(boards: Callable[..., Board], r: redis.Redis):
    board = boards("--auth", "ann:pässword", "--writable")
    r.execute_command("DQ.ADD", "mail", "a", "x")
    for path in (
        "/",
        "/queue?name=mail",
        "/job?queue=mail&id=a",
        "/body?queue=mail&id=a",
        "/metrics",
        "/none",
        "/board.js",
        "/healthz",
    ):
        answer = board.get(path)
        assert answer.status == 401 and "Basic" in answer.headers["www-authenticate"], path
        assert board.get(path, basic("ann:password")).status == 401
        assert board.get(path, basic("ann:pässword")).status in (200, 404), path
    assert board.post("/act", {"verb": "del"}).status == 401
    token = board.get("/queue", basic("ann:pässword"), name="mail").token()
    form = {"token": token, "verb": "del", "queue": "mail", "id": "a"}
    assert board.post("/act", form, basic("ann:pässword")).status == 303
    assert 'user="ann"' in board.log()
    assert "pässword" not in board.log()


def test_another_site_s_name_for_this_address_is_refused(boards: Callable[..., Board]):
    board = boards()
    assert board.get("/", {"Host": "evil.example"}).status == 421
    assert board.get("/", {"Host": f"localhost:{board.url.rsplit(':')[-1]}"}).status == 200
    named = boards("--host", "board.example")
    assert named.get("/", {"Host": "board.example"}).status == 200
    assert named.get("/", {"Host": "evil.example"}).status == 421


def test_metrics_only_has_no_pages(boards: Callable[..., Board], r: redis.Redis):
    r.execute_command("DQ.ADD", "mail", "a", "x")
    board = boards("--metrics-only")
    assert board.get("/metrics").status == 200
    for path in ("/", "/queue?name=mail", "/job?queue=mail&id=a", "/body?queue=mail&id=a", "/act"):
        assert board.get(path).status == 404, path


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--listen", "0.0.0.0:0"], "others can reach 0.0.0.0:0"),
        (["--redis", "http://x:sEcReT@y"], "--redis: no such URL"),
        (["--redis", "redis://:sEcReT@127.0.0.1:bad"], "--redis: no such URL"),
        (["--redis", "rediss://127.0.0.1", "--tls-ca", "/none.pem"], "/none.pem: No such file"),
        (["--allow", "kick"], "--writable"),
        (["--metrics-only", "--writable"], "exclude each other"),
        (["--auth", "ann"], "--auth must be user:password"),
        (["--listen", "256.0.0.1:1"], "invalid value"),
    ],
)
def test_what_can_t_be_is_said_and_nothing_is_started(words: list[str], told: str):
    done = subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=10)
    assert done.returncode != 0
    assert told in done.stderr
    assert "sEcReT" not in done.stderr + done.stdout
