"""Results, notes and bodies that workers changed are the same on replicas, in files and in copies."""

from collections.abc import Callable

import redis

from harness.clock import HOUR_MS
from harness.elsewhere import FILES, check_copies_hold, check_files_hold
from harness.queues import queues_of
from harness.server import Server

StartServer = Callable[..., Server]
NAMES = ("done", "touched", "released", "next", "scheduled")


def work(r: redis.Redis) -> None:
    for name in ("done", "touched", "released"):
        r.execute_command("DQ.ADD", "q", name, "x", "TTR", HOUR_MS, "KEEP", HOUR_MS)
    r.execute_command("DQ.POP", "q", "COUNT", 3)
    r.execute_command("DQ.TOUCH", "q", "touched", "*", "BODY", "y", "NOTE", "half of it")
    r.execute_command("DQ.RELEASE", "q", "released", "*", "BODY", b"z" * 40_000, "DELAY", HOUR_MS)
    followers = ["ADD", "next", "x", "DELAY", HOUR_MS, "ADD", "*", "x", "DELAY", HOUR_MS]
    r.execute_command("DQ.DONE", "q", "done", "*", "RESULT", b"\x00result", *followers)
    r.execute_command("DQ.ADD", "q", "scheduled", "x", "CRON", "0 0 * * *", "TTR", HOUR_MS)
    r.execute_command("DQ.POP", "q", "ID", "scheduled")
    r.execute_command("DQ.DONE", "q", "scheduled", "*", "RESULT", "of one run")


def shown(server: Server) -> dict[str, object]:
    with server.client() as r:
        return {name: r.execute_command("DQ.GET", "q", name) for name in NAMES}


def test_a_replica_has_the_same_results_notes_and_bodies(fresh_server: StartServer) -> None:
    primary, replica = fresh_server("appendonly yes"), fresh_server("appendonly yes")
    replica.replicate(primary)
    with primary.client() as r:
        work(r)
        assert r.execute_command("DQ.RESULT", "q", "done") == ["done", "\x00result"]
    replica.catch_up(primary)
    assert queues_of(replica) == queues_of(primary)
    assert shown(replica) == shown(primary)
    with replica.client() as r:
        assert r.info("dq")["dq_diverged"] == 0


def test_files_and_copies_hold_results_notes_and_bodies(fresh_server: StartServer) -> None:
    for config in FILES:
        server = fresh_server(*config)
        with server.client() as r:
            work(r)
        check_copies_hold(server, "q")
        check_files_hold(server, config, shown)
