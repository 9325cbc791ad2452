"""A queue survives every way in which the server keeps it: each field, order, lease and total."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count, pairwise

import pytest
import redis

from harness.clock import now_ms
from harness.marks import long
from harness.pipelined import Pipelined
from harness.queues import binary_client, come_to_rest, digests, info, job, queues_of, waiting
from harness.resp import Failure
from harness.server import Server, eventually
from harness.workload import Workload
from harness.zoo import Zoo, make_zoo, pop_all

RDB_PREAMBLE = "aof-use-rdb-preamble yes"
COMMANDS_ONLY = "aof-use-rdb-preamble no"
StartServer = Callable[..., Server]


@pytest.fixture
def b(server: Server) -> Iterator[redis.Redis]:
    """A client of the shared server that decodes nothing."""
    with binary_client(server) as client:
        yield client


def check_kept(zoo: Zoo, server: Server, key: str, before: object) -> None:
    """The queue is what it was, and workers can go on with it."""
    with binary_client(server) as r:
        assert zoo.snapshot(r, key) == before
        last_lease = info(r, key)["last-lease"]
        handed_out = pop_all(r, key)
        assert [delivery[0] for delivery in handed_out] == zoo.ready
        leases = [last_lease, *(lease for _, _, lease, _ in handed_out)]
        assert all(earlier < later for earlier, later in pairwise(leases))
        # A worker that got its job before can still report it.
        held = job(r, key, b"leased")
        assert r.execute_command("DQ.FINISH", key, b"leased", held["lease"]) == 1


def test_queues_survive_save_and_restart(fresh_server: StartServer) -> None:
    server = fresh_server()
    with binary_client(server) as r:
        zoo = make_zoo(r, "q")
        before = zoo.snapshot(r, "q")
        r.save()
    server.restart()
    check_kept(zoo, server, "q", before)


def test_queues_survive_a_restart_from_the_aof(fresh_server: StartServer) -> None:
    server = fresh_server("appendonly yes")
    with binary_client(server) as r:
        zoo = make_zoo(r, "q")
        before = zoo.snapshot(r, "q")
    server.restart()
    check_kept(zoo, server, "q", before)


@pytest.mark.parametrize(
    "preamble, base",
    [
        pytest.param(RDB_PREAMBLE, ".rdb", id="rdb preamble"),
        pytest.param(COMMANDS_ONLY, ".aof", id="commands only"),
    ],
)
def test_queues_survive_a_restart_from_a_rewritten_aof(
    fresh_server: StartServer, preamble: str, base: str
) -> None:
    server = fresh_server("appendonly yes", preamble)
    with binary_client(server) as r:
        zoo = make_zoo(r, "q")
        before = zoo.snapshot(r, "q")
        make_zoo(r, "changed-later")
        assert server.rewrite_aof().suffix == base
        # What follows goes behind the rewritten part.
        assert pop_all(r, "changed-later")
        r.execute_command("DQ.ADD", "changed-later", "*", "new", "DELAY", 1)
        r.execute_command("DQ.ADD", "changed-later", "far-z", "new", "REPLACE", "DELAY", 50_000)
        r.execute_command("DQ.FINISH", "changed-later", "leased", "*", "leased-twice", "*")
        changed = digests(r, "changed-later")
    server.restart()
    with binary_client(server) as r:
        assert digests(r, "changed-later") == changed
    check_kept(zoo, server, "q", before)


def test_queues_survive_debug_reload(server: Server, b: redis.Redis) -> None:
    zoo = make_zoo(b, "q")
    before = zoo.snapshot(b, "q")
    b.execute_command("DEBUG", "RELOAD")
    check_kept(zoo, server, "q", before)


@pytest.mark.parametrize("preamble", [RDB_PREAMBLE, COMMANDS_ONLY])
@pytest.mark.parametrize("seed", [11, pytest.param(12, marks=long), pytest.param(13, marks=long)])
def test_a_random_workload_survives_a_restart(
    fresh_server: StartServer, preamble: str, seed: int
) -> None:
    server = fresh_server("appendonly yes", preamble)
    base = ".rdb" if preamble == RDB_PREAMBLE else ".aof"
    with server.client() as r:
        workload = Workload(r, seed)

        def check_restart() -> None:
            come_to_rest(r)
            before = queues_of(server)
            server.restart()
            assert queues_of(server) == before

        workload.run(commands=1_000)
        check_restart()
        workload.run(commands=500)
        assert server.rewrite_aof().suffix == base
        check_restart()
        workload.run(commands=500)
        check_restart()
        come_to_rest(r)
        before = queues_of(server)
        r.execute_command("DEBUG", "RELOAD")
        assert queues_of(server) == before


@pytest.mark.parametrize("preamble", [RDB_PREAMBLE, COMMANDS_ONLY])
def test_queues_survive_debug_loadaof(fresh_server: StartServer, preamble: str) -> None:
    server = fresh_server("appendonly yes", preamble)
    with binary_client(server) as r:
        zoo = make_zoo(r, "q")
        before = zoo.snapshot(r, "q")
        r.execute_command("DEBUG", "LOADAOF")
    check_kept(zoo, server, "q", before)


def test_queues_survive_dump_and_restore(server: Server, b: redis.Redis) -> None:
    zoo = make_zoo(b, "q")
    before = zoo.snapshot(b, "q")
    payload = b.dump("q")

    b.restore("other", 0, payload)
    assert zoo.snapshot(b, "other") == before
    with pytest.raises(redis.ResponseError, match="BUSYKEY"):
        b.restore("q", 0, payload)

    assert pop_all(b, "q")
    b.restore("q", 0, payload, replace=True)
    assert zoo.snapshot(b, "q") == before
    b.delete("q")
    b.restore("q", 0, payload)
    check_kept(zoo, server, "q", before)


@pytest.mark.parametrize("database", [0, 5])
def test_a_copied_queue_is_equal_and_goes_its_own_way(
    server: Server, b: redis.Redis, database: int
) -> None:
    zoo = make_zoo(b, "q")
    before = zoo.snapshot(b, "q")
    with binary_client(server, db=database) as there:
        assert b.copy("q", "copy", destination_db=database)
        assert zoo.snapshot(there, "copy") == before
        # Neither knows of the other.
        assert len(pop_all(there, "copy")) == len(zoo.ready)
        there.execute_command("DQ.DEL", "copy", *zoo.ids)
        assert zoo.snapshot(b, "q") == before
        assert b.copy("q", "copy", destination_db=database, replace=True)
        b.delete("q")
        assert zoo.snapshot(there, "copy") == before


def test_a_queue_without_jobs_survives_files_and_copies(fresh_server: StartServer) -> None:
    server = fresh_server("appendonly yes", COMMANDS_ONLY)
    with binary_client(server) as r:
        r.execute_command("DQ.ADD", "q", "a", "x")
        ((_, _, lease, _),) = r.execute_command("DQ.POP", "q")
        assert r.execute_command("DQ.FINISH", "q", "a", lease) == 1
        r.restore("restored", 0, r.dump("q"))
        r.copy("q", "copied")
        keys = ("q", "restored", "copied")
        before = [info(r, key) for key in keys]
        assert before[0] == before[1] == before[2]
        assert before[0]["last-lease"] == lease
        totals = ("total-added", "total-popped", "total-finished")
        assert [before[0][total] for total in totals] == [1, 1, 1]

        for keep in (
            server.restart,
            lambda: r.execute_command("DEBUG", "RELOAD"),
            server.rewrite_aof,
            server.restart,
        ):
            keep()
            assert [info(r, key) for key in keys] == before


@dataclass
class Producer:
    """Adds jobs over one connection, always with some on the way, until the server is gone."""

    connection: Pipelined
    name: str
    acknowledged: list[str] = field(default_factory=list)

    def run(self) -> None:
        on_the_way: list[str] = []
        try:
            for n in count():
                id = f"{self.name}-{n}"
                self.connection.send(("DQ.ADD", "q", id, f"body of {id}", "DELAY", n % 3 * 100))
                on_the_way.append(id)
                if len(on_the_way) > 20:
                    reply = self.connection.receive()
                    assert not isinstance(reply, Failure), reply
                    self.acknowledged.append(on_the_way.pop(0))
        except OSError:
            pass


def test_no_acknowledged_job_is_lost_in_a_crash(fresh_server: StartServer) -> None:
    server = fresh_server("appendonly yes", "appendfsync always")
    producers = [Producer(Pipelined(server.port), f"p{n}") for n in range(4)]
    threads = [threading.Thread(target=producer.run) for producer in producers]
    for thread in threads:
        thread.start()
    eventually(lambda: all(len(producer.acknowledged) > 500 for producer in producers), 60)
    server.kill9()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()

    server.start()
    acknowledged = [id for producer in producers for id in producer.acknowledged]
    with closing(Pipelined(server.port)) as connection:
        found = connection.call_all([("DQ.GET", "q", id) for id in acknowledged])
    for id, fields in zip(acknowledged, found, strict=True):
        assert fields is not None, f"{id} was acknowledged and is lost"
        assert fields[3] == f"body of {id}".encode()


def test_what_fell_due_while_down_is_handed_out_in_order(fresh_server: StartServer) -> None:
    server = fresh_server("appendonly yes", "appendfsync always")
    with closing(server.session()) as session:
        session.check("""
            > DQ.ADD q lost x TTR 300 PRIORITY 7
            "lost"
            > DQ.POP q
            [["lost", "x", <lease>, 1]]
            > DQ.ADD q last-chance x TTR 300 ATTEMPTS 1
            "last-chance"
            > DQ.POP q
            [["last-chance", "x", <*>, 1]]
            > DQ.ADD q third x DELAY 500
            "third"
            > DQ.ADD q second x DELAY 400
            "second"
            > DQ.ADD q first x DELAY 500 PRIORITY 1
            "first"
            > DQ.ADD q not-yet x DELAY 86400000
            "not-yet"
        """)
        lease = session["lease"]
    due = now_ms() + 500
    server.kill9()
    eventually(lambda: now_ms() > due)
    server.start()
    with closing(server.session()) as session:
        session.check(
            """
            > DQ.POP q COUNT 10
            [["first", "x", <*>, 1], ["lost", "x", <second_lease>, 2],
             ["second", "x", <*>, 1], ["third", "x", <*>, 1]]
            > DQ.FINISH q lost <lease>
            (integer) 0
            > DQ.FINISH q lost <second_lease>
            (integer) 1
            > DQ.LEN q STATE dead
            (integer) 1
            > DQ.LEN q STATE delayed
            (integer) 1
            """,
            lease=lease,
        )
        assert session["second_lease"] > lease


@pytest.mark.parametrize("how", ["rdb", "aof"])
def test_what_falls_due_after_a_restart_comes_by_itself(
    fresh_server: StartServer, how: str
) -> None:
    server = fresh_server(f"appendonly {'yes' if how == 'aof' else 'no'}")
    due = now_ms() + 1_500
    with server.client() as r:
        r.execute_command("DQ.ADD", "q", "a", "x", "AT", due)
        with server.client(db=5) as in_db_5:
            in_db_5.execute_command("DQ.ADD", "q", "a", "x", "AT", due)
        if how == "rdb":
            r.save()
    server.restart()
    with server.client() as r:
        assert waiting(r) == 2, "the server took too long to restart, or forgot its queues"
        eventually(lambda: waiting(r) == 0, 5)
        assert now_ms() >= due
        assert r.execute_command("DQ.LEN", "q", "STATE", "ready") == 1
