"""One session: servers, clients and a nemesis, from an empty data set to an empty data set."""

import asyncio
import contextlib
import shutil
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..borrowed import MODULE, Kind
from ..history import Writer
from ..resp import Failure
from . import rest
from .actors import crew, source
from .cluster import Cluster
from .ending import drain, remove_all
from .filling import fill
from .flows import flow
from .nemesis import STEPS
from .nemesis.crash import watch_aof
from .nemesis.replication import link_all
from .node import DidNotStart, Node
from .profile import Profile
from .sinks import pour
from .storm import Storm, rage

GRACE_S = 60
# A session that doesn't come to its end is broken. Filling and draining take their time.
LONGEST_S = 300
# The clocks of replicas stand apart by this much, in turn.
APART_S = (0, 300, -300)


@dataclass
class Outcome:
    """The result of a session."""

    history: Path
    ops: int
    faults: dict[str, int]
    # What went wrong before an oracle looked at it.
    broken: list[str] = field(default_factory=list)


async def play(
    kind: Kind, profile: Profile, seed: str, directory: Path, module: Path = MODULE
) -> Outcome:
    """Plays a session and writes its history. The servers have ended when it returns."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    path = directory / "history.jsonl"
    history = Writer(path)
    history.write(
        {
            "session": seed,
            "kind": kind.name,
            "profile": profile.name,
            "version": 1,
            "strangers": profile.strangers,
        }
    )
    nodes = [
        Node(kind, name, directory, profile.config, module, own_clock=profile.has_clocks)
        for name in "abc"[: 1 + profile.replicas]
    ]
    side = (
        Node(kind, "side", directory, (), module, own_clock=False)
        if profile.has_side_server
        else None
    )
    cluster = Cluster(nodes, history)
    cluster.has_strangers = profile.strangers > 0
    storm = Storm(seed, profile, cluster, side)
    broken: list[str] = []
    try:
        async with asyncio.timeout(profile.seconds + LONGEST_S):
            await _play_while_all_live(storm, seed)
    except Exception as error:
        # Of a server, or of the judge itself: the other sessions go on, and this one is no sound one.
        is_expected = isinstance(error, (DidNotStart, TimeoutError, OSError, RuntimeError))
        broken.append(f"{type(error).__name__}: {error}" if is_expected else traceback.format_exc())
        cluster.note("broken", error=str(error)[:2_000])
    finally:
        cluster.is_over = True
        for node in [*nodes, *([side] if side else [])]:
            _tell_of_its_end(cluster, node)
            node.thaw()
            await node.kill9()
        history.close()
    return Outcome(path, history.ops, dict(storm.done), broken)


def _tell_of_its_end(cluster: Cluster, node: Node) -> None:
    """Reports a server that ended by itself, or that logged a line that no server should."""
    alarms = node.new_alarms()
    if node.has_died() or alarms:
        report = node.crash_report() if node.has_died() else ""
        cluster.fact(
            "alarm", server=str(node), died=node.has_died(), lines=alarms[:20], report=report
        )


async def _play_while_all_live(storm: Storm, seed: str) -> None:
    """A server that ends by itself ends the session: it isn't started again."""
    course = asyncio.ensure_future(_play(storm, seed))
    death = asyncio.ensure_future(_a_death(storm))
    try:
        done, _ = await asyncio.wait([course, death], return_when=asyncio.FIRST_COMPLETED)
    finally:
        course.cancel()
        death.cancel()
        await asyncio.gather(course, death, return_exceptions=True)
    for task in done:
        task.result()


async def _a_death(storm: Storm) -> None:
    while True:
        for node in storm.cluster.nodes:
            if node.has_died():
                raise RuntimeError(f"server {node} ended by itself")
        await asyncio.sleep(0.1)


async def _play(storm: Storm, seed: str) -> None:
    cluster, profile = storm.cluster, storm.profile
    for at, node in enumerate([*cluster.nodes, *([storm.side] if storm.side else [])]):
        if node.clock is not None:
            node.clock.set(APART_S[at % len(APART_S)] * 1_000_000)
        await node.start()
    if profile.replicas:
        await link_all(storm)
    before = await rest.memory(cluster.primary)
    first, starts = cluster.primary, cluster.primary.starts
    await cluster.begin_epoch(cluster.primary, "start")
    await fill(storm)
    cluster.open()

    tasks = [asyncio.ensure_future(actor) for actor in crew(seed, cluster, profile.habits)]
    tasks.append(asyncio.ensure_future(pour(cluster, source(seed, "sink"))))
    tasks.append(asyncio.ensure_future(flow(cluster, source(seed, "flows"))))
    watch = asyncio.ensure_future(watch_aof(storm))
    try:
        await _storm_and_rests(storm)
        async with cluster.rest():
            cluster.is_over = True
        # It was shut by `rest`; what ends the session goes on alone.
        cluster.open()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), GRACE_S)
        await drain(storm)
        await rest.look(cluster)
        await remove_all(storm)
        await rest.look(cluster)
        await cluster.end()
        if (cluster.primary, cluster.primary.starts) == (first, starts):
            await _compare_memory(cluster, before)
    finally:
        for task in [*tasks, watch]:
            task.cancel()
        for result in await asyncio.gather(*tasks, watch, return_exceptions=True):
            if isinstance(result, Exception) and not isinstance(result, asyncio.CancelledError):
                raise result


async def _storm_and_rests(storm: Storm) -> None:
    """The session in three parts. After each part, all that can be compared is compared."""
    for _ in range(3):
        await rage(storm, STEPS, storm.profile.seconds / 3)
        async with storm.cluster.rest() as is_quiet:
            if is_quiet:
                with contextlib.suppress(ConnectionError):
                    await rest.look(storm.cluster)
            else:
                storm.cluster.note("no-rest")


async def _compare_memory(cluster: Cluster, before: int) -> None:
    """After all is deleted, the server uses as much memory as before."""
    node = cluster.primary
    async with node.talk() as connection:
        for command in (["FLUSHALL", "SYNC"], ["SCRIPT", "FLUSH", "SYNC"]):
            reply: Any = await connection.call(*command)
            assert not isinstance(reply, Failure)
    for _ in range(50):
        after = await rest.memory(node)
        if after - before < 200_000:
            break
        await asyncio.sleep(0.05)
    cluster.fact("memory", before=before, after=after)
