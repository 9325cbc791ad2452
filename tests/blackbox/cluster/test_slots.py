"""Where a command goes: keys of one slot, other nodes, replicas, slots that move."""

from collections.abc import Callable

import pytest
from redis.cluster import key_slot

from harness.cluster import Cluster, is_redirected, migration, ok
from harness.consumers import Room, in_one_go
from harness.resp import Failure, fields
from harness.server import Server, eventually

RoomAt = Callable[[Server], Room]
SLOT = key_slot(b"q")

# Each with its key in the place that it has.
READS = [
    ("DQ.LEN", "q"),
    ("DQ.INFO", "q"),
    ("DQ.PEEK", "q"),
    ("DQ.GET", "q", "a"),
    ("DQ.SCAN", "q", 0),
]
WRITES = [
    ("DQ.ADD", "q", "b", "x"),
    ("DQ.MADD", "q", 2, "m1", "x", "m2", "x"),
    ("DQ.POP", "q"),
    ("DQ.POP", "q", "BLOCK", 20_000),
    ("DQ.MPOP", 1, "q"),
    ("DQ.MPOP", 2, "q", "{q}2", "BLOCK", 20_000),
    ("DQ.FINISH", "q", "a"),
    ("DQ.RELEASE", "q", "a", "*"),
    ("DQ.TOUCH", "q", "a", "*"),
    ("DQ.BURY", "q", "a", "*"),
    ("DQ.DEL", "q", "a"),
    ("DQ.KICK", "q"),
    ("DQ.KICKJOB", "q", "a"),
    ("DQ.PAUSE", "q"),
    ("DQ.RESUME", "q"),
    ("DQ.PURGE", "q", "STATE", "dead"),
    ("DQ.ALTER", "q", "TTR", 1),
]
A_JOB = """
    > DQ.ADD q a x
    "a"
"""


def test_the_keys_of_mpop_are_of_one_slot(cluster: Cluster, room_at: RoomAt) -> None:
    room = room_at(cluster.owner("q"))
    for end in ((), ("BLOCK", 50)):
        assert room.call("DQ.MPOP", 2, "q", "other", *end).startswith("CROSSSLOT")
        assert room.call("DQ.MPOP", 3, "{q}1", "{q}2", "{r}2", *end).startswith("CROSSSLOT")
    room.play("""
        one> DQ.MPOP 3 q {q}1 {q}2 BLOCK 0
        > DQ.ADD {q}2 a x
        "a"
        one< ["{q}2", [["a", "x", <*>, 1]]]
        > DQ.ADD q b x
        "b"
        > DQ.MPOP 2 {q}1 q
        ["q", [["b", "x", <*>, 1]]]
    """)


def test_every_command_is_sent_to_the_node_that_has_its_key(
    cluster: Cluster, room_at: RoomAt
) -> None:
    owner = cluster.owner("q")
    for other in cluster.others(owner):
        room = room_at(other)
        for words in READS + WRITES:
            assert is_redirected(room.call(*words), "MOVED", SLOT, owner), words
    assert room.call("DQ.NEXT", "0 0 * * *", "COUNT", 2)[1] > 0, (
        "without a key it is at home everywhere"
    )


def test_a_cluster_replica_shows_jobs_and_hands_out_none(cluster: Cluster, room_at: RoomAt) -> None:
    owner = cluster.owner("q")
    room_at(owner).play(A_JOB)
    replica = cluster.replica_of(owner)
    replica.catch_up(owner)
    room = room_at(replica)
    for words in READS:
        assert is_redirected(room.call(*words), "MOVED", SLOT, owner), words
    room.play("""
        > READONLY
        OK
        > DQ.LEN q
        (integer) 1
        > DQ.LEN q STATE ready
        (integer) 1
    """)
    assert fields(room.call("DQ.INFO", "q"))["ready"] == 1
    assert fields(room.call("DQ.GET", "q", "a"))["body"] == b"x"
    assert [fields(job)["id"] for job in room.call("DQ.PEEK", "q")] == [b"a"]
    assert room.call("DQ.SCAN", "q", 0)[1] == [b"a"]
    for words in WRITES:
        assert is_redirected(room.call(*words), "MOVED", SLOT, owner), words


