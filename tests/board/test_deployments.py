"""One server with a user's own rights, TLS, a primary that sentinels name, a cluster."""

import contextlib
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import redis

from board import Board
from harness.ports import free_port
from harness.server import KNOWN, Server, eventually
from samples import RIGHTS, every_state
from scaler import Scaler


def shows(board: Board, *names: str) -> bool:
    page = board.get("/").text
    return all(f">{name}</a>" in page for name in names)


def test_a_server_user_with_few_rights_is_enough_for_the_board(
    boards: Callable[..., Board], server: Server, r: redis.Redis
):
    every_state(r)
    r.execute_command("ACL", "SETUSER", "board", "on", ">sEcReT", *RIGHTS.split())
    r.config_set("requirepass", "other")
    board = boards("--writable", redis=f"redis://board:sEcReT@127.0.0.1:{server.port}")
    eventually(lambda: shows(board, "mail"))
    for page in (
        board.get("/queue", name="mail", state="dead"),
        board.get("/queue", name="mail", state="dead", cursor="0"),
        board.get("/job", queue="mail", id="dead"),
    ):
        assert "no such mailbox" in page.text
    assert "No group has a job" in board.get("/queue", name="mail", tab="groups").text
    form = {
        "token": board.get("/queue", name="mail").token(),
        "verb": "del",
        "queue": "mail",
        "id": "dead",
    }
    answer = board.post("/act", form)
    assert "NOPERM" in board.get(answer.headers["location"]).text
    assert "sEcReT" not in board.log() + board.get("/").text

    wrong = boards(redis=f"redis://board:wrong-sEcReT@127.0.0.1:{server.port}")
    eventually(
        lambda: (
            "can&#39;t be reached" in (page := wrong.get("/").text) or "can't be reached" in page
        )
    )
    assert "sEcReT" not in wrong.log() + wrong.get("/").text


def test_the_board_leaves_out_queues_that_its_user_may_not_see(
    boards: Callable[..., Board], server: Server, r: redis.Redis
):
    every_state(r, "mail")
    r.execute_command("DQ.ADD", "secret", "a", "x")
    r.execute_command(
        "ACL", "SETUSER", "board", "on", ">sEcReT", *RIGHTS.replace("~*", "~mail").split()
    )
    board = boards(redis=f"redis://board:sEcReT@127.0.0.1:{server.port}")
    eventually(lambda: shows(board, "mail", "secret"))
    eventually(lambda: "no permission" in board.get("/").text)
    eventually(lambda: board.metrics().get('dq_jobs{queue="mail",state="ready"}') == 1)
    page = board.get("/").text
    assert "have been read so far" not in page and "No answer" not in page
    assert "NOPERM" in board.get("/queue", name="secret").text


def test_the_board_shows_the_database_it_is_given(boards: Callable[..., Board], server: Server):
    with server.client(db=3) as third, server.client() as first:
        third.execute_command("DQ.ADD", "third", "a", "x")
        first.execute_command("DQ.ADD", "first", "a", "x")
    board = boards(redis=f"redis://127.0.0.1:{server.port}/3")
    eventually(lambda: shows(board, "third"))
    assert not shows(board, "first")


