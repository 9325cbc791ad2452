"""Users with rights of their own: by passwords of a file, and by a proxy that knows who they are."""

import base64
import contextlib
import os
import pty
import re
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from board import BINARY, Board
from browser import Browser
from harness.server import eventually
from samples import every_state


def basic(words: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(words.encode()).decode()}


def hash_of(password: str) -> str:
    told = subprocess.run(
        [BINARY, "--hash-password"],
        input=f"{password}\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert password not in told.stderr
    return told.stdout.strip()


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.write_text(
        f"# Operators\nann:{hash_of('sécret:1')}:all\n"
        f"bob:{hash_of('guess me')}:kick,pause\n\ncid:{hash_of('look')}:read\n"
        "eve:-:all\n*:-:read\n"
    )
    return path


ANN, BOB, CID = basic("ann:sécret:1"), basic("bob:guess me"), basic("cid:look")


def verbs(page: str) -> set[str]:
    return set(re.findall(r'name="(?:verb|do)" value="(\w+)"', page))


def test_each_user_has_the_forms_of_their_rights(
    boards: Callable[..., Board], r: redis.Redis, users: Path
):
    every_state(r)
    board = boards("--writable", "--users", str(users))
    assert board.get("/").status == 401
    for wrong in ("ann:secret", "ann:", "eve:", "eve:-", "*:", "none:x"):
        assert board.get("/", basic(wrong)).status == 401, wrong

    def page(who: dict[str, str]) -> str:
        return board.get("/queue", who, name="mail", state="dead").text

    assert verbs(page(ANN)) == {"pause", "kick", "add", "del"} and "Purge…" in page(ANN)
    assert verbs(page(BOB)) == {"pause", "kick"} and "Purge…" not in page(BOB)
    assert verbs(page(CID)) == set() and 'class="actions"' not in page(CID)
    assert "cid: read-only" in page(CID) and "bob: writable" in page(BOB)
    assert "You may not do that here." in board.get("/purge?queue=mail&state=dead", BOB).text

    # What has no form is refused, and so is the form of another user.
    delete = {"verb": "del", "queue": "mail", "id": "dead"}
    tokens = {
        name: board.get("/queue", who, name="mail").token()
        for name, who in (("ann", ANN), ("bob", BOB))
    }
    for who, token in ((BOB, "bob"), (BOB, "ann"), (CID, "ann"), (ANN, "bob")):
        assert board.post("/act", delete | {"token": tokens[token]}, who).status == 403
    assert r.execute_command("DQ.LEN", "mail", "STATE", "dead") == 1
    kick = {"verb": "kick", "queue": "mail", "id": "dead", "token": tokens["bob"]}
    assert board.post("/act", kick, BOB).status == 303
    assert board.post("/act", delete | {"token": tokens["ann"]}, ANN).status == 303
    log = board.log()
    assert re.search(r'user="bob".* verb="kick".*outcome="It is ready now\."', log)
    assert re.search(r'user="ann".* verb="del".*outcome="Deleted\."', log)
    assert re.search(r'WARN refused .*user="bob".*outcome="refused: no right to do that"', log)
    actions = board.get("/actions", CID).text
    assert actions.index(">ann<") < actions.index(">bob<")
    assert "sécret" not in log and "guess me" not in log


def test_without_writable_no_user_changes_anything(
    boards: Callable[..., Board], r: redis.Redis, users: Path
):
    every_state(r)
    board = boards("--users", str(users))
    assert verbs(board.get("/queue", ANN, name="mail").text) == set()
    metrics = board.get("/metrics", CID)
    assert metrics.status == 200 and board.get("/metrics").status == 401


def test_users_change_without_a_restart(
    boards: Callable[..., Board], browser: Browser, r: redis.Redis, users: Path
):
    every_state(r)
    board = boards("--writable", "--users", str(users))
    browser.open(board.url.replace("//", "//bob:guess%20me@") + "/queue?name=mail")
    browser.sees("Kick dead jobs…", ".actions")
    lines = users.read_text()
    users.write_text(lines.replace(":kick,pause", ":pause").replace("ann:", "dan:"))
    # An open page, too, loses what its reader may not do any more.
    eventually(lambda: "Kick" not in browser.one(".actions").text, within_s=30)
    browser.sees("Pause…", ".actions")
    assert board.get("/", ANN).status == 401
    assert board.get("/", basic("dan:sécret:1")).status == 200
    users.write_text(lines.replace(bobs_hash(lines), hash_of("another")))
    eventually(lambda: board.log().count("has changed") == 2)
    assert board.get("/", ANN).status == 200
    assert board.get("/", BOB).status == 401, "what was right before isn't any more"
    assert board.get("/", basic("bob:another")).status == 200

    users.write_text("ann:sécret:1:all\n")
    eventually(lambda: "users stay as they were" in board.log())
    assert board.get("/", ANN).status == 200 and "sécret" not in board.log()
    users.unlink()
    eventually(lambda: board.log().count("users stay as they were") == 2)
    assert board.get("/", ANN).status == 200
    # The browser's next reading was refused, as it should be.
    browser.open("about:blank")
    browser.complaints()


def bobs_hash(lines: str) -> str:
    found = re.search(r"bob:(.*?):kick", lines)
    assert found
    return found[1]


def test_a_person_types_a_password_that_nobody_sees():
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(BINARY, [BINARY, "--hash-password"])
    # It asks first and turns the echo off then; a person isn't so quick.
    eventually(lambda: not termios.tcgetattr(terminal)[3] & termios.ECHO)
    told = b""
    os.write(terminal, b"secret\n")
    # When the program has ended, the terminal has nothing more to read.
    with contextlib.suppress(OSError):
        while more := os.read(terminal, 1_000):
            told += more
    assert os.waitpid(pid, 0)[1] == 0
    os.close(terminal)
    assert b"$argon2id$" in told and b"secret" not in told


@pytest.mark.parametrize(
    "line, why",
    [
        ("ann:secret:all", "line 1 has a hash that isn't an argon2 hash"),
        ("ann", "line 1 isn't name:hash:rights"),
        ("", "has no users"),
    ],
)
def test_a_file_with_a_fault_keeps_the_board_from_starting(tmp_path: Path, line: str, why: str):
    path = tmp_path / "users"
    path.write_text(line + "\n")
    told = subprocess.run([BINARY, "--users", path], capture_output=True, text=True, timeout=20)
    assert told.returncode != 0 and why in told.stderr and "secret" not in told.stderr
    told = subprocess.run([BINARY, "--users", "/no/such/file"], capture_output=True, text=True)
    assert told.returncode != 0 and "/no/such/file" in told.stderr


def test_guesses_at_users_are_slowed_down_together(boards: Callable[..., Board], users: Path):
    board = boards("--users", str(users))
    told = [board.get("/", basic(f"{'ann' if n % 2 else 'none'}:{n}")).status for n in range(10)]
    assert told == [401] * 10
    assert board.get("/", ANN).status == 429, "the right one has to wait, too"
    eventually(lambda: board.get("/", ANN).status == 200)


def test_a_proxy_says_who_asks(boards: Callable[..., Board], r: redis.Redis, users: Path):
    every_state(r)
    header = ("--user-header", "X-Forwarded-User", "--trusted-proxy", "127.0.0.1")
    board = boards("--writable", *header)
    ann = {"X-Forwarded-User": "ann@example.com", "X-Forwarded-For": "10.0.0.7"}
    assert board.get("/").status == 403
    assert board.get("/", {"X-Forwarded-User": ""}).status == 403
    token = board.get("/queue", ann, name="mail").token()
    form = {"token": token, "verb": "del", "queue": "mail", "id": "dead"}
    assert board.post("/act", form, ann | {"X-Forwarded-User": "eve"}).status == 403
    assert board.post("/act", form, ann).status == 303
    assert 'action from=10.0.0.7 user="ann@example.com" verb="del"' in board.log()

    # With a file, each name has its rights; the star is for all others.
    board = boards("--writable", *header, "--users", str(users))

    def rights(name: str) -> set[str]:
        page = board.get("/queue", {"X-Forwarded-User": name}, name="mail")
        assert page.status == 200
        return verbs(page.text)

    assert rights("eve") == {"pause", "add", "del"} and rights("bob") == {"pause"}
    assert rights("somebody") == set() == rights("cid")
    users.write_text(users.read_text().replace("*:-:read\n", ""))
    eventually(lambda: board.get("/", {"X-Forwarded-User": "somebody"}).status == 403)
    assert 'a user without rights from=127.0.0.1 user="somebody"' in board.log()


def test_a_header_from_elsewhere_says_nothing(
    boards: Callable[..., Board], server: object, users: Path
):
    header = ("--user-header", "X-Forwarded-User", "--trusted-proxy", "10.99.0.1")
    eve = {"X-Forwarded-User": "eve"}
    board = boards("--writable", *header)
    assert board.get("/", eve).status == 403 and board.get("/").status == 403
    # Nor does it help to write the proxy's address into another header.
    assert board.get("/", eve | {"X-Forwarded-For": "10.99.0.1"}).status == 403
    assert board.get("/healthz").status == 200
    # A Prometheus that asks dq-board itself has a password.
    board = boards("--writable", *header, "--users", str(users))
    assert board.get("/metrics", eve).status == 401
    assert board.get("/metrics", eve | CID).status == 200
    assert "cid: read-only" in board.get("/", eve | CID).text