def test_while_its_slot_moves_a_queue_is_where_its_key_is(
    cluster: Cluster, room_at: RoomAt
) -> None:
    source = cluster.owner("q")
    target, _ = cluster.others(source)
    here, there = room_at(source), room_at(target)
    here.play(A_JOB)
    cluster.begin_move(SLOT, target)

    # It hasn't left yet: one may add to it and wait for it. What isn't there may be at the other
    # end.
    here.play("""
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > DQ.ADD q b y
        "b"
    """)
    assert is_redirected(here.call("DQ.ADD", "{q}new", "c", "z"), "ASK", SLOT, target)
    assert is_redirected(there.call("DQ.POP", "q"), "MOVED", SLOT, source)
    there.play("""
        > ASKING
        OK
        > DQ.ADD {q}new c z
        "c"
    """)
    # One key on either side: no node has both. Where the server looks at the first one only, so
    # does DQ.
    ok(here.call("DQ.PAUSE", "q"))
    told = here.call("DQ.MPOP", 2, "q", "{q}new")
    if told is not None:
        assert told.startswith("TRYAGAIN")
        there.play("""
            > ASKING
            OK
        """)
        assert there.call("DQ.MPOP", 2, "q", "{q}new").startswith("TRYAGAIN")
    assert (told is None) == (here.server.kind.name in ("redis-8.2", "valkey-8.1", "valkey-9.1"))
    ok(here.call("DQ.RESUME", "q"))

    ok(here.call(*migration(target, "q")))
    for words in READS + WRITES:
        if words[:3] != ("DQ.MPOP", 2, "q"):
            assert is_redirected(here.call(*words), "ASK", SLOT, target), words
    # The worker of the old node reports to the new one.
    lease = here["lease"]
    there.play(
        """
        > ASKING
        OK
        > DQ.FINISH q a <lease>
        (integer) 1
        > ASKING
        OK
        > DQ.MPOP 2 q {q}new
        ["q", [["b", "y", <*>, 1]]]
        """,
        lease=lease,
    )
    cluster.end_move(SLOT, target)
    there.play("""
        > DQ.POP {q}new
        [["c", "z", <*>, 1]]
    """)
    assert is_redirected(here.call("DQ.POP", "q"), "MOVED", SLOT, target)


@pytest.mark.parametrize(
    ("pop", "gets"),
    [
        ("DQ.POP q BLOCK 0", '[["{}", "x", <*>, 1]]'),
        ("DQ.MPOP 2 {q}0 q BLOCK 0", '["q", [["{}", "x", <*>, 1]]]'),
    ],
    ids=["pop", "mpop"],
)
def test_consumers_are_sent_after_their_slot(
    cluster: Cluster, room_at: RoomAt, pop: str, gets: str
) -> None:
    source = cluster.owner("q")
    target, _ = cluster.others(source)
    here = room_at(source)
    here.play(f"""
        > DQ.ADD q later x DELAY 3600000
        "later"
        one> {pop}
        two> {pop}
    """)
    cluster.move(SLOT, target)
    for name in "one", "two":
        assert is_redirected(here(name).hears(), "MOVED", SLOT, target)
    assert here.server_says("waiting_consumers") == 0

    # They go where they were sent, in their order, and are served there.
    room_at(target).play(f"""
        one> {pop}
        two> {pop}
        > DQ.KICKJOB q later
        (integer) 1
        two waits
        > DQ.ADD q now x DELAY 20
        "now"
        one< {gets.format("later")}
        two< {gets.format("now")}
    """)


def test_clients_that_wait_for_jobs_and_leases_are_sent_after_their_slot(
    cluster: Cluster, room_at: RoomAt
) -> None:
    source = cluster.owner("q")
    target, _ = cluster.others(source)
    here, there = room_at(source), room_at(target)
    here.play("""
        > DQ.ADD q a x TTR 60000
        "a"
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        one> DQ.RESULT q a BLOCK 0
        two> DQ.RENEW q 0 60000 a <lease>
    """)
    cluster.move(SLOT, target)
    for name in "one", "two":
        assert is_redirected(here(name).hears(), "MOVED", SLOT, target)
    assert here.server_says("watchers") == 0
    there.play(
        """
        one> DQ.RESULT q a BLOCK 0
        two> DQ.RENEW q 0 60000 a <lease>
        > DQ.DONE q a <lease> RESULT 42
        (integer) 1
        one< ["done", "42"]
        two< ["a"]
    """,
        lease=here["lease"],
    )


