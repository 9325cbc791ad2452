"""Limits of the server that are reached and lifted: memory, and the number of replicas."""

from ..storm import NotNow, Storm


async def fill_memory(storm: Storm) -> None:
    """Sets maxmemory to what is used now: commands that add are refused, all others go on."""
    used = int((await storm.primary.info("memory"))["used_memory"])
    storm.cluster.note("oom", maxmemory=used)
    await storm.primary.ask("CONFIG", "SET", "maxmemory", max(used - 100_000, 1))
    try:
        await storm.pause(1.5)
    finally:
        await storm.primary.ask("CONFIG", "SET", "maxmemory", 0)
        storm.cluster.note("oom-over")


async def want_replicas(storm: Storm) -> None:
    """Asks for more replicas than there are: every write is refused, also those of the timer."""
    storm.cluster.note("min-replicas")
    await storm.primary.ask("CONFIG", "SET", "min-replicas-to-write", 9)
    try:
        await storm.pause(1.0)
    finally:
        await storm.primary.ask("CONFIG", "SET", "min-replicas-to-write", 0)
        storm.cluster.note("min-replicas-over")


async def shift_clock(storm: Storm) -> None:
    """As by NTP, a person, or a suspended machine: the wall clock jumps, the monotonic clock doesn't."""
    node = storm.primary
    if node.clock is None:
        raise NotNow
    now = node.clock.shift_us // 1_000
    jump_ms = storm.chance.choice([3_600_000, 30_000, 2_000, 300, -300, -2_000, -30_000])
    shift = 0 if now > 3_000_000 or storm.chance.random() < 0.2 else now + jump_ms
    await storm.cluster.set_clock(node, shift * 1_000)
