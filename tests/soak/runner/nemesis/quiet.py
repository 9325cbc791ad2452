"""A queue that no other client touches, one job that falls due in it, one consumer that waits.

In a busy queue the next command corrects what the timer has missed. Here there is no next command: the timer has to
come by itself, whatever was done to the key, the process or the clock in the meantime.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ...resp import Failure
from ..client import Client, Lost
from ..cluster import blocked_clients
from ..storm import NotNow, Storm
from .crash import child_has_ended

PATIENCE_S = 4.0
# So far ahead that only a clock that is set makes it due.
FAR_MS, FARTHER_MS = 1_800_000, 1_900_000


@dataclass
class Place:
    """The key where the job is added, and the key where the consumer waits for it."""

    source: str
    target: str
    delay_ms: int


async def quiet(storm: Storm) -> None:
    name = storm.chance.choice(
        [name for name in TROUBLES if name != "clock" or storm.primary.clock]
    )
    place = Place(
        storm.new_name("quiet"), storm.new_name("quiet"), storm.chance.randrange(100, 900)
    )
    if name in ("nothing", "reload", "clock"):
        place.source = place.target
    if name == "clock":
        place.delay_ms = FAR_MS
    storm.cluster.note("quiet", trouble=name, key=place.target)
    consumer = Client(storm.new_name("quiet-consumer"), storm.cluster, storm.chance)
    waits_first = storm.chance.random() < 0.5
    with contextlib.suppress(Lost, ConnectionError):
        id = await consumer.server_id()
        if waits_first:
            waiting = _wait(consumer, place)
            await asyncio.sleep(0.1)
        await storm.client.do("DQ.ADD", place.source, "job", place.target, "DELAY", place.delay_ms)
        await TROUBLES[name](storm, place)
        if not waits_first:
            waiting = _wait(consumer, place)
        await _served_or_released(storm, waiting, id)
    consumer.close()


def _wait(consumer: Client, place: Place) -> "asyncio.Future[object]":
    return asyncio.ensure_future(consumer.do("DQ.POP", place.target, "BLOCK", 0))


async def _served_or_released(storm: Storm, waiting: "asyncio.Future[object]", id: int) -> None:
    """The oracle judges the reply that the consumer gets in the end."""
    await asyncio.wait([waiting], timeout=PATIENCE_S)
    while not waiting.done():
        with contextlib.suppress(OSError, TimeoutError):
            async with storm.primary.talk() as connection:
                if id in await blocked_clients(connection):
                    await connection.call("CLIENT", "UNBLOCK", id)
        await asyncio.wait([waiting], timeout=0.2)
    with contextlib.suppress(Lost, ConnectionError):
        await waiting


async def _nothing(storm: Storm, place: Place) -> None:
    pass


async def _rename(storm: Storm, place: Place) -> None:
    await storm.client.do("RENAME", place.source, place.target, shape="sealed")


async def _copy(storm: Storm, place: Place) -> None:
    await storm.client.do("COPY", place.source, place.target, shape="sealed")
    await storm.client.do("UNLINK", place.source, shape="sealed")


async def _restore(storm: Storm, place: Place) -> None:
    payload = await storm.client.do("DUMP", place.source, shape="sealed")
    if payload is None or isinstance(payload, Failure):
        # Another client was faster: a FLUSHDB, or a crowd of consumers.
        return
    await storm.client.do("RESTORE", place.target, 0, payload, shape="sealed")
    await storm.client.do("UNLINK", place.source, shape="sealed")


async def _reload(storm: Storm, place: Place) -> None:
    await child_has_ended(storm.primary)
    await storm.client.do("DEBUG", "RELOAD")


async def _clock(storm: Storm, place: Place) -> None:
    """The clock jumps to the time at which the job is due, and stays there until the consumer has its reply."""
    clock = storm.primary.clock
    if clock is None:
        raise NotNow
    await storm.pause(0.5)
    await storm.cluster.set_clock(storm.primary, clock.shift_us + FARTHER_MS * 1_000)


TROUBLES: dict[str, Callable[[Storm, Place], Awaitable[None]]] = {
    "nothing": _nothing,
    "rename": _rename,
    "copy": _copy,
    "restore": _restore,
    "reload": _reload,
    "clock": _clock,
}
