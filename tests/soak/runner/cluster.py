"""The servers of a session, which of them is the primary, and the history of its data set.

An *epoch* is the life of a data set on one primary, from a start or a promotion to the next. Every marked command left
its mark in the journal, a list in a database of its own (README.md). So the length of the list, read before any client
comes back, says exactly how much of the last epoch has survived.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

from ..history import Op, Writer
from ..resp import Connection, Failure, Word
from .node import Node

JOURNAL_DB = 15
JOURNAL = "journal"
CHUNK = 5_000
# One write, so that no server wraps it in a transaction of its own; allowed also when memory is full.
MARK = """#!lua flags=allow-oom
redis.call('SELECT', 15)
local n = redis.call('RPUSH', 'journal', ARGV[1])
local now = redis.call('TIME')
return {n, now[1] * 1000000 + now[2]}"""


def mark(op_id: int, *, is_after: bool) -> list[Word]:
    return ["EVAL", MARK, 0, 2 * op_id + is_after]


class Cluster:
    """Clients ask it which server is the primary; the nemesis reports changes to it."""

    def __init__(self, nodes: list[Node], history: Writer):
        self.nodes = nodes
        self.primary = nodes[0]
        self.history = history
        # Of each epoch: how many marks its data set began with, and from which epoch they are.
        self._bases: list[int] = []
        self._parents: list[int | None] = []
        self._begin = time.monotonic_ns()
        self._ops = 0
        self._gate = asyncio.Event()
        self._in_flight = 0
        self.is_over = False
        # Many other keys: a queue that moved, and that no client touches, is found after minutes.
        self.has_strangers = False
        # About what the primary's clock shows, for due times.
        self.server_us = time.time_ns() // 1_000
        # What no nemesis did: the session is a failure, whatever the oracle finds.
        self.alarms: list[str] = []

    def now_us(self) -> int:
        return (time.monotonic_ns() - self._begin) // 1_000

    def server_ms(self) -> int:
        return self.server_us // 1_000

    def next_op(self) -> int:
        self._ops += 1
        return self._ops

    # ---- clients ----------------------------------------------------------------------------------

    async def where(self) -> tuple[Node, int]:
        """The primary and its epoch, once clients may send commands."""
        await self._gate.wait()
        return self.primary, self.epoch

    @property
    def is_open(self) -> bool:
        return self._gate.is_set()

    @contextlib.contextmanager
    def flight(self) -> Any:
        """A command is under way."""
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1

    def open(self) -> None:
        self._gate.set()

    def shut(self) -> None:
        """No command begins from now on; commands under way go on."""
        self._gate.clear()

    @contextlib.asynccontextmanager
    async def rest(self) -> AsyncIterator[bool]:
        """Waits until no command is under way and no client waits for a job. False when that can't be reached."""
        self.shut()
        try:
            yield await self._come_to_rest()
        finally:
            if not self.is_over:
                self.open()

    async def _come_to_rest(self, within_s: float = 30) -> bool:
        deadline = time.monotonic() + within_s
        while self._in_flight and time.monotonic() < deadline:
            with contextlib.suppress(OSError, TimeoutError, RuntimeError):
                await self._unblock_all()
            await asyncio.sleep(0.02)
        return not self._in_flight

    async def _unblock_all(self) -> None:
        async with self.primary.talk() as connection:
            for client in await blocked_clients(connection):
                await connection.call("CLIENT", "UNBLOCK", client)

    # ---- epochs -----------------------------------------------------------------------------------

    async def begin_epoch(self, node: Node, why: str, **promise: Any) -> None:
        """That node is the primary from now on, with the data that it holds."""
        length = await self._length(node)
        parent = self._parent(length)
        since = self._bases[parent] if parent is not None else 0
        entries = await self._journal(node, since, length)
        self._bases.append(length)
        self._parents.append(parent)
        self.history.write(
            {
                "epoch": self.epoch,
                "server": f"{node}.{node.starts}",
                "parent": parent,
                "cut": length,
                "journal": entries,
                "at": self.now_us(),
                # The old primary's timer may have acted until this moment.
                "clock": max(self._clock_ms(node), self._clock_ms(self.primary)),
                "why": why,
                **promise,
            }
        )
        self.primary = node

    @property
    def epoch(self) -> int:
        return len(self._bases) - 1

    def _parent(self, length: int) -> int | None:
        """The epoch that this many marks belong to: the last one, unless all of it was lost and more."""
        parent = self.epoch if self._bases else None
        while parent is not None and length < self._bases[parent]:
            parent = self._parents[parent]
        return parent

    async def _length(self, node: Node) -> int:
        async with node.talk() as connection:
            await connection.call("SELECT", JOURNAL_DB)
            return await connection.call("LLEN", JOURNAL)

    async def _journal(self, node: Node, since: int, until: int) -> list[int]:
        """The marked commands, in the order in which the server carried them out."""
        entries: list[int] = []
        async with node.talk() as connection:
            await connection.call("SELECT", JOURNAL_DB)
            for begin in range(since, until, CHUNK):
                part = await connection.call(
                    "LRANGE", JOURNAL, begin, min(begin + CHUNK, until) - 1
                )
                entries += map(int, part)
        return entries

    async def end(self) -> None:
        """The journal of the last epoch."""
        length = await self._length(self.primary)
        entries = await self._journal(self.primary, self._bases[self.epoch], length)
        self.history.write(
            {"end": self.epoch, "cut": length, "journal": entries, "at": self.now_us()}
        )

    def _clock_ms(self, node: Node) -> int:
        """The latest time that this server's clock has ever shown."""
        furthest = node.clock.furthest_us if node.clock else 0
        return (time.time_ns() // 1_000 + furthest) // 1_000

    async def set_clock(self, node: Node, shift_us: int) -> None:
        """Sets a clock. The oracle has to know the latest time that it has shown, even if no client saw it."""
        assert node.clock is not None
        before = self._clock_ms(node)
        node.clock.set(shift_us)
        latest = max(before, self._clock_ms(node))
        self.note("clock", server=str(node), shift_us=shift_us, clock=latest)
        await node.check_clock()

    # ---- the history ------------------------------------------------------------------------------

    def note(self, step: str, **what: Any) -> None:
        self.history.write({"nemesis": step, "at": self.now_us(), "epoch": self.epoch, **what})

    def fact(self, kind: str, **what: Any) -> None:
        """Something that the oracle compares as it stands."""
        self.history.write({"fact": kind, "at": self.now_us(), "epoch": self.epoch, **what})

    def write(self, op: Op) -> None:
        if op.after is not None:
            self.server_us = op.after[1]
        self.history.op(op)


async def blocked_clients(connection: Connection) -> list[int]:
    text = await connection.call("CLIENT", "LIST")
    if isinstance(text, Failure):
        return []
    told = [dict(pair.split("=", 1) for pair in line.split(" ")) for line in text.splitlines()]
    return [int(client["id"]) for client in told if "b" in client["flags"]]
