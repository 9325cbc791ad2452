"""dq-board behind a proxy, which asks for pages by another address than readers do."""

import contextlib
import os
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from board import Answer, Board
from browser import Browser
from harness.ports import free_port
from harness.server import eventually

PROGRAMS = os.environ["PATH"] + ":/usr/sbin"
NGINX = shutil.which("nginx", path=PROGRAMS)

CONFIG = """
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location {path} {{ proxy_pass {target}; {more} }}
  }}
}}
"""


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts an nginx in front of a board; the address of the page behind it."""
    if NGINX is None:
        pytest.skip("no nginx here")
    with contextlib.ExitStack() as stack:

        def start(path: str, target: str, more: str = "", port: int | None = None) -> str:
            port = port or free_port()
            directory = tmp_path / f"nginx-{port}"
            directory.mkdir()
            config = directory / "nginx.conf"
            config.write_text(
                CONFIG.format(directory=directory, port=port, path=path, target=target, more=more)
            )
            command = ["setpriv", "--pdeathsig", "KILL", NGINX]
            process = subprocess.Popen([*command, "-c", config, "-e", directory / "error.log"])
            stack.callback(process.wait, 10)
            stack.callback(process.terminate)

            def answers() -> bool:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                except OSError:
                    return False
                return True

            eventually(answers, 20)
            return f"http://127.0.0.1:{port}{path}"

        yield start


@pytest.mark.parametrize("path", ["/", "/dq/"])
@pytest.mark.parametrize("strips", [True, False], ids=["strips the path", "leaves the path"])
def test_actions_behind_a_plain_nginx(
    boards: Callable[..., Board],
    nginx: Callable[..., str],
    browser: Browser,
    r: redis.Redis,
    path: str,
    strips: bool,
):
    """It asks for the page by its own address."""
    port = free_port()
    board = boards(
        "--writable",
        "--public-url",
        f"http://127.0.0.1:{port}{path}",
        "--trusted-proxy",
        "127.0.0.1",
    )
    forwarded = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"
    page = nginx(path, board.url + ("/" if strips else ""), forwarded, port)
    r.execute_command("DQ.ADD", "mail", "a", "x")
    browser.open(page)
    browser.sees("mail")
    browser.follow("main a[href*='queue?name=mail']")
    browser.sees("a")
    assert (
        browser.run("return getComputedStyle(document.querySelector('header')).display") == "flex"
    )
    token = browser.one("input[name=token]").get_attribute("value")
    assert delete(page, token, {"Origin": "http://evil.example"}).status == 403
    assert delete(page, token, {"Origin": page.removesuffix(path)}).status == 303
    assert r.execute_command("DQ.LEN", "mail") == 0
    assert "from=127.0.0.1 " in board.log()


def delete(page: str, token: str, headers: dict[str, str]) -> Answer:
    form = urllib.parse.urlencode(
        {"token": token, "verb": "del", "queue": "mail", "id": "a"}
    ).encode()
    return Board.send(urllib.request.Request(f"{page}act", form, headers))


@pytest.mark.parametrize("path", ["/", "/dq/"])
def test_the_board_works_below_a_path_behind_a_trusted_proxy(
    boards: Callable[..., Board], r: redis.Redis, path: str
):
    """As nginx does where its configuration says `proxy_pass http://127.0.0.1:8377;` and no
    more.
    """
    public = "https://board.example"
    board = boards("--writable", "--public-url", public + path, "--trusted-proxy", "127.0.0.0/8")
    r.execute_command("DQ.ADD", "mail", "a", "x")
    page = board.url + path
    token = board.get(f"{path}queue", name="mail").token()
    headers = {"X-Forwarded-For": "9.9.9.9, 10.1.2.3", "Origin": "https://evil.example"}
    assert delete(page, token, headers).status == 403
    headers["Origin"] = public
    answer = delete(page, token, headers)
    assert answer.status == 303 and answer.headers["location"].startswith("job?queue=mail&id=a")
    assert "from=10.1.2.3 " in board.log()
    assert board.get("/", {"Host": "board.example"}).status == 200
    assert board.get("/", {"Host": "evil.example"}).status == 421
    assert board.get("/queue", name="mail").status == 200, "a proxy may leave the path out"
    if path != "/":
        assert board.get(path.rstrip("/")).headers["location"] == path


def test_a_browser_says_itself_that_a_form_is_from_here(
    boards: Callable[..., Board], r: redis.Redis
):
    """Where the page has an address with HTTPS, no option is needed."""
    board = boards("--writable")
    r.execute_command("DQ.ADD", "mail", "a", "x")
    token = board.get("/queue", name="mail").token()
    headers = {"Origin": "https://board.example", "Sec-Fetch-Site": "cross-site"}
    assert delete(board.url + "/", token, headers).status == 403
    headers["Sec-Fetch-Site"] = "same-origin"
    assert delete(board.url + "/", token, headers).status == 303
