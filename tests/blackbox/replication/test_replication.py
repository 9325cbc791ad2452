"""Primary and replica agree, whatever happens. A replica changes nothing by itself; a new primary
does.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest
import redis

from harness.clock import now_ms
from harness.queues import binary_client, come_to_rest, digests, info, job, queues_of, waiting
from harness.server import Server, eventually, offset, ports_online
from harness.wall_clock import shifted_clock
from harness.workload import QUEUES, Workload
from harness.zoo import make_zoo, pop_all

StartServer = Callable[..., Server]
Told = TypeVar("Told")
# The primary's pings move the offset that some tests want to see at rest.
NO_PINGS = "repl-ping-replica-period 3600"


def totals_of(server: Server) -> dict[str, dict[str, int]]:
    with server.client() as r:
        keys = sorted(r.scan_iter(_type="delayq-dq", count=1_000))
        told = {key: info(r, key) for key in keys}
    return {
        key: {name: value for name, value in of_key.items() if name.startswith("total")}
        for key, of_key in told.items()
    }


# What no command does but time: a server counts it when it sees it.
BY_TIME = {"total-timed-out", "total-dead"}


def totals_by_commands(server: Server) -> dict[str, dict[str, int]]:
    return {
        key: {name: total for name, total in totals.items() if name not in BY_TIME}
        for key, totals in totals_of(server).items()
    }


def agreed_queues(primary: Server, *replicas: Server) -> dict[str, str]:
    """The digests that all of them come to have."""
    __tracebackhide__ = True
    return agreed(queues_of, primary, *replicas)


def agreed(tell: Callable[[Server], Told], primary: Server, *replicas: Server) -> Told:
    """What all of them come to tell. The primary's timer may purge a job between two looks: then
    they are asked again."""
    __tracebackhide__ = True

    def told_if_agreed() -> Told | None:
        for replica in replicas:
            replica.catch_up(primary)
        first, *others = map(tell, (primary, *replicas))
        return first if all(other == first for other in others) else None

    return eventually(told_if_agreed, 3)


def agreed_queues_at_rest(primary: Server, *replicas: Server) -> dict[str, str]:
    """The same, once no job will leave for hours without somebody saying so: also not after a
    restart.
    """
    with primary.client() as r:
        come_to_rest(r)
    return agreed_queues(primary, *replicas)


def role(server: Server) -> str:
    with server.client() as r:
        return r.info("replication")["role"]


def promote(replica: Server) -> None:
    with replica.client() as r:
        r.execute_command("REPLICAOF", "NO", "ONE")


def test_a_replica_agrees_under_a_random_workload(fresh_server: StartServer) -> None:
    primary, replica, sub_replica = (fresh_server("appendonly yes") for _ in range(3))
    replica.replicate(primary)
    sub_replica.replicate(replica)
    with primary.client() as r, replica.client() as reader:
        workload = Workload(r, seed=1)
        for _ in range(8):
            workload.run(commands=1_000)
            for queue in QUEUES:
                reader.execute_command("DQ.INFO", queue)
            agreed_queues(primary, replica, sub_replica)
        assert len(queues_of(primary)) >= len(QUEUES) // 2
        assert workload.handed_out > 1_000
        # It has no schedules: see test_schedules_elsewhere.py.
        for total in set(next(iter(totals_of(primary).values()))) - {"total-missed"}:
            seen = sum(totals[total] for totals in totals_of(primary).values())
            assert seen > 10, f"the workload leaves out what makes {total}"
    agreed(totals_by_commands, primary, replica, sub_replica)

    # And what each of them wrote down says the same.
    at_rest = agreed_queues_at_rest(primary, replica, sub_replica)
    for server in primary, replica, sub_replica:
        eventually(lambda server=server: has_written_its_aof(server), 30)
        server.kill9()
        server.start()
        assert queues_of(server) == at_rest


def test_full_sync_of_every_kind_of_job(fresh_server: StartServer) -> None:
    primary, replica = fresh_server(), fresh_server()
    with binary_client(primary) as r, binary_client(replica) as there:
        zoo = make_zoo(r, "q")
        before = zoo.snapshot(r, "q")
        replica.replicate(primary)
        assert zoo.snapshot(there, "q") == before
        assert pop_all(r, "q")
        replica.catch_up(primary)
        assert zoo.snapshot(there, "q") == zoo.snapshot(r, "q") != before


def test_a_replica_never_changes_anything_by_itself(fresh_server: StartServer) -> None:
    primary, replica = fresh_server(NO_PINGS), fresh_server(NO_PINGS)
    replica.replicate(primary)
    with primary.client() as r, replica.client() as there:
        r.execute_command("DQ.ADD", "q", "retried", "x", "TTR", 150, "PRIORITY", 1)
        r.execute_command("DQ.ADD", "q", "dies", "x", "TTR", 150, "PRIORITY", 1, "ATTEMPTS", 1)
        r.execute_command("DQ.POP", "q", "COUNT", 2)
        due = now_ms() + 200
        r.execute_command("DQ.ADD", "q", "due", "x", "AT", due)
        replica.catch_up(primary)
        offset_before, digest = offset(there, "slave_repl_offset"), digests(there, "q")
        runs = there.info("dq")["dq_timer_runs"]

        # It is seen there like here what time has done, and seeing it changes nothing.
        eventually(lambda: there.execute_command("DQ.LEN", "q", "STATE", "ready") == 2)
        assert now_ms() >= due
        states = [job(there, "q", id)["state"] for id in ("retried", "dies", "due")]
        assert states == ["ready", "dead", "ready"]
        assert info(there, "q")["reserved"] == 0
        eventually(lambda: now_ms() > due + 300)
        assert digests(there, "q") == digests(r, "q") == digest
        assert offset(there, "slave_repl_offset") == offset_before
        assert offset(r, "master_repl_offset") == offset_before
        assert there.info("dq")["dq_timer_runs"] == runs
        with pytest.raises(redis.ReadOnlyError):
            there.execute_command("DQ.POP", "q")


@pytest.mark.parametrize("by_s", [-3600, 3600])
def test_a_replicas_clock_plays_no_role(
    fresh_server: StartServer, tmp_path: Path, by_s: int
) -> None:
    primary = fresh_server()
    replica = fresh_server("appendonly yes", environment=shifted_clock(tmp_path, by_s))
    with primary.client() as r, replica.client() as there:
        seconds_apart = there.time()[0] - r.time()[0]
        assert abs(seconds_apart - by_s) < 60, "the replica's clock is not wrong"
        replica.replicate(primary)
        workload = Workload(r, seed=2)
        for _ in range(3):
            workload.run(commands=500)
            agreed_queues(primary, replica)
    at_rest = agreed_queues_at_rest(primary, replica)
    eventually(lambda: has_written_its_aof(replica), 30)
    replica.kill9()
    replica.start()
    assert queues_of(replica) == at_rest


def has_written_its_aof(server: Server) -> bool:
    """A replica begins its AOF anew, in the background, with what the full sync brought. And a
    server puts writing off while an older part is being synced."""
    with server.client() as r:
        state = r.info("persistence")
    under_way = state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]
    is_rewritten = not under_way and state["aof_last_bgrewrite_status"] == "ok"
    has_base = state["aof_base_size"] > 0 or role(server) == "master"
    return is_rewritten and has_base and state["aof_buffer_length"] == 0


@pytest.mark.parametrize("seen_by", ["stream", "full sync"])
def test_leases_grow_when_the_new_primarys_clock_is_behind(
    fresh_server: StartServer, tmp_path: Path, seen_by: str
) -> None:
    primary = fresh_server()
    replica = fresh_server(environment=shifted_clock(tmp_path, -3600))
    if seen_by == "stream":
        replica.replicate(primary)
    with closing(primary.session()) as session:
        session.check("""
            > DQ.ADD q a x TTR 1
            "a"
            > DQ.ADD removed a x
            "a"
            > DQ.POP q
            [["a", "x", <lease>, 1]]
            > DQ.POP removed
            [["a", "x", <removed_lease>, 1]]
        """)
        lease, removed_lease = session["lease"], session["removed_lease"]
    if seen_by == "full sync":
        replica.replicate(primary)
    replica.catch_up(primary)
    promote(replica)
    with closing(replica.session()) as session:
        session.check(
            """
            # By its clock this lease lasts for another hour.
            > DQ.FINISH q a <lease>
            (integer) 1
            > DEL removed
            (integer) 1
            > DQ.ADD removed a x
            "a"
            > DQ.POP removed
            [["a", "x", <next_of_removed>, 1]]
            > DQ.FINISH removed a <removed_lease>
            (integer) 0
            > DQ.ADD q b x
            "b"
            > DQ.POP q
            [["b", "x", <next>, 1]]
            """,
            lease=lease,
            removed_lease=removed_lease,
        )
        assert session["next"] > lease
        assert session["next_of_removed"] > removed_lease


def test_a_promoted_replica_goes_on_in_time(fresh_server: StartServer) -> None:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    due = now_ms() + 1_200
    with primary.client() as r, primary.client(db=5) as in_db_5:
        for client in r, in_db_5:
            client.execute_command("DQ.ADD", "q", "a", "x", "AT", due)
        r.execute_command("DQ.ADD", "leased", "b", "x", "TTR", 1_200)
        ((_, _, lease, _),) = r.execute_command("DQ.POP", "leased")
        r.execute_command("DQ.ADD", "renamed", "c", "x", "AT", due)
        r.rename("renamed", "elsewhere")
    replica.catch_up(primary)
    primary.kill9()
    promote(replica)
    with replica.client() as there:
        # Nobody touches a queue, and the timer has all of them in view, the renamed one, too.
        eventually(lambda: waiting(there) == 4, 1)
        assert now_ms() < due, "the machine is too slow to tell"
        eventually(lambda: waiting(there) == 0, 3)
        assert now_ms() >= due
        for queue in "q", "elsewhere", "leased":
            assert there.execute_command("DQ.LEN", queue, "STATE", "ready") == 1
        ((id, _, second_lease, attempt),) = there.execute_command("DQ.POP", "leased")
        assert (id, attempt) == ("b", 2) and second_lease > lease
        assert there.execute_command("DQ.FINISH", "leased", "b", lease) == 0
        assert there.execute_command("DQ.FINISH", "leased", "b", second_lease) == 1


def test_a_worker_of_the_old_primary_reports_to_the_new_one(fresh_server: StartServer) -> None:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    with closing(primary.session()) as session:
        session.check("""
            > DQ.ADD q a x
            "a"
            > DQ.POP q
            [["a", "x", <lease>, 1]]
        """)
        lease = session["lease"]
    replica.catch_up(primary)
    primary.kill9()
    promote(replica)
    replica.session().check("> DQ.FINISH q a <lease>\n(integer) 1", lease=lease)


def test_the_old_primary_follows_the_new_one(fresh_server: StartServer) -> None:
    old, new = fresh_server(), fresh_server()
    new.replicate(old)
    with old.client() as r, new.client() as there:
        Workload(r, seed=3).run(commands=500)
        new.catch_up(old)
        promote(new)
        # They part: what the old one does now is not to stay.
        Workload(r, seed=4).run(commands=300)
        Workload(there, seed=5).run(commands=300)
        assert queues_of(old) != queues_of(new)
        full_syncs = there.info("stats")["sync_full"]
        old.replicate(new)
        assert there.info("stats")["sync_full"] == full_syncs + 1
        agreed_queues(new, old)
        Workload(there, seed=6).run(commands=300)
        agreed_queues(new, old)


def test_failover_there_and_back(fresh_server: StartServer) -> None:
    a, b = fresh_server(), fresh_server()
    b.replicate(a)
    fail_over(a, b)
    fail_over(b, a)


def fail_over(old: Server, new: Server) -> None:
    """Jobs fall due and leases end all the while."""
    with old.client() as r, new.client() as there:
        Workload(r, seed=7).run(commands=500)
        due = now_ms() + 700
        r.execute_command("DQ.ADD", "in time", "a", "x", "AT", due, "REPLACE")
        eventually(lambda: new.port in ports_online(r), 20)
        r.execute_command("FAILOVER", "TO", "127.0.0.1", new.port)
        eventually(lambda: role(new) == "master" and role(old) == "slave", 10)
        eventually(lambda: r.info("replication")["master_link_status"] == "up", 20)
        eventually(lambda: there.execute_command("DQ.POP", "in time"), 5)
        assert now_ms() >= due
        Workload(there, seed=8).run(commands=200)
        agreed_queues(new, old)


def test_commands_that_change_nothing_are_not_sent_to_replicas(fresh_server: StartServer) -> None:
    primary, replica = fresh_server(NO_PINGS), fresh_server(NO_PINGS)
    replica.replicate(primary)
    with closing(primary.session()) as session, primary.client() as r:
        session.check("""
            > DQ.ADD q a x DELAY 3600000
            "a"
        """)
        before = offset(r, "master_repl_offset")
        session.check("""
            > DQ.ADD q a y NX
            (nil)
            > DQ.ADD q a y
            (error) EXISTS id is taken in this queue
            > DQ.POP q
            (nil)
            > DQ.POP none
            (nil)
            > DQ.FINISH q a
            (integer) 0
            > DQ.DEL q b
            (integer) 0
            > DQ.LEN q
            (integer) 1
        """)
        assert offset(r, "master_repl_offset") == before
