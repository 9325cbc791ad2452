"""What happens to connections and to the process: pauses, kills, stops, and reloads of its data."""

import asyncio
import contextlib

from ...resp import Failure
from ..client import Lost
from ..cluster import blocked_clients
from ..storm import NotNow, Storm
from .crash import child_has_ended
from .victims import VICTIM_WAITS_MS, victims


async def client_ids(storm: Storm) -> list[int]:
    async with storm.primary.talk() as connection:
        text = await connection.call("CLIENT", "LIST", "TYPE", "normal")
    return [int(line.split(" ", 1)[0].removeprefix("id=")) for line in text.splitlines()]


async def kill_clients(storm: Storm) -> None:
    """Kills clients in one burst, among them some that wait for a job."""
    ids = await client_ids(storm)
    victims = storm.chance.sample(ids, min(len(ids), storm.chance.choice([1, 3, 10])))
    storm.cluster.note("client-kill", count=len(victims))
    async with storm.primary.talk() as connection:
        connection.send(*(["CLIENT", "KILL", "ID", id, "SKIPME", "yes"] for id in victims))
        await connection.call("PING")


async def unblock_clients(storm: Storm) -> None:
    how = storm.chance.choice(["TIMEOUT", "ERROR"])
    async with storm.primary.talk() as connection:
        ids = await blocked_clients(connection)
        storm.cluster.note("client-unblock", count=len(ids), how=how)
        if ids:
            await asyncio.gather(*connection.send(*(["CLIENT", "UNBLOCK", id, how] for id in ids)))


async def pause_clients(storm: Storm) -> None:
    """Without UNBLOCK meanwhile: for a paused client that crashes a plain Redis 7.0."""
    for _ in range(storm.chance.choice([1, 1, 3])):
        span_ms = storm.chance.randrange(10, 400)
        how = storm.chance.choice(["WRITE", "ALL"])
        storm.cluster.note("client-pause", ms=span_ms, how=how)
        async with storm.primary.talk() as connection:
            await connection.call("CLIENT", "PAUSE", span_ms, how)
        await asyncio.sleep(span_ms / 1_000 + storm.chance.random() * 0.05)


async def freeze(storm: Storm) -> None:
    """SIGSTOP: when the server goes on, all that was sent and fell due meanwhile is there at once."""
    span_s = storm.chance.choice([0.05, 0.3, 1.0])
    storm.cluster.note("sigstop", ms=int(span_s * 1_000))
    storm.primary.freeze()
    try:
        await asyncio.sleep(span_s)
    finally:
        storm.primary.thaw()


async def ambush(storm: Storm) -> None:
    """Kills consumers in the turn in which jobs come for them.

    They got no reply, so the jobs must be ready again, and no attempt counted.
    """
    key = storm.new_name("ambush")
    count = storm.chance.choice([1, 2, 3, 5])
    words = ["DQ.POP", key, "BLOCK", VICTIM_WAITS_MS, *storm.chance.choice([[], ["TTR", 60_000]])]
    adds = [
        ["DQ.ADD", key, f"j{n}", f"{key}.{n}", "TTR", 60_000, "ATTEMPTS", 1] for n in range(count)
    ]
    with contextlib.suppress(Lost, ConnectionError):
        async with victims(storm, count, *words, ambush=key) as ids:
            kills = [["CLIENT", "KILL", "ID", id] for id in ids]
            await storm.burst(*adds, *kills, note={"ambush": key})
        await asyncio.sleep(0.05)
        await storm.client.do("DQ.LEN", key, "STATE", "ready")
        await storm.client.do("DQ.POP", key, "COUNT", count)
        await storm.client.do("UNLINK", key, shape="sealed")


async def reload(storm: Storm) -> None:
    """DEBUG RELOAD: saves, forgets, loads. Not while a child saves: the servers have a bug there."""
    await child_has_ended(storm.primary)
    storm.cluster.note("debug-reload")
    with contextlib.suppress(Lost, ConnectionError):
        await storm.client.do("DEBUG", "RELOAD")


async def load_aof(storm: Storm) -> None:
    """DEBUG LOADAOF: forgets all, and repeats the log, while consumers wait."""
    if storm.profile.persistence not in ("always", "everysec"):
        raise NotNow
    await child_has_ended(storm.primary)
    storm.cluster.note("debug-loadaof")
    with contextlib.suppress(Lost, ConnectionError):
        reply = await storm.client.do("DEBUG", "LOADAOF")
        assert reply == "OK" or isinstance(reply, Failure)
