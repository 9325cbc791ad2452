"""A queue that moves while it is busy is the same at its new node, at that node's replica and in
its AOF.

A command is logged as it was sent when the queue's clock stands at its time already. The clock
moves with the queue. So the first command at the new node, in the millisecond of the last one at
the old, may be logged so.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from redis.cluster import key_slot

from harness.clock import HOUR_MS
from harness.cluster import Cluster, migration, ok
from harness.pipelined import Pipelined, Words
from harness.queues import come_to_rest, queues_of
from harness.resp import Failure, commands_in
from harness.server import Server, eventually
from harness.workload import Workload

TAG = "{moves}"
SLOT = key_slot(b"moves")
QUEUES = [f"{TAG}{n}" for n in range(4)]


class OfOneSlot(Workload):
    """What a random workload does, but for keys of other slots."""

    def _key(self, queue: str) -> Words:
        words = super()._key(queue)
        return words if words[0] != "SET" else ("DEL", f"{queue}-renamed")


def entries(node: Server) -> list[list[bytes]]:
    """What is in the node's AOF since its base."""
    directory = node.directory / "appendonlydir"
    files = sorted(directory.glob("*.incr.aof"), key=lambda file: int(file.name.split(".")[-3]))
    return [words for file in files for words in commands_in(file.read_bytes())]


def check_the_same_everywhere(cluster: Cluster, owner: Server) -> None:
    """At the node, at its replica, and at either when it has read its AOF."""
    __tracebackhide__ = True
    with owner.client() as r:
        come_to_rest(r)
    replica = cluster.replica_of(owner)
    replica.catch_up(owner)
    digests = queues_of(owner)
    assert queues_of(replica) == digests
    for node in owner, replica:
        with node.client() as r:
            assert r.execute_command("DEBUG", "LOADAOF")
            assert r.info("dq")["dq_diverged"] == 0, node
        assert queues_of(node) == digests, node


def test_a_busy_queue_moves_with_its_slot_and_its_log(cluster: Cluster) -> None:
    """A random history, and as much in the same turn as the move."""
    source = cluster.owner(TAG)
    target, _ = cluster.others(source)
    with source.client() as r:
        OfOneSlot(r, seed=31, queues=QUEUES).run(commands=1_500)
        come_to_rest(r)
    cluster.begin_move(SLOT, target)
    keys = cluster.call(source, "CLUSTER", "GETKEYSINSLOT", SLOT, 100)
    for key in keys:
        cluster.call(source, "DQ.ALTER", key, "MAXJOBS", 0)
    busy = [("DQ.ADD", key, "*", "x") for _ in range(300) for key in keys]
    busy += [("DQ.POP", key, "COUNT", 7, "TTR", HOUR_MS) for key in keys]
    digest = ("DEBUG", "DIGEST-VALUE", *keys)
    with closing(Pipelined(source.port)) as pipeline:
        *_, before, moved = pipeline.call_all(
            [*busy, digest, tuple(migration(target, *keys))], at_once=10_000
        )
    ok(moved)
    assert cluster.call(target, *digest) == before
    cluster.end_move(SLOT, target)
    with target.client() as r:
        OfOneSlot(r, seed=32, queues=QUEUES).run(commands=1_500)
    check_the_same_everywhere(cluster, target)
    check_the_same_everywhere(cluster, source)


def test_a_queue_can_be_asked_for_while_its_slot_moves_in(cluster: Cluster) -> None:
    """One by one, so that some are asked for in the millisecond of their last ADD at the old
    node.
    """
    source = cluster.owner(TAG)
    target, _ = cluster.others(source)
    keys = [f"{TAG}{n}" for n in range(40)]
    with closing(Pipelined(source.port)) as pipeline:
        pipeline.call_all([("DQ.ADD", key, "first", "x") for key in keys])
        cluster.begin_move(SLOT, target)
        for key in keys:
            with asked_for(target, key) as deliveries:
                adds = [("DQ.ADD", key, n, "x") for n in range(19)]
                *_, moved = pipeline.call_all([*adds, tuple(migration(target, key))])
                ok(moved)
            assert deliveries == [b"first", *(b"%d" % n for n in range(19))]
    cluster.end_move(SLOT, target)
    check_the_same_everywhere(cluster, target)


@contextmanager
def asked_for(node: Server, key: str) -> Iterator[list[bytes]]:
    """A client asks the node for jobs until it has twenty. The list has their ids in the end."""
    ids: list[bytes] = []
    failures: list[Failure] = []

    def ask() -> None:
        deadline = time.monotonic() + 20
        with closing(Pipelined(node.port)) as connection:
            while len(ids) < 20 and not failures and time.monotonic() < deadline:
                connection.send(*[("ASKING",), ("DQ.POP", key, "TTR", HOUR_MS)] * 5)
                replies = [connection.receive() for _ in range(10)][1::2]
                failures.extend(reply for reply in replies if isinstance(reply, Failure))
                ids.extend(reply[0][0] for reply in replies if isinstance(reply, list))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    yield ids
    asking.join()
    assert failures == []


def test_a_restored_queue_can_be_changed_within_the_same_millisecond(cluster: Cluster) -> None:
    """What a script adds to a queue that it has restored is most often of the payload's time."""
    owner = cluster.owner(TAG)
    keys = [f"{TAG}from", f"{TAG}to"]
    script = """
        for n = 1, 5 do redis.call('DQ.ADD', KEYS[1], 'a' .. n, 'x') end
        redis.call('DQ.POP', KEYS[1], 'COUNT', 2, 'TTR', 3600000)
        redis.call('RESTORE', KEYS[2], 0, redis.call('DUMP', KEYS[1]), 'REPLACE')
        redis.call('DQ.ADD', KEYS[2], 'b', 'x', 'DELAY', 3600000)
        return redis.call('DQ.POP', KEYS[2], 'COUNT', 1, 'TTR', 3600000)
    """
    with owner.client() as r:
        for _ in range(5):
            assert r.eval(script, 2, *keys)
            r.delete(keys[0])
        assert r.eval(script, 2, *keys)
    eventually(lambda: sum(words[0] == b"RESTORE" for words in entries(owner)) >= 6, 10)
    logged = entries(owner)
    behind = [logged[at + 1] for at, words in enumerate(logged) if words[0] == b"RESTORE"]
    # Six times, in case a millisecond is over in between.
    assert [b"DQ.ADD", keys[1].encode(), b"b"] in [words[:3] for words in behind], (
        "logged as it was sent"
    )
    check_the_same_everywhere(cluster, owner)
