"""The data that is there before the clients come: 100,000 queues, a queue with as many jobs, keys of other types."""

import asyncio

from ..resp import Word
from .client import Client
from .storm import Storm

CHUNK = 500
SPREAD_MS = 15_000
# How long filling may take before the lives end that are to end together.
FILL_MS = 15_000
HOUR_MS = 3_600_000


async def fill(storm: Storm) -> None:
    storm.cluster.open()
    if storm.profile.strangers:
        await _strangers(storm)
    if storm.profile.crowd:
        await _crowd(storm)
    if storm.profile.mass:
        await _mass(storm)


async def _strangers(storm: Storm) -> None:
    """Keys that are no queues, so that a walk over all keys takes long."""
    async with storm.primary.talk() as connection:
        await connection.call(
            "DEBUG", "POPULATE", storm.profile.strangers, "stranger", 8, within_s=60
        )


async def _crowd(storm: Storm) -> None:
    """Small queues, each of which waits for one job."""
    begin = storm.cluster.server_ms() + 2_000
    count = storm.profile.crowd
    for first in range(0, count, CHUNK):
        span = range(first, min(first + CHUNK, count))
        adds: list[list[Word]] = [
            ["DQ.ADD", f"crowd-{n}", "j", f"crowd-{n}", "AT", begin + n * SPREAD_MS // count]
            for n in span
        ]
        await storm.client.do_all(adds, shape="script")


async def _mass(storm: Storm) -> None:
    """Many jobs. Only the last one is what is asked for; all others before it are in another state."""
    client, count = storm.client, storm.profile.mass
    ends_at = storm.cluster.server_ms() + FILL_MS
    for first in range(0, count, CHUNK):
        span = range(first, min(first + CHUNK, count))
        backoff: list[Word] = ["BACKOFF", HOUR_MS, HOUR_MS]
        await client.do_all(
            [["DQ.ADD", "leased", f"j{n}", f"l{n}", *backoff] for n in span], shape="script"
        )
        life = max(ends_at - storm.cluster.server_ms(), 1)
        mortal: list[Word] = ["TTL", life, "PRIORITY", 1]
        await client.do_all(
            [["DQ.ADD", "mortal", f"j{n}", f"m{n}", *mortal] for n in span], shape="script"
        )
    await _lease_all(client)
    for n in range(3):
        await client.do("DQ.ADD", "mortal", f"last-{n}", f"last-{n}", "PRIORITY", 200)
    await _lives_end(storm, ends_at)
    await look_at_mass(client)


async def _lease_all(client: Client) -> None:
    """After all leases comes one job that waits for its backoff."""
    while await client.do("DQ.POP", "leased", "COUNT", 10_000, "TTR", HOUR_MS):
        pass
    await client.do("DQ.ADD", "leased", "last", "last", "BACKOFF", 9 * HOUR_MS, 9 * HOUR_MS)
    await client.do("DQ.POP", "leased", "TTR", 1)


async def _lives_end(storm: Storm, ends_at: int) -> None:
    """All lives end at once, while the server is busy. The next command meets all jobs where they stood."""
    await asyncio.sleep(max(ends_at - storm.cluster.server_ms() - 100, 0) / 1_000)
    await storm.burst(["DEBUG", "SLEEP", "0.3"], ["DQ.POP", "mortal"], ["DQ.POP", "mortal"])


async def look_at_mass(client: Client) -> None:
    for key, state in [
        ("leased", "delayed"),
        ("leased", "reserved"),
        ("mortal", "ready"),
        ("mortal", "dead"),
    ]:
        await client.do("DQ.LEN", key, "STATE", state)
        await client.do("DQ.PEEK", key, "STATE", state, "COUNT", 3)
    await client.do("DQ.INFO", "leased")
    await client.do("DQ.INFO", "mortal")
    await client.do("DQ.PURGE", "leased", "STATE", "delayed", "COUNT", 5)
