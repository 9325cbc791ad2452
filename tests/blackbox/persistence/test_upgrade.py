"""docs/upgrade.md is true: the order of an upgrade, with files that each older version wrote, and what a module makes of data
that is newer than it.

No module but the present one is at hand. So an older module is played by this one, and newer data by golden files that claim the
next encoding version.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import redis

from harness.golden import RDB, Golden, digests_of, versions
from harness.paths import ROOT
from harness.payloads import ENCODING_VERSION, module_header, sealed, unsealed
from harness.ports import free_port
from harness.queues import binary_client
from harness.resp import fields
from harness.server import Server, eventually

StartServer = Callable[..., Server]
each_version = pytest.mark.parametrize("golden", versions(), ids=str)
PAGE = (ROOT / "docs" / "upgrade.md").read_text()
REFUSED = f"it has version {ENCODING_VERSION + 1}, this module reads up to {ENCODING_VERSION}: a newer dq wrote it"


def newer(data: bytes) -> bytes:
    """The same with the next encoding version at each queue."""
    mark, next_mark = (
        module_header(version)[1:] for version in (ENCODING_VERSION, ENCODING_VERSION + 1)
    )
    assert mark in data
    return data.replace(mark, next_mark)


def newer_file(golden: Golden) -> bytes:
    # A checksum of zeroes is none.
    return newer(golden.bytes_of("dump.rdb"))[:-8] + bytes(8)


# ---- Forward, in the order of the page ---------------------------------------------------------------


@each_version
def test_replicas_first_then_a_failover_then_the_old_primary(
    fresh_server: StartServer, golden: Golden, tmp_path: Path
) -> None:
    clock = golden.clock(tmp_path)
    primary = fresh_server(files=RDB.files_of(golden), environment=clock)
    replica = fresh_server(environment=clock)
    replica.replicate(primary)
    # Step 1: each replica. Step 2: a failover. Step 3: the old primary, as a replica.
    replica.restart()
    replica.replicate(primary)
    replica.catch_up(primary)
    with binary_client(primary) as r, binary_client(replica) as there:
        assert digests_of(there) == digests_of(r) == golden.digests
        r.execute_command("FAILOVER", "TO", "127.0.0.1", replica.port)
        eventually(lambda: there.info("replication")["role"] == "master", 20)
    primary.stop()
    with binary_client(replica) as r:
        # Workers go on meanwhile, also with what the old primary handed out.
        for key, queue in golden.content.items():
            for job in queue["jobs"]["reserved"]:
                peeked = fields(r.execute_command("DQ.PEEK", key, "STATE", "reserved")[0])
                assert peeked["lease"] == job["lease"]
                assert r.execute_command("DQ.FINISH", key, peeked["id"], job["lease"]) == 1
        primary.start()
        primary.replicate(replica)
        primary.catch_up(replica)
        with binary_client(primary) as there:
            assert digests_of(there) == digests_of(r)
            assert there.info("dq")["dq_diverged"] == 0


# ---- Back: what an older module makes of newer data -----------------------------------------------------


@each_version
def test_a_newer_file_is_refused_at_the_start(fresh_server: StartServer, golden: Golden) -> None:
    server = fresh_server()
    server.stop()
    (server.directory / "dump.rdb").write_bytes(newer_file(golden))
    with pytest.raises(RuntimeError) as refused:
        server.start()
    assert f"a queue can't be loaded: {REFUSED}" in str(refused.value)
    # It has ended by itself, and not by a crash.
    assert "REPORT" not in server.log()
    # The file is as it was: the newer module reads it.
    (server.directory / "dump.rdb").write_bytes(golden.bytes_of("dump.rdb"))
    server.start()


@each_version
def test_a_newer_payload_is_refused_and_changes_nothing(
    server: Server, r: redis.Redis, golden: Golden
) -> None:
    before = server.log()
    with binary_client(server) as b:
        for key, payload in golden.payloads.items():
            with pytest.raises(redis.ResponseError, match="Bad data format"):
                b.restore(key, 0, sealed(newer(unsealed(payload))))
            assert not b.exists(key)
            b.restore(key, 0, payload)
    assert REFUSED in server.log()[len(before) :]


@each_version
def test_an_older_replica_of_a_newer_primary_ends_in_words(
    fresh_server: StartServer, golden: Golden
) -> None:
    replica = fresh_server()
    with primary_that_sends(newer_file(golden)) as port:
        with replica.client() as r:
            r.replicaof("127.0.0.1", port)
        eventually(replica.has_died, 30)
    # Or the fixture takes its end for a crash.
    replica.kill9()
    assert f"a queue can't be loaded: {REFUSED}" in replica.log()
    assert "REPORT" not in replica.log()


@contextmanager
def primary_that_sends(file: bytes) -> Iterator[int]:
    """A stand-in for a primary: it answers a replica's greeting, and sends this file."""
    port = free_port()
    listener = socket.create_server(("127.0.0.1", port))

    def serve() -> None:
        with closing(listener.accept()[0]) as replica, replica.makefile("rb") as sent:
            for line in sent:
                # An array of strings: the words stand in every other line.
                words = [
                    (sent.readline(), sent.readline().strip())[1] for _ in range(int(line[1:]))
                ]
                match words[0].upper():
                    case b"PING":
                        replica.sendall(b"+PONG\r\n")
                    case b"PSYNC":
                        replica.sendall(
                            b"+FULLRESYNC %s 0\r\n$%d\r\n" % (b"a" * 40, len(file)) + file
                        )
                        return
                    case _:
                        replica.sendall(b"+OK\r\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with closing(listener):
        yield port
    thread.join(10)


def test_the_page_has_the_words_of_a_refusal() -> None:
    assert REFUSED in " ".join(PAGE.split())
    assert "DQ.NEW' in the log: a newer dq may have written it" in " ".join(PAGE.split())
