"""Sinks on replicas, in files and after a failover: a job is in the stream before it has left its
queue, and both are one unit of the log.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from harness.clock import HOUR_MS
from harness.elsewhere import FILES, check_copies_hold, check_files_hold
from harness.queues import info, queues_of
from harness.resp import commands_in
from harness.server import Server, eventually

StartServer = Callable[..., Server]
Words = list[bytes]


def incremental(server: Server) -> Path:
    (file,) = (server.directory / "appendonlydir").glob("*.incr.aof")
    return file


def ids(r: redis.Redis, stream: str = "s") -> list[str]:
    return [fields["id"] for _, fields in r.xrange(stream)]


def fill(r: redis.Redis, jobs: int, *options: str | int) -> None:
    with r.pipeline(transaction=False) as pipeline:
        for n in range(jobs):
            pipeline.execute_command("DQ.ADD", "q", n, f"body {n}", *options)
        pipeline.execute()


def units(file: Path) -> Iterator[list[Words]]:
    """The transactions of an AOF, and its other commands, each alone."""
    unit: list[Words] | None = None
    for words in commands_in(file.read_bytes()):
        if words == [b"MULTI"]:
            unit = []
        elif words == [b"EXEC"]:
            assert unit is not None
            yield unit
            unit = None
        elif unit is not None:
            unit.append(words)
        else:
            yield [words]


def is_pop(words: Words) -> bool:
    end = [b"COUNT", b"1", b"NOACK"]
    plain = words[0] == b"DQ.POP" and words[2:] == end
    timed = words[0] == b"DQ.APPLY" and words[4:] == [b"DQ.POP", *end]
    return plain or timed


def test_a_job_is_added_to_the_stream_before_it_leaves_the_queue_in_one_unit(
    fresh_server: StartServer,
) -> None:
    server = fresh_server("appendonly yes")
    with server.client() as r:
        r.execute_command("DQ.ALTER", "q", "SINK", "s", "MAXLEN", 1_000_000)
        fill(r, 300, "DELAY", 50, "GROUP", "g")
        eventually(lambda: r.xlen("s") == 300)
        expected = r.xrange("s")
    server.stop()
    poured = [unit for unit in units(incremental(server)) if unit[0][0] == b"XADD"]
    assert poured
    seen: list[tuple[str, dict[str, str]]] = []
    for unit in poured:
        for added, popped in zip(unit[::2], unit[1::2], strict=True):
            assert (added[0], added[1]) == (b"XADD", b"s")
            assert is_pop(popped), popped
            words = [word.decode() for word in added]
            # The server's own id stands in the log, so that it is the same everywhere.
            at = next(n for n, word in enumerate(words) if word.count("-") == 1)
            fields = dict(zip(words[at + 1 :: 2], words[at + 2 :: 2], strict=True))
            assert list(fields) == ["id", "due", "body", "group"]
            seen.append((words[at], fields))
    assert seen == expected


def test_replicas_have_the_same_stream_and_the_same_queue(fresh_server: StartServer) -> None:
    primary, replica = fresh_server(), fresh_server("appendonly yes")
    replica.replicate(primary)
    with primary.client() as r, replica.client() as there:
        r.execute_command("DQ.ALTER", "q", "SINK", "s", "MAXLEN", 150)
        fill(r, 500, "DELAY", 20)
        fill(r, 1, "REPLACE", "KEEP", HOUR_MS)
        r.execute_command("DQ.ADD", "q", "tick", "x", "EVERY", 20, "LATE", 5, "RUNS", 5)
        eventually(lambda: "tick" in ids(r) and r.execute_command("DQ.LEN", "q") == 1)
        replica.catch_up(primary)
        assert there.xrange("s") == r.xrange("s")
        assert (
            there.xinfo_stream("s")["last-generated-id"] == r.xinfo_stream("s")["last-generated-id"]
        )
        assert there.info("dq")["dq_diverged"] == 0
        assert info(there, "q")["sink"] == "s"
    assert queues_of(replica) == queues_of(primary)
    replica.stop()
    replica.start()
    with replica.client() as there:
        assert there.info("dq")["dq_diverged"] == 0


def test_a_replica_pours_nothing_by_itself_and_goes_on_as_a_primary(
    fresh_server: StartServer,
) -> None:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    with primary.client() as r, replica.client() as there:
        r.execute_command("DQ.ALTER", "q", "SINK", "s")
        r.set("s", "in the way")
        fill(r, 3)
        eventually(lambda: info(r, "q")["sink-error"])
        replica.catch_up(primary)
        primary.kill9()
        assert info(there, "q")["sink-error"] is None
        assert there.execute_command("DQ.LEN", "q", "STATE", "ready") == 3
        there.replicaof("NO", "ONE")
        # Nobody touches the queue here.
        there.delete("s")
        eventually(lambda: there.xlen("s") == 3)
        assert ids(there) == ["0", "1", "2"]


def test_a_failover_loses_no_job(fresh_server: StartServer) -> None:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    with primary.client() as r, replica.client() as there:
        r.execute_command("DQ.ALTER", "q", "SINK", "s")
        fill(r, 2_000, "DELAY", 30)
        r.execute_command("FAILOVER", "TO", "127.0.0.1", replica.port)
        eventually(lambda: there.info("replication")["role"] == "master", 20)
        eventually(lambda: there.execute_command("DQ.LEN", "q") == 0, 20)
        # In its order, and without a crash none twice.
        assert ids(there) == [str(n) for n in range(2_000)]


@pytest.mark.parametrize("cut_after", [b"XADD", b"DQ.POP"])
def test_after_a_torn_log_a_job_comes_twice_at_most_and_never_not_at_all(
    fresh_server: StartServer, cut_after: bytes
) -> None:
    server = fresh_server("appendonly yes", "aof-load-truncated yes")
    with server.client() as r:
        r.execute_command("DQ.ALTER", "q", "SINK", "s")
        fill(r, 100, "DELAY", 100)
        eventually(lambda: r.xlen("s") == 100)
    server.kill9()
    file = incremental(server)
    whole = file.read_bytes()
    ends = [at for at in range(len(whole)) if whole.startswith(b"\r\n*", at)]
    cuts = [
        end + 2
        for begin, end in zip([0, *ends], ends, strict=False)
        if cut_after in whole[begin:end] and whole.count(b"\r\nXADD\r\n", 0, end)
    ]
    assert len(cuts) >= 100
    # At the end of a command, and in the middle of the next.
    for cut in (cuts[0], cuts[40], cuts[60] + 11):
        file.write_bytes(whole[:cut])
        # Some servers carry a half unit out at the next start but one.
        for _ in range(2):
            server.start()
            with server.client() as r:
                eventually(lambda r=r: r.execute_command("DQ.LEN", "q") == 0)
                left = ids(r)
                assert set(left) == {str(n) for n in range(100)}
                # Those of the torn unit.
                assert max(Counter(left).values()) <= 2
            server.kill9()


def test_files_and_copies_hold_the_sink(fresh_server: StartServer) -> None:
    def shown(server: Server) -> dict[str, str | int]:
        with server.client() as r:
            told = info(r, "q")
            return {name: told[name] for name in ("sink", "sink-maxlen")}

    for config in FILES:
        server = fresh_server(*config)
        with server.client() as r:
            r.execute_command("DQ.PAUSE", "q")
            fill(r, 3)
            r.execute_command("DQ.ALTER", "q", "SINK", "a stream", "MAXLEN", 12)
        assert shown(server) == {"sink": "a stream", "sink-maxlen": 12}
        check_files_hold(server, config, shown)
        check_copies_hold(server, "q")


def test_a_rewritten_log_goes_on_with_the_sink(fresh_server: StartServer) -> None:
    server = fresh_server("appendonly yes")
    with server.client() as r:
        r.execute_command("DQ.ALTER", "q", "SINK", "s")
        r.set("s", "in the way")
        fill(r, 3)
        eventually(lambda: info(r, "q")["sink-error"])
        server.rewrite_aof()
    server.restart()
    with server.client() as r:
        assert eventually(lambda: info(r, "q")["sink-error"]).startswith("WRONGTYPE")
        r.delete("s")
        eventually(lambda: r.xlen("s") == 3)


def test_runs_that_are_too_late_are_passed_over_on_the_replica_too(
    fresh_server: StartServer,
) -> None:
    primary, replica = fresh_server("appendonly yes"), fresh_server()
    replica.replicate(primary)
    with primary.client() as r, replica.client() as there:
        r.execute_command("DQ.PAUSE", "q")
        r.execute_command("DQ.ALTER", "q", "SINK", "s")
        for n in range(5):
            cron = ("CRON", "* * * * * *") if n % 2 else ("EVERY", 1_000)
            r.execute_command("DQ.ADD", "q", n, "x", *cron, "LATE", 1, "RUNS", 1_000)
        eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "ready") == 5)
        # A job that is ready after them.
        r.execute_command("DQ.ADD", "q", "last", "x", "DELAY", 20)
        eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "ready") == 6)
        r.execute_command("DQ.RESUME", "q")
        eventually(lambda: "last" in ids(r))
        r.execute_command("DQ.PAUSE", "q")
        replica.catch_up(primary)
        assert info(r, "q")["total-missed"] >= 5
        assert there.info("dq")["dq_diverged"] == 0
        assert there.xrange("s") == r.xrange("s")
        digest = queues_of(primary)
        assert queues_of(replica) == digest
    primary.restart()
    with primary.client() as r:
        assert r.info("dq")["dq_diverged"] == 0
    assert any(b"PASSOVER" in words for unit in units(incremental(primary)) for words in unit)
