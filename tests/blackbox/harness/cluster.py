"""A cluster: three primaries, each with a replica, and slots that move between them."""

import contextlib
import itertools
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, key_slot
from redis.retry import Retry

from harness.resp import Failure
from harness.server import Kind, Server, claimed_port, eventually
from harness.transcript import Session

SLOTS = 16_384
PRIMARIES = 3
# Of what a busy machine may keep a server waiting. A test that kills a primary asks for less.
PATIENCE_MS = 6_000


@contextlib.contextmanager
def started_cluster(kind: Kind, folder: Callable[[str], Path], *config: str) -> Iterator["Cluster"]:
    """A cluster of new servers, each with a folder of its own and these lines of redis.conf."""
    started: list[Server] = []

    def start(*more: str) -> Server:
        started.append(Server(kind, folder(f"{kind}-node"), *more))
        return started[-1]

    try:
        with contextlib.closing(Cluster(start, *config)) as cluster:
            yield cluster
    finally:
        for server in started:
            server.kill9()


class Cluster:
    """Three primaries with their replicas. Roles may change during a test, so the cluster asks the
    nodes for them each time.
    """

    def __init__(self, start: Callable[..., Server], *config: str):
        """`start` starts a server with these lines of redis.conf."""
        self._buses: dict[int, int] = {}
        self._claims: list[socket.socket] = []
        self._sessions: dict[int, Session] = {}
        self.nodes = [self._start(start, *config) for _ in range(2 * PRIMARIES)]
        self._meet()
        self.settle()

    def close(self) -> None:
        for opened in [*self._sessions.values(), *self._claims]:
            opened.close()

    # ---- who is who
    # -------------------------------------------------------------------------------

    def primaries(self) -> list[Server]:
        return [node for node in self.up() if self.call(node, "ROLE")[0] == b"master"]

    def replica_of(self, primary: Server) -> Server:
        (replica,) = [node for node in self.up() if self._leader(node) == primary.port]
        return replica

    def owner(self, key: str | bytes) -> Server:
        """The primary that says it has the key's slot."""
        slot = key_slot(key.encode() if isinstance(key, str) else key)
        (owner,) = [node for node in self.primaries() if slot in self.slots(node)]
        return owner

    def others(self, node: Server) -> list[Server]:
        """The other primaries."""
        return [other for other in self.primaries() if other is not node]

    def slots(self, node: Server) -> set[int]:
        """The slots of a node, as the node itself reports them."""
        ranges = [word.split("-") for word in self._slot_words(node) if not word.startswith("[")]
        return {slot for ends in ranges for slot in range(int(ends[0]), int(ends[-1]) + 1)}

    def _slot_words(self, node: Server) -> list[str]:
        """`0-5460`, or `[12->-ID]` for a slot that is moving."""
        lines = self.call(node, "CLUSTER", "NODES").decode().splitlines()
        (own,) = [line.split() for line in lines if "myself" in line]
        return own[8:]

    def up(self) -> list[Server]:
        return [node for node in self.nodes if node.is_up()]

    def call(self, node: Server, *words: str | bytes | int) -> Any:
        """Sends a command to this node, and follows no redirection."""
        known = self._sessions.get(node.pid)
        if known is None:
            known = self._sessions[node.pid] = node.session()
        try:
            return known.call(*words)
        except OSError:  # a node that is demoted closes connections
            self._sessions.pop(node.pid).close()
            return self.call(node, *words)

    def id_of(self, node: Server) -> str:
        return self.call(node, "CLUSTER", "MYID").decode()

    def client(self, **options: Any) -> redis.RedisCluster:
        """A redis-py client. It follows redirections, and sends a command again when its reply was
        lost.
        """
        seeds = [ClusterNode("127.0.0.1", node.port) for node in self.up()]
        defaults = {
            "protocol": 2,
            "decode_responses": True,
            "socket_timeout": 20,
            "retry": Retry(NoBackoff(), 20),
        }
        return redis.RedisCluster(startup_nodes=seeds, **(defaults | options))

    # ---- slots that move
    # --------------------------------------------------------------------------

    def begin_move(self, slot: int, to: Server) -> Server:
        """The slot starts to move; returns its owner."""
        (source,) = [node for node in self.primaries() if slot in self.slots(node)]
        ok(self.call(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", self.id_of(source)))
        ok(self.call(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", self.id_of(to)))
        return source

    def move_keys(self, slot: int, source: Server, to: Server, at_once: int = 10) -> int:
        """Moves the keys of the slot from its owner; returns how many there were."""
        moved = 0
        while keys := self.call(source, "CLUSTER", "GETKEYSINSLOT", slot, at_once):
            ok(self.call(source, *migration(to, *keys)))
            moved += len(keys)
        return moved

    def end_move(self, slot: int, to: Server) -> None:
        """Tells the new owner before the others, so that the slot always has an owner."""
        owner = self.id_of(to)
        for node in [to, *self.others(to)]:
            ok(self.call(node, "CLUSTER", "SETSLOT", slot, "NODE", owner))

    def move(self, slot: int, to: Server) -> int:
        source = self.begin_move(slot, to)
        moved = self.move_keys(slot, source, to)
        self.end_move(slot, to)
        return moved

    # ---- roles that change
    # ------------------------------------------------------------------------

    def fail_over(self, primary: Server) -> Server:
        """The node's replica takes over in agreement with it; returns the new primary.

        On Redis a node that was elected can't be elected again for four times the node timeout
        ("Failover attempt expired"). The failover is then called off after five seconds, and has to
        be requested again.
        """
        replica = self.replica_of(primary)

        def is_elected() -> bool:
            self.call(replica, "CLUSTER", "FAILOVER")  # refused while one is under way
            with contextlib.suppress(AssertionError):
                eventually(lambda: self.call(replica, "ROLE")[0] == b"master", 1)
            return self.call(replica, "ROLE")[0] == b"master"

        eventually(is_elected, 60)
        return replica

    def heal(self) -> None:
        """Starts nodes that are down, calls off moves, and waits until the cluster is whole."""
        for node in self.nodes:
            if not node.is_up():
                node.start()
        for node in self.primaries():
            for word in self._slot_words(node):
                if word.startswith("["):
                    ok(self.call(node, "CLUSTER", "SETSLOT", word[1:].split("-")[0], "STABLE"))
        __tracebackhide__ = True
        eventually(lambda: self.is_settled() or self._rejoin() or time.sleep(0.03), 40)

    def _rejoin(self) -> None:
        """A node of Valkey 9.1 that was killed while slots move may come back as a primary without
        slots, for good.
        """
        without = [node for node in self.primaries() if not self.slots(node)]
        leaders = {self._leader(node) for node in self.up()}
        unfollowed = [
            node for node in self.primaries() if self.slots(node) and node.port not in leaders
        ]
        for node, primary in zip(without, unfollowed, strict=False):
            self.call(node, "CLUSTER", "REPLICATE", self.id_of(primary))

    def settle(self) -> None:
        """Waits until all live nodes agree about the cluster and replicas follow their
        primaries.
        """
        __tracebackhide__ = True
        eventually(lambda: self.is_settled() or time.sleep(0.03), 40)

    def is_settled(self) -> bool:
        told = [self.call(node, "CLUSTER", "INFO") for node in self.up()]
        if any(isinstance(reply, Failure) or b"cluster_state:ok" not in reply for reply in told):
            return False  # a replica may be loading
        views = {str(sorted(self._view(node))) for node in self.up()}
        links = [self.call(node, "ROLE")[3] for node in self.up() if self._leader(node)]
        is_whole = len(self.up()) < len(self.nodes) or len(links) == PRIMARIES
        return len(views) == 1 and set(links) <= {b"connected"} and is_whole

    def set_patience(self, ms: int) -> None:
        """How long a node may be silent before the others take it for dead."""
        for node in self.up():
            ok(self.call(node, "CONFIG", "SET", "cluster-node-timeout", ms))

    # ---- the making of it
    # -------------------------------------------------------------------------

    def _start(self, start: Callable[..., Server], *config: str) -> Server:
        bus, claim = claimed_port()
        self._claims.append(claim)
        node = start(
            "cluster-enabled yes",
            f"cluster-port {bus}",
            "cluster-announce-ip 127.0.0.1",
            f"cluster-node-timeout {PATIENCE_MS}",
            "cluster-replica-validity-factor 0",
            "cluster-allow-replica-migration no",
            *config,
        )
        self._buses[node.port] = bus
        return node

    def _meet(self) -> None:
        primaries, replicas = self.nodes[:PRIMARIES], self.nodes[PRIMARIES:]
        for at, (first, last) in enumerate(shares()):
            ok(self.call(primaries[at], "CLUSTER", "SET-CONFIG-EPOCH", at + 1))
            ok(self.call(primaries[at], "CLUSTER", "ADDSLOTSRANGE", first, last))
        # Each meets each: gossip alone takes seconds.
        for node, other in itertools.permutations(self.nodes, 2):
            ok(self.call(node, "CLUSTER", "MEET", "127.0.0.1", other.port, self._buses[other.port]))
        for primary, replica in zip(primaries, replicas, strict=True):
            eventually(lambda a=primary, b=replica: self._follows(b, a), 20)

    def _follows(self, replica: Server, primary: Server) -> bool:
        """The node must have heard of the primary before."""
        told = self.call(replica, "CLUSTER", "REPLICATE", self.id_of(primary))
        assert told == "OK" or "Unknown node" in told, told
        return told == "OK"

    def _leader(self, node: Server) -> int | None:
        """The port of the primary that the node follows."""
        role = self.call(node, "ROLE")
        return role[2] if role[0] == b"slave" else None

    def _view(self, node: Server) -> Iterator[tuple[int, ...]]:
        """The cluster as this node knows it: the servers of each slot range, primary first."""
        for first, last, *nodes in self.call(node, "CLUSTER", "SLOTS"):
            yield (first, last, *(port for _, port, *_ in nodes))


def shares() -> list[tuple[int, int]]:
    """The first and the last slot of each primary, as redis-cli --cluster create assigns them."""
    ends = [SLOTS * n // PRIMARIES for n in range(PRIMARIES + 1)]
    return [(first, end - 1) for first, end in itertools.pairwise(ends)]


def migration(to: Server, *keys: str | bytes) -> list[str | bytes | int]:
    return ["MIGRATE", "127.0.0.1", to.port, "", 0, 20_000, "KEYS", *keys]


def ok(reply: Any) -> None:
    __tracebackhide__ = True
    assert reply == "OK", reply


def is_redirected(reply: Any, how: str, slot: int, to: Server) -> bool:
    """Whether the reply is MOVED or ASK to that node."""
    return isinstance(reply, Failure) and str(reply) == f"{how} {slot} 127.0.0.1:{to.port}"
