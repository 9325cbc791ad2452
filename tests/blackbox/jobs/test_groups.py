"""Groups take turns, however many jobs they have, also on replicas and after a restart."""

from collections.abc import Callable

import redis

from harness.elsewhere import FILES, check_copies_hold, check_files_hold
from harness.queues import queues_of
from harness.server import Server, eventually
from harness.transcript import Session

StartServer = Callable[..., Server]


def test_groups_take_turns(session: Session) -> None:
    session.check("""
        > DQ.ADD q n1 x
        "n1"
        > DQ.ADD q a1 x GROUP ann
        "a1"
        > DQ.ADD q a2 x GROUP ann
        "a2"
        > DQ.ADD q a3 x GROUP ann
        "a3"
        > DQ.POP q
        [["n1", "x", <*>, 1]]
        > DQ.ADD q b1 x GROUP bob
        "b1"
        > DQ.POP q COUNT 3
        [["a1", "x", <*>, 1], ["a2", "x", <*>, 1], ["b1", "x", <*>, 1]]
        > DQ.MPOP 2 none q
        ["q", [["a3", "x", <*>, 1]]]
    """)


def test_groups_and_get_show_the_groups_of_a_queue(session: Session) -> None:
    session.check("""
        > DQ.ALTER q GROUPCONCURRENCY 3 GROUPRATE 5 1000 BURST 4
        OK
        > DQ.ADD q a x GROUP "\\x00\\xff" DELAY 60000
        "a"
        > DQ.ADD q b x GROUP ann
        "b"
        > DQ.PAUSE q GROUP ann FOR 3600000
        OK
        > DQ.POP q
        (nil)
        > DQ.GROUPS q 0
        ["0", [["group", "\\x00\\xff", "ready", 0, "reserved", 0, "delayed", 1, "paused", 0,
                "paused-until", (nil), "blocked-until", (nil)],
               ["group", "ann", "ready", 1, "reserved", 0, "delayed", 0, "paused", 1,
                "paused-until", <until>, "blocked-until", <until>]]]
        > DQ.GROUPS q 0 COUNT 1
        [<cursor>, [["group", "\\x00\\xff", "ready", 0, "reserved", 0, "delayed", 1, "paused", 0,
                "paused-until", (nil), "blocked-until", (nil)]]]
        > DQ.GROUPS none 0
        ["0", []]
        > DQ.RESUME q GROUP ann
        OK
        > DQ.POP q
        [["b", "x", <*>, 1]]
    """)
    shown = session.call("DQ.GET", "q", "b")
    assert dict(zip(shown[::2], shown[1::2], strict=True))[b"group"] == b"ann"
    shown = session.call("DQ.INFO", "q")
    info = dict(zip(shown[::2], shown[1::2], strict=True))
    names = (
        b"groups",
        b"group-concurrency",
        b"group-rate",
        b"group-rate-per-ms",
        b"group-rate-burst",
    )
    assert [info[name] for name in names] == [2, 3, 5, 1000, 4]


def test_a_tenant_with_many_jobs_delays_another_by_one_turn(r: redis.Redis) -> None:
    pipeline = r.pipeline(transaction=False)
    for n in range(20_000):
        pipeline.execute_command("DQ.ADD", "q", f"big{n}", "x", "GROUP", "big")
    pipeline.execute()
    assert r.execute_command("DQ.POP", "q")[0][0] == "big0"
    r.execute_command("DQ.ADD", "q", "small", "x", "GROUP", "small")
    assert [job[0] for job in r.execute_command("DQ.POP", "q", "COUNT", 3)] == [
        "big1",
        "small",
        "big2",
    ]


def test_while_new_groups_keep_coming_the_others_are_served(r: redis.Redis) -> None:
    """One group for each order, and one order waiting at any time."""
    for id in ("n1", "n2", "n3"):
        r.execute_command("DQ.ADD", "q", id, "x")
    for id in ("a1", "a2", "a3"):
        r.execute_command("DQ.ADD", "q", id, "x", "GROUP", "ann")
    left = []
    for n in range(100):
        r.execute_command("DQ.ADD", "q", f"order{n}", "x", "GROUP", f"order:{n}")
        left.append(r.execute_command("DQ.POP", "q", "NOACK")[0][0])
    assert [id for id in left if not id.startswith("order")] == ["n1", "a1", "n2", "a2", "n3", "a3"]


