"""Jobs that wait for others, used all through a session in a queue of their own. As with sinks, a ledger beside the
queue is written in the same transaction or script as each change, so it says what is true in this data set, whatever
was lost with another one:

    flows:jobs     each job's id: for one that waits, ONDEAD and the ids that it waits for, in their order
    flows:ends     how often a job was done
    flows:results  with what
    flows:saw      what DQ.DEPS showed the worker of a job that waits, in the moment in which it was done
"""

import asyncio
import itertools
import json
import random
from typing import Any

from ..resp import Connection, Failure, Word
from .cluster import Cluster
from .sinks import SINKS_DB, go_on_until_over, transaction

QUEUE = "flows"
TTR_MS = 2_000
ENDED_WITHIN_S = 20

# Finishes a job, and writes down what it has seen. Behind the result come a job to add and the one that is to wait for
# it, too; that is left out when it doesn't wait any more.
DONE = """
local id, lease, result, more, total = unpack(ARGV)
local deps = redis.call('DQ.DEPS', 'flows', id, 'COUNT', 10000)
local words = {'DQ.DONE', 'flows', id, lease, 'RESULT', result}
local told
if more then
  told = redis.pcall('DQ.DONE', 'flows', id, lease, 'RESULT', result, 'ADD', more, 'x', 'BEFORE', 1, total)
  if type(told) == 'table' and told.err then
    if string.sub(told.err, 1, 7) ~= 'NOTHELD' then return told end
    more = nil
  end
end
if not more then told = redis.call(unpack(words)) end
if told == 0 then return 0 end
redis.call('HINCRBY', 'flows:ends', id, 1)
redis.call('HSET', 'flows:results', id, result)
redis.call('HSET', 'flows:saw', id, cjson.encode(deps[2]))
if more then
  redis.call('HSET', 'flows:jobs', more, '')
  redis.call('HSET', 'flows:jobs', total, redis.call('HGET', 'flows:jobs', total) .. ' ' .. more)
end
return 1
"""


async def flow(cluster: Cluster, chance: random.Random) -> None:
    """Adds flows and works on them until the session is over."""

    async def step(connection: Connection, number: int, epoch: int) -> None:
        if chance.random() < 0.3:
            await transaction(connection, *new_flow(chance, number))
        else:
            await work(cluster, connection, chance, number, epoch)

    await go_on_until_over(cluster, lambda: chance.randrange(1, 6), step)


def new_flow(chance: random.Random, number: int) -> list[list[Word]]:
    """A fan-in, a chain, an open batch, or a step that is done outside."""
    on_dead = chance.choice(["HOLD", "HOLD", "RUN"])
    total = f"{number}:total"
    parts: list[str] = [f"{number}:{part}" for part in range(chance.randrange(1, 5))]
    words: dict[str, list[Word]] = {part: options(chance) for part in parts}
    waits: dict[str, list[str]] = {total: parts}
    lot = chance.random()
    if lot < 0.3:
        waits |= {later: [earlier] for earlier, later in itertools.pairwise(parts)}
        waits[total] = parts[-1:]
    if lot > 0.8:
        words[parts[0]] = ["HOLD"]
    words |= {later: ["AFTER", len(ids), *ids, "ONDEAD", on_dead] for later, ids in waits.items()}
    if 0.3 < lot < 0.6:
        words[total] += ["HOLD"]
    adds: list[list[Word]] = [["DQ.ADD", QUEUE, id, "x", *rest] for id, rest in words.items()]
    ledger = {id: " ".join([on_dead, *waits[id]]) if id in waits else "" for id in words}
    return [*adds, *(["HSET", "flows:jobs", id, told] for id, told in ledger.items())]


def options(chance: random.Random) -> list[Word]:
    """A job that may die by time."""
    delay: list[Word] = ["DELAY", chance.choice([1, 30])] if chance.random() < 0.3 else []
    dies: list[Word] = chance.choice([[], [], [], ["TTL", 300], ["LATE", 200], ["ATTEMPTS", 1]])
    return [*delay, *dies]


async def work(
    cluster: Cluster, connection: Connection, chance: random.Random, number: int, epoch: int
) -> None:
    lot = chance.random()
    if lot < 0.06:
        await connection.call("DQ.KICK", QUEUE, "COUNT", 2, within_s=5)
    elif lot < 0.12:
        await go_on(connection)
    elif lot < 0.2:
        await look_at_result(cluster, connection, chance)
    told = await connection.call("DQ.POP", QUEUE, "COUNT", 3, "TTR", TTR_MS, within_s=5)
    for id, _, lease, _ in told if isinstance(told, list) else []:
        is_void = False
        if chance.random() < 0.2:
            is_void = await has_no_lease(connection, id, lease)
        if chance.random() < 0.1:
            await connection.call("DQ.BURY", QUEUE, id, lease, "REASON", "drawn", within_s=5)
            continue
        flow, _, part = id.partition(":")
        more = (
            [f"{id}+{number}", f"{flow}:total"] if part.isdigit() and chance.random() < 0.2 else []
        )
        done = await finish(connection, id, lease, number, more)
        if is_void and done == 1 and cluster.epoch == epoch:
            cluster.fact("flow", text=f"the lease of {id} was void, and finished it")


