"""What a nemesis can use, and the loop that draws its steps."""

import asyncio
import contextlib
import random
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ..history import Op
from ..resp import Word
from .actors import source
from .client import Client, marked
from .cluster import Cluster, mark
from .node import Node
from .profile import Profile

Step = Callable[["Storm"], Awaitable[None]]


@dataclass
class Storm:
    seed: str
    profile: Profile
    cluster: Cluster
    # Servers that hold no part of the data set: queues migrate to them and back.
    side: Node | None = None
    chance: random.Random = field(init=False)
    client: Client = field(init=False)
    done: Counter[str] = field(default_factory=Counter)
    # How long the AOF was when; and when the last file of RDB was begun that is on disk.
    aof_sizes: deque[tuple[int, str, int]] = field(default_factory=lambda: deque(maxlen=100))
    saved_at: int | None = None
    made: int = 0

    def __post_init__(self) -> None:
        self.chance = source(self.seed, "nemesis")
        self.client = Client("nemesis", self.cluster, self.chance)

    @property
    def primary(self) -> Node:
        return self.cluster.primary

    def replicas(self) -> list[Node]:
        return [node for node in self.cluster.nodes if node is not self.primary and node.is_up]

    def new_name(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}-{self.made}"

    def queue(self) -> str:
        return f"q{self.chance.randrange(self.profile.habits.queues)}"

    async def pause(self, most_s: float) -> None:
        await asyncio.sleep(self.chance.random() * most_s)

    async def burst(self, *say: list[Word], note: dict[str, Any] | None = None) -> list[Any]:
        """Commands in one write between two marks: the server reads and carries them out in one turn."""
        return await self.client.do_all(list(say), shape="burst", note=note)

    async def burst_at(self, node: Node, epoch: int, *say: list[Word]) -> None:
        """The same on a server that is no longer the primary, in the epoch in which it was."""
        cluster = self.cluster
        op = Op(cluster.next_op(), "nemesis", epoch, 0, cluster.now_us(), "burst", list(say))
        async with node.talk() as connection:
            before, *told = connection.send(mark(op.id, is_after=False), *say)
            op.before = marked(await before)
            op.told = [await reply for reply in told]
        op.got = cluster.now_us()
        cluster.write(op)

    async def around(self, say: list[Word], action: Callable[[], Awaitable[Any]]) -> None:
        """What another server does to this one's keys, written down as an operation between two marks."""
        cluster = self.cluster
        op = Op(cluster.next_op(), "nemesis", cluster.epoch, 0, cluster.now_us(), "loose", [say])
        async with self.primary.talk() as connection:
            op.before = marked(await connection.call(*mark(op.id, is_after=False)))
            op.told = [await action()]
            op.after = marked(await connection.call(*mark(op.id, is_after=True)))
        op.got = cluster.now_us()
        cluster.write(op)


async def rage(storm: Storm, steps: dict[str, Step], until_s: float) -> None:
    """Draws steps until the time is over. It skips a step that isn't possible now."""
    loop = asyncio.get_running_loop()
    end = loop.time() + until_s
    names = list(storm.profile.steps)
    weights = list(storm.profile.steps.values())
    while loop.time() < end:
        await asyncio.sleep(
            min(storm.chance.expovariate(1 / storm.profile.calm_s), max(end - loop.time(), 0))
        )
        if not names or loop.time() >= end:
            continue
        name = storm.chance.choices(names, weights)[0]
        with contextlib.suppress(NotNow):
            await steps[name](storm)
            storm.done[name] += 1


class NotNow(Exception):
    """This step isn't possible at the moment."""
