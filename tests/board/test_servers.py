"""Several servers on one board, and the page that each server has."""

import json
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
import redis

from board import Board
from browser import Browser
from harness.server import KNOWN, Server, eventually
from harness.wall_clock import shifted_clock
from samples import HOUR, RIGHTS, every_state
from scaler import Scaler


@pytest.fixture
def two(servers: Callable[..., Server]) -> tuple[Server, Server]:
    """Each with a queue mail, and one of its own."""
    eu, us = servers(), servers()
    for server, own in (eu, "eu-only"), (us, "us-only"):
        with server.client(decode_responses=False) as r:
            every_state(r)
            r.execute_command("DQ.ADD", own, "a", "x")
    return eu, us


def names(eu: Server, us: Server) -> str:
    return f"eu=redis://127.0.0.1:{eu.port} us=redis://127.0.0.1:{us.port}"


def test_several_servers_are_on_one_board(
    boards: Callable[..., Board], two: tuple[Server, Server], browser: Browser
):
    eu, us = two
    another_database = f"eu-1=redis://127.0.0.1:{eu.port}/1"
    board = boards("--writable", redis=f"{names(eu, us)} {another_database}")
    browser.open(board.url)
    browser.sees("eu", "tr[data-key=eu]")
    browser.sees(f"redis://127.0.0.1:{us.port}", "tr[data-key=us]")
    browser.one("tr[data-key=us] a").click()
    browser.sees("us-only", "table.queues")
    assert "eu-only" not in browser.one("main").text
    assert "There are no queues yet" in board.get("/on/eu-1/").text
    # From a page of one server to the other, and to all.
    browser.one("tr[data-key=mail] a").click()
    browser.sees("mail", "h1")
    browser.one("details.servers summary").click()
    browser.one("details.servers a").click()
    browser.sees("eu-only", "table.queues")
    browser.one("a.home").click()
    browser.sees("us", "tr[data-key=us]")

    # What is done is done on the server of the page, and stays on its pages.
    page = board.get("/on/us/queue", name="mail", state="dead")
    form = {"token": page.token(), "verb": "del", "queue": "mail", "id": "dead"}
    answer = board.post("/on/us/act", form)
    assert "Deleted." in board.get(f"/on/us/{answer.headers['location']}").text
    with us.client() as there, eu.client() as here:
        assert there.execute_command("DQ.LEN", "mail", "STATE", "dead") == 0
        assert here.execute_command("DQ.LEN", "mail", "STATE", "dead") == 1
    assert 'redis="us"' in board.log()
    assert "Deleted." in board.get("/on/us/actions").text
    assert "Deleted." not in board.get("/on/eu/actions").text

    assert board.get("/on/us").headers["location"] == "us/"
    for path in ("/queue", "/on/none/", "/on/", "/server"):
        assert board.get(path).status == 404, path
    assert board.get("/on/eu/board.css").status == 200

    # Behind a proxy that keeps its path, too.
    board = boards("--public-url", "http://board.example/dq/", redis=names(eu, us))
    eventually(lambda: "us-only" in board.get("/dq/on/us/").text)
    assert 'href="on/us/"' in board.get("/dq/").text
    assert board.get("/dq/on/us").headers["location"] == "us/"


def test_a_server_that_is_gone_is_marked_and_the_others_go_on(
    boards: Callable[..., Board], two: tuple[Server, Server]
):
    eu, us = two
    board = boards(redis=names(eu, us))
    eventually(lambda: board.metrics().get('dq_up{redis="us"}') == 1)
    us.kill9()
    eventually(lambda: "no answer since" in board.get("/").text)
    assert board.get("/").text.count("no answer since") == 1
    assert "No answer since" in board.get("/on/us/").text
    assert "No answer since" not in board.get("/on/eu/").text
    metrics = board.metrics()
    assert metrics['dq_up{redis="us"}'] == 0 and metrics['dq_up{redis="eu"}'] == 1
    assert not [name for name in metrics if 'redis="us"' in name and not name.startswith("dq_up")]
    assert metrics['dq_jobs{redis="eu",queue="mail",state="dead"}'] == 1


def test_metrics_of_several_servers_have_their_names(
    boards: Callable[..., Board], two: tuple[Server, Server]
):
    eu, us = two
    board = boards(redis=names(eu, us))
    eventually(lambda: board.metrics().get('dq_queues{redis="us"}') == 2)
    eventually(lambda: board.metrics().get('dq_queues{redis="eu"}') == 2)
    eventually(lambda: 'dq_paused{redis="eu",queue="mail"}' in board.metrics())
    eventually(lambda: 'dq_paused{redis="us",queue="mail"}' in board.metrics())
    series = set(board.metrics())
    named = {name for name in series if 'redis="' in name}
    assert {name.split("{")[0] for name in series - named} == {"dq_board_info"}
    assert f'dq_server_jobs{{redis="us",server="127.0.0.1:{us.port}",state="dead"}}' in named
    assert 'dq_lateness_seconds_bucket{le="+Inf",redis="eu",queue="mail"}' in named
    # Each metric is told once, with all its series behind it.
    helps = [line for line in board.get("/metrics").text.splitlines() if line.startswith("# HELP")]
    assert len(helps) == len(set(helps))


