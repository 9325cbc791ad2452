"""Clients that keep schedules: each has a queue of its own, in which jobs come back.

These queues are in a database of their own, so that no other queue takes their place: the oracle follows runs of a
schedule in another way than jobs that leave (oracle/schedules.py).
"""

from collections import deque

from .client import Client
from .draw import Command, Words

SCHEDULES_DB = 2
JOBS_MAX = 6


class Keeper:
    def __init__(self, key: str):
        self._key = key
        self._ids: deque[str] = deque(maxlen=JOBS_MAX)
        # Also those that are long over.
        self._leases: deque[tuple[str, int]] = deque(maxlen=12)

    async def turn(self, client: Client, words: Words) -> None:
        shape = words.chance.choice(["tight", "tight", "sealed"])
        lot = words.chance.random()
        if len(self._ids) < JOBS_MAX and lot < 0.15:
            await client.do(*self._add(words), shape=shape)
        elif self._leases and lot < 0.5:
            await client.do(*self._claim(words), shape=shape)
        elif self._ids and lot < 0.52:
            id = words.chance.choice(self._ids)
            self._ids.remove(id)
            await client.do("DQ.DEL", self._key, id, shape=shape)
        elif lot < 0.56:
            look: list[Command] = [
                ["DQ.LEN", self._key],
                ["DQ.SCAN", self._key, 0, "SCHEDULED", "COUNT", 1_000],
            ]
            await client.do(*words.chance.choice(look), shape=shape)
        else:
            await self._take(client, words, shape)

    def _add(self, words: Words) -> Command:
        chance = words.chance
        id = f"u{chance.getrandbits(32):x}"
        self._ids.append(id)
        every = chance.choice([1, 7, 50, 400, 1_500])
        first = chance.randrange(1, 1_500)
        at = words.now_ms() + first
        begins: Command = ["DELAY", first]
        if words.often(0.5):
            begins = ["AT", at]
            if words.often(0.3):
                begins += ["UNTIL", at + chance.choice([0, 3, 20]) * every]
        command: Command = ["DQ.ADD", self._key, id, words.body(), "EVERY", every, *begins]
        command += ["MISFIRE", chance.choice(["ONE", "ALL"]), "ATTEMPTS", 0]
        command += ["TTR", chance.choice([1, 100, 1_000])]
        if words.often(0.3):
            command += ["RUNS", chance.choice([1, 2, 10])]
        return command

    def _claim(self, words: Words) -> Command:
        at = words.chance.randrange(len(self._leases))
        id, lease = self._leases[at]
        if words.often(0.8):
            del self._leases[at]
        if words.often(0.2):
            delay: Command = ["DELAY", words.chance.randrange(300)] if words.often(0.5) else []
            return ["DQ.RELEASE", self._key, id, lease, *delay]
        return ["DQ.FINISH", self._key, id, lease]

    async def _take(self, client: Client, words: Words, shape: str) -> None:
        command: Command = ["DQ.POP", self._key, "WITHDUE"]
        if words.often(0.4):
            command += ["COUNT", words.chance.choice([2, 5])]
        if words.often(0.5):
            command += ["BLOCK", words.chance.choice([1, 30, 300, 2_000])]
            shape = "tight"
        told = await client.do(*command, shape=shape)
        if isinstance(told, list):
            self._leases.extend((str(id), lease) for id, _, lease, *_ in told)
