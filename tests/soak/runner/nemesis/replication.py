"""Replicas that lose their primary and find it again; primaries that hand over, are deposed, or die."""

import asyncio
import contextlib

from ...resp import Word
from ..client import marked
from ..cluster import mark
from ..node import Node
from ..storm import NotNow, Storm
from .victims import VICTIM_WAITS_MS, victims

LINK_S = 40


async def link_all(storm: Storm) -> None:
    """Every other node follows the primary; the last one follows another replica where the profile says so."""
    others = [node for node in storm.cluster.nodes if node is not storm.primary]
    for node in others:
        if not node.is_up:
            await node.start()
    for at, node in enumerate(others):
        is_last_of_several = at == len(others) - 1 and at > 0
        upstream = others[0] if storm.profile.is_chained and is_last_of_several else storm.primary
        await follow(node, upstream)
    await all_linked(others)


async def follow(node: Node, upstream: Node) -> None:
    await node.ask("REPLICAOF", "127.0.0.1", upstream.port)


async def all_linked(nodes: list[Node]) -> None:
    async with asyncio.timeout(LINK_S):
        for node in nodes:
            while (await node.info("replication")).get("master_link_status") != "up":
                await asyncio.sleep(0.02)


def a_replica(storm: Storm) -> Node:
    replicas = storm.replicas()
    if not replicas:
        raise NotNow
    return storm.chance.choice(replicas)


async def cut_link(storm: Storm) -> None:
    """The link breaks; the primary sends again what the replica missed."""
    replica = a_replica(storm)
    storm.cluster.note("cut-link", server=str(replica))
    for _ in range(storm.chance.choice([1, 1, 4])):
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            await replica.ask("CLIENT", "KILL", "TYPE", "master")
        await storm.pause(0.3)
    await all_linked(storm.replicas())


async def full_sync(storm: Storm) -> None:
    """The primary sends the whole data set, by disk or without; the replica loads it aside where it is set up so."""
    replica = a_replica(storm)
    by_disk = storm.chance.random() < 0.5
    aside = storm.chance.choice(["swapdb", "disabled"])
    storm.cluster.note("full-sync", server=str(replica), disk=by_disk, load=aside)
    await storm.primary.ask("CONFIG", "SET", "repl-diskless-sync", "no" if by_disk else "yes")
    await replica.ask("CONFIG", "SET", "repl-diskless-load", aside)
    await replica.ask("REPLICAOF", "NO", "ONE")
    # A history of its own: there is nothing to go on from.
    await replica.ask("DEBUG", "CHANGE-REPL-ID")
    await link_all(storm)


async def interrupted_sync(storm: Storm) -> None:
    """The link breaks during a full sync; the replica throws away what it has loaded of it."""
    replica = a_replica(storm)
    storm.cluster.note("interrupted-sync", server=str(replica))
    await replica.ask(
        "CONFIG", "SET", "repl-diskless-load", storm.chance.choice(["swapdb", "disabled"])
    )
    await replica.ask("REPLICAOF", "NO", "ONE")
    await replica.ask("DEBUG", "CHANGE-REPL-ID")
    await follow(replica, storm.primary)
    await storm.pause(0.1)
    with contextlib.suppress(OSError, RuntimeError, TimeoutError):
        await storm.primary.ask("CLIENT", "KILL", "TYPE", "replica")
    await link_all(storm)


async def restart_replica(storm: Storm) -> None:
    replica = a_replica(storm)
    storm.cluster.note("restart-replica", server=str(replica))
    await replica.kill9()
    await storm.pause(0.5)
    await link_all(storm)


async def freeze_replica(storm: Storm) -> None:
    replica = a_replica(storm)
    storm.cluster.note("freeze-replica", server=str(replica))
    replica.freeze()
    try:
        await storm.pause(1.5)
    finally:
        replica.thaw()
    await all_linked(storm.replicas())


async def failover(storm: Storm) -> None:
    """FAILOVER: the primary waits for its replica and hands over. Nothing is lost."""
    cluster, old = storm.cluster, storm.primary
    heir = await _direct_replica(storm)
    cluster.note("failover", to=str(heir))
    await old.ask("FAILOVER", "TO", "127.0.0.1", heir.port, "TIMEOUT", 10_000)
    if not await _became(heir, "master", 15):
        # It was called off: the old one goes on.
        return
    cluster.shut()
    await cluster.begin_epoch(heir, "failover", kept=cluster.now_us())
    cluster.open()
    await link_all(storm)


async def _direct_replica(storm: Storm) -> Node:
    for node in storm.replicas():
        told = await node.info("replication")
        if (
            told.get("master_port") == str(storm.primary.port)
            and told.get("master_link_status") == "up"
        ):
            return node
    raise NotNow


async def _became(node: Node, role: str, within_s: float) -> bool:
    end = asyncio.get_running_loop().time() + within_s
    while asyncio.get_running_loop().time() < end:
        if (await node.info("replication"))["role"] == role:
            return True
        await asyncio.sleep(0.005)
    return False


async def depose(storm: Storm) -> None:
    """REPLICAOF NO ONE: for a while there are two primaries; what the old one takes then is lost."""
    cluster, old = storm.cluster, storm.primary
    heir = await _direct_replica(storm)
    cluster.note("depose", to=str(heir))
    await heir.ask("REPLICAOF", "NO", "ONE")
    # Clients still speak to the old one. Nothing of that is in what the new one begins with.
    await storm.pause(0.5)
    cluster.shut()
    await cluster.begin_epoch(heir, "depose")
    cluster.open()
    await storm.pause(0.3)
    await follow(old, heir)
    await link_all(storm)


async def kill_primary(storm: Storm) -> None:
    """kill -9 of the primary. What WAIT confirmed must be on the replica that takes over."""
    cluster, old = storm.cluster, storm.primary
    heir = await _direct_replica(storm)
    waited = await _wait(storm)
    await storm.pause(0.2)
    cluster.shut()
    await old.kill9()
    cluster.note("kill-primary", to=str(heir), waited=waited)
    await heir.ask("REPLICAOF", "NO", "ONE")
    await cluster.begin_epoch(heir, "kill-primary", waited=waited)
    cluster.open()
    await storm.pause(0.5)
    await link_all(storm)


async def _wait(storm: Storm) -> int | None:
    """How many marks all replicas certainly have."""
    op_id = storm.cluster.next_op()
    async with storm.primary.talk() as connection:
        text = await connection.call("INFO", "replication")
        replicas = int(text.split("connected_slaves:")[1].split()[0])
        made, acknowledged = connection.send(mark(op_id, is_after=False), ["WAIT", replicas, 2_000])
        told = marked(await made)
        return told[0] if told and await acknowledged == replicas else None


async def demote_ambush(storm: Storm) -> None:
    """Jobs come for consumers that wait in the turn in which their server is demoted."""
    cluster, old, epoch = storm.cluster, storm.primary, storm.cluster.epoch
    heir = await _direct_replica(storm)
    key = storm.new_name("demoted")
    options = storm.chance.choice([[], ["NOACK"]])
    async with victims(storm, 3, "DQ.POP", key, "BLOCK", VICTIM_WAITS_MS, *options):
        cluster.shut()
        await heir.ask("REPLICAOF", "NO", "ONE")
        await cluster.begin_epoch(heir, "demote-ambush")
        adds: list[list[Word]] = [
            ["DQ.ADD", key, f"j{n}", f"{key}.{n}", "TTR", 60_000] for n in range(3)
        ]
        await storm.burst_at(old, epoch, *adds, ["REPLICAOF", "127.0.0.1", heir.port])
        cluster.open()
    await link_all(storm)
