"""A queue with a sink, which is used all through a session. It needs no history: a ledger beside it, written in the
same transaction as each job, says which jobs there are in this data set, whatever was lost with another one.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

from ..resp import Connection, Failure, Word
from .cluster import Cluster

SINKS_DB = 4
QUEUE, STREAM, LEDGER, OBSTACLE = "poured", "stream", "ledger", "obstacle"
LEFT_WITHIN_S = 20
PACE_S = 0.02


async def pour(cluster: Cluster, chance: random.Random) -> None:
    """Adds jobs, and now and then names a key of another type as the stream, until the session is over."""

    async def step(connection: Connection, number: int, _: int) -> None:
        await transaction(connection, *commands(chance, number))

    await go_on_until_over(cluster, lambda: chance.randrange(1, 10), step)


async def go_on_until_over(
    cluster: Cluster,
    draw_steps: Callable[[], int],
    step: Callable[[Connection, int, int], Awaitable[None]],
) -> None:
    """Takes steps in the database of ledgers, some on each connection. A step is told its number, and the epoch."""
    number = 0
    while not cluster.is_over:
        with contextlib.suppress(OSError, TimeoutError):
            node, epoch = await cluster.where()
            with cluster.flight():
                async with node.talk() as connection:
                    await connection.call("SELECT", SINKS_DB, within_s=5)
                    for _ in range(draw_steps()):
                        number += 1
                        await step(connection, number, epoch)
        await asyncio.sleep(PACE_S)


def commands(chance: random.Random, number: int) -> list[list[Word]]:
    lot = chance.random()
    if lot < 0.03:
        return [["SET", OBSTACLE, "x"], ["DQ.ALTER", QUEUE, "SINK", OBSTACLE]]
    if lot < 0.06:
        return [["DQ.PAUSE", QUEUE, "FOR", chance.choice([1, 30, 200])]]
    if lot < 0.4:
        return [["DQ.ALTER", QUEUE, "SINK", STREAM]]
    delay: list[Word] = ["DELAY", chance.choice([1, 10, 300])] if chance.random() < 0.7 else []
    group: list[Word] = ["GROUP", chance.choice("gh")] if chance.random() < 0.3 else []
    return [["DQ.ADD", QUEUE, number, "x", "NX", *delay, *group], ["RPUSH", LEDGER, number]]


async def transaction(connection: Connection, *inside: list[Word]) -> Any:
    """None where a part of it is refused: on a replica, or while memory is full."""
    futures = connection.send(["MULTI"], *inside, ["EXEC"])
    replies = [await asyncio.wait_for(future, 5) for future in futures]
    return None if isinstance(replies[-1], Failure) else replies[-1]


async def look(cluster: Cluster) -> None:
    """Each job of the ledger is in the stream or in the queue; once the session is over, and it is due, in the stream."""
    async with cluster.primary.talk() as connection:
        await connection.call("SELECT", SINKS_DB)
        if cluster.is_over and await connection.call("EXISTS", LEDGER):
            await connection.call("DQ.ALTER", QUEUE, "SINK", STREAM)
            # A pause from a time when the clock was ahead may last for an hour.
            await connection.call("DQ.RESUME", QUEUE)
        end = asyncio.get_running_loop().time() + LEFT_WITHIN_S
        while cluster.is_over and asyncio.get_running_loop().time() < end:
            if await connection.call("DQ.LEN", QUEUE, "STATE", "ready") == 0:
                break
            await asyncio.sleep(0.05)
        told = await transaction(
            connection,
            ["LRANGE", LEDGER, 0, -1],
            ["XRANGE", STREAM, "-", "+"],
            ["DQ.SCAN", QUEUE, 0, "COUNT", 10_000],
            # By a clock that was set back, others are delayed again.
            ["DQ.LEN", QUEUE, "STATE", "ready"],
        )
    if told is None:
        return
    ledger, entries, (_, left), ready = told
    poured = [fields[1] for _, fields in entries]
    cluster.fact(
        "sink",
        jobs=len(ledger),
        lost=sorted(set(ledger) - set(poured) - set(left))[:20],
        most=max(map(poured.count, set(poured[-200:])), default=0),
        left=ready if cluster.is_over else 0,
    )
