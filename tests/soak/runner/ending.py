"""How a session ends: every job is looked at, all that can leave leaves, every queue is removed."""

import asyncio
import contextlib

from ..resp import Failure
from .client import Client, Lost
from .draw import STATES
from .limits import LIMITS_DB
from .rest import DBS, keys_of
from .schedules import SCHEDULES_DB
from .sinks import SINKS_DB
from .storm import Storm

LOOKED_AT = 200
# A queue with more jobs than this is looked at, and then removed as it is.
DRAINED_MAX = 5_000
ROUNDS = 12


async def drain(storm: Storm) -> None:
    """Limits are lifted, clients come back, leases run out: in the end every job must be handed out."""
    # A schedule never ends by being emptied; and of what has limits, only its own clients know what they may ask for.
    dbs = [db for db in range(DBS) if db not in (SCHEDULES_DB, LIMITS_DB, SINKS_DB)]
    keys = [(db, key) for db in dbs for key in await _keys(storm, db)][:LOOKED_AT]
    clients = {db: Client(f"end-{db}", storm.cluster, storm.chance, db=db) for db in dbs}
    with contextlib.suppress(Lost):
        for db, key in keys:
            await _look(clients[db], key)
        for _ in range(ROUNDS):
            left = [await _empty(clients[db], key) for db, key in keys]
            if not any(left):
                break
            await asyncio.sleep(0.25)
    for client in clients.values():
        client.close()


async def _keys(storm: Storm, db: int) -> list[str]:
    async with storm.primary.talk() as connection:
        return await keys_of(connection, db)


async def _look(client: Client, key: str) -> None:
    """Looks at every job in all ways."""
    await client.do("DQ.INFO", key)
    if await _length(client, key) > DRAINED_MAX:
        return
    cursor, number = "0", client.chance.getrandbits(48)
    while True:
        told = await client.do("DQ.SCAN", key, cursor, "COUNT", 1_000, scan=number)
        if isinstance(told, Failure) or told[0] == "0":
            break
        cursor = told[0]
    for state in STATES:
        await client.do("DQ.LEN", key, "STATE", state)
        await client.do("DQ.PEEK", key, "STATE", state, "COUNT", 10)
    await client.do("DQ.LEN", key)


async def _empty(client: Client, key: str) -> int:
    """All jobs that are ready, dead or far away leave now."""
    await client.do("DQ.RESUME", key)
    if await _length(client, key) > DRAINED_MAX:
        return 0
    while told := await client.do("DQ.KICK", key, "COUNT", 10_000):
        if isinstance(told, Failure):
            break
    for job in await client.do("DQ.PEEK", key, "STATE", "delayed", "COUNT", 20):
        if isinstance(job, list):
            await client.do("DQ.KICKJOB", key, job[1])
    while (
        isinstance(jobs := await client.do("DQ.POP", key, "COUNT", 1_000, "TTR", 60_000), list)
        and jobs
    ):
        pairs = [word for id, _, lease, *_ in jobs for word in (id, lease)]
        await client.do("DQ.FINISH", key, *pairs)
    left = [
        await _length(client, key, "STATE", state)
        for state in ("delayed", "ready", "reserved", "dead")
    ]
    return sum(left)


async def _length(client: Client, key: str, *state: str) -> int:
    length = await client.do("DQ.LEN", key, *state)
    return length if isinstance(length, int) else 0


async def remove_all(storm: Storm) -> None:
    clients = [Client(f"remover-{db}", storm.cluster, storm.chance, db=db) for db in range(DBS)]
    with contextlib.suppress(Lost):
        for client in clients:
            await client.do("FLUSHDB", "SYNC", shape="sealed")
            client.close()
