"""Clients that keep queues with limits and groups: each queue has one warden, which sends all commands, and a guest,
which only waits for jobs.

These queues are in a database of their own, so that the order of all commands on a queue is known. Only then can an
oracle say that nothing held a job back (oracle/limits.py).
"""

import asyncio
from collections import deque

from .client import Client, Lost
from .draw import Command, Words

LIMITS_DB = 3
JOBS_MAX = 14
GROUPS = ("a", "b", "c")
RATES: list[Command] = [
    [1, 40],
    [3, 200],
    [7, 100],
    [5, 2],
    [10, 1_000, "BURST", 3],
    [2, 1_000, "BURST", 2],
    [1, 2_500],
]
# Longer than a consumer may wait beside a job that nothing holds back.
NAP_S = 1.9


class Warden:
    def __init__(self, key: str):
        self._key = key
        self._ids: deque[str] = deque(maxlen=3 * JOBS_MAX)
        self._leases: deque[tuple[str, int]] = deque(maxlen=12)
        # A reply was lost: what is there has to be looked at, and set anew.
        self._is_unsure = False

    async def wait(self, client: Client, words: Words) -> None:
        """The guest's turn."""
        command: Command = [
            "DQ.POP",
            self._key,
            "BLOCK",
            words.chance.choice([1, 100, 1_500, 4_000]),
        ]
        command += ["COUNT", 3] if words.often(0.2) else []
        await self._take(client, words, command)

    async def keep(self, client: Client, words: Words) -> None:
        try:
            if self._is_unsure:
                self._is_unsure = False
                await self._set_right(client)
            await self._turn(client, words)
        except Lost:
            self._is_unsure = True
            raise

    async def _turn(self, client: Client, words: Words) -> None:
        shape = words.chance.choice(["tight", "tight", "sealed"])
        lot = words.chance.random()
        if lot < 0.22:
            await self._add(client, words, shape)
        elif self._leases and lot < 0.46:
            await client.do(*self._claim(words), shape=shape)
        elif lot < 0.52:
            await client.do(*self._alter(words), shape=shape)
        elif lot < 0.58:
            await client.do(*self._pause(words), shape=shape)
        elif lot < 0.72:
            await client.do(*self._look(words), shape=shape)
        elif self._ids and lot < 0.75:
            id = words.chance.choice(self._ids)
            self._ids.remove(id)
            await client.do("DQ.DEL", self._key, id, shape=shape)
        elif lot < 0.754:
            await asyncio.sleep(NAP_S)
        else:
            await self._take(client, words, self._pop(words), shape)

    async def _set_right(self, client: Client) -> None:
        for id in self._ids:
            await client.do("DQ.GET", self._key, id)
        none: Command = ["RATE", 0, 0, "GROUPRATE", 0, 0, "CONCURRENCY", 0, "GROUPCONCURRENCY", 1]
        await client.do("DQ.ALTER", self._key, *none)
        await client.do("DQ.RESUME", self._key)
        for group in GROUPS:
            await client.do("DQ.RESUME", self._key, "GROUP", group)

    async def _add(self, client: Client, words: Words, shape: str) -> None:
        chance = words.chance
        length = await client.do("DQ.LEN", self._key, shape=shape)
        if not isinstance(length, int) or length >= JOBS_MAX:
            return
        id = f"u{chance.getrandbits(32):x}"
        self._ids.append(id)
        command: Command = ["DQ.ADD", self._key, id, words.body(), "ATTEMPTS", 0]
        command += ["TTR", chance.choice([20, 150, 600, 2_500])]
        command += (
            ["DELAY", chance.choice([1, 60, chance.randrange(1_500)])] if words.often(0.3) else []
        )
        command += ["PRIORITY", chance.choice([100, 128])] if words.often(0.2) else []
        command += ["GROUP", chance.choice(GROUPS)] if words.often(0.8) else []
        await client.do(*command, shape=shape)

    def _claim(self, words: Words) -> Command:
        chance = words.chance
        at = chance.randrange(len(self._leases))
        id, lease = self._leases[at]
        match chance.randrange(10):
            case 0 | 1:
                command: Command = ["DQ.RELEASE", self._key, id, lease]
                command += chance.choice([[], ["DELAY", chance.randrange(300)], ["UNBEGUN"]])
                command += ["PRIORITY", chance.choice([100, 128])] if words.often(0.2) else []
            case 2:
                command = ["DQ.TOUCH", self._key, id, lease]
                command += ["TTR", chance.choice([30, 400])] if words.often(0.5) else []
            case _:
                command = ["DQ.FINISH", self._key, id, lease]
        if words.often(0.8):
            del self._leases[at]
        return command

    def _alter(self, words: Words) -> Command:
        chance = words.chance
        match chance.randrange(6):
            case 0:
                said: Command = ["CONCURRENCY", chance.choice([0, 1, 2, 4])]
            case 1 | 2:
                said = ["GROUPCONCURRENCY", chance.choice([0, 1, 1, 2])]
            case 3 | 4:
                rate = [0, 0] if words.often(0.5) else chance.choice(RATES)
                said = [chance.choice(["RATE", "GROUPRATE"]), *rate]
            case _:
                said = [
                    "CONCURRENCY",
                    chance.choice([0, 3]),
                    "GROUPCONCURRENCY",
                    chance.choice([0, 1]),
                ]
        return ["DQ.ALTER", self._key, *said]

    def _pause(self, words: Words) -> Command:
        group: Command = ["GROUP", words.chance.choice(GROUPS)] if words.often(0.7) else []
        if words.often(0.5):
            return ["DQ.RESUME", self._key, *group]
        span: Command = ["FOR", words.chance.choice([1, 50, 700])] if words.often(0.8) else []
        return ["DQ.PAUSE", self._key, *group, *span]

    def _look(self, words: Words) -> Command:
        chance = words.chance
        state: Command = ["STATE", chance.choice(["ready", "reserved", "delayed"])]
        match chance.randrange(8):
            case 0 | 1:
                return ["DQ.LEN", self._key, *state]
            case 2 | 3 | 4:
                return ["DQ.GROUPS", self._key, 0, "COUNT", 1_000]
            case 5:
                return ["DQ.PEEK", self._key, *state, "COUNT", chance.choice([1, 4, 100])]
            case 6 if self._ids:
                return ["DQ.GET", self._key, chance.choice(self._ids)]
            case _:
                return ["DQ.INFO", self._key]

    def _pop(self, words: Words) -> Command:
        chance = words.chance
        command: Command = ["DQ.POP", self._key]
        if self._ids and words.often(0.1):
            for id in dict.fromkeys(chance.choice(self._ids) for _ in range(3)):
                command += ["ID", id]
        else:
            command += ["COUNT", chance.choice([2, 5, 20])] if words.often(0.4) else []
            command += ["BLOCK", chance.choice([1, 30, 300, 2_500])] if words.often(0.15) else []
        if words.often(0.1):
            return [*command, "NOACK"]
        return command + (["TTR", chance.choice([20, 300, 2_000])] if words.often(0.3) else [])

    async def _take(
        self, client: Client, words: Words, command: Command, shape: str = "tight"
    ) -> None:
        try:
            told = await client.do(*command, shape="tight" if "BLOCK" in command else shape)
        except Lost:
            self._is_unsure = True
            raise
        if isinstance(told, list):
            self._leases.extend((str(id), lease) for id, _, lease, *_ in told if lease is not None)
