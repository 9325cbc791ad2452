"""Jobs taken by id, and the counters of a job, are the same on replicas, in files and in copies."""

from collections.abc import Callable

import redis

from harness.clock import HOUR_MS
from harness.elsewhere import FILES, check_copies_hold, check_files_hold
from harness.queues import job, queues_of
from harness.resp import commands_in
from harness.server import Server, eventually

StartServer = Callable[..., Server]
SHOWN = ("state", "attempt", "priority", "reason", "timed-out", "released", "buried", "kicked")


def work(r: redis.Redis) -> None:
    """Jobs that time out, are released with another priority, buried, kicked, taken by id; a
    schedule.
    """
    for name in "abcdef":
        r.execute_command(
            "DQ.ADD", "q", name, "x", "TTR", HOUR_MS, "DELAY", 0 if name < "e" else HOUR_MS
        )
    r.execute_command("DQ.ADD", "q", "often", "x", "CRON", "0 0 * * *", "TTR", HOUR_MS)
    assert len(r.execute_command("DQ.POP", "q", "ID", "a", "TTR", 1)) == 1
    assert len(r.execute_command("DQ.POP", "q", "ID", "b", "e", "often")) == 3
    r.execute_command("DQ.RELEASE", "q", "b", "*", "PRIORITY", 7, "REASON", "rain")
    r.execute_command("DQ.BURY", "q", "e", "*")
    r.execute_command("DQ.RELEASE", "q", "often", "*", "DELAY", HOUR_MS)
    r.execute_command("DQ.POP", "q", "ID", "often", "ID", "c", "NOACK")
    r.execute_command("DQ.KICK", "q")
    r.execute_command("DQ.POP", "q", "COUNT", 1)
    eventually(lambda: job(r, "q", "a")["timed-out"] == 1)
    r.execute_command("DQ.POP", "q", "ID", "a")


def shown(server: Server) -> dict[str, list[object]]:
    with server.client() as r:
        return {
            name: [job(r, "q", name)[field] for field in SHOWN] for name in ("a", "b", "e", "often")
        }


def test_a_replica_has_the_same_jobs_taken_by_id(fresh_server: StartServer) -> None:
    primary, replica = fresh_server("appendonly yes"), fresh_server("appendonly yes")
    replica.replicate(primary)
    with primary.client() as r:
        work(r)
    replica.catch_up(primary)
    assert queues_of(replica) == queues_of(primary)
    assert shown(replica) == shown(primary)
    assert shown(primary)["a"][-4:] == [1, 0, 0, 0]
    assert shown(primary)["e"][-4:] == [0, 0, 1, 1]
    with replica.client() as r:
        assert r.info("dq")["dq_diverged"] == 0


def test_files_and_copies_hold_jobs_taken_by_id(fresh_server: StartServer) -> None:
    for config in FILES:
        server = fresh_server(*config)
        with server.client() as r:
            work(r)
        check_copies_hold(server, "q")
        check_files_hold(server, config, shown)


def test_a_pop_by_id_is_logged_with_the_word_id_before_each_id(fresh_server: StartServer) -> None:
    server = fresh_server("appendonly yes")
    with server.client() as r:
        for name in ("a", "COUNT", "c"):
            r.execute_command("DQ.ADD", "q", name, "x")
        r.execute_command("DQ.POP", "q", "WITHDUE", "TTR", 5_000, "ID", "COUNT", "a", "c")
    server.stop()
    (file,) = (server.directory / "appendonlydir").glob("*.incr.aof")
    (pop,) = (words for words in commands_in(file.read_bytes()) if b"ID" in words)
    assert pop[pop.index(b"ID") :] == [b"ID", b"COUNT", b"ID", b"a", b"ID", b"c", b"TTR", b"5000"]
