"""Saying what came of jobs: all that has piled up in one round trip, FINISH for many at once. In a
cluster each slot has a settler of its own, so that a node that is down holds up no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from dq_client import commands
from dq_client.commands import Command, Key
from dq_client.outages import is_of_the_server, passes, pauses
from dq_client.worker import outcomes
from dq_client.worker.calling import Caller
from dq_client.worker.outcomes import Settlement

logger = logging.getLogger("dq_client")

#: In one FINISH, so that it doesn't hold the server up.
MOST_AT_ONCE = 1_000
#: With so many unsent outcomes no more jobs are taken.
UNSENT_AT_MOST = 10_000

#: Called with each outcome that the server has, whether the job was still this worker's, and the
#: reply to `look`.
Told = Callable[[Settlement, bool, Any], None]
#: A command, and those whose outcomes it says.
Line = tuple[Command[Any], list[Settlement]]


class Settler:
    """`keys` are queues of one slot, by their names. `look` makes a command that is sent along
    after a failure, whose reply says what comes next.
    """

    def __init__(
        self,
        keys: Mapping[str, Key],
        caller: Caller,
        told: Told,
        look: Callable[[Settlement], Command[Any] | None],
    ):
        self._keys = keys
        self._caller = caller
        self._told = told
        self._look = look
        self._unsent: list[Settlement] = []
        self._has_unsent = asyncio.Event()
        self._is_sending = False
        #: Whether something of the last batch can't be sent for now.
        self._is_away = False
        self.has_room = asyncio.Event()
        self.has_room.set()

    def settle(self, settlement: Settlement) -> None:
        self._unsent.append(settlement)
        self._has_unsent.set()
        if len(self._unsent) >= UNSENT_AT_MOST:
            self.has_room.clear()

    @property
    def is_idle(self) -> bool:
        return not self._unsent and not self._is_sending

    async def run(self) -> None:
        """Sends until it is cancelled. What the server can't be told now is sent again."""
        waits = pauses()
        while True:
            await self._has_unsent.wait()
            self._has_unsent.clear()
            batch, self._unsent = self._unsent, []
            self._is_sending = True
            try:
                unsent = await self._send(batch)
            except BaseException:
                self._unsent = batch + self._unsent
                raise
            finally:
                self._is_sending = False
            self._unsent = unsent + self._unsent
            if len(self._unsent) < UNSENT_AT_MOST:
                self.has_room.set()
            if not unsent:
                waits = pauses()
                continue
            self._has_unsent.set()
            if not self._is_away:
                continue  # the server has answered: other words are tried at once
            await self._caller.leave()
            await self._caller.outages.pause(next(waits))

    async def _send(self, batch: list[Settlement]) -> list[Settlement]:
        """Returns those that have to be sent again."""
        self._is_away = False
        good = [each for each in batch if not each.is_void]
        for each in batch:
            if each.is_void:
                self._told(each, False, None)
        lines = [*self._finishes(good), *((s.command, [s]) for s in good if s.command is not None)]
        looks = [(command, s) for s in good if s.is_failure and (command := self._look(s))]
        if not lines:
            return []
        queue = good[0].job.key
        try:
            replies = await self._caller.batch([command for command, _ in [*lines, *looks]])
        except Exception as error:
            if not passes(error):
                raise
            self._is_away = True
            self._caller.outages.failed(queue, error)
            return good
        shown = {id(s): reply for (_, s), reply in zip(looks, replies[len(lines) :], strict=True)}
        unsent: list[Settlement] = []
        for (_, settlements), reply in zip(lines, replies, strict=False):
            unsent += self._again(settlements, reply, shown.get(id(settlements[0])))
        return unsent

    def _finishes(self, batch: list[Settlement]) -> list[Line]:
        by_key: dict[str, list[Settlement]] = {}
        lines: list[Line] = []
        for settlement in batch:
            if settlement.is_finish and settlement.is_alone:
                lines.append(self._finish([settlement]))
            elif settlement.is_finish:
                by_key.setdefault(settlement.job.key, []).append(settlement)
        return lines + [
            self._finish(part) for finished in by_key.values() for part in parts(finished)
        ]

    def _finish(self, part: list[Settlement]) -> Line:
        key = self._keys[part[0].job.key]
        return commands.finish(key, *(each.job for each in part)), part

    def _again(self, settlements: list[Settlement], reply: Any, shown: Any) -> list[Settlement]:
        queue = settlements[0].job.key
        if not isinstance(reply, Exception):
            self._caller.outages.answered(queue)
            # FINISH has counted how many were; DONE replies None for one that was not.
            count = reply if isinstance(reply, int) else int(reply is not None)
            if count < len(settlements):
                logger.info("of %d jobs, not all were this worker's any more", len(settlements))
            for each in settlements:
                self._told(each, count > 0, shown)
            return []
        if passes(reply):
            self._is_away = True
            self._caller.outages.failed(queue, reply)
            return settlements
        if is_of_the_server(reply):
            raise reply
        if len(settlements) == 1:
            return self._refused(settlements[0], reply)
        # One of them may spoil it for the others.
        for each in settlements:
            each.is_alone = True
        return settlements

    def _refused(self, settlement: Settlement, reply: Exception) -> list[Settlement]:
        """What is said in its place."""
        key, job = self._keys[settlement.job.key], settlement.job
        if settlement.refusals == 2 or settlement.name == "unbegun":
            logger.error(
                "queue %r: job %r can't be settled, and comes back when its lease ends: %s",
                *(job.key, job.id, reply),
            )
            self._told(settlement, False, None)
            return []
        instead = _own_words(settlement, key, reply)
        if instead is None:
            instead = outcomes.refused(key, job, reply, settlement.refusals + 1, settlement.size)
        instead.refusals = settlement.refusals + 1
        instead.hand = settlement.hand
        return [instead]


def _own_words(settlement: Settlement, key: Key, reply: Exception) -> Settlement | None:
    """What a handler has said beforehand for this case: `Done(refused=…)`."""
    if settlement.refused is None:
        return None
    try:
        return outcomes.of_error(key, settlement.job, settlement.refused(reply))
    except BaseException:
        logger.exception("queue %r: job %r: `refused` of its Done", key.name, settlement.job.id)
        return None


def parts(finished: list[Settlement]) -> list[list[Settlement]]:
    return [finished[at : at + MOST_AT_ONCE] for at in range(0, len(finished), MOST_AT_ONCE)]
