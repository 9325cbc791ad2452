"""A crowd of consumers that wait, time out, disconnect and are killed, and producers that keep them
busy.

The crowd keeps every delivery that a consumer got. So a test can check afterwards that each job was
handed out as often as its attempts say.
"""

import asyncio
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from harness.clock import now_ms
from harness.pipelined import Words, encoded
from harness.resp import LINE, Failure, read_reply

QUEUES = ["q1", "q2", "q3"]
Job = tuple[bytes, bytes]


class Line:
    """A connection of RESP2."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> "Line":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def call(self, *words: str | bytes | int) -> Any:
        (reply,) = await self.call_at_once(words)
        return reply

    async def call_at_once(self, *commands: Words) -> list[Any]:
        """Sends commands in one write. The server executes them in one turn of its event loop."""
        self._writer.write(b"".join(map(encoded, commands)))
        return [await self._read() for _ in commands]

    def close(self) -> None:
        self._writer.close()

    async def _read(self) -> Any:
        parsing = read_reply()
        length = next(parsing)
        while True:
            if length is LINE:
                data = await self._reader.readuntil(b"\r\n")
            else:
                data = await self._reader.readexactly(length)
            try:
                length = parsing.send(data)
            except StopIteration as done:
                return done.value


@dataclass
class Crowd:
    port: int
    consumers: int
    jobs: int
    # Whether consumers disconnect and are killed, so that no consumer may get a delivery.
    vanish: bool
    seed: int = 1

    # By attempt, the lease.
    handouts: dict[Job, dict[int, int | None]] = field(default_factory=lambda: defaultdict(dict))
    finished: Counter[Job] = field(default_factory=Counter)
    due: dict[Job, int] = field(default_factory=dict)
    # Jobs that were being finished when the connection was lost.
    unsure: set[Job] = field(default_factory=set)
    outcomes: Counter[str] = field(default_factory=Counter)
    # What can't be, in words.
    wrong: list[str] = field(default_factory=list)

    _is_producing: bool = True
    _is_over: bool = False
    # By who they are, those that came first coming first: the number of the client, and a queue.
    _waiting: dict[int, tuple[int, str]] = field(default_factory=dict)

    def run(self, within_s: float) -> None:
        asyncio.run(self._run(within_s))

    async def _run(self, within_s: float) -> None:
        operator = await Line.open(self.port)
        workers = [asyncio.create_task(self._consume(n)) for n in range(self.consumers)]
        others = [asyncio.create_task(self._disturb(random.Random(self.seed)))]

        async def until_all_is_done() -> None:
            await asyncio.gather(*(self._produce(n, 4) for n in range(4)))
            self._is_producing = False
            while any([await operator.call("DQ.LEN", queue) for queue in QUEUES]):
                raise_what_went_wrong(workers + others)
                await asyncio.sleep(0.05)

        await asyncio.wait_for(until_all_is_done(), within_s)
        self._is_over = True
        for task in others + workers:
            task.cancel()
        await asyncio.wait(others + workers)
        raise_what_went_wrong(others + workers)
        operator.close()

    async def _produce(self, number: int, of: int) -> None:
        chance = random.Random(f"{self.seed} {number}")
        line = await Line.open(self.port)
        for n in range(number, self.jobs, of):
            queue, id = chance.choice(QUEUES), b"%d" % n
            due = now_ms() + chance.choice([0, 0, 1, 10, 100, 400])
            self.due[queue.encode(), id] = due
            words = ["DQ.ADD", queue, id, "x", "AT", due, "TTR", chance.choice([40, 200, 1_000])]
            words += ["ATTEMPTS", 0, "PRIORITY", chance.choice([1, 128, 128, 128])]
            in_transaction = chance.random() < 0.1
            if in_transaction:
                await line.call("MULTI")
            await line.call(*words)
            if in_transaction:
                await line.call("EXEC")
            if chance.random() < 0.005:
                await line.call("DQ.PAUSE", queue, "FOR", 30)
            await asyncio.sleep(chance.random() * 0.01)
        line.close()

    async def _disturb(self, chance: random.Random) -> None:
        """Kills or unblocks waiting consumers, also one that is just being served."""
        line = await Line.open(self.port)
        for n in range(10**9):
            await asyncio.sleep(0.004)
            if not self._waiting:
                continue
            is_served = self._is_producing and chance.random() < 0.5
            at = 0 if is_served else chance.randrange(len(self._waiting))
            id, queue = list(self._waiting.values())[at]
            lot = chance.random()
            if self.vanish and lot < 0.4:
                end: Words = ("CLIENT", "KILL", "ID", id)
            else:
                end = ("CLIENT", "UNBLOCK", id, "TIMEOUT" if lot < 0.6 else "ERROR")
            before = [self._one_more(queue, n)] if is_served else []
            *_, is_gone = await line.call_at_once(*before, end)
            self.outcomes[f"{end[1]} while served" if is_served else str(end[1])] += is_gone

    def _one_more(self, queue: str, n: int) -> Words:
        id = b"more-%d" % n
        self.due[queue.encode(), id] = now_ms()
        return ("DQ.ADD", queue, id, "x", "ATTEMPTS", 0, "PRIORITY", 0, "TTR", 1_000)

    async def _consume(self, number: int) -> None:
        chance = random.Random(f"{self.seed} {number}")
        while not self._is_over:
            line = await Line.open(self.port)
            try:
                await self._work(line, number, chance)
            except (ConnectionError, asyncio.IncompleteReadError):
                self.outcomes["connections lost"] += 1
            finally:
                self._waiting.pop(number, None)
                line.close()

    async def _work(self, line: Line, number: int, chance: random.Random) -> None:
        id = await line.call("CLIENT", "ID")
        # wait_for may swallow a cancellation that comes together with the reply.
        while not self._is_over:
            words, is_noack = self._pop(chance)
            patience = chance.random() * 2 if self.vanish and chance.random() < 0.2 else None
            if not is_noack:
                # What such a one is about to get would be gone with it: at most once.
                self._waiting[number] = (id, str(words[1] if words[0] == "DQ.POP" else words[2]))
            try:
                reply = await asyncio.wait_for(line.call(*words), patience)
            except TimeoutError:
                self.outcomes["went away"] += 1
                return
            self._waiting.pop(number, None)
            if isinstance(reply, Failure):
                self.outcomes["errors"] += 1
                if not reply.startswith("UNBLOCKED"):
                    self.wrong.append(f"{words}: {reply}")
            elif reply is None:
                self.outcomes["nil"] += 1
            else:
                queue, jobs = reply if words[0] == "DQ.MPOP" else (words[1].encode(), reply)
                for got in jobs:
                    self._take((queue, got[0]), got[2], got[3], is_noack)
                for got in jobs:
                    if not is_noack:
                        await self._deal(line, chance, (queue, got[0]), got[2])

    def _pop(self, chance: random.Random) -> tuple[list[str | int], bool]:
        # The more there are, the longer they wait: else they are busy with nothing but timeouts.
        longest = 2 * self.consumers
        block = (
            chance.choice([0, 10, longest, longest])
            if chance.random() < 0.5
            else chance.randint(1, longest)
        )
        is_noack = not self.vanish and chance.random() < 0.2
        words: list[str | int] = ["DQ.POP", chance.choice(QUEUES)]
        if chance.random() < 0.3:
            some = chance.sample(QUEUES, 2)
            words = ["DQ.MPOP", 2, *some]
        words += ["BLOCK", block]
        if chance.random() < 0.3:
            words += ["COUNT", chance.randint(1, 4)]
        return words + (["NOACK"] if is_noack else []), is_noack

    def _take(self, job: Job, lease: int | None, attempt: int, is_noack: bool) -> None:
        self.outcomes["deliveries"] += 1
        if now_ms() < self.due[job]:
            self.wrong.append(f"{job} was early")
        if attempt in self.handouts[job]:
            self.wrong.append(f"{job} was handed out twice as attempt {attempt}")
        if self.finished[job]:
            self.wrong.append(f"{job} was handed out after it was finished")
        self.handouts[job][attempt] = lease
        if is_noack:
            self.finished[job] += 1

    async def _deal(self, line: Line, chance: random.Random, job: Job, lease: int) -> None:
        (queue, id), lot = job, chance.random()
        if lot < 0.7:
            self.unsure.add(job)
            is_done = await line.call("DQ.FINISH", queue, id, lease)
            self.finished[job] += is_done
            self.unsure.discard(job)
        elif lot < 0.9:
            await line.call("DQ.RELEASE", queue, id, lease, "DELAY", chance.choice([0, 1, 30]))
        # Or it is forgotten, until its lease ends.

    def lost_deliveries(self) -> int:
        """Attempts that no consumer got: their replies were on the way to a consumer that had
        gone.
        """
        return sum(max(attempts) - len(attempts) for attempts in self.handouts.values())

    def check(self) -> None:
        """All jobs were handed out and finished once, and their leases grew with their attempts."""
        __tracebackhide__ = True
        assert self.wrong == []
        assert set(self.handouts) == set(self.due)
        for job, attempts in self.handouts.items():
            leases = [lease for _, lease in sorted(attempts.items()) if lease is not None]
            assert leases == sorted(set(leases)), (job, attempts)
            is_unsure = self.vanish and job in self.unsure
            assert self.finished[job] == 1 or is_unsure, (job, attempts)
        if self.vanish:
            gone = self.outcomes["connections lost"] + self.outcomes["went away"]
            assert self.lost_deliveries() <= 4 * gone
        else:
            assert self.lost_deliveries() == 0


def raise_what_went_wrong(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done() and not task.cancelled() and (error := task.exception()):
            raise error
