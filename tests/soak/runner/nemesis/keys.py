"""Queues that go to another server and come back."""

import contextlib

from ...resp import Failure
from ..client import Lost
from ..storm import NotNow, Storm


async def migrate(storm: Storm) -> None:
    """Under a name that no other client uses, so that it is known what was there when the queue left and came back."""
    if storm.side is None:
        raise NotNow
    side, key = storm.side, storm.queue()
    parked = storm.new_name("emigrant")
    with contextlib.suppress(Lost, ConnectionError):
        if isinstance(await storm.client.do("RENAME", key, parked, shape="sealed"), Failure):
            return
        replace = storm.chance.choice([[], ["REPLACE"]])
        told = await storm.client.do("MIGRATE", "127.0.0.1", side.port, parked, 0, 5_000, *replace)
        if told != "OK":
            return
        await storm.pause(0.4)

        async def come_back() -> str:
            return await side.ask("MIGRATE", "127.0.0.1", storm.primary.port, parked, 0, 5_000)

        await storm.around(["SOAK.RETURN", parked], come_back)
        await storm.client.do("RENAME", parked, key, shape="sealed")
