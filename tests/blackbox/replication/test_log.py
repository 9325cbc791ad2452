"""The log is a sequence of (time, command): what the module writes, and what a reader of it
gets.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import redis

from harness.clock import HOUR_MS, now_ms
from harness.pipelined import Pipelined, encoded
from harness.queues import come_to_rest, job, queues_of
from harness.resp import commands_in
from harness.server import Server, eventually
from harness.wall_clock import shifted_clock
from harness.workload import Workload

StartServer = Callable[..., Server]
# What a client says, and the one word of ours.
LOGGED = {
    b"DQ.APPLY",
    *(
        b"DQ." + name
        for name in b"ADD MADD POP FINISH RELEASE TOUCH BURY DEL KICKJOB PAUSE RESUME ALTER".split()
    ),
}


def entries(server: Server) -> list[list[bytes]]:
    """The commands in the AOF."""
    (file,) = (server.directory / "appendonlydir").glob("*.incr.aof")
    return list(commands_in(file.read_bytes()))


def info_dq(server: Server) -> dict[str, int]:
    with server.client() as r:
        return r.info("dq")


def test_the_log_has_the_commands_and_their_times(fresh_server: StartServer) -> None:
    primary, replica = fresh_server("appendonly yes"), fresh_server("appendonly yes")
    replica.replicate(primary)
    with primary.client() as r:
        r.execute_command("DQ.ADD", "q", "delayed", "x", "DELAY", HOUR_MS)
        due = job(r, "q", "delayed")["due"]
        Workload(r, seed=9).run(commands=500)
        replica.catch_up(primary)
    with replica.client() as there:
        assert job(there, "q", "delayed")["due"] == due
    for server in primary, replica:
        server.stop()
        ours = [words for words in entries(server) if words[0].upper().startswith(b"DQ.")]
        assert {words[0].upper() for words in ours} <= LOGGED
        first = ours[0]
        assert first[:2] + first[4:] == [
            b"DQ.APPLY",
            b"q",
            b"DQ.ADD",
            b"delayed",
            b"x",
            b"DELAY",
            b"3600000",
        ]
        assert int(first[2]) == due - HOUR_MS
        assert first[3] == b"check=0,ttr=60000,attempts=25"
        for words in ours:
            if words[0].upper() == b"DQ.APPLY":
                assert words[2].isdigit() and words[3].startswith(b"check="), words


def test_commands_of_one_millisecond_are_logged_as_they_came(fresh_server: StartServer) -> None:
    server = fresh_server("appendonly yes")
    with closing(Pipelined(server.port)) as pipeline:
        pipeline.call_all([("DQ.ADD", "q", n, "x") for n in range(2_000)])
    with server.client() as r:
        content = r.execute_command("DQ.LEN", "q")
    server.stop()
    ours = [words for words in entries(server) if words[0].startswith(b"DQ.")]
    assert (len(ours), content) == (2_000, 2_000)
    told = [words for words in ours if words[0] == b"DQ.APPLY"]
    assert 0 < len(told) < 1_000, "some milliseconds have many commands"
    assert len({words[2] for words in told}) == len(told), "a time is told once"


def test_a_log_means_the_same_wherever_and_whenever_it_is_read(
    fresh_server: StartServer, tmp_path: Path
) -> None:
    """Other configs, another clock."""
    server = fresh_server("appendonly yes")
    with server.client() as r:
        workload = Workload(r, seed=5)
        workload.run(commands=2_000)
        r.config_set("dq.default-ttr", 7_000)
        r.config_set("dq.default-attempts", 3)
        r.config_set("dq.default-backoff", "3 50")
        r.config_set("dq.max-body-bytes", 100_000)
        workload.run(commands=500)
        come_to_rest(r)
        digests = queues_of(server)
    server.stop()
    for by_s in (-300, 300):
        other = fresh_server(
            "appendonly yes",
            "dq.default-ttr 1",
            'dq.default-backoff "1 2"',
            "dq.max-body-bytes 0",
            environment=shifted_clock(tmp_path, by_s),
        )
        other.stop()
        for file in (server.directory / "appendonlydir").iterdir():
            (other.directory / "appendonlydir" / file.name).write_bytes(file.read_bytes())
        other.start()
        assert queues_of(other) == digests
        assert info_dq(other)["dq_diverged"] == 0


def test_a_replica_gives_what_its_primary_gave_whatever_its_own_configs(
    fresh_server: StartServer,
) -> None:
    primary = fresh_server(
        "dq.default-ttr 5000", "dq.default-attempts 7", 'dq.default-backoff "100 200"'
    )
    replica = fresh_server(
        "dq.default-ttr 1000",
        "dq.default-attempts 1",
        'dq.default-backoff "7 8"',
        "dq.max-body-bytes 1",
    )
    replica.replicate(primary)
    with primary.client() as r, replica.client() as there:
        r.execute_command("DQ.ADD", "q", "a", "a long body")
        r.config_set("dq.default-ttr", 6_000)
        r.execute_command("DQ.ADD", "q", "b", "a long body")
        r.execute_command("DQ.POP", "q", "COUNT", 2)
        replica.catch_up(primary)
        for id, ttr in ("a", 5_000), ("b", 6_000):
            shown = job(there, "q", id)
            assert (shown["ttr"], shown["attempts"]) == (ttr, 7)
            assert (shown["backoff-base"], shown["backoff-max"]) == (100, 200)
            assert shown["deadline"] == job(r, "q", id)["deadline"]
    assert queues_of(primary) == queues_of(replica)


def test_a_replica_that_has_diverged_says_so(fresh_server: StartServer) -> None:
    primary, replica = fresh_server(), fresh_server("replica-read-only no")
    replica.replicate(primary)
    with primary.client() as r, replica.client() as there:
        r.execute_command("DQ.ADD", "q", "a", "x")
        r.execute_command("DQ.ADD", "q", "b", "x")
        replica.catch_up(primary)
        assert info_dq(replica)["dq_diverged"] == 0
        there.execute_command("DQ.DEL", "q", "a")
        r.execute_command("DQ.ADD", "other", "c", "x")

        def is_told() -> bool:
            r.execute_command("DQ.ADD", "q", "*", "x")
            return info_dq(replica)["dq_diverged"] > 0

        eventually(is_told)
        assert "queue 'q' is not what it was where the log was written" in replica.log()
        assert "the queue 'other'" not in replica.log()
        # It is told once, and the replica goes on.
        diverged = info_dq(replica)["dq_diverged"]
        r.execute_command("DQ.ADD", "q", "z", "x")
        replica.catch_up(primary)
        assert info_dq(replica)["dq_diverged"] == diverged
        assert job(there, "q", "z")["body"] == "x"
        # A queue that isn't there at all.
        there.delete("other")
        r.execute_command("DQ.FINISH", "other", "c")
        r.execute_command("DQ.DEL", "other", "c")
        replica.catch_up(primary)
        assert info_dq(replica)["dq_diverged"] == diverged + 1
    assert info_dq(primary)["dq_diverged"] == 0


def test_a_delivery_to_a_waiting_consumer_is_logged_as_a_pop(
    fresh_server: StartServer,
) -> None:
    primary, replica = fresh_server("appendonly yes"), fresh_server()
    replica.replicate(primary)
    with closing(Pipelined(primary.port)) as waiting, primary.client() as r:
        waiting.send(("DQ.MPOP", 2, "none", "q", "COUNT", 5, "TTR", 9_000, "BLOCK", 0))
        eventually(lambda: info_dq(primary)["dq_waiting_consumers"] == 1)
        r.execute_command("DQ.ADD", "q", "a", "x")
        assert waiting.receive()[1][0][0] == b"a"
        replica.catch_up(primary)
        assert queues_of(primary) == queues_of(replica)
    primary.stop()
    (pop,) = (
        words
        for words in entries(primary)
        if words[0].upper() == b"DQ.POP" or b"DQ.POP" in words[4:5]
    )
    assert pop[-4:] == [b"COUNT", b"5", b"TTR", b"9000"]


def test_log_entries_of_older_versions_are_still_read(fresh_server: StartServer) -> None:
    """A POP with both TTR and NOACK: refused by now, but there are logs that hold it."""
    server, replica = fresh_server("appendonly yes"), fresh_server()
    replica.replicate(server)
    with server.client() as r:
        for id in "a", "b", "c":
            r.execute_command("DQ.ADD", "q", id, "x")
        with pytest.raises(redis.ResponseError, match="TTR and NOACK exclude each other"):
            r.execute_command("DQ.POP", "q", "TTR", 5, "NOACK")
        # What a primary of that version would send.
        words = ["DQ.POP", "NOACK", "TTR", 5, "COUNT", 1]
        r.execute_command("DQ.APPLY", "q", now_ms(), "check=0", *words)
        replica.catch_up(server)
        assert r.execute_command("DQ.LEN", "q") == 2
    assert queues_of(server) == queues_of(replica)
    server.stop()
    (file,) = (server.directory / "appendonlydir").glob("*.incr.aof")
    with file.open("ab") as log:
        log.write(encoded(("DQ.POP", "q", "TTR", 5, "NOACK")))
    server.start()
    with server.client() as r:
        assert [r.execute_command("DQ.GET", "q", id) is None for id in ("a", "b", "c")] == [
            True,
            True,
            False,
        ]


@pytest.mark.parametrize(
    "entry", ["1 check=0 DQ.DANCE a", "1 check=0,moon=1 DQ.DEL a", "1 no DQ.DEL a"]
)
def test_log_entries_that_this_version_does_not_know_are_refused(
    fresh_server: StartServer, entry: str
) -> None:
    server = fresh_server()
    with server.client() as r:
        r.execute_command("DQ.ADD", "q", "a", "x")
        before = queues_of(server)
        with pytest.raises(redis.ResponseError, match="a newer dq may have written it"):
            r.execute_command("DQ.APPLY", "q", *entry.split())
        assert queues_of(server) == before


def test_an_aof_of_a_newer_version_is_refused_in_words(fresh_server: StartServer) -> None:
    server = fresh_server("appendonly yes")
    with server.client() as r:
        r.execute_command("DQ.ADD", "q", "a", "x")
    server.stop()
    (file,) = (server.directory / "appendonlydir").glob("*.incr.aof")
    data = file.read_bytes()
    assert data.count(b"$6\r\nDQ.ADD\r\n") == 1
    file.write_bytes(data.replace(b"$6\r\nDQ.ADD\r\n", b"$6\r\nDQ.NEW\r\n"))
    server.start()
    assert (
        "from the replication stream or AOF: ERR unknown command 'DQ.NEW' in the log: a newer dq"
        in server.log()
    )
    assert info_dq(server)["dq_diverged"] == 1
