"""Crashes of a single server, and what its files contain afterwards."""

import asyncio
import re
from pathlib import Path

from ...history import Record
from .. import flows
from ..node import Node
from ..rest import digests
from ..storm import NotNow, Storm

MULTI, EXEC = b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nEXEC\r\n"
# An AOF is written before replies are sent; while a sync is under way, up to two seconds later.
WRITE_LAG_US = 2_000_000
TORN = b"*7\r\n$8\r\nDQ.APPLY\r\n$2\r\nq"


async def crash(storm: Storm) -> None:
    """kill -9 and a start; half of the time while a child is writing a file."""
    if storm.chance.random() < 0.5:
        await begin_to_save(storm)
    storm.cluster.shut()
    at = storm.cluster.now_us()
    await storm.primary.kill9()
    promise = tear(storm, at)
    storm.cluster.note("crash", server=str(storm.primary), **promise)
    await storm.primary.start()
    await storm.cluster.begin_epoch(storm.primary, "crash", **promise)
    storm.cluster.open()


async def begin_to_save(storm: Storm) -> None:
    command = storm.chance.choice(
        ["BGSAVE", "BGREWRITEAOF"] if storm.profile.persistence != "rdb" else ["BGSAVE"]
    )
    begun_at = storm.cluster.now_us()
    async with storm.primary.talk() as connection:
        await connection.call(command)
    await asyncio.sleep(storm.chance.random() * 0.1)
    if (
        command == "BGSAVE"
        and (await storm.primary.info("persistence"))["rdb_bgsave_in_progress"] == "0"
    ):
        storm.saved_at = begun_at


async def save(storm: Storm) -> None:
    """Saves an RDB file, which is whole before the next step."""
    begun_at = storm.cluster.now_us()
    async with storm.primary.talk() as connection:
        await connection.call("BGSAVE")
    await child_has_ended(storm.primary)
    storm.saved_at = begun_at
    storm.cluster.note("save")


async def child_has_ended(node: Node) -> None:
    async with asyncio.timeout(30):
        while True:
            told = await node.info("persistence")
            busy = ("rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled")
            if all(told[name] == "0" for name in busy):
                return
            await asyncio.sleep(0.02)


def tear(storm: Storm, at: int) -> Record:
    """Does to the files what a crash of the machine would do, and records what must have survived."""
    match storm.profile.persistence:
        case "always":
            if storm.chance.random() < 0.5:
                _append(_aof(storm.primary), TORN[: 1 + storm.chance.randrange(len(TORN))])
            return {"kept": at}
        case "everysec":
            return {"kept": _cut_aof(storm, at)}
        case _:
            return {"kept": storm.saved_at}


def _append(path: Path | None, torn: bytes) -> None:
    if path is not None:
        with path.open("ab") as file:
            file.write(torn)


def _cut_aof(storm: Storm, at: int) -> int:
    """Takes up to about a second off the end of the AOF. Returns the instant up to which all is there."""
    path = _aof(storm.primary)
    samples = [
        (when, size)
        for when, name, size in storm.aof_sizes
        if path is not None and name == path.name
    ]
    if path is None or not samples or storm.chance.random() < 0.3:
        return at - WRITE_LAG_US
    since, least = next(
        ((when, size) for when, size in samples if when > at - 1_000_000), samples[-1]
    )
    content = path.read_bytes()
    cut = storm.chance.randint(min(least, len(content)), len(content))
    with path.open("r+b") as file:
        file.truncate(_outside_of_transactions(content, cut))
    return since - WRITE_LAG_US


def _outside_of_transactions(content: bytes, cut: int) -> int:
    """A cut inside MULTI … EXEC is moved back to the MULTI.

    Every server cuts off only what follows the last whole command, and cuts the half transaction at the start after the
    next. That is a bug of the servers, not of the module.
    """
    begin = content.rfind(MULTI, 0, cut)
    if begin < 0:
        return cut
    end = content.find(EXEC, begin)
    return begin if end < 0 or cut < end + len(EXEC) else cut


def _aof(node: Node) -> Path | None:
    """The file to which the server appends: the last part of the AOF."""
    directory = node.directory / "appendonlydir"
    manifest = directory / "appendonly.aof.manifest"
    if not manifest.exists():
        return None
    names = re.findall(r"^file (\S+) seq \d+ type i", manifest.read_text(), re.MULTILINE)
    return directory / names[-1] if names and (directory / names[-1]).exists() else None


async def watch_aof(storm: Storm) -> None:
    """Notes the length of the AOF again and again, so that a tear knows how much one second is."""
    while not storm.cluster.is_over:
        path = _aof(storm.primary)
        if path is not None:
            storm.aof_sizes.append((storm.cluster.now_us(), path.name, path.stat().st_size))
        await asyncio.sleep(0.1)


async def restart(storm: Storm) -> None:
    """An orderly shutdown, which loses nothing: every queue's digest stays the same."""
    if storm.profile.persistence is None:
        raise NotNow
    async with storm.cluster.rest() as is_quiet:
        if not is_quiet:
            return
        node = storm.primary
        aof = _aof(node)
        begun = aof.stat().st_size if aof else 0
        before = await digests(node)
        at = storm.cluster.now_us()
        async with node.talk() as connection:
            connection.send(
                ["SHUTDOWN", "SAVE" if storm.profile.persistence == "rdb" else "NOSAVE"]
            )
            await node.ended()
        storm.saved_at = at
        await node.start()
        await storm.cluster.begin_epoch(node, "restart", kept=at)
        after = await digests(node)
        # What time does that is logged, such as the settling of edges, changes a queue in between: the shutdown waits
        # for replicas, too.
        # Without an AOF nothing says so.
        told = aof.read_bytes()[begun:] if aof else b"\r\n%s\r\n" % flows.QUEUE.encode()
        for queue in before.keys() | after.keys():
            if b"\r\n%s\r\n" % queue.split("/", 1)[1].encode() in told:
                before.pop(queue, None)
                after.pop(queue, None)
        storm.cluster.fact("digests", why="restart", here=before, there=after)
