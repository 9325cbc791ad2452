"""Consumers of the nemesis' own. They wait for jobs while something is done to them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from ...resp import Word
from ..client import Client, Lost
from ..cluster import blocked_clients
from ..storm import NotNow, Storm

VICTIM_WAITS_MS = 20_000
# How long they are waited for when all is done, before they are cut off.
PATIENCE_S = 5
BLOCKED_WITHIN_S = 2


@contextlib.asynccontextmanager
async def victims(storm: Storm, count: int, *words: Word, **note: Any) -> AsyncIterator[list[int]]:
    """This many clients send these words; yields their ids at the server once all of them wait.

    When the block ends, the history has their replies, or that they got none.
    """
    clients = [Client(storm.new_name("victim"), storm.cluster, storm.chance) for _ in range(count)]
    waiting: list[asyncio.Future[Any]] = []
    try:
        try:
            ids = [await client.server_id() for client in clients]
        except (Lost, ConnectionError):
            raise NotNow from None
        waiting = [asyncio.ensure_future(client.do(*words, **note)) for client in clients]
        await _are_blocked(storm, ids)
        yield ids
    finally:
        if waiting:
            await asyncio.wait(waiting, timeout=PATIENCE_S)
        for client in clients:
            client.close()
        for task in waiting:
            with contextlib.suppress(Lost, ConnectionError, asyncio.CancelledError):
                await task


async def _are_blocked(storm: Storm, ids: list[int]) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + BLOCKED_WITHIN_S
    while loop.time() < end:
        async with storm.primary.talk() as connection:
            if set(ids) <= set(await blocked_clients(connection)):
                return
        await asyncio.sleep(0.01)
    raise NotNow