def make_certificates(directory: Path) -> tuple[Path, Path, Path]:
    """A certificate authority, and a certificate of 127.0.0.1 by it, which serves for both ends."""
    authority, certificate, key = (directory / name for name in ("ca.pem", "cert.pem", "key.pem"))
    authority_key, request, names = (
        directory / name for name in ("ca-key.pem", "request.pem", "names")
    )
    names.write_text("subjectAltName=IP:127.0.0.1\n")
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes"]
    for command in (
        [
            *new,
            "-x509",
            "-days",
            "9",
            "-subj",
            "/CN=test CA",
            "-keyout",
            authority_key,
            "-out",
            authority,
        ],
        [*new, "-subj", "/CN=test", "-keyout", key, "-out", request],
        [
            *("openssl", "x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority_key),
            *("-days", "9", "-CAcreateserial", "-extfile", names, "-out", certificate),
        ],
    ):
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    return authority, certificate, key


def is_refused(board: Board) -> None:
    eventually(lambda: "No answer since" in board.get("/").text, 15)
    assert not shows(board, "mail")


def test_the_board_reaches_its_server_by_tls(
    boards: Callable[..., Board], servers: Callable[..., Server], tmp_path: Path
):
    authority, certificate, key = make_certificates(tmp_path)
    port = free_port()
    server = servers(
        f"tls-port {port}",
        f'tls-ca-cert-file "{authority}"',
        f'tls-cert-file "{certificate}"',
        f'tls-key-file "{key}"',
        "tls-auth-clients yes",
    )
    with server.client() as r:
        r.execute_command("DQ.ADD", "mail", "a", "x")
    url = f"rediss://127.0.0.1:{port}"
    own = ["--tls-cert", str(certificate), "--tls-key", str(key)]
    board = boards("--tls-ca", str(authority), *own, redis=url)
    eventually(lambda: shows(board, "mail"))
    assert f"rediss://127.0.0.1:{port}" in board.get("/").text

    # Neither an authority that isn't the system's, nor a client without a certificate.
    for words in (own, ["--tls-ca", str(authority)]):
        is_refused(boards(*words, redis=url))


def test_a_cluster_s_queues_are_all_shown(
    boards: Callable[..., Board], servers: Callable[..., Server]
):
    buses = [free_port() for _ in range(3)]
    announce = "cluster-announce-ip 127.0.0.1"
    nodes = [servers("cluster-enabled yes", announce, f"cluster-port {bus}") for bus in buses]
    for at, node in enumerate(nodes):
        with node.client() as r:
            r.execute_command(
                "CLUSTER", "ADDSLOTSRANGE", at * 5461, 16383 if at == 2 else at * 5461 + 5460
            )
            for other, bus in zip(nodes, buses, strict=True):
                r.execute_command("CLUSTER", "MEET", "127.0.0.1", other.port, bus)
    for node in nodes:
        with node.client() as r:
            eventually(lambda: r.execute_command("CLUSTER INFO")["cluster_state"] == "ok", 20)
    names = [f"queue-{n}" for n in range(12)]
    owners = {}
    for name in names:
        for node in nodes:
            with node.client() as r, contextlib.suppress(redis.ResponseError):
                r.execute_command("DQ.ADD", name, "a", "x")
                owners[name] = node
    assert len({node.port for node in owners.values()}) == 3

    port = free_port()
    board = boards(
        *("--writable", "--keda", f"127.0.0.1:{port}"), redis=f"redis://127.0.0.1:{nodes[0].port}"
    )
    with Scaler(port) as scaler:
        assert all(scaler.is_active(queue=name) for name in names)
        assert [scaler.jobs(queue=name) for name in names] == [1] * 12
    # Pages of queues that no scan has found yet ask their way.
    for name in names:
        assert "Ready since" in board.get("/job", queue=name, id="a").text
    eventually(lambda: shows(board, *names), 15)
    assert board.metrics()["dq_queues"] == 12
    page = board.get("/server").text
    assert page.count("DQ's timer") == 3 and "cluster" in page
    token = board.get("/queue", name=names[0]).token()
    for name in names:
        form = {"token": token, "verb": "del", "queue": name, "id": "a"}
        assert "Deleted." in board.get(board.post("/act", form).headers["location"]).text

    # One node goes: the others' queues can still be looked at.
    gone = nodes[2]
    gone.kill9()
    eventually(lambda: "No answer since" in board.get("/").text, 20)
    alive = next(name for name in names if owners[name] is not gone)
    assert board.get("/queue", name=alive).status == 200
    row = f'data-key="{alive}".*?<td class="num is-ready" data-label="ready">(?:<a [^>]*>)?1<'
    with owners[alive].client() as r:
        r.execute_command("DQ.ADD", alive, "b", "x")
    eventually(lambda: re.search(row, board.get("/").text), 10)


def role(server: Server) -> str | None:
    """A sentinel cuts the connections of the server that it promotes."""
    with server.client() as r, contextlib.suppress(redis.ConnectionError):
        return r.info("replication")["role"]
    return None


def test_the_board_follows_the_primary_that_sentinels_name(
    boards: Callable[..., Board], servers: Callable[..., Server], tmp_path: Path
):
    first, second = servers(), servers()
    second.replicate(first)
    port = free_port()
    config = tmp_path / "sentinel.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {tmp_path}\n"
        f"sentinel monitor queues 127.0.0.1 {first.port} 1\n"
        "sentinel down-after-milliseconds queues 500\nsentinel failover-timeout queues 3000\n"
    )
    with (tmp_path / "sentinel.log").open("wb") as log:
        command = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            KNOWN["redis-7.0"].binary,
            config,
            "--sentinel",
        ]
        sentinel = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        with first.client() as r:
            r.execute_command("DQ.ADD", "mail", "a", "x")
        dead = f"127.0.0.1:{free_port()}"
        words = ["--sentinel", dead, "--sentinel", f"redis://127.0.0.1:{port}"]
        board = boards(*words, redis="redis://queues")
        eventually(lambda: shows(board, "mail"), 15)
        second.catch_up(first)
        time.sleep(2)  # until the sentinel has heard of the replica
        first.kill9()
        eventually(lambda: role(second) == "master", 30)
        with second.client() as r:
            r.execute_command("DQ.ADD", "after", "a", "x")
        eventually(lambda: shows(board, "mail", "after"), 30)
        eventually(lambda: "No answer since" not in board.get("/").text, 20)
    finally:
        sentinel.terminate()
        sentinel.wait(10)
