"""Slots that move atomically, on servers that can do that. The queue is the same afterwards,
however busy it was.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
import redis
from redis.cluster import key_slot

from cluster.test_load import check_at_rest, spread_queues
from cluster.test_moved_log import OfOneSlot
from harness.atomic_moves import Move, begin, held_up, move, skip_where_unknown
from harness.clock import HOUR_MS
from harness.cluster import Cluster, is_redirected
from harness.cluster_load import Load
from harness.consumers import Room
from harness.pipelined import Pipelined, Words
from harness.queues import binary_client, come_to_rest, digests, queues_of, waiting
from harness.resp import Failure
from harness.server import Kind, Server, eventually
from harness.zoo import make_zoo

RoomAt = Callable[[Server], Room]
SLOT = key_slot(b"q")
QUEUES = [f"{{q}}{n}" for n in range(4)]


@pytest.fixture(autouse=True)
def known(kind: Kind) -> None:
    skip_where_unknown(kind)


def ends_of(cluster: Cluster) -> tuple[Server, Server]:
    source = cluster.owner("q")
    return source, cluster.others(source)[0]


def nothing_went_wrong(cluster: Cluster) -> None:
    __tracebackhide__ = True
    for node in cluster.up():
        with node.client() as r:
            told = r.info("dq")
            assert (told["dq_bugs"], told["dq_diverged"]) == (0, 0), (node, told)


def check_replica(cluster: Cluster, primary: Server) -> None:
    __tracebackhide__ = True
    replica = cluster.replica_of(primary)
    replica.catch_up(primary)
    assert queues_of(replica) == queues_of(primary)


def test_queues_of_every_kind_are_the_same_after_an_atomic_move(cluster: Cluster) -> None:
    source, target = ends_of(cluster)
    with binary_client(source) as here, binary_client(target) as there:
        zoo = make_zoo(here, "q")
        before = zoo.snapshot(here, "q")
        move(cluster, SLOT, target)
        assert zoo.snapshot(there, "q") == before
        check_replica(cluster, target)
        assert digests(there, "q")[0] == before.digest
        # What is left at the old node: nothing that the timer has in view.
        eventually(lambda: waiting(here) == 0)
        move(cluster, SLOT, source)
        assert zoo.snapshot(here, "q") == before
    nothing_went_wrong(cluster)


class Busy(OfOneSlot):
    """Without scripts: after one in MULTI, Valkey 9.1.2 doesn't send on what it should, SETs
    neither.
    """

    def _script(self, queue: str) -> Words:
        return tuple(self._add(queue))


@contextmanager
def busy(node: Server, seed: int) -> Iterator[None]:
    """A client uses the queues until they have left the node."""
    stop = threading.Event()

    def use() -> None:
        with node.client() as r:
            work = Busy(r, seed, QUEUES)
            while not stop.is_set():
                try:
                    work.run(commands=50)
                except (redis.exceptions.MovedError, redis.exceptions.ExecAbortError):
                    return
                except AssertionError as error:
                    if "Moved" not in str(error):
                        raise
                    return

    using = threading.Thread(target=use, daemon=True)
    using.start()
    yield
    stop.set()
    using.join(20)


def test_busy_queues_move_atomically_to_and_fro(cluster: Cluster) -> None:
    source, target = ends_of(cluster)
    for turn, (here, there) in enumerate([(source, target), (target, source)] * 3):
        with busy(here, seed=turn), busy(here, seed=100 + turn), held_up(cluster, here, keys=20):
            begin(cluster, SLOT, there).succeed()
        cluster.settle()
        with there.client() as r:
            Busy(r, seed=200 + turn, queues=QUEUES).run(commands=300)
            come_to_rest(r)
        check_replica(cluster, there)
        nothing_went_wrong(cluster)


def test_leases_given_while_the_slot_moves_are_good_at_the_new_node(cluster: Cluster) -> None:
    """Under load, most is logged as it was sent: it counts by the time and the leases of the old
    node.
    """
    source, target = ends_of(cluster)
    leases: dict[bytes, int] = {}
    finished: set[bytes] = set()
    with closing(Pipelined(source.port)) as worker, held_up(cluster, source):
        worker.call("DQ.ADD", "q", "before", "x")
        moving = begin(cluster, SLOT, target)
        for turn in itertools.count():
            adds = [("DQ.ADD", "q", f"job-{turn}-{n}", "x", "TTR", HOUR_MS) for n in range(20)]
            done = list(leases.keys() - finished)[:5]
            finishes = [("DQ.FINISH", "q", id, leases[id]) for id in done]
            pop = ("DQ.POP", "q", "COUNT", 15, "TTR", HOUR_MS, "BLOCK", 50)
            worker.send(*adds, *finishes, pop)
            replies = [worker.receive() for _ in range(len(adds) + len(finishes) + 1)]
            finished |= {
                id for id, reply in zip(done, replies[len(adds) :], strict=False) if reply == 1
            }
            if any(isinstance(reply, Failure) for reply in replies):
                assert {
                    str(reply).split()[0] for reply in replies if isinstance(reply, Failure)
                } == {"MOVED"}
                break
            leases |= {id: lease for id, _, lease, _ in replies[-1]}
        moving.succeed()
    cluster.settle()
    assert len(finished) > 20
    with binary_client(target) as r:
        for id in finished:
            assert r.execute_command("DQ.GET", "q", id) is None, (
                f"{id} was finished at the old node"
            )
        for id in leases.keys() - finished:
            assert r.execute_command("DQ.FINISH", "q", id, leases[id]) == 1, (
                f"{id} is leased to this worker"
            )
    check_replica(cluster, target)
    nothing_went_wrong(cluster)


def test_each_job_is_delivered_once_while_slots_move_atomically(cluster: Cluster) -> None:
    queues = spread_queues(cluster, of_each=2)
    with Load(cluster, queues) as load:
        for queue in queues * 2:
            to = cluster.others(cluster.owner(queue))[0]
            move(cluster, key_slot(queue.encode()), to)
            load.goes_on(20)
        load.drain()
    assert load.told.faults() == []
    check_at_rest(cluster)


def test_consumers_are_sent_after_a_slot_that_moved_atomically(
    cluster: Cluster, room_at: RoomAt
) -> None:
    source, target = ends_of(cluster)
    here = room_at(source)
    here.play("""
        > DQ.ADD q now x DELAY 1500
        "now"
        one> DQ.POP q BLOCK 0
    """)
    move(cluster, SLOT, target)
    assert is_redirected(here("one").hears(), "MOVED", SLOT, target)
    there = room_at(target)
    there.play("""
        one> DQ.POP q BLOCK 0
        one< [["now", "x", <*>, 1]]
    """)
    nothing_went_wrong(cluster)


def test_clients_that_wait_for_a_job_are_sent_after_a_slot_that_moved_atomically(
    cluster: Cluster, room_at: RoomAt
) -> None:
    source, target = ends_of(cluster)
    here = room_at(source)
    here.play("""
        > DQ.ADD q a x TTR 60000
        "a"
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        one> DQ.RESULT q a BLOCK 0
        two> DQ.RENEW q 0 60000 a <lease>
    """)
    move(cluster, SLOT, target)
    for name in "one", "two":
        assert is_redirected(here(name).hears(), "MOVED", SLOT, target)
    there = room_at(target)
    there.play(
        """
        one> DQ.RESULT q a BLOCK 0
        > DQ.FINISH q a <lease>
        (integer) 1
        one< ["done", (nil)]
    """,
        lease=here["lease"],
    )
    nothing_went_wrong(cluster)


def test_the_timer_leaves_a_moving_queue_alone(cluster: Cluster) -> None:
    """Jobs fall due, die and are to be forgotten while the slot arrives: it is the old node that
    says so.
    """
    source, target = ends_of(cluster)
    others = [f"{{q}}other-{n}" for n in range(20)]
    with source.client() as r:
        r.execute_command("DQ.ALTER", "q", "DEADKEEP", 300)
        for n in range(50):
            r.execute_command("DQ.ADD", "q", f"dies-{n}", "x", "TTL", 300 + 20 * n)
            r.execute_command("DQ.ADD", "q", f"done-{n}", "x", "KEEP", 300 + 20 * n)
            r.execute_command("DQ.ADD", "q", f"due-{n}", "x", "DELAY", 300 + 20 * n)
        r.execute_command("DQ.POP", "q", "COUNT", 1_000, "NOACK")
        for other in others:
            r.execute_command("DQ.ADD", other, "a", "x", "DELAY", 200)
    with held_up(cluster, source, keys=21):
        begin(cluster, SLOT, target).succeed()
    check_replica(cluster, target)
    nothing_went_wrong(cluster)
    # It is this node's now: the timer goes on where it was.
    with target.client() as r:
        eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "dead") == 0)
        eventually(lambda: r.info("dq")["dq_jobs_ready"] >= 20 + 50)
    check_replica(cluster, target)


def keys_arrive(cluster: Cluster) -> Move:
    """Forty queues begin to move, and some have arrived."""
    source, target = ends_of(cluster)
    with source.client() as r:
        for n in range(40):
            # Large enough not to be held back until the snapshot is complete.
            r.execute_command("DQ.ADD", f"{{q}}{n}", "a", "x" * 100_000, "DELAY", 100 + n * HOUR_MS)
    moving = begin(cluster, SLOT, target)
    with target.client() as r:
        eventually(lambda: r.info("dq")["dq_queues"] >= 5 or time.sleep(0.01), 20)
    return moving


def test_a_cancelled_atomic_move_leaves_nothing_at_the_target(cluster: Cluster) -> None:
    source, target = ends_of(cluster)
    with held_up(cluster, source, keys=20):
        moving = keys_arrive(cluster)
        moving.cancel()
        assert moving.wait() not in ("success", "completed")
    with target.client() as r:
        eventually(lambda: r.info("dq")["dq_queues"] == 0 or time.sleep(0.01))
        eventually(lambda: waiting(r) == 0 or time.sleep(0.01))
    with source.client() as r:
        assert r.info("dq")["dq_queues"] == 40
        assert r.execute_command("DQ.POP", "{q}0", "BLOCK", 5_000) is not None
    nothing_went_wrong(cluster)


@pytest.mark.parametrize("victim", ["source", "target"])
def test_an_atomic_move_that_ends_with_the_death_of_a_node_leaves_nothing(
    cluster: Cluster, victim: str
) -> None:
    """The node comes back before it is missed: the queues are where they were, whole."""
    source, target = ends_of(cluster)
    node = source if victim == "source" else target
    with held_up(cluster, source, keys=20):
        moving = keys_arrive(cluster)
        node.kill9()
        node.start()
    if node is source and moving.task is not None:  # Redis would try again until it is done
        moving.cancel()
    cluster.settle()
    with target.client() as r:
        eventually(lambda: r.info("dq")["dq_queues"] == 0 or time.sleep(0.01), 20)
        eventually(lambda: waiting(r) == 0 or time.sleep(0.01), 20)
    with source.client() as r:
        assert r.info("dq")["dq_queues"] == 40
    move(cluster, SLOT, target)
    with target.client() as r:
        assert r.info("dq")["dq_queues"] == 40
    check_replica(cluster, target)
    nothing_went_wrong(cluster)


def test_a_move_that_would_change_a_queue_is_given_up(
    kind: Kind, request: pytest.FixtureRequest
) -> None:
    """After a script in MULTI, Valkey 9.1.2 doesn't send on what it should: the next entry shows
    it.
    """
    if kind.family != "valkey":
        pytest.skip("a move goes on when an entry can't be applied")
    cluster = request.getfixturevalue("fresh_cluster")
    source, target = ends_of(cluster)
    with source.client() as r, held_up(cluster, source, keys=20):
        r.execute_command("DQ.ADD", "q", "a", "x")
        moving = keys_arrive(cluster)
        with r.pipeline(transaction=True) as transaction:
            transaction.execute_command("DQ.ADD", "q", "b", "x")
            transaction.eval("return redis.call('SET', KEYS[1], 'x')", 1, "{q}")
            transaction.execute_command("DQ.ADD", "q", "c", "x")
            transaction.execute()
        # In a later millisecond: such an entry says what the queue had come to.
        time.sleep(0.002)
        r.execute_command("DQ.ADD", "q", "d", "x")
        # In most runs it isn't, else all have arrived.
        succeeded = moving.wait() == "success"
    cluster.settle()
    if not succeeded:
        with source.client() as r:
            assert r.execute_command("DQ.LEN", "q") == 4
        move(cluster, SLOT, target)
    with target.client() as r:
        assert r.execute_command("DQ.LEN", "q") == 4


def test_a_sink_goes_on_during_and_after_an_atomic_move(cluster: Cluster) -> None:
    source, target = ends_of(cluster)
    with source.client() as here, target.client() as there:
        here.execute_command("DQ.ALTER", "q", "SINK", "{q}s")
        for n in range(2_000):
            here.execute_command("DQ.ADD", "q", n, "x", "DELAY", n)
        with held_up(cluster, source, keys=2):
            moving = begin(cluster, SLOT, target)
            eventually(lambda: here.xlen("{q}s") > 200)
            moving.succeed()
        cluster.settle()
        eventually(lambda: there.xlen("{q}s") == 2_000, 20)
        assert [fields["id"] for _, fields in there.xrange("{q}s")] == [
            str(n) for n in range(2_000)
        ]
    check_replica(cluster, target)
    nothing_went_wrong(cluster)
