"""The longer run, `make test-cluster`: a queue in each slot, and load beside each kind of change.

DQ_CLUSTER_SECONDS is how long each of the tests goes on (60).
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from redis.cluster import key_slot

from cluster.test_load import check_at_rest, kill_under_load, spread_queues
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
                [("DQ.ADD", name, name, "x", "AT", begin + int(n * step)) for n, name in enumerate(mine, at)]
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
    words = ["reshard", f"127.0.0.1:{source.port}", *ends, "--cluster-slots", str(slots), "--cluster-yes"]
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


def test_slots_move_for_long(cluster: Cluster, a_job_in_each_slot: Callable[[], None], tell: Tell) -> None:
    queues = spread_queues(cluster)
    moves = 0
    with Load(cluster, queues) as load:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            # The queues of the load, and then others.
            for queue in queues:
                cluster.move(key_slot(queue.encode()), cluster.others(cluster.owner(queue))[moves % 2])
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


def test_slots_move_for_long_under_node_redis(cluster: Cluster, testrun_uid: str, tell: Tell) -> None:
    modules = installed("node", testrun_uid).directory / "node_modules"
    queues = spread_queues(cluster, of_each=2)
    moves = fail_overs = 0
    cluster.set_patience(2_500)
    with NodeLoad(cluster, queues, modules) as load:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            for queue in queues:
                cluster.move(key_slot(queue.encode()), cluster.others(cluster.owner(queue))[moves % 2])
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


def test_roles_change_for_long(cluster: Cluster, a_job_in_each_slot: Callable[[], None], tell: Tell) -> None:
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
