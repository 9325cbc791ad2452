"""Taking jobs: as many as there are free places, from queues by their weights."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from dq_client import commands
from dq_client.commands import Command, Key
from dq_client.replies import Delivery
from dq_client.slots import slot_of

#: One call delivers no more.
MOST_AT_ONCE = 10_000


class Places:
    """How many more jobs a source may have in hand."""

    def __init__(self, count: int):
        self._free = count
        self.has_free = asyncio.Event()
        self.has_free.set()

    def take(self) -> int:
        """All that are free."""
        taken = min(self._free, MOST_AT_ONCE)
        self.give_back(-taken)
        return taken

    def give_back(self, count: int = 1) -> None:
        self._free += count
        if self._free:
            self.has_free.set()
        else:
            self.has_free.clear()


class Source:
    """Queues from which jobs are taken by one call: those of one slot."""

    def __init__(self, weights: Mapping[Key, int], places: int):
        self.keys = {key.name: key for key in weights}
        self.places = Places(places)
        self._orders = orders(list(weights), list(weights.values()))

    def command(self, count: int, block: timedelta, ttr: timedelta) -> Command[list[Delivery]]:
        first, *others = next(self._orders)
        if not others:
            return commands.pop(first, count=count, block=block, ttr=ttr, withdue=True)
        names = [key.name for key in others]
        return commands.mpop(first, names, count=count, block=block, ttr=ttr, withdue=True)

    def told(self, delivery: Delivery) -> tuple[Key, Delivery]:
        """A delivery with the codec of its own queue."""
        key = self.keys[delivery.key]
        return key, replace(delivery, codec=key.codec)


def orders(keys: Sequence[Key], weights: Sequence[int]) -> Iterator[list[Key]]:
    """In which order to ask queues, call by call: of as many calls as all weights together, each
    queue is the first as often as its weight says, evenly spread.
    """
    credits = [0] * len(keys)
    while True:
        for at, weight in enumerate(weights):
            credits[at] += weight
        first = max(range(len(keys)), key=lambda at: credits[at])
        credits[first] -= sum(weights)
        yield [keys[first], *(key for at, key in enumerate(keys) if at != first)]


def sources(weights: Mapping[Key, int], concurrency: int, is_cluster: bool) -> list[Source]:
    """The queues by their slots: one call can't wait in two. The places are divided evenly."""
    by_slot: dict[int, dict[Key, int]] = {}
    for key, weight in weights.items():
        by_slot.setdefault(slot_of(key.name) if is_cluster else 0, {})[key] = weight
    if concurrency < len(by_slot):
        raise ValueError(
            f"queues in {len(by_slot)} slots of a cluster need a concurrency of as many at least, "
            "or several workers that share them"
        )
    least, more = divmod(concurrency, len(by_slot))
    return [
        Source(together, least + (1 if at < more else 0))
        for at, together in enumerate(by_slot.values())
    ]
