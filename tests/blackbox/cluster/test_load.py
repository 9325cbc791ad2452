"""Nothing is lost while slots move and roles change under load, judged by what clients were told."""

import time

import pytest
from redis.cluster import key_slot

from harness.cluster import Cluster
from harness.cluster_load import Delivery, Load, NodeLoad, Told
from harness.example_programs import installed
from harness.marks import on_one_kind
from harness.queues import queues_of
from harness.server import Server, eventually

QUEUES_OF_A_NODE = 3


def spread_queues(cluster: Cluster, of_each: int = QUEUES_OF_A_NODE) -> list[str]:
    """Names of queues, so many at each primary."""
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
    """Nothing is left, replicas agree, and nothing happened that can't."""
    __tracebackhide__ = True
    wait_until_empty(cluster)
    cluster.heal()
    for primary in cluster.primaries():
        replica = cluster.replica_of(primary)
        replica.catch_up(primary)
        assert queues_of(replica) == queues_of(primary)
    for node in cluster.nodes:
        with node.client() as r:
            told = r.info("dq")
            assert (told["dq_bugs"], told["dq_diverged"]) == (0, 0), node


def wait_until_empty(cluster: Cluster) -> None:
    __tracebackhide__ = True
    for primary in cluster.primaries():
        eventually(lambda p=primary: left_at(p) == {} or time.sleep(0.1), 20)


def left_at(primary: Server) -> dict[str, int]:
    with primary.client() as r:
        lengths = {queue: r.execute_command("DQ.LEN", queue) for queue in queues_of(primary)}
    return {queue: length for queue, length in lengths.items() if length}


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


@on_one_kind
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


def test_primaries_are_failed_over_under_load(cluster: Cluster) -> None:
    queues = spread_queues(cluster)
    with Load(cluster, queues) as load:
        for queue in queues[:2]:
            cluster.fail_over(cluster.owner(queue))
            cluster.settle()
            load.goes_on()
        load.drain()
    assert load.told.faults() == []
    check_at_rest(cluster)


def test_a_primary_is_killed_under_load(cluster: Cluster) -> None:
    """What its replica had is not lost. What came after that may be, and jobs may run twice."""
    queues = spread_queues(cluster)
    cluster.set_patience(1_500)
    victim = cluster.owner(queues[0])
    with Load(cluster, queues, ttr_ms=1_500) as load:
        load.goes_on()
        confirmed = frozenset(load.told.added)
        replica = cluster.replica_of(victim)
        with victim.client() as r:
            # All that came before this write is with the replica.
            r.set(f"{{{queues[0]}}}barrier", "")
            assert r.execute_command("WAIT", 1, 10_000) == 1
        load.goes_on(20)
        victim.kill9()
        eventually(lambda: cluster.call(replica, "ROLE")[0] == b"master", 30)
        eventually(lambda: b"cluster_state:ok" in cluster.call(replica, "CLUSTER", "INFO"), 30)
        load.goes_on()
        may_be_lost = frozenset(load.told.added) - confirmed
        load.drain(but=may_be_lost)
        wait_until_empty(cluster)
    assert load.told.faults(may_be_lost=may_be_lost, may_repeat=True) == []
    check_at_rest(cluster)


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
def test_the_judge_finds_each_fault(told: Told, fault: str) -> None:
    assert told.faults() == [fault]
