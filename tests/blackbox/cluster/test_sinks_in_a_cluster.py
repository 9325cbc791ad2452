"""Sinks in a cluster: the stream is of the queue's slot, and both move together."""

from collections.abc import Callable

import redis
from redis.cluster import key_slot

from harness.cluster import Cluster, migration, ok
from harness.consumers import Room
from harness.queues import info
from harness.server import Server, eventually

RoomAt = Callable[[Server], Room]
SLOT = key_slot(b"q")
JOBS = 600


def ids(r: redis.Redis, stream: str = "{q}s") -> list[str]:
    return [fields["id"] for _, fields in r.xrange(stream)]


def test_the_stream_must_be_of_the_queues_slot(cluster: Cluster, room_at: RoomAt) -> None:
    room = room_at(cluster.owner("q"))
    for words in ("SINK", "s"), ("TTR", 5, "sink", "{r}q", "MAXLEN", 5):
        assert room.call("DQ.ALTER", "q", *words).startswith("CROSSSLOT")
    assert room.call("EXISTS", "q") == 0
    room.play("""
        > DQ.ALTER q SINK {q}s
        OK
        > DQ.ALTER {q}2 SINK {q}s MAXLEN 5
        OK
    """)


def test_a_sink_in_a_cluster_takes_what_is_due(cluster: Cluster) -> None:
    owner = cluster.owner("q")
    with owner.client() as r:
        r.execute_command("DQ.ALTER", "q", "SINK", "{q}s")
        for n in range(20):
            r.execute_command("DQ.ADD", "q", n, "x", "DELAY", n)
        eventually(lambda: r.xlen("{q}s") == 20)
        replica = cluster.replica_of(owner)
        replica.catch_up(owner)
        with replica.client() as there:
            there.execute_command("READONLY")
            assert ids(there) == ids(r) == [str(n) for n in range(20)]


def test_a_queue_waits_for_its_stream_while_their_slot_moves(
    cluster: Cluster, room_at: RoomAt
) -> None:
    """Key by key: first the stream, so that it is gone while the queue is still here; then the
    queue, which doesn't write before the slot is the new node's.
    """
    source = cluster.owner("q")
    target, _ = cluster.others(source)
    with source.client() as r, target.client() as there:
        r.execute_command("DQ.ALTER", "q", "SINK", "{q}s")
        r.execute_command("DQ.ADD", "q", "first", "x")
        eventually(lambda: r.exists("{q}s"))
        cluster.begin_move(SLOT, target)
        r.execute_command("DQ.ADD", "q", "second", "x")
        eventually(lambda: r.xlen("{q}s") == 2)
        here = room_at(source)
        ok(here.call(*migration(target, "{q}s")))
        r.execute_command("DQ.ADD", "q", "third", "x")
        assert eventually(lambda: info(r, "q")["sink-error"])
        ok(here.call(*migration(target, "q")))
        cluster.end_move(SLOT, target)
        eventually(lambda: there.xlen("{q}s") == 3)
        assert ids(there) == ["first", "second", "third"]
        assert info(there, "q")["sink-error"] is None


def test_while_a_slot_moves_each_job_goes_to_the_stream_once(cluster: Cluster) -> None:
    source = cluster.owner("q")
    target, _ = cluster.others(source)
    with source.client() as r, target.client() as there:
        r.execute_command("DQ.ALTER", "q", "SINK", "{q}s")
        for n in range(JOBS):
            r.execute_command("DQ.ADD", "q", n, "x", "DELAY", n)
        cluster.move(SLOT, target)
        eventually(lambda: there.xlen("{q}s") == JOBS, 20)
        assert ids(there) == [str(n) for n in range(JOBS)]
        assert there.info("dq")["dq_diverged"] == 0


def test_a_cluster_failover_goes_on_with_the_sink(cluster: Cluster) -> None:
    old = cluster.owner("q")
    with old.client() as r:
        r.execute_command("DQ.ALTER", "q", "SINK", "{q}s")
        for n in range(JOBS):
            r.execute_command("DQ.ADD", "q", n, "x", "DELAY", n)
    new = cluster.fail_over(old)
    with new.client() as r:
        eventually(lambda: r.execute_command("DQ.LEN", "q") == 0, 20)
        assert set(ids(r)) == {str(n) for n in range(JOBS)}
