"""No job is lost while slots move and roles change under load, judged by the replies that clients
got.
"""

import time
from collections.abc import Callable

import pytest
from redis.cluster import key_slot

from harness.cluster import Cluster
from harness.cluster_load import Delivery, Load, NodeLoad, Told
from harness.example_programs import installed
from harness.marks import long, on_one_kind
from harness.queues import queues_of
from harness.server import Server, eventually
from harness.workload import STATES

QUEUES_OF_A_NODE = 3


def spread_queues(cluster: Cluster, of_each: int = QUEUES_OF_A_NODE) -> list[str]:
    """Names of queues, the same number for each primary."""
    left = {node.port: of_each for node in cluster.primaries()}
    slots = {slot: node.port for node in cluster.primaries() for slot in cluster.slots(node)}
    queues = []
    for number in range(10_000):
        name = f"load-{number}"
        port = slots[key_slot(name.encode())]
        if left[port]:
            left[port] -= 1
            queues.append(name)
    return queues


def check_at_rest(cluster: Cluster) -> None:
    """No job is left, replicas agree with their primaries, and the module met no bug."""
    __tracebackhide__ = True
    cluster.heal()
    for primary in cluster.primaries():
        with primary.client() as r:
            told = r.info("dq")
            assert [told[f"dq_jobs_{state}"] for state in STATES] == [0] * len(STATES), primary
        replica = cluster.replica_of(primary)
        replica.catch_up(primary)
        assert queues_of(replica) == queues_of(primary)
    for node in cluster.nodes:
        with node.client() as r:
            told = r.info("dq")
            assert (told["dq_bugs"], told["dq_diverged"]) == (0, 0), node


def wait_until_empty(cluster: Cluster, queues: list[str]) -> None:
    __tracebackhide__ = True
    for queue in queues:
        eventually(
            lambda q=queue: cluster.call(cluster.owner(q), "DQ.LEN", q) == 0 or time.sleep(0.05), 20
        )


def test_slots_move_under_load(cluster: Cluster) -> None:
    queues = spread_queues(cluster)
    with Load(cluster, queues) as load:
        for queue in queues:
            to = cluster.others(cluster.owner(queue))[0]
            cluster.move(key_slot(queue.encode()), to)
            load.goes_on(20)
        load.drain()
    assert load.told.faults() == []
    assert load.told.errors == [], "the client follows by itself"
    check_at_rest(cluster)


@long
@on_one_kind
@pytest.mark.timeout(600)  # it may have to install node-redis
def test_slots_move_and_roles_change_under_node_redis(cluster: Cluster, testrun_uid: str) -> None:
    modules = installed("node", testrun_uid).directory / "node_modules"
    queues = spread_queues(cluster, of_each=2)
    with NodeLoad(cluster, queues, modules) as load:
        for queue in queues[:4]:
            to = cluster.others(cluster.owner(queue))[0]
            cluster.move(key_slot(queue.encode()), to)
            load.goes_on(20)
        cluster.fail_over(cluster.owner(queues[0]))
        load.goes_on()
        load.drain()
    assert load.told.faults() == []
    check_at_rest(cluster)


def test_a_primary_is_failed_over_under_load(cluster: Cluster) -> None:
    queues = spread_queues(cluster)
    with Load(cluster, queues) as load:
        cluster.fail_over(cluster.owner(queues[0]))
        load.goes_on()
        load.drain()
    assert load.told.faults() == []
    check_at_rest(cluster)


def test_a_primary_is_killed_under_load(cluster: Cluster) -> None:
    kill_under_load(cluster, cluster.primaries()[0])
    check_at_rest(cluster)


def kill_under_load(
    cluster: Cluster,
    victim: Server,
    before: Callable[[Load, list[str]], None] = lambda load, queues: None,
) -> Told:
    """What its replica had is not lost. What came after that may be, and jobs may run twice."""
    queues = spread_queues(cluster)
    key = next(queue for queue in queues if cluster.owner(queue) is victim)
    cluster.set_patience(1_500)
    with Load(cluster, queues, ttr_ms=1_500) as load:
        load.goes_on()
        confirmed = frozenset(load.told.added)
        replica = cluster.replica_of(victim)
        with victim.client() as r:
            # All that came before this write is with the replica.
            r.set(f"{{{key}}}barrier", "")
            assert r.execute_command("WAIT", 1, 10_000) == 1
        load.goes_on(20)
        before(load, queues)
        at_stake = frozenset(load.told.added) - confirmed
        victim.kill9()
        eventually(lambda: cluster.call(replica, "ROLE")[0] == b"master", 30)
        eventually(lambda: b"cluster_state:ok" in cluster.call(replica, "CLUSTER", "INFO"), 30)
        at_stake |= frozenset(load.told.added) - confirmed
        load.goes_on()
        load.drain(but=at_stake)
        wait_until_empty(cluster, queues)
    assert load.told.faults(may_be_lost=at_stake, may_repeat=True) == []
    return load.told


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        (Told(added={"a": 10}), "a: lost"),
        (Told(added={"a": 10}, deliveries={"a": [Delivery(1, 1, 9, 1)]}), "a: 1 ms early"),
        (Told(deliveries={"a": [Delivery(1, 1, 10, 1)]}), "a: delivered, and nobody has added it"),
        (
            Told(added={"a": 10}, deliveries={"a": [Delivery(1, 1, 10, 1), Delivery(2, 1, 11, 1)]}),
            "a: delivered 2 times",
        ),
        (
            Told(added={"a": 10}, deliveries={"a": [Delivery(1, 2, 10, 1)]}),
            "a: attempt 2, and FINISH replied 1",
        ),
        (
            Told(added={"a": 10}, deliveries={"a": [Delivery(1, 1, 10, 0)]}),
            "a: attempt 1, and FINISH replied 0",
        ),
    ],
)
def test_the_judge_of_the_cluster_load_finds_each_fault(told: Told, fault: str) -> None:
    assert told.faults() == [fault]
