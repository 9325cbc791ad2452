"""What is compared while a session is at rest: sums with counts, replicas with their primary, memory with before."""

import asyncio
import contextlib
from typing import Any

from ..resp import Connection, Failure
from . import flows, sinks
from .cluster import Cluster
from .draw import STATES
from .node import Node

TYPE = "delayq-dq"
DBS = 5
LOOKS = 5
LAG_S = 2.5
KEYS_MAX = 300
# Strangers' keys may be many, and each part is a round trip.
SCANNED = 20_000

# By database and key: a digest, and how many jobs there are. Time removes kept jobs: then both change.
Digests = dict[str, list[Any]]


async def keys_of(connection: Connection, db: int) -> list[str]:
    await connection.call("SELECT", db)
    keys, cursor = [], "0"
    while True:
        cursor, part = await connection.call("SCAN", cursor, "TYPE", TYPE, "COUNT", SCANNED)
        keys += part
        if cursor == "0":
            return sorted(keys)


async def digests(node: Node) -> Digests:
    """The digest of every queue, or of as many as can be had in a moment."""
    told: Digests = {}
    async with node.talk() as connection:
        for db in range(DBS):
            for key in (await keys_of(connection, db))[:KEYS_MAX]:
                futures = connection.send(["DEBUG", "DIGEST-VALUE", key], ["DQ.LEN", key])
                (digest,), length = [await future for future in futures]
                told[f"{db}/{key}"] = [digest, length]
    return told


async def look(cluster: Cluster) -> None:
    """All comparisons that a session at rest allows."""
    await compare_sums(cluster, cluster.primary)
    await sinks.look(cluster)
    await flows.look(cluster)
    for node in cluster.nodes:
        if node.is_up:
            await look_for_bugs(cluster, node)
    for node in cluster.nodes:
        if (
            node is not cluster.primary
            and node.is_up
            and await has_caught_up(node, cluster.primary)
        ):
            await compare_replica(cluster, node)


async def look_for_bugs(cluster: Cluster, node: Node) -> None:
    """What the module itself takes for impossible. A replica may be loading."""
    with contextlib.suppress(RuntimeError, ConnectionError):
        told = await node.info("dq")
        found = {name: int(told[name]) for name in ("dq_bugs", "dq_diverged")}
        cluster.fact("bugs", server=str(node), **found)


async def compare_sums(cluster: Cluster, node: Node) -> None:
    """INFO dq against the queues themselves, in one transaction; time may move a job between two commands."""
    loop = asyncio.get_running_loop()
    end = loop.time() + LAG_S
    while True:
        told, counted, queues = await _sums(node)
        # Where time goes back, by a clock that is set or a failover to a slower one, a queue that nobody touches is
        # counted anew when its next job is due.
        if queues > KEYS_MAX or node.clock is not None or cluster.has_strangers:
            # To look at so many takes longer than time needs to move a job.
            told, counted = _whole(told), _whole(counted)
        if told == counted or loop.time() > end:
            cluster.fact("sums", server=str(node), told=told, counted=counted, queues=queues)
            return
        await asyncio.sleep(0.05)


def _whole(sums: dict[str, int]) -> dict[str, int]:
    return {
        "jobs": sum(sums[state] for state in STATES),
        "queues": sums["queues"],
        "waiting": sums["waiting"],
    }


async def _sums(node: Node) -> tuple[dict[str, int], dict[str, int], int]:
    async with node.talk() as connection:
        asked = [(db, key) for db in range(DBS) for key in await keys_of(connection, db)]
        batch: list[list[str | int]] = [["MULTI"], ["INFO", "dq"]]
        for db, key in asked:
            batch += [["SELECT", db], *(["DQ.LEN", key, "STATE", state] for state in STATES)]
        futures = connection.send(*batch, ["EXEC"])
        section, *rest = await futures[-1]
    info = dict(line.split(":", 1) for line in section.splitlines() if ":" in line)
    told = {state: int(info[f"dq_jobs_{state}"]) for state in STATES}
    told |= {"queues": int(info["dq_queues"]), "waiting": int(info["dq_waiting_consumers"])}
    counted = dict.fromkeys(STATES, 0)
    for at in range(len(asked)):
        lengths = rest[at * (len(STATES) + 1) + 1 : (at + 1) * (len(STATES) + 1)]
        for state, length in zip(STATES, lengths, strict=True):
            counted[state] += length
    return told, counted | {"queues": len(asked), "waiting": 0}, len(asked)


async def has_caught_up(replica: Node, primary: Node, within_s: float = 20) -> bool:
    """The replica has taken in all that its primary has sent."""
    end = asyncio.get_running_loop().time() + within_s
    while asyncio.get_running_loop().time() < end:
        here, there = await replica.info("replication"), await primary.info("replication")
        if (
            here.get("master_link_status") == "up"
            and here["slave_repl_offset"] == there["master_repl_offset"]
        ):
            return True
        await asyncio.sleep(0.02)
    return False


async def compare_replica(cluster: Cluster, replica: Node) -> None:
    """Digests and replies. The primary's timer may act between two looks: what it changed isn't compared."""
    primary = cluster.primary
    for attempt in range(LOOKS):
        first, there, second = (
            await digests(primary),
            await digests(replica),
            await digests(primary),
        )
        at_rest = {key: value for key, value in first.items() if second.get(key) == value}
        seen = {key: there.get(key, ["none", 0]) for key in at_rest}
        seen |= {
            key: value for key, value in there.items() if key not in first and key not in second
        }
        if at_rest == seen or attempt == LOOKS - 1:
            cluster.fact("digests", why="replica", server=str(replica), here=at_rest, there=seen)
            break
        await has_caught_up(replica, primary, 2)
    await compare_views(cluster, replica)


async def compare_views(cluster: Cluster, replica: Node) -> None:
    """What the primary and the replica show to a reader. Not compared where their clocks differ."""
    if cluster.primary.clock is not None:
        return
    for attempt in range(LOOKS):
        first, there, second = (
            await views(cluster.primary),
            await views(replica),
            await views(cluster.primary),
        )
        here = {key: view for key, view in first.items() if second.get(key) == view}
        seen = {key: there.get(key) for key in here}
        if here == seen or attempt == LOOKS - 1:
            cluster.fact("views", server=str(replica), here=here, there=seen)
            return
        await asyncio.sleep(0.05)


async def views(node: Node) -> dict[str, Any]:
    """For every queue: how many jobs are in each state, the first one that is ready, and since when the first one is
    dead. Of jobs that died in the same millisecond, any may come first: a file doesn't keep their order.
    """
    told: dict[str, Any] = {}
    async with node.talk() as connection:
        for db in range(DBS):
            for key in (await keys_of(connection, db))[:KEYS_MAX]:
                lengths = connection.send(*(["DQ.LEN", key, "STATE", state] for state in STATES))
                peeks = connection.send(["DQ.PEEK", key], ["DQ.PEEK", key, "STATE", "dead"])
                counts = [await future for future in lengths]
                ready, dead = [
                    [dict(zip(job[::2], job[1::2], strict=True)) for job in await peek]
                    for peek in peeks
                ]
                firsts = [[job["id"] for job in ready], [job["since"] for job in dead]]
                told[f"{db}/{key}"] = [counts, firsts]
    return told


async def memory(node: Node) -> int:
    """Bytes that data take, without clients, buffers, scripts and the server's own."""
    async with node.talk() as connection:
        reply = await connection.call("MEMORY", "PURGE")
        assert not isinstance(reply, Failure)
    return int((await node.info("memory"))["used_memory_dataset"])
