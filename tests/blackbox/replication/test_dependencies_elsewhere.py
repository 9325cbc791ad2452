"""Edges are the same on replicas, in files and in copies; deaths by time are told by the primary."""

from collections.abc import Callable

import redis

from harness.clock import HOUR_MS
from harness.elsewhere import FILES, check_copies_hold, check_files_hold
from harness.queues import queues_of
from harness.server import Server, eventually

StartServer = Callable[..., Server]
NAMES = ("kept", "all", "late", "any", "held", "open", "behind", "grown")


def work(r: redis.Redis) -> None:
    def add(name: str, *words: str | int) -> None:
        r.execute_command("DQ.ADD", "q", name, "x", "TTR", HOUR_MS, *words)

    for name in ("gone", "kept", "dead", "alive"):
        add(name, "KEEP", HOUR_MS if name == "kept" else 0)
    add("all", "AFTER", 4, "gone", "kept", "dead", "alive")
    add("late", "AFTER", 2, "gone", "kept", "AT", 2**40 * 2)
    add("any", "AFTER", 1, "dead", "ONDEAD", "RUN", "DELAY", HOUR_MS)
    add("held", "AFTER", 1, "alive", "HOLD", "TTL", HOUR_MS)
    add("open", "HOLD", "GROUP", "g")
    add("behind", "AFTER", 2, "all", "open")
    add("grown", "BEFORE", 2, "open", "all", "DELAY", HOUR_MS)
    r.execute_command("DQ.POP", "q", "COUNT", 3)
    r.execute_command("DQ.DONE", "q", "gone", "*", "RESULT", b"\x00result")
    r.execute_command("DQ.DONE", "q", "kept", "*", "RESULT", "other")
    r.execute_command("DQ.BURY", "q", "dead", "*", "REASON", "why")


def shown(server: Server) -> dict[str, object]:
    with server.client() as r:
        jobs = {name: r.execute_command("DQ.GET", "q", name) for name in NAMES}
        edges = {f"edges of {name}": r.execute_command("DQ.DEPS", "q", name) for name in NAMES}
        return jobs | edges


def test_a_replica_has_the_same_edges(fresh_server: StartServer) -> None:
    primary, replica = fresh_server("appendonly yes"), fresh_server("appendonly yes")
    replica.replicate(primary)
    with primary.client() as r:
        work(r)
        assert r.execute_command("DQ.LEN", "q", "STATE", "held") == 4
    replica.catch_up(primary)
    assert queues_of(replica) == queues_of(primary)
    assert shown(replica) == shown(primary)
    with replica.client() as r:
        assert r.info("dq")["dq_diverged"] == 0


def test_files_and_copies_hold_edges(fresh_server: StartServer) -> None:
    for config in FILES:
        server = fresh_server(*config)
        with server.client() as r:
            work(r)
        check_copies_hold(server, "q")
        check_files_hold(server, config, shown)


def test_jobs_of_a_copy_go_on(fresh_server: StartServer) -> None:
    server = fresh_server("")
    with server.client() as r:
        work(r)
        r.execute_command("RESTORE", "copy", 0, r.dump("q"))
        r.execute_command("DEL", "q")
        r.execute_command("DQ.KICK", "copy")
        r.execute_command("DQ.KICKJOB", "copy", "grown")
        popped = r.execute_command("DQ.POP", "copy", "COUNT", 9, "NOACK")
        assert [job[0] for job in popped] == ["alive", "dead", "grown"]
        assert r.execute_command("DQ.RESUME", "copy", "ID", "open", "held") == 2
        popped = r.execute_command("DQ.POP", "copy", "COUNT", 9, "NOACK")
        assert sorted(job[0] for job in popped) == ["all", "held", "open"]
        assert r.execute_command("DQ.POP", "copy", "NOACK")[0][0] == "behind"


