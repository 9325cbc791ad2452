"""Which clients dq-board lets in, and how it is started."""

import base64
import contextlib
import resource
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from board import BINARY, Board
from harness.server import eventually
from samples import pipe


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
    ):
        answer = board.get(path)
        assert answer.status == 401 and "Basic" in answer.headers["www-authenticate"], path
        assert board.get(path, basic("ann:password")).status == 401
        assert board.get(path, basic("ann:pässword")).status in (200, 404), path
    assert board.post("/act", {"verb": "del"}).status == 401
    lower = {"Authorization": basic("ann:pässword")["Authorization"].replace("Basic", "basic")}
    assert board.get("/", lower).status == 200
    assert board.get("/healthz").text == "ok\n", "what asks that has no password"
    token = board.get("/queue", basic("ann:pässword"), name="mail").token()
    form = {"token": token, "verb": "del", "queue": "mail", "id": "a"}
    assert board.post("/act", form, basic("ann:pässword")).status == 303
    assert 'user="ann"' in board.log()
    assert "pässword" not in board.log()


def test_an_address_that_guesses_passwords_waits_and_is_logged(boards: Callable[..., Board]):
    board = boards("--auth", "ann:secret", "--trusted-proxy", "127.0.0.1")

    def told(words: str, reader: str) -> int:
        return board.get("/", basic(words) | {"X-Forwarded-For": reader}).status

    assert [told(f"ann:guess{n}", "10.0.0.1") for n in range(11)] == [401] * 10 + [429]
    assert told("ann:secret", "10.0.0.1") == 429
    assert board.get("/", {"X-Forwarded-For": "10.0.0.1"}).status == 401, "that is no guess"
    assert told("ann:secret", "10.0.0.2") == 200, "another reader doesn't wait"
    eventually(lambda: told("ann:secret", "10.0.0.1") == 200)
    told_of = [line for line in board.log().splitlines() if "a wrong name or password" in line]
    assert len(told_of) == 10 and all("from=10.0.0.1" in line for line in told_of)
    assert "guess" not in board.log()


def test_unfinished_requests_shut_no_client_out(boards: Callable[..., Board]):
    """More of them than a program may have files by default."""
    board = boards("--auth", "ann:secret")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4_096, hard), hard))
    host, port = board.url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1_500):
            half = stack.enter_context(socket.create_connection((host, int(port)), timeout=30))
            half.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        assert board.get("/", basic("ann:secret")).status == 200
        assert half.recv(100) == b"" or half.recv(100) == b"", "and they don't stay"


def test_an_unfinished_form_is_not_waited_for(boards: Callable[..., Board]):
    board = boards("--writable")
    host, port = board.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=40) as half:
        half.sendall(b"POST /act HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\ntoken=")
        assert half.recv(1_000).startswith(b"HTTP/1.1 4")


def test_unfinished_large_forms_fill_no_memory(boards: Callable[..., Board], r: redis.Redis):
    """Each connection may bring a form of 4 MiB, and keep its last byte."""
    board = boards("--writable")
    r.execute_command("DQ.ADD", "mail", "a", "x")
    host, port = board.url.removeprefix("http://").split(":")
    size = (4 << 20) - 100
    head = f"POST /act HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n\r\n".encode()
    chunked = (
        b"POST /act HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n3ffffe\r\n"
    )
    with contextlib.ExitStack() as stack:
        for n in range(80):
            half = stack.enter_context(socket.create_connection((host, int(port)), timeout=30))
            half.setblocking(False)
            left = memoryview((chunked if n % 2 else head) + b"x" * (size - 10))
            until = time.monotonic() + 0.2
            while left and time.monotonic() < until:
                with contextlib.suppress(BlockingIOError):
                    left = left[half.send(left) :]
        assert resident_mb(board) < 150
        # Small ones aren't held up by these.
        add = {"verb": "add", "queue": "mail", "id": "b", "body": "x"}
        page = board.get("/queue", name="mail")
        assert page.status == 200, page.text
        token = page.token()
        assert board.post("/act", add | {"token": token}, within_s=2).status == 303
    large = add | {"token": token, "id": "c", "body": "x" * 200_000}
    assert board.post("/act", large).status == 303
    assert r.execute_command("DQ.LEN", "mail") == 3


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
        (["--auth", ":"], "neither is empty"),
        (["--auth", "ann:"], "neither is empty"),
        (["--public-url", "board.example"], "must be http://"),
        (["--trusted-proxy", "proxy.example"], "must be an address or a network"),
        (["--listen", "256.0.0.1:1"], "invalid value"),
    ],
)
def test_bad_options_are_refused_and_nothing_is_started(words: list[str], told: str):
    done = subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=10)
    assert done.returncode != 0
    assert told in done.stderr
    assert "sEcReT" not in done.stderr + done.stdout


def sockets(
    stack: contextlib.ExitStack, board: Board, many: int, sent: bytes
) -> list[socket.socket]:
    """So many connections that have sent this and read nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4_096, hard), hard))
    stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
    host, port = board.url.removeprefix("http://").split(":")
    opened = []
    for _ in range(many):
        opened.append(stack.enter_context(socket.create_connection((host, int(port)), timeout=30)))
        opened[-1].sendall(sent)
    return opened


HALF_HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
HALF_FORM = b"POST /act HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\ntoken="


@pytest.mark.parametrize("sent", [HALF_HEAD, HALF_FORM, b""], ids=["heads", "forms", "nothing"])
def test_whether_it_lives_is_answered_at_once(boards: Callable[..., Board], sent: bytes):
    """Also when all connections are taken by others: a probe has a second or a few."""
    board = boards()
    with contextlib.ExitStack() as stack:
        sockets(stack, board, 940, sent)
        began = time.monotonic()
        for _ in range(20):
            assert board.get("/healthz").status == 200
        assert time.monotonic() - began < 4


def resident_mb(board: Board) -> float:
    status = Path(f"/proc/{board.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def open_sockets(board: Board) -> int:
    files = Path(f"/proc/{board.pid}/fd").iterdir()
    links = []
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            links.append(str(file.readlink()))
    return sum(link.startswith("socket:") for link in links)


@pytest.mark.timeout(180)
def test_readers_that_take_nothing_don_t_fill_the_memory(
    boards: Callable[..., Board], r: redis.Redis
):
    """A scrape of 5,000 queues is 11 MB: 40 clients ask for it and read nothing."""
    pipe(r, *[("DQ.ADD", f"queue-{n:04}", "a", "x") for n in range(5_000)])
    board = boards("--metrics-queues", "5000")
    eventually(lambda: len(board.get("/metrics").body) > 8_000_000, 60)
    before, opened = resident_mb(board), open_sockets(board)
    with contextlib.ExitStack() as stack:
        sockets(stack, board, 40, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        # Each has been answered, or waits for its turn.
        asked = time.monotonic()
        eventually(lambda: time.monotonic() > asked + 8, 20)
        assert resident_mb(board) < before + 150
        # Those that take nothing are not waited for for ever.
        eventually(lambda: open_sockets(board) <= opened + 4, 100)
    assert len(board.get("/metrics").body) > 8_000_000
