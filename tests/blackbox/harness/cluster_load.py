"""Producers and workers of a cluster, by redis-py or node-redis, and the replies that they got."""

import contextlib
import itertools
import json
import os
import random
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from harness.clock import now_ms
from harness.cluster import Cluster
from harness.server import eventually

BLOCK_MS = 300
# Between two jobs: a bounded load, whatever the machine.
PACE_S = 0.003
DELAYS_MS = (0, 0, 1, 50, 200, 400)


@dataclass
class Delivery:
    lease: int
    attempt: int
    at: int
    # What FINISH replied; None while it hasn't.
    finished: int | None = None


@dataclass
class Told:
    """The replies that clients got about jobs, by id."""

    # When each job that was acknowledged is due.
    added: dict[str, int] = field(default_factory=dict)
    # An error, or no reply: it may have been added.
    unsure: set[str] = field(default_factory=set)
    deliveries: dict[str, list[Delivery]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)

    def unfinished(self) -> set[str]:
        """Jobs whose ADD was acknowledged and whose FINISH was not."""
        return {
            id
            for id in list(self.added)
            if not any(
                delivery.finished is not None for delivery in list(self.deliveries.get(id, ()))
            )
        }

    def faults(
        self, *, may_be_lost: frozenset[str] = frozenset(), may_repeat: bool = False
    ) -> list[str]:
        """The promises that were broken. `may_repeat`: a server was lost, with the last commands
        that it had acknowledged.
        """
        return [
            fault
            for id in sorted(self.added.keys() | self.deliveries.keys())
            for fault in self._faults_of(id, id in may_be_lost, may_repeat)
        ]

    def _faults_of(self, id: str, may_be_lost: bool, may_repeat: bool) -> Iterator[str]:
        deliveries = self.deliveries.get(id, [])
        if id not in self.added and id not in self.unsure:
            yield f"{id}: delivered, and nobody has added it"
        if not deliveries and not may_be_lost:
            yield f"{id}: lost"
        for delivery in deliveries:
            if delivery.at < self.added.get(id, 0):
                yield f"{id}: {self.added[id] - delivery.at} ms early"
        leases = [delivery.lease for delivery in deliveries]
        if len(set(leases)) != len(leases):
            yield f"{id}: one lease was given twice, {leases}"
        if may_repeat:
            return
        if len(deliveries) > 1:
            yield f"{id}: delivered {len(deliveries)} times"
        for delivery in deliveries:
            if delivery.attempt != 1 or delivery.finished != 1:
                yield f"{id}: attempt {delivery.attempt}, and FINISH replied {delivery.finished}"


class AnyLoad(ABC):
    """Clients that add jobs, and clients that wait for jobs, in the servers of a cluster."""

    def __init__(self) -> None:
        self.told = Told()

    def goes_on(self, jobs: int = 100) -> None:
        """Waits until this many more jobs have been added."""
        __tracebackhide__ = True
        until = len(self.told.added) + jobs
        eventually(lambda: len(self.told.added) >= until or time.sleep(0.02), 30)

    def drain(self, but: frozenset[str] = frozenset(), within_s: float = 30) -> None:
        """Stops adding jobs; waits until the added ones are finished."""
        __tracebackhide__ = True
        self.stop_adding()
        with contextlib.suppress(AssertionError):  # the judge says it better
            eventually(lambda: not self.told.unfinished() - but or time.sleep(0.05), within_s)

    @abstractmethod
    def stop_adding(self) -> None: ...


class Load(AnyLoad):
    """Two producers, and a worker for each queue, by redis-py's cluster client.

    Each thread has its own client: threads that share one can meet in its table of nodes while that
    changes (redis-py 8.1).
    """

    def __init__(self, cluster: Cluster, queues: list[str], *, ttr_ms: int = 60_000, seed: int = 1):
        super().__init__()
        self._queues = queues
        self._ttr_ms = ttr_ms
        self._cluster = cluster
        self._numbers = itertools.count()
        self._adding = threading.Event()
        self._working = threading.Event()
        self._adding.set()
        self._working.set()
        producers = [(self._produce, random.Random(seed + n)) for n in range(2)]
        workers = [(self._work, queue) for queue in queues]
        self._threads = [
            threading.Thread(target=run, args=(argument,), daemon=True)
            for run, argument in producers + workers
        ]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        eventually(lambda: len(self.told.added) > len(self._queues), 20)
        return self

    def __exit__(self, *_: Any) -> None:
        self._adding.clear()
        self._working.clear()
        for thread in self._threads:
            thread.join(30)

    def stop_adding(self) -> None:
        self._adding.clear()
        for thread in self._threads[:2]:
            thread.join(30)

    def _produce(self, chance: random.Random) -> None:
        client = self._cluster.client()
        while self._adding.is_set():
            number = next(self._numbers)
            queue = self._queues[number % len(self._queues)]
            id, due = f"{queue}/{number}", now_ms() + chance.choice(DELAYS_MS)
            try:
                client.execute_command(
                    "DQ.ADD", queue, id, "x" * 50, "AT", due, "TTR", self._ttr_ms
                )
                self.told.added[id] = due
            except redis.RedisError as error:
                self.told.unsure.add(id)
                self._trouble("DQ.ADD", error)
            time.sleep(PACE_S)

    def _work(self, queue: str) -> None:
        client = self._cluster.client()
        while self._working.is_set():
            try:
                popped = client.execute_command("DQ.POP", queue, "COUNT", 5, "BLOCK", BLOCK_MS)
            except redis.RedisError as error:
                self._trouble("DQ.POP", error)
                continue
            for id, _, lease, attempt in popped or []:
                delivery = Delivery(lease, attempt, now_ms())
                self.told.deliveries[id].append(delivery)
                delivery.finished = self._finish(client, queue, id, lease)

    def _finish(self, client: redis.RedisCluster, queue: str, id: str, lease: int) -> int | None:
        while self._working.is_set():
            try:
                return client.execute_command("DQ.FINISH", queue, id, lease)
            except redis.RedisError as error:
                self._trouble("DQ.FINISH", error)
        return None

    def _trouble(self, command: str, error: redis.RedisError) -> None:
        self.told.errors.append(f"{command}: {type(error).__name__} {error}")
        time.sleep(0.02)


class NodeLoad(AnyLoad):
    """The same load by node-redis, in a program that prints the replies it gets
    (cluster/load.cjs).
    """

    PROGRAM = Path(__file__).parents[1] / "cluster" / "load.cjs"

    def __init__(self, cluster: Cluster, queues: list[str], modules: Path):
        super().__init__()
        self._process = subprocess.Popen(
            [
                "setpriv",
                "--pdeathsig",
                "KILL",
                "node",
                self.PROGRAM,
                str(cluster.up()[0].port),
                *queues,
            ],
            env=os.environ | {"NODE_PATH": str(modules)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> "NodeLoad":
        self._reader.start()
        self.goes_on(10)
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(30)

    def stop_adding(self) -> None:
        self._process.stdin.close()

    def _read(self) -> None:
        for line in self._process.stdout:
            what, id, *rest = json.loads(line)
            match what:
                case "added":
                    (self.told.added[id],) = rest
                case "unsure":
                    self.told.unsure.add(id)
                case "delivered":
                    self.told.deliveries[id].append(Delivery(*rest))
                case "finished":
                    self.told.deliveries[id][-1].finished = rest[0]
                case "error":
                    self.told.errors.append(f"{id}: {rest[0]}")
