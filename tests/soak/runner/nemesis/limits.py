"""Limits that are reached and lifted: memory, and replicas that must be there."""

from ..storm import NotNow, Storm


async def fill_memory(storm: Storm) -> None:
    """maxmemory is what is used now: whatever adds is refused, all else goes on."""
    used = int((await storm.primary.info("memory"))["used_memory"])
    storm.cluster.note("oom", maxmemory=used)
    await storm.primary.ask("CONFIG", "SET", "maxmemory", max(used - 100_000, 1))
    try:
        await storm.pause(1.5)
    finally:
        await storm.primary.ask("CONFIG", "SET", "maxmemory", 0)
        storm.cluster.note("oom-over")


async def want_replicas(storm: Storm) -> None:
    """More replicas than there are: every write is refused, also from the timer."""
    storm.cluster.note("min-replicas")
    await storm.primary.ask("CONFIG", "SET", "min-replicas-to-write", 9)
    try:
        await storm.pause(1.0)
    finally:
        await storm.primary.ask("CONFIG", "SET", "min-replicas-to-write", 0)
        storm.cluster.note("min-replicas-over")


async def shift_clock(storm: Storm) -> None:
    """NTP, a person, or a machine that was suspended: the wall clock jumps, the monotonic one doesn't."""
    node = storm.primary
    if node.clock is None:
        raise NotNow
    now = node.clock.shift_us // 1_000
    jump_ms = storm.chance.choice([3_600_000, 30_000, 2_000, 300, -300, -2_000, -30_000])
    shift = 0 if now > 3_000_000 or storm.chance.random() < 0.2 else now + jump_ms
    await storm.cluster.set_clock(node, shift * 1_000)
