"""A client of a session. It sends commands between two marks and writes down the replies.

Shapes in which a command is sent:
    tight    mark, command, mark in one write: the server carries them out one after the other
    loose    three round trips: other commands come between
    sealed   MULTI, mark, command, mark, EXEC: no other command comes between; a crash takes all or nothing
    multi    mark, MULTI, commands, EXEC, mark
    script   mark, EVAL with the commands, mark
    many     mark, one DQ.MADD of these DQ.ADDs, which have the same options, mark; written down as a script,
             for nothing comes between its jobs either
    burst    mark, commands, mark in one write
    finish   mark, the DQ.POP or DQ.MPOP with the FINISH of the DQ.FINISH before it, mark; written down as
             a burst of both, for consumers that wait are served between them
"""

import asyncio
import contextlib
import itertools
import random
from typing import Any

from ..history import Mark, Op, slim
from ..resp import Connection, Failure, Word
from .cluster import Cluster, mark
from .node import Node

REPLY_S = 45
SCRIPT = """local told, at = {}, 1
while at <= #ARGV do
  local words = {}
  for i = 1, tonumber(ARGV[at]) do words[i] = ARGV[at + i] end
  at = at + #words + 1
  told[#told + 1] = redis.pcall(unpack(words))
end
return told"""
# As long as the server tells a client so, it is no use to ask it again at once.
NOT_NOW = ("READONLY", "LOADING", "NOREPLICAS", "MASTERDOWN", "UNBLOCKED", "MISCONF")

Command = list[Word]


class Lost(Exception):
    """The reply will never come: the server or the nemesis closed the connection."""