def make_groups(r: redis.Redis) -> None:
    """In the middle of a round, with leases, a rate and a pause."""
    r.execute_command(
        "DQ.ALTER", "q", "GROUPCONCURRENCY", 2, "GROUPRATE", 7, 86_400_000, "BURST", 3
    )
    for n in range(40):
        r.execute_command(
            "DQ.ADD", "q", n, "x", "GROUP", n % 7, "PRIORITY", n % 2, "TTR", 86_400_000
        )
        r.execute_command("DQ.ADD", "q", f"own{n}", "x", "TTR", 86_400_000)
    assert len(r.execute_command("DQ.POP", "q", "COUNT", 9)) == 9
    r.execute_command("DQ.PAUSE", "q", "GROUP", 3)
    assert len(r.execute_command("DQ.POP", "q", "COUNT", 5, "NOACK")) == 5
    r.execute_command("DQ.PAUSE", "q", "GROUP", "nobody")


def groups(server: Server) -> list[object]:
    with server.client() as r:
        return sorted(r.execute_command("DQ.GROUPS", "q", 0, "COUNT", 100)[1])


def test_a_replica_goes_on_with_the_turns_of_groups(fresh_server: StartServer) -> None:
    primary, replica = fresh_server("appendonly yes"), fresh_server("appendonly yes")
    replica.replicate(primary)
    with primary.client() as r:
        make_groups(r)
        replica.catch_up(primary)
        assert queues_of(replica) == queues_of(primary)
        next_ones = [job[0] for job in r.execute_command("DQ.POP", "q", "COUNT", 12)]
        replica.catch_up(primary)
        assert queues_of(replica) == queues_of(primary)
        r.execute_command("DQ.RESUME", "q", "GROUP", 3)
    replica.catch_up(primary)
    assert len(next_ones) > 5
    primary.kill9()
    with replica.client() as r:
        assert r.info("dq")["dq_diverged"] == 0
        r.replicaof("NO", "ONE")
        assert r.execute_command("DQ.POP", "q", "COUNT", 9)


def test_files_and_copies_hold_groups(fresh_server: StartServer) -> None:
    for config in FILES:
        server = fresh_server(*config)
        with server.client() as r:
            make_groups(r)
        check_files_hold(server, config, groups)
        check_copies_hold(server, "q")
        with server.client() as r:
            orders = [
                r.execute_command("DQ.POP", key, "COUNT", 30) for key in ("q", "copied", "restored")
            ]
        taken = [[job[0] for job in order] for order in orders]
        assert taken[0] == taken[1] == taken[2]
        assert len(taken[0]) > 10


def test_groups_without_jobs_are_forgotten_while_there_are_no_commands(
    fresh_server: StartServer,
) -> None:
    """They are remembered by their rate for a second. Then the timer forgets them, in the AOF,
    too.
    """
    primary, replica = fresh_server("appendonly yes"), fresh_server()
    replica.replicate(primary)
    with primary.client() as r, replica.client() as there:
        r.execute_command("DQ.ALTER", "q", "GROUPRATE", 1, 1_000)
        pipeline = r.pipeline(transaction=False)
        for n in range(3_000):
            pipeline.execute_command("DQ.ADD", "q", n, "x", "GROUP", f"group:{n}")
            pipeline.execute_command("DQ.POP", "q", "NOACK")
        pipeline.execute()
        r.execute_command("DQ.ADD", "q", "left", "x", "GROUP", "left")

        def groups(client: redis.Redis) -> int:
            shown = client.execute_command("DQ.INFO", "q")
            return dict(zip(shown[::2], shown[1::2], strict=True))["groups"]

        assert groups(r) > 2_000
        eventually(lambda: groups(r) == 1)
        eventually(lambda: groups(there) == 1)
        replica.catch_up(primary)
        assert queues_of(replica) == queues_of(primary)
        assert there.info("dq")["dq_diverged"] == 0
    before = queues_of(primary)
    primary.kill9()
    primary.start()
    assert queues_of(primary) == before
