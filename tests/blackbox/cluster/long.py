"""The longer run, `make test-cluster`: a queue in each slot, and load beside each kind of change.

DQ_CLUSTER_SECONDS is how long each of the tests goes on (60).
"""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from redis.cluster import key_slot

from cluster.test_atomic_moves import check_replica, nothing_went_wrong
from cluster.test_load import check_at_rest, kill_under_load, spread_queues
from harness import atomic_moves
from harness.clock import now_ms
from harness.cluster import SLOTS, Cluster
from harness.cluster_load import AnyLoad, Load, NodeLoad
from harness.example_programs import installed
from harness.paths import TARGET
from harness.pipelined import Pipelined
from harness.server import Server

SECONDS = float(os.environ.get("DQ_CLUSTER_SECONDS", 60))
CLI = TARGET / "servers" / "valkey-8.1" / "valkey-cli"
SLOTS_AT_ONCE = 200
Tell = Callable[[str], None]

pytestmark = pytest.mark.timeout(10 * SECONDS + 300)


def names_of_all_slots() -> list[str]:
    """A queue for each slot."""
    names: dict[int, str] = {}
    number = 0
    while len(names) < SLOTS:
        names.setdefault(key_slot(b"slot-%d" % number), f"slot-{number}")
        number += 1
    return [names[slot] for slot in range(SLOTS)]


@pytest.fixture(scope="module")
def names() -> list[str]:
    return names_of_all_slots()


@pytest.fixture
def a_job_in_each_slot(cluster: Cluster, names: list[str]) -> Callable[[], None]:
    """Adds them, due while the test goes on; returns what takes them in the end, each once."""
    for at, (node, mine) in enumerate(by_owner(cluster, names)):
        with closing(Pipelined(node.port)) as pipeline:
            begin = now_ms()
            step = SECONDS * 1_000 / SLOTS
            pipeline.call_all(
                [
                    ("DQ.ADD", name, name, "x", "AT", begin + int(n * step))
                    for n, name in enumerate(mine, at)
                ]
            )

    def take() -> None:
        time.sleep(max(0, begin / 1_000 + SECONDS - time.time()))
        taken = 0
        for node, mine in by_owner(cluster, names):
            with closing(Pipelined(node.port)) as pipeline:
                popped = pipeline.call_all([("DQ.POP", name, "COUNT", 10) for name in mine])
                for name, jobs in zip(mine, popped, strict=True):
                    assert jobs is not None, f"{name} is lost"
                    ((id, _, _, attempt),) = jobs
                    assert (id, attempt) == (name.encode(), 1)
                finished = pipeline.call_all([("DQ.FINISH", name, name) for name in mine])
                assert set(finished) <= {1}
                taken += len(mine)
        assert taken == SLOTS

    return take


@pytest.fixture
def tell(cluster: Cluster, record_property: Callable[[str, object], None]) -> Tell:
    """What came of it, for the end of the report (conftest.py)."""
    return lambda what: record_property("told", f"{cluster.nodes[0].kind}: {what}; nothing lost")


def by_owner(cluster: Cluster, names: list[str]) -> Iterator[tuple[Server, list[str]]]:
    for node in cluster.primaries():
        yield node, [names[slot] for slot in sorted(cluster.slots(node))]