def test_a_consumer_at_the_new_node_before_the_queue_is_there_gets_its_jobs(
    cluster: Cluster, room_at: RoomAt
) -> None:
    source = cluster.owner("q")
    target, _ = cluster.others(source)
    here, there = room_at(source), room_at(target)
    here.play("""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x DELAY 100
        "b"
    """)
    cluster.begin_move(SLOT, target)
    for name in "one", "two":
        assert there(name).call("ASKING") == "OK"
        there.play(f"{name}> DQ.POP q BLOCK 0")
    assert cluster.move_keys(SLOT, source, target) == 1
    there.play("""
        one< [["a", "x", <*>, 1]]
        two< [["b", "x", <*>, 1]]
    """)
    cluster.end_move(SLOT, target)


def one_waits_while_the_slot_leaves(
    cluster: Cluster, room_at: RoomAt
) -> tuple[Server, Server, Room, Room]:
    """The node that it leaves, the one that it goes to, and a room at each."""
    source = cluster.owner("q")
    target, _ = cluster.others(source)
    here, there = room_at(source), room_at(target)
    here.play("""
        > DQ.ADD q later x DELAY 3600000
        "later"
        one> DQ.POP q BLOCK 0
    """)
    cluster.begin_move(SLOT, target)
    return source, target, here, there


def test_a_job_assigned_in_the_turn_in_which_its_queue_leaves_is_delivered_once(
    cluster: Cluster, room_at: RoomAt
) -> None:
    source, target, here, there = one_waits_while_the_slot_leaves(cluster, room_at)
    added, moved = in_one_go(source.port, ("DQ.ADD", "q", "a", "x"), tuple(migration(target, "q")))
    assert (added, moved) == (b"a", "OK")
    here.play("""
        one< [["a", "x", <lease>, 1]]
    """)
    cluster.end_move(SLOT, target)
    lease = here["lease"]
    there.play(
        """
        > DQ.FINISH q a <lease>
        (integer) 1
        """,
        lease=lease,
    )


def test_the_job_of_a_consumer_that_vanishes_as_its_queue_leaves_is_not_lost(
    cluster: Cluster, room_at: RoomAt
) -> None:
    """The job was assigned to it and has left: it comes back at the new node when the TTR is
    over.
    """
    source, target, here, there = one_waits_while_the_slot_leaves(cluster, room_at)
    add = ("DQ.ADD", "q", "a", "x", "TTR", 300)
    kill = ("CLIENT", "KILL", "ID", here("one").id)
    assert in_one_go(source.port, add, tuple(migration(target, "q")), kill)[1:] == ["OK", 1]
    assert here("one").is_closed()
    cluster.end_move(SLOT, target)
    there.play("""
        > DQ.POP q BLOCK 20000
        [["a", "x", <*>, 2]]
    """)
    for node in source, target:
        assert b"dq_bugs:0" in cluster.call(node, "INFO", "dq")


def test_a_consumer_whose_slot_comes_back_is_served(cluster: Cluster, room_at: RoomAt) -> None:
    """The move is called off before the key has gone."""
    source = cluster.owner("q")
    target, _ = cluster.others(source)
    here = room_at(source)
    here.play("one> DQ.POP q BLOCK 0")
    cluster.begin_move(SLOT, target)
    for node in source, target:
        ok(cluster.call(node, "CLUSTER", "SETSLOT", SLOT, "STABLE"))
    here.play("""
        > DQ.ADD q a x
        "a"
        one< [["a", "x", <*>, 1]]
    """)


def test_consumers_of_a_node_that_becomes_a_replica_come_back_at_the_new_one(
    cluster: Cluster, room_at: RoomAt
) -> None:
    old = cluster.owner("q")
    room = room_at(old)
    room.play("""
        > DQ.ADD q held x TTR 3600000
        "held"
        > DQ.POP q
        [["held", "x", <lease>, 1]]
        > DQ.ADD q later x DELAY 3600000
        "later"
        one> DQ.POP q BLOCK 0
    """)
    new = cluster.fail_over(old)
    reply = room("one").hears(20)
    assert isinstance(reply, Failure)
    assert reply.startswith(("UNBLOCKED", "MOVED")), reply
    eventually(lambda: is_redirected(cluster.call(old, "DQ.POP", "q"), "MOVED", SLOT, new), 20)

    there = room_at(new)
    eventually(lambda: there.call("DQ.LEN", "q") == 2)
    there.play(
        """
        one> DQ.POP q BLOCK 0
        > DQ.ADD q due x DELAY 50
        "due"
        one< [["due", "x", <*>, 1]]
        > DQ.FINISH q held <lease>
        (integer) 1
        """,
        lease=room["lease"],
    )
