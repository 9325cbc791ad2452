"""Slots that move atomically: CLUSTER MIGRATESLOTS of Valkey 9, CLUSTER MIGRATION IMPORT of Redis
8.4.

move(cluster, slot, to)                      moves it, and waits until it has
begin(cluster, slot, to) -> Move             the same without waiting: state(), wait(), cancel()
held_up(cluster, node)                       moves from this node don't end meanwhile
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from harness.cluster import Cluster, ok
from harness.server import Kind, Server, eventually

ENDS = ("success", "completed", "failed", "cancelled", "canceled")
DONE = ("success", "completed")


def are_known_to(kind: Kind) -> bool:
    return kind.is_since("valkey", 9) or kind.is_since("redis", 8, 4)


def skip_where_unknown(kind: Kind) -> None:
    if not are_known_to(kind):
        pytest.skip(f"{kind} moves no slots atomically")


@dataclass
class Move:
    """A move, asked of the node that knows of it: the source on Valkey, the target on Redis."""

    cluster: Cluster
    slot: int
    source: Server
    to: Server
    # Redis has a name for it.
    task: str | None

    def state(self) -> tuple[str, str]:
        """The move's state, and the server's message about it."""
        if self.task is None:
            moves = self.cluster.call(self.source, "CLUSTER", "GETSLOTMIGRATIONS")
            told = [as_map(move) for move in moves]
            (newest, *_) = [
                move for move in told if move["slot_ranges"] == f"{self.slot}-{self.slot}"
            ]
            return newest["state"], newest["message"]
        (told,) = self.cluster.call(self.to, "CLUSTER", "MIGRATION", "STATUS", "ID", self.task)
        return as_map(told)["state"], as_map(told)["last_error"]

    def wait(self, within_s: float = 30) -> str:
        """Waits until the move has ended; returns its last state."""
        __tracebackhide__ = True
        eventually(lambda: self.state()[0] in ENDS or time.sleep(0.005), within_s)
        return self.state()[0]

    def succeed(self, within_s: float = 30) -> None:
        __tracebackhide__ = True
        end = self.wait(within_s)
        assert end in DONE, self.state()

    def cancel(self) -> None:
        if self.task is None:
            ok(self.cluster.call(self.source, "CLUSTER", "CANCELSLOTMIGRATIONS"))
        else:
            self.cluster.call(self.to, "CLUSTER", "MIGRATION", "CANCEL", "ID", self.task)


def as_map(flat: list[bytes]) -> dict[str, str]:
    words = [word.decode() if isinstance(word, bytes) else str(word) for word in flat]
    return dict(zip(words[::2], words[1::2], strict=True))


def begin(cluster: Cluster, slot: int, to: Server) -> Move:
    (source,) = [node for node in cluster.primaries() if slot in cluster.slots(node)]
    if source.kind.family == "valkey":
        words = ("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", cluster.id_of(to))
        ok(cluster.call(source, *words))
        return Move(cluster, slot, source, to, None)
    task = cluster.call(to, "CLUSTER", "MIGRATION", "IMPORT", slot, slot)
    assert isinstance(task, bytes), task
    return Move(cluster, slot, source, to, task.decode())


def move(cluster: Cluster, slot: int, to: Server) -> None:
    __tracebackhide__ = True
    begin(cluster, slot, to).succeed()
    cluster.settle()


@contextlib.contextmanager
def held_up(cluster: Cluster, node: Server, keys: int = 1) -> Iterator[None]:
    """Moves from this node do not end meanwhile: a snapshot of `keys` keys takes it a second or
    two.
    """
    ok(cluster.call(node, "CONFIG", "SET", "rdb-key-save-delay", 1_500_000 // keys))
    try:
        yield
    finally:
        if node.is_up():
            ok(cluster.call(node, "CONFIG", "SET", "rdb-key-save-delay", 0))