def reshard(cluster: Cluster, source: Server, to: Server, slots: int) -> None:
    """As an operator does it."""
    ends = ["--cluster-from", cluster.id_of(source), "--cluster-to", cluster.id_of(to)]
    words = [
        "reshard",
        f"127.0.0.1:{source.port}",
        *ends,
        "--cluster-slots",
        str(slots),
        "--cluster-yes",
    ]
    done = subprocess.run(
        [CLI, "--cluster", *words],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr


def reshard_for(cluster: Cluster, load: AnyLoad, seconds: float) -> int:
    """Slots go round; how many have moved."""
    moved = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        source = max(cluster.primaries(), key=lambda node: len(cluster.slots(node)))
        for to in cluster.others(source):
            reshard(cluster, source, to, SLOTS_AT_ONCE)
            moved += SLOTS_AT_ONCE
            cluster.settle()
            load.goes_on(30)
    return moved


def test_slots_move_for_long(
    cluster: Cluster, a_job_in_each_slot: Callable[[], None], tell: Tell
) -> None:
    queues = spread_queues(cluster)
    moves = 0
    with Load(cluster, queues) as load:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            # The queues of the load, and then others.
            for queue in queues:
                cluster.move(
                    key_slot(queue.encode()), cluster.others(cluster.owner(queue))[moves % 2]
                )
                moves += 1
            cluster.settle()
            moves += reshard_for(cluster, load, 1)
        load.drain()
    told = load.told
    assert told.faults() == []
    assert told.errors == []
    a_job_in_each_slot()
    check_at_rest(cluster)
    tell(f"{moves} slots moved, {len(told.added)} jobs under load")


def test_slots_move_atomically_for_long(
    cluster: Cluster, a_job_in_each_slot: Callable[[], None], tell: Tell
) -> None:
    atomic_moves.skip_where_unknown(cluster.nodes[0].kind)
    queues = spread_queues(cluster, of_each=2)
    moves = 0
    with Load(cluster, queues) as load:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            for queue in queues:
                to = cluster.others(cluster.owner(queue))[moves % 2]
                atomic_moves.move(cluster, key_slot(queue.encode()), to)
                moves += 1
                load.goes_on(20)
        load.drain()
    assert load.told.faults() == []
    assert load.told.errors == []
    a_job_in_each_slot()
    check_at_rest(cluster)
    tell(f"{moves} slots moved atomically, {len(load.told.added)} jobs under load")


def test_nodes_die_while_their_slots_move_for_long(cluster: Cluster, tell: Tell) -> None:
    """In turn the node that a slot leaves and the one that it comes to."""
    atomic_moves.skip_where_unknown(cluster.nodes[0].kind)
    deaths = jobs = 0
    moves: list[atomic_moves.Move] = []

    def begin(load: Load, queues: list[str]) -> None:
        victim = cluster.primaries()[deaths % 3]
        other = cluster.others(victim)[0]
        source, to = (victim, other) if deaths % 2 else (other, victim)
        queue = next(queue for queue in queues if cluster.owner(queue) is source)
        moves.append(atomic_moves.begin(cluster, key_slot(queue.encode()), to))
        # Near its begin, in the middle of it, when it is over.
        load.goes_on(1 + 7 * (deaths % 5))

    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        jobs += len(kill_under_load(cluster, cluster.primaries()[deaths % 3], begin).added)
        cluster.heal()
        if moves[-1].task is not None:
            moves[-1].cancel()  # Redis would try again until it is done
            cluster.settle()
        deaths += 1
    check_at_rest(cluster)
    tell(f"{deaths} nodes killed while their slots moved atomically, {jobs} jobs under load")


class Pulse:
    """A client that asks a node for nothing but an answer: the longest that it waited for one."""

    def __init__(self, node: Server) -> None:
        self.node = node
        self.longest_s = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "Pulse":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _ask(self) -> None:
        with self.node.client() as r:
            while not self._is_over.wait(0.001):
                begun = time.monotonic()
                r.ping()
                self.longest_s = max(self.longest_s, time.monotonic() - begun)


def test_a_queue_of_a_million_jobs_moves_atomically(cluster: Cluster, tell: Tell) -> None:
    """How long the nodes stand still for it: docs/turns.md."""
    atomic_moves.skip_where_unknown(cluster.nodes[0].kind)
    source = cluster.owner("large")
    to = cluster.others(source)[0]
    with closing(Pipelined(source.port)) as pipeline:
        for first in range(0, 1_000_000, 10_000):
            ids = range(first, first + 10_000)
            pipeline.call_all(
                [("DQ.ADD", "large", f"job-{n}", "x" * 100, "DELAY", 3_600_000 + n) for n in ids]
            )
    begun = time.monotonic()
    with Pulse(source) as old, Pulse(to) as new:
        atomic_moves.begin(cluster, key_slot(b"large"), to).succeed(within_s=120)
    took = time.monotonic() - begun
    cluster.settle()
    with to.client() as r:
        assert r.execute_command("DQ.LEN", "large") == 1_000_000
    check_replica(cluster, to)
    nothing_went_wrong(cluster)
    tell(
        f"a million jobs of 100 B moved in {took:.1f} s, in which the old node stood still for "
        f"{1_000 * old.longest_s:.0f} ms and the new one for {1_000 * new.longest_s:.0f} ms"
    )


def test_slots_move_for_long_under_node_redis(
    cluster: Cluster, testrun_uid: str, tell: Tell
) -> None:
    modules = installed("node", testrun_uid).directory / "node_modules"
    queues = spread_queues(cluster, of_each=2)
    moves = fail_overs = 0
    cluster.set_patience(2_500)
    with NodeLoad(cluster, queues, modules) as load:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            for queue in queues:
                cluster.move(
                    key_slot(queue.encode()), cluster.others(cluster.owner(queue))[moves % 2]
                )
                moves += 1
                load.goes_on(10)
            cluster.fail_over(cluster.owner(queues[fail_overs % len(queues)]))
            fail_overs += 1
            cluster.settle()
        load.drain()
    assert load.told.faults() == []
    check_at_rest(cluster)
    jobs = len(load.told.added)
    tell(f"node-redis: {moves} slots moved, {fail_overs} failovers, {jobs} jobs")


def test_roles_change_for_long(
    cluster: Cluster, a_job_in_each_slot: Callable[[], None], tell: Tell
) -> None:
    queues = spread_queues(cluster)
    fail_overs = 0
    cluster.set_patience(2_500)  # or a node can't be elected again for long
    with Load(cluster, queues) as load:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            cluster.fail_over(cluster.owner(queues[fail_overs % len(queues)]))
            fail_overs += 1
            cluster.settle()
            load.goes_on(30)
        load.drain()
    assert load.told.faults() == []
    a_job_in_each_slot()
    check_at_rest(cluster)
    tell(f"{fail_overs} failovers, {len(load.told.added)} jobs under load")


def test_primaries_are_killed_for_long(
    cluster: Cluster, a_job_in_each_slot: Callable[[], None], tell: Tell
) -> None:
    kills = jobs = 0
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        jobs += len(kill_under_load(cluster, cluster.primaries()[kills % 3]).added)
        cluster.heal()
        kills += 1
    a_job_in_each_slot()
    check_at_rest(cluster)
    tell(f"{kills} primaries killed, {jobs} jobs under load")
