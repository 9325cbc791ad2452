"""Keeping leases: one RENEW for all jobs of a queue that are in hand. Its answer is how a worker
learns that a job was cancelled, and it comes the moment that happens.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from dq_client import commands
from dq_client.commands import Key
from dq_client.outages import passes, pauses
from dq_client.worker.calling import Caller
from dq_client.worker.hands import Hand, Hands

logger = logging.getLogger("dq_client")

#: Two renewals may get lost.
_PER_TTR = 3
#: A job that comes is under the watch of a RENEW this soon.
_LONGEST = timedelta(seconds=1)
#: Jobs that end all the time don't make a RENEW each.
_SHORTEST_S = 0.1
#: In one command.
MOST_AT_ONCE = 10_000


def interval(ttr: timedelta) -> timedelta:
    return min(ttr / _PER_TTR, _LONGEST)


async def keep(key: Key, hands: Hands, ttr: timedelta, caller: Caller) -> None:
    """Renews the leases of a queue's jobs until it is cancelled."""
    loop = asyncio.get_running_loop()
    waits = pauses()
    while True:
        await hands.some(key).wait()
        begun = loop.time()
        held = hands.of(key)[:MOST_AT_ONCE]
        if not held:  # those in hand are lost, and their handlers have still to end
            await asyncio.sleep(_SHORTEST_S)
            continue
        try:
            void = await _renewed(key, held, ttr, caller)
        except Exception as error:
            if not passes(error):
                raise
            logger.warning("the leases of %d jobs can't be renewed: %s", len(held), error)
            await caller.leave()
            await asyncio.sleep(next(waits))
            continue
        waits = pauses()
        for hand in held:
            if hand.delivery.id in void:
                hand.lose()
            else:
                hand.good_until = begun + ttr.total_seconds()
        await asyncio.sleep(max(0.0, begun + _SHORTEST_S - loop.time()))


async def _renewed(key: Key, held: list[Hand], ttr: timedelta, caller: Caller) -> set[str]:
    pairs: list[tuple[commands.Id, commands.Lease]] = [
        (hand.delivery.id, hand.delivery.lease or 0) for hand in held
    ]
    void = await caller.call(commands.renew(key, ttr, interval(ttr), pairs))
    return set(void)


async def watch(hands: Hands, ttr: timedelta) -> None:
    """Gives jobs up whose leases could not be renewed in time: another worker may have them."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(interval(ttr).total_seconds())
        for hand in hands.all():
            if hand.good_until < loop.time() and not hand.job.is_lost:
                logger.warning("%s: its lease has run out", hand.delivery.id)
                hand.lose()