class Client:
    """A client of whichever server is the primary. It sends one command, or one transaction, at a time."""

    def __init__(
        self,
        name: str,
        cluster: Cluster,
        chance: random.Random,
        *,
        db: int = 0,
        is_actor: bool = False,
    ):
        self.name = name
        # It has nothing more to say when the session is over.
        self._is_actor = is_actor
        self.chance = chance
        self.db = db
        self._cluster = cluster
        self._connection: Connection | None = None
        self._home: tuple[Node, int] | None = None
        self._protocol = chance.choice([2, 2, 3])
        # Between a promotion and the end of the old primary, some clients stay with the old one.
        self._stays_s = 0.0

    async def do(
        self, *words: Word, shape: str = "tight", within_s: float = REPLY_S, **note: Any
    ) -> Any:
        """The reply to one command; an error reply is a Failure."""
        (reply,) = await self.do_all([list(words)], shape=shape, within_s=within_s, note=note)
        return reply

    async def do_all(
        self,
        say: list[Command],
        *,
        shape: str,
        within_s: float = REPLY_S,
        note: dict[str, Any] | None = None,
    ) -> list[Any]:
        connection, epoch = await self._connected()
        cluster = self._cluster
        op = Op(
            cluster.next_op(),
            self.name,
            epoch,
            self.db,
            cluster.now_us(),
            shape,
            say,
            note=note or {},
        )
        with cluster.flight():
            try:
                async with asyncio.timeout(within_s):
                    await self._send(connection, op)
            except (ConnectionError, TimeoutError) as error:
                op.lost = "no reply in time" if isinstance(error, TimeoutError) else "closed"
                connection.close()
            op.got = cluster.now_us()
            told = op.told
            # All were refused for the last of them: no history of DQ.ADDs says that.
            if not (shape == "many" and is_full(told)):
                op.shape = {"many": "script", "finish": "burst"}.get(shape, shape)
                cluster.write(slim(op))
        if told is None:
            raise Lost(op.lost)
        await self._heed(told)
        return told

    async def _connected(self) -> tuple[Connection, int]:
        node, epoch = await self._cluster.where()
        while (
            self._connection is None or not self._connection.is_open or self._home != (node, epoch)
        ):
            self.close()
            try:
                self._connection = await Connection.to(node.port, protocol=self._protocol)
                if self.db:
                    await self._connection.call("SELECT", self.db)
                self._home = node, epoch
            except (OSError, TimeoutError):
                await asyncio.sleep(0.02)
            node, epoch = await self._cluster.where()
        if self._is_actor and self._cluster.is_over:
            raise Lost("the session is over")
        return self._connection, epoch

    async def _send(self, connection: Connection, op: Op) -> None:
        before, after = mark(op.id, is_after=False), mark(op.id, is_after=True)
        match op.shape:
            case "tight":
                futures = connection.send(before, *op.say, after)
                op.before = marked(await futures[0])
                op.told = [await futures[1]]
                with contextlib.suppress(ConnectionError):
                    op.after = marked(await futures[2])
            case "loose":
                op.before = marked(await connection.call(*before))
                op.told = [await connection.call(*op.say[0], within_s=REPLY_S)]
                with contextlib.suppress(ConnectionError):
                    op.after = marked(await connection.call(*after))
            case "sealed":
                futures = connection.send(["MULTI"], before, *op.say, after, ["EXEC"], ["TIME"])
                told = await futures[-2]
                if not isinstance(told, list):
                    told = [told] * (len(op.say) + 2)
                op.before, *op.told, op.after = marked(told[0]), *told[1:-1], marked(told[-1])
                with contextlib.suppress(ConnectionError):
                    op.after = later(op.after, await futures[-1])
            case "multi":
                futures = connection.send(before, ["MULTI"], *op.say, ["EXEC"], after)
                op.before = marked(await futures[0])
                op.told = in_all(await futures[-2], len(op.say))
                with contextlib.suppress(ConnectionError):
                    op.after = marked(await futures[-1])
            case "burst":
                futures = connection.send(before, *op.say, after)
                op.before = marked(await futures[0])
                op.told = [await future for future in futures[1:-1]]
                op.after = marked(await futures[-1])
            case "many":
                futures = connection.send(before, many(op.say), after)
                op.before = marked(await futures[0])
                op.told = in_all(await futures[1], len(op.say))
                with contextlib.suppress(ConnectionError):
                    op.after = marked(await futures[2])
            case "finish":
                futures = connection.send(before, finish_and_pop(*op.say), after)
                op.before = marked(await futures[0])
                told = await futures[1]
                if isinstance(told, Failure) and told.startswith("UNBLOCKED"):
                    # The finish stands all the same; how many it were is lost with the reply.
                    op.lost = "unblocked"
                    return
                op.told = in_all(told, 2)
                with contextlib.suppress(ConnectionError):
                    op.after = marked(await futures[2])
            case "script":
                words = itertools.chain.from_iterable(
                    [len(command), *command] for command in op.say
                )
                futures = connection.send(before, ["EVAL", SCRIPT, 0, *words], after)
                op.before = marked(await futures[0])
                op.told = in_all(await futures[1], len(op.say))
                with contextlib.suppress(ConnectionError):
                    op.after = marked(await futures[2])
            case _:
                raise ValueError(op.shape)

    async def _heed(self, told: list[Any]) -> None:
        if any(isinstance(reply, Failure) and reply.startswith(NOT_NOW) for reply in told):
            self.close()
            await asyncio.sleep(self.chance.uniform(0.01, 0.1))

    async def server_id(self) -> int:
        """The client's id at the server."""
        connection, _ = await self._connected()
        return await connection.call("CLIENT", "ID")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def marked(reply: Any) -> Mark | None:
    """A mark; None when the server refused to make it."""
    return (reply[0], reply[1]) if isinstance(reply, list) else None


def later(made: Mark | None, time: Any) -> Mark | None:
    """Newer servers stop the clock inside a transaction, but not for a module: the transaction was over by then."""
    return made and (made[0], int(time[0]) * 1_000_000 + int(time[1]))


def many(adds: list[Command]) -> Command:
    """The DQ.MADD that comes to the same."""
    jobs = [word for add in adds for word in add[2:4]]
    return ["DQ.MADD", adds[0][1], len(adds), *jobs, *adds[0][4:]]


def finish_and_pop(finish: Command, pop: Command) -> Command:
    """The command that does both."""
    _, key, *claims = finish
    named = [key] if pop[0] == "DQ.MPOP" else []
    return [*pop, "FINISH", *named, len(claims) // 2, *claims]


def is_full(told: list[Any] | None) -> bool:
    return told is not None and any(
        isinstance(it, Failure) and it.startswith("FULL") for it in told
    )


def in_all(reply: Any, commands: int) -> list[Any]:
    """The reply to each command of a transaction or script. When the whole was refused, that error for each."""
    return reply if isinstance(reply, list) and len(reply) == commands else [reply] * commands