def test_one_server_may_have_a_name_too(
    boards: Callable[..., Board], server: Server, r: redis.Redis
):
    every_state(r)
    board = boards(redis=f"eu=redis://127.0.0.1:{server.port}")
    eventually(lambda: ">mail</a>" in board.get("/").text)
    assert "<strong>eu</strong>" in board.get("/").text
    eventually(lambda: board.metrics().get('dq_queues{redis="eu"}') == 1)


def test_keda_names_one_of_several_servers(
    scalers: Callable[..., Scaler], two: tuple[Server, Server]
):
    eu, us = two
    with us.client() as r:
        r.execute_command("DQ.ADD", "mail", "more", "x")
    scaler = scalers(redis=names(eu, us))
    assert scaler.jobs(queue="mail", redis="eu") + 1 == scaler.jobs(queue="mail", redis="us")
    with pytest.raises(grpc.RpcError) as refused:
        scaler.is_active(queue="mail")
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert refused.value.details() == "redis must be one of: eu, us"


def test_the_page_of_a_server(
    boards: Callable[..., Board], servers: Callable[..., Server], browser: Browser
):
    primary = servers("appendonly yes", "maxmemory 1gb")
    replica = servers(f"replicaof 127.0.0.1 {primary.port}")
    with primary.client(decode_responses=False) as r:
        every_state(r)
        eventually(lambda: r.info("replication")["connected_slaves"] == 1)
    board = boards(redis=f"redis://127.0.0.1:{primary.port}")
    browser.open(board.url)
    browser.one("a.server").click()
    for words in (
        "Redis 7.0",
        "1.0 GiB",
        "noeviction",
        "DQ.ADD is refused, and no queue is lost",
        "append-only file\non",
        f"127.0.0.1:{replica.port}\n",
        "behind",
        "dq.tick-budget-us",
        "runs cut short",
    ):
        browser.sees(words, "article.node")
    # It is live.
    with primary.client(decode_responses=False) as r:
        r.config_set("maxmemory-policy", "allkeys-lru")
    browser.sees("may throw away whole queues: set maxmemory-policy", "article.node")

    other = boards(redis=f"redis://127.0.0.1:{replica.port}").get("/server").text
    assert ">replica<" in other and f"127.0.0.1:{primary.port}" in other


def test_the_page_of_a_server_says_what_its_user_may_not_see(
    boards: Callable[..., Board], server: Server, r: redis.Redis
):
    r.execute_command("ACL", "SETUSER", "board", "on", ">sEcReT", *RIGHTS.split())
    board = boards(redis=f"redis://board:sEcReT@127.0.0.1:{server.port}")
    page = board.get("/server").text
    assert page.count("no permission") == 2 and "noeviction" in page
    assert "sEcReT" not in page
    server.kill9()
    eventually(
        lambda: (
            "can&#39;t be reached" in board.get("/server").text
            or "can't be reached" in board.get("/server").text
        )
    )


@pytest.mark.parametrize(("by_s", "told"), [(600, "ahead of"), (-600, "behind"), (1, "")])
def test_a_server_whose_clock_is_wrong_is_told_of(
    boards: Callable[..., Board], tmp_path: Path, by_s: int, told: str
):
    clock = shifted_clock(tmp_path, by_s)
    server = Server(KNOWN["redis-7.0"], tmp_path, environment=clock)
    try:
        board = boards(redis=f"redis://127.0.0.1:{server.port}")
        with server.client(decode_responses=False) as r:
            every_state(r)
        page = eventually(lambda: "mail" in (text := board.get("/").text) and text)
        assert ("Clocks differ." in page) == bool(told)
        assert f"{told} dq-board's" in page or not told
    finally:
        server.kill9()


def test_actions_are_kept_in_a_file(boards: Callable[..., Board], r: redis.Redis, tmp_path: Path):
    path = tmp_path / "actions.ndjson"
    r.execute_command("DQ.ADD", b"ma\xff<b>", b"a\n", "x", "DELAY", HOUR)
    board = boards("--writable", "--actions-log", str(path))
    token = board.get("/queue", name=b"ma\xff<b>").token()
    form = {"token": token, "verb": "kick", "queue.hex": b"ma\xff<b>".hex(), "id.hex": b"a\n".hex()}
    assert board.post("/act", form).status == 303
    path.rename(tmp_path / "rotated")
    assert board.post("/act", form | {"verb": "del"}).status == 303
    assert board.post("/act", form | {"verb": "del"}).status == 303
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["verb"], line["ok"], line["outcome"]) for line in lines] == [
        ("del", True, "Deleted."),
        ("del", False, "It was gone already."),
    ]
    rotated = json.loads((tmp_path / "rotated").read_text())
    assert rotated["verb"] == "kick" and rotated["queue"] == "ma\\xff<b>"
    assert rotated["id"] == "a\\n" and rotated["from"] == "127.0.0.1"
    assert path.stat().st_mode & 0o077 == 0
    page = board.get("/actions").text
    assert page.index("It was gone already.") < page.index("It is ready now.")
    assert "ma\\xff&lt;b&gt;" in page
