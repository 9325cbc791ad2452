"""DQ.INFO: a queue's settings, counts, totals and lateness."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar


@dataclass(frozen=True)
class Info:
    default_ttr: timedelta
    default_attempts: int
    default_backoff_base: timedelta
    default_backoff_max: timedelta
    default_keep: timedelta
    default_late: timedelta
    max_jobs: int
    dead_keep: timedelta
    concurrency: int
    rate: int
    rate_per: timedelta
    rate_burst: int
    group_concurrency: int
    group_rate: int
    group_rate_per: timedelta
    group_rate_burst: int
    paused: bool
    paused_until: datetime | None
    rate_left: int | None
    blocked_until: datetime | None
    jobs: int
    delayed: int
    ready: int
    reserved: int
    dead: int
    done: int
    held: int
    held_behind_dead: int
    groups: int
    waiting_consumers: int
    oldest_ready: timedelta | None
    next_due: datetime | None
    last_lease: int | None
    memory: int
    total_added: int
    total_replaced: int
    total_popped: int
    total_finished: int
    total_released: int
    total_timed_out: int
    total_buried: int
    total_dead: int
    total_kicked: int
    total_deleted: int
    total_purged: int
    lateness_p50: timedelta | None
    lateness_p90: timedelta | None
    lateness_p99: timedelta | None
    lateness_p999: timedelta | None
    lateness_max: timedelta | None
    schedules: int
    total_missed: int
    #: How many jobs were delivered at most this late.
    lateness_within_1_ms: int
    lateness_within_10_ms: int
    lateness_within_100_ms: int
    lateness_within_1000_ms: int
    lateness_within_10000_ms: int
    lateness_within_60000_ms: int
    lateness_within_600000_ms: int
    lateness_within_3600000_ms: int
    lateness_count: int
    lateness_sum: timedelta
    #: Clients that wait for a result, or by RENEW.
    watchers: int
    #: The stream to which jobs are added, and why that fails now.
    sink: str | None
    sink_maxlen: int | None
    sink_error: str | None

    #: What has its unit in its name on the wire.
    IN_MS: ClassVar[tuple[str, ...]] = (
        "rate_per",
        "group_rate_per",
        "oldest_ready",
        "lateness_p50",
        "lateness_p90",
        "lateness_p99",
        "lateness_p999",
        "lateness_max",
        "lateness_sum",
    )