def test_what_is_pending_is_in_copies_in_dumps_and_on_a_new_replica(
    fresh_server: StartServer,
) -> None:
    width = 400
    primary, replica = fresh_server(""), fresh_server("")
    maps = [f"map:{n}" for n in range(width)]
    with primary.client() as r:
        flow = r.pipeline(transaction=False)
        flow.execute_command("DQ.ADD", "q", "fetch", "x")
        for name in maps:
            flow.execute_command("DQ.ADD", "q", name, "x", "AFTER", 1, "fetch")
        for n in range(width):
            reduce = ("DQ.ADD", "q", f"reduce:{n}", "x", "AFTER", width, *maps)
            flow.execute_command(*reduce, "ONDEAD", "RUN")
        flow.execute()
        # The timer can't go on while writes are paused.
        end = r.pipeline()
        end.execute_command("DQ.DEL", "q", "fetch")
        end.execute_command("COPY", "q", "copy")
        end.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        assert end.execute()[:2] == [1, 1]
        dump = r.dump("q")
        assert in_states(r, "q") == (width, width, 0)
        replica.replicate(primary)
        replica.catch_up(primary)
        assert queues_of(replica) == queues_of(primary)
        r.execute_command("CLIENT", "UNPAUSE")
        r.execute_command("RESTORE", "restored", 0, dump)
        for name in ("q", "copy", "restored"):
            eventually(lambda name=name: in_states(r, name) == (width, 0, width))
    replica.catch_up(primary)
    assert queues_of(replica) == queues_of(primary)


def in_states(r: redis.Redis, queue: str) -> tuple[int, ...]:
    states = ("dead", "held", "ready")
    return tuple(r.execute_command("DQ.LEN", queue, "STATE", state) for state in states)


def test_a_promoted_replica_settles_what_died_meanwhile(fresh_server: StartServer) -> None:
    primary, replica = fresh_server(""), fresh_server("")
    replica.replicate(primary)
    with primary.client() as r:
        r.execute_command("DQ.ADD", "q", "a", "x", "DELAY", HOUR_MS, "TTL", 300)
        r.execute_command("DQ.ADD", "q", "b", "y", "AFTER", 1, "a", "ONDEAD", "RUN")
    replica.catch_up(primary)
    primary.kill9()
    with replica.client() as r:
        r.replicaof("NO", "ONE")
        assert r.execute_command("DQ.POP", "q", "BLOCK", 20_000)[0][0] == "b"
        assert r.execute_command("DQ.DEPS", "q", "b") == [
            None,
            [["a", "dead", "its time to live is over"]],
        ]


def test_a_replica_hears_of_a_death_by_id(fresh_server: StartServer) -> None:
    primary, replica = fresh_server(""), fresh_server("")
    replica.replicate(primary)
    with primary.client() as r, replica.client() as other:
        r.execute_command("DQ.ADD", "q", "a", "x", "DELAY", HOUR_MS, "TTL", 20)
        r.execute_command("DQ.ADD", "q", "b", "y", "AFTER", 1, "a", "ONDEAD", "RUN")
        r.execute_command("DQ.ADD", "q", "c", "y", "AFTER", 1, "a")
        eventually(lambda: other.execute_command("DQ.LEN", "q", "STATE", "ready") == 1)
        assert r.execute_command("DQ.LEN", "q", "STATE", "held") == 1
        # Nothing is said of it a second time.
        replica.catch_up(primary)
        assert queues_of(replica) == queues_of(primary)


def test_a_death_while_writes_are_paused_is_settled_behind_the_pause(
    fresh_server: StartServer,
) -> None:
    primary, replica = fresh_server(""), fresh_server("")
    replica.replicate(primary)
    with primary.client() as r:
        r.execute_command("DQ.ADD", "q", "a", "x", "DELAY", HOUR_MS, "TTL", 100)
        r.execute_command("DQ.ADD", "q", "b", "y", "AFTER", 1, "a", "ONDEAD", "RUN")
        r.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "dead") == 1)
        assert r.execute_command("DQ.LEN", "q", "STATE", "held") == 1
        r.execute_command("CLIENT", "UNPAUSE")
        eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "ready") == 1)
    replica.catch_up(primary)
    assert queues_of(replica) == queues_of(primary)


def test_a_log_that_is_torn_anywhere_makes_edges_that_add_up(fresh_server: StartServer) -> None:
    server = fresh_server("appendonly yes", "aof-load-truncated yes")
    with server.client() as r:
        work(r)
        whole = r.execute_command("DEBUG", "DIGEST-VALUE", "q")
    server.kill9()
    file = sorted(server.directory.rglob("*.aof"))[-1]
    log = file.read_bytes()
    for cut in [*range(len(log) // 10, len(log), len(log) // 10), len(log)]:
        file.write_bytes(log[:cut])
        server.start()
        with server.client() as r:
            info, digest = r.info("dq"), r.execute_command("DEBUG", "DIGEST-VALUE", "q")
            assert (info["dq_bugs"], info["dq_diverged"]) == (0, 0)
            r.execute_command("DEBUG", "RELOAD")
            assert r.execute_command("DEBUG", "DIGEST-VALUE", "q") == digest
        server.kill9()
    assert digest == whole