async def has_no_lease(connection: Connection, id: str, lease: Word) -> bool:
    """That a lease is void. One of a job whose life is over is, too, and may still finish it."""
    void = await connection.call("DQ.RENEW", QUEUE, TTR_MS, 0, id, lease, within_s=5)
    told = await connection.call("DQ.RESULT", QUEUE, id, within_s=5)
    return void == [id] and isinstance(told, list) and told[0] != "dead"


async def finish(
    connection: Connection, id: str, lease: Word, number: int, more: list[str] | None = None
) -> Any:
    words: list[Word] = ["EVAL", DONE, 0, id, lease, f"{id} by {number}", *(more or [])]
    return await connection.call(*words, within_s=5)


async def look_at_result(cluster: Cluster, connection: Connection, chance: random.Random) -> None:
    ids = await connection.call("DQ.SCAN", QUEUE, 0, "COUNT", 20, within_s=5)
    if isinstance(ids, Failure) or not ids[1]:
        return
    id = chance.choice(ids[1])
    told = await connection.call(
        "DQ.RESULT", QUEUE, id, "BLOCK", chance.choice([1, 50]), within_s=5
    )
    if isinstance(told, list) and told[0] == "done" and not str(told[1]).startswith(f"{id} by "):
        cluster.fact("flow", text=f"the result of {id} is told as {told[1]}")


async def go_on(connection: Connection) -> None:
    """Some hold ends, or what waits for a step outside is done."""
    told = await connection.call("DQ.SCAN", QUEUE, 0, "STATE", "held", "COUNT", 1_000, within_s=5)
    held = told[1] if isinstance(told, list) else []
    if not held:
        return
    await connection.call("DQ.RESUME", QUEUE, "ID", *held, within_s=5)
    for id in held[:5]:
        deps = await connection.call("DQ.DEPS", QUEUE, id, within_s=5)
        if isinstance(deps, list) and not deps[1]:
            await finish(connection, id, "*", 0)


async def look(cluster: Cluster) -> None:
    """Each job is done or in the queue; a job that waited saw each of those it waited for once, and ended; once the
    session is over, all end.
    """
    async with cluster.primary.talk() as connection:
        await connection.call("SELECT", SINKS_DB)
        if cluster.is_over:
            await end_all(connection)
        told = await transaction(
            connection,
            *(["HGETALL", f"flows:{name}"] for name in ("jobs", "ends", "results", "saw")),
            ["DQ.SCAN", QUEUE, 0, "COUNT", 10_000],
            *(["DQ.LEN", QUEUE, "STATE", state] for state in ("ready", "held", "dead")),
            *(["DQ.LEN", QUEUE, "STATE", state] for state in ("delayed", "reserved")),
        )
    if told is None:
        return
    jobs, ends, results, saw = (dict(zip(flat[::2], flat[1::2], strict=True)) for flat in told[:4])
    left, (ready, held, dead, delayed, reserved) = told[4][1], told[5:]
    # By a clock that was set back, jobs are far away, and others wait for them.
    are_stuck = cluster.is_over and not delayed and not reserved
    cluster.fact(
        "flows",
        jobs=len(jobs),
        lost=sorted(set(jobs) - set(ends) - set(left))[:20],
        twice=[id for id, times in ends.items() if int(times) != 1][:20],
        wrong=[id for id in saw if jobs.get(id) and is_wrong(jobs[id], saw[id], results)][:20],
        left=ready + held + dead if are_stuck else 0,
    )


def is_wrong(told: str, saw: str, results: dict[str, str]) -> bool:
    """What a job saw that waited isn't what came of those it waited for."""
    on_dead, *ids = told.split()
    edges = json.loads(saw) or []
    if [id for id, _, _ in edges] != ids:
        return True
    return any(
        what != results.get(id)
        if state == "done"
        else on_dead == "HOLD" or state not in ("dead", "gone")
        for id, state, what in edges
    )


async def end_all(connection: Connection) -> None:
    """What is dead is kicked, what is held goes on, what is ready is done."""
    end = asyncio.get_running_loop().time() + ENDED_WITHIN_S
    while asyncio.get_running_loop().time() < end and await connection.call("DQ.LEN", QUEUE):
        await connection.call("DQ.KICK", QUEUE, "COUNT", 10_000)
        await go_on(connection)
        told = await connection.call("DQ.POP", QUEUE, "COUNT", 1_000, "TTR", TTR_MS)
        for id, _, lease, _ in told if isinstance(told, list) else []:
            await finish(connection, id, lease, 0)
        if not told:
            await asyncio.sleep(0.05)
