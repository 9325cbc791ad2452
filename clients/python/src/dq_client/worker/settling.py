"""Saying what came of jobs: all that has piled up in one round trip, FINISH for many at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from dq_client import commands
from dq_client.commands import Command, Key
from dq_client.outages import passes, pauses
from dq_client.worker import outcomes
from dq_client.worker.calling import Caller
from dq_client.worker.outcomes import Settlement

logger = logging.getLogger("dq_client")

#: In one FINISH, so that it doesn't hold the server up.
MOST_AT_ONCE = 1_000


class Settler:
    def __init__(self, keys: Mapping[str, Key], caller: Caller):
        self._keys = keys
        self._caller = caller
        self._unsent: list[Settlement] = []
        self._has_unsent = asyncio.Event()
        self._is_sending = False

    def settle(self, settlement: Settlement) -> None:
        self._unsent.append(settlement)
        self._has_unsent.set()

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
            finally:
                self._is_sending = False
            if not unsent:
                waits = pauses()
                continue
            self._unsent = unsent + self._unsent
            self._has_unsent.set()
            await self._caller.leave()
            await asyncio.sleep(next(waits))

    async def _send(self, batch: list[Settlement]) -> list[Settlement]:
        """Returns those that have to be sent again."""
        told = [*self._finishes(batch), *((s.command, [s]) for s in batch if s.command is not None)]
        try:
            replies = await self._caller.batch([command for command, _ in told])
        except Exception as error:
            if not passes(error):
                raise
            logger.warning("the server can't be told what came of %d jobs: %s", len(batch), error)
            return batch
        unsent: list[Settlement] = []
        for (_, settlements), reply in zip(told, replies, strict=True):
            unsent += self._again(settlements, reply)
        return unsent

    def _finishes(self, batch: list[Settlement]) -> list[tuple[Command[Any], list[Settlement]]]:
        by_key: dict[str, list[Settlement]] = {}
        for settlement in batch:
            if settlement.is_finish:
                by_key.setdefault(settlement.job.key, []).append(settlement)
        return [
            (commands.finish(self._keys[name], *(each.job for each in part)), part)
            for name, finished in by_key.items()
            for part in parts(finished)
        ]

    def _again(self, settlements: list[Settlement], reply: Any) -> list[Settlement]:
        if not isinstance(reply, Exception):
            told = reply if isinstance(reply, int) else reply is not None
            if not told or told < len(settlements):
                logger.info("of %d jobs, not all were this worker's any more", len(settlements))
            return []
        if passes(reply):
            return settlements
        settlement = settlements[0]
        if settlement.is_finish or settlement.name != "done":
            raise reply
        # A DONE is refused: its result is too long, the id of one of its jobs is taken.
        error = settlement.refused(reply) if settlement.refused else reply
        return [outcomes.of_error(self._keys[settlement.job.key], settlement.job, error)]


def parts(finished: list[Settlement]) -> list[list[Settlement]]:
    return [finished[at : at + MOST_AT_ONCE] for at in range(0, len(finished), MOST_AT_ONCE)]


Settle = Callable[[Settlement], None]
