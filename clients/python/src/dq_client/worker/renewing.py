"""Keeping leases: one RENEW for all jobs of a queue that are in hand. Its answer is how a worker
learns that a job was cancelled, and it comes the moment that happens.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from dq_client import commands
from dq_client.commands import Key
from dq_client.outages import passes, pauses
from dq_client.replies import Delivery
from dq_client.worker import reporting
from dq_client.worker.calling import Caller
from dq_client.worker.hands import Hand, Hands

#: Two renewals may get lost.
_PER_TTR = 3
#: A job that comes is under the watch of a RENEW this soon.
_LONGEST = timedelta(seconds=1)
#: Jobs that end all the time don't make a RENEW each.
_SHORTEST_S = 0.1
#: In one command: the server takes no more.
MOST_AT_ONCE = 10_000

_AT_ONCE = timedelta(0)


def interval(ttr: timedelta) -> timedelta:
    return min(ttr / _PER_TTR, _LONGEST)


async def keep(key: Key, hands: Hands, ttr: timedelta, caller: Caller) -> None:
    """Renews the leases of a queue's jobs until it is cancelled."""
    loop = asyncio.get_running_loop()
    wait = min(interval(ttr), caller.longest_wait)
    waits = pauses()
    while True:
        await hands.some(key).wait()
        begun = loop.time()
        held = hands.of(key)
        if not held:  # those in hand are lost, and their handlers have still to end
            await asyncio.sleep(_SHORTEST_S)
            continue
        try:
            for part in parts(held):
                # The last of several commands waits for news; the others mustn't be late for it.
                is_last = part[-1] is held[-1]
                await _renew(key, part, ttr, wait if is_last else _AT_ONCE, hands, caller)
        except Exception as error:
            if not passes(error):
                raise
            caller.outages.failed(key.name, error)
            await caller.leave()
            # Not so long that a lease ends though the server is back.
            await caller.outages.pause(min(next(waits), wait.total_seconds()))
            continue
        caller.outages.answered(key.name)
        waits = pauses()
        await asyncio.sleep(max(0.0, begun + _SHORTEST_S - loop.time()))


def parts(held: list[Hand]) -> list[list[Hand]]:
    return [held[at : at + MOST_AT_ONCE] for at in range(0, len(held), MOST_AT_ONCE)]


async def _renew(
    key: Key, held: list[Hand], ttr: timedelta, wait: timedelta, hands: Hands, caller: Caller
) -> None:
    begun = asyncio.get_running_loop().time()
    command = commands.renew(key, ttr, wait, pairs([hand.delivery for hand in held]))
    void = await caller.call(command)
    lost = set(void)
    for hand in held:
        if hand.delivery.id not in lost:
            hand.good_until = begun + ttr.total_seconds()
        elif hand.is_ended:
            hand.job.is_lost = True
            hands.leave(hand)
        else:
            hand.lose()


def pairs(jobs: list[Delivery]) -> list[tuple[commands.Id, commands.Lease]]:
    return [(job.id, job.lease or 0) for job in jobs]


async def watch(hands: Hands, ttr: timedelta) -> None:
    """Gives jobs up whose leases could not be renewed in time: another worker may have them. One
    whose handler has ended is not given up: its outcome counts for as long as no other has it.
    """
    loop = asyncio.get_running_loop()
    pause_s = interval(ttr).total_seconds()
    while True:
        asleep_at = loop.time()
        await asyncio.sleep(pause_s)
        late_s = loop.time() - asleep_at - pause_s
        if late_s > max(pause_s, _SHORTEST_S):
            reporting.stood_still(late_s, [hand.delivery.id for hand in hands.all()])
        for hand in hands.running():
            if hand.good_until < loop.time() and not hand.job.is_lost:
                reporting.lost(hand.delivery, "its lease has run out")
                hand.lose()
