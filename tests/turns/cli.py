"""The command line: see `python -m turns --help`, or `make turns`."""

import argparse
import tempfile
from pathlib import Path

from harness.server import KINDS, KNOWN
from turns import table
from turns.scenes import Scene, edges, keys, large, many, rules, time, waiters, watchers
from turns.subject import Subject

# By name: what is in the queue, how many of them, and the cases.
SCENES: dict[str, tuple[str, int, list[Scene]]] = {
    "many": ("A million jobs of 100 B", many.MANY, [many.one_by_one, many.batches, many.as_a_key]),
    "large": (
        "A thousand jobs of 1 MiB",
        large.LARGE,
        [large.in_commands, large.shown, large.as_a_key, large.forgotten],
    ),
    "due": ("A million jobs, due in one millisecond", many.MANY, [time.due]),
    "sunk": ("A million jobs that leave for a sink", many.MANY, [time.sunk]),
    "lives": ("A million jobs that expire together", many.MANY, [time.lives]),
    "kept": ("A million dead jobs", many.MANY, [time.kept]),
    "leases": ("Ten thousand leases that end together", time.LEASES, [time.leases]),
    "lanes": ("A million jobs of 256 priorities", many.MANY, [time.lanes, time.lanes_with_groups]),
    "schedules": (
        "A hundred thousand schedules",
        rules.SCHEDULES,
        [rules.schedules, rules.unread, rules.missed, rules.followed],
    ),
    "limits": ("A million jobs that a limit holds back", many.MANY, [rules.limits]),
    "groups": (
        "A hundred thousand groups",
        rules.GROUPS,
        [rules.groups, rules.expired_groups, rules.one_group],
    ),
    "looks": ("Forecasts and pages over a million jobs", many.MANY, [rules.looks]),
    "defrag": ("A million jobs, of which every second is deleted", many.MANY, [rules.defragmented]),
    "waiters": (
        "Five thousand consumers that wait",
        waiters.WAITERS,
        [waiters.served, waiters.in_one_pipeline, waiters.gone, waiters.lost],
    ),
    "waiter": (
        "A consumer that waits with COUNT 10000",
        10_000,
        [waiters.one_with_many, waiters.one_with_large_ones],
    ),
    "large-waiters": (
        "A hundred clients that wait for 1 MiB each",
        100,
        [waiters.many_with_large_ones, watchers.of_large_results],
    ),
    "watchers": (
        "Ten thousand clients that wait for what becomes of jobs",
        watchers.WATCHERS,
        [watchers.of_one_job, watchers.of_many_jobs, watchers.of_leases],
    ),
    "shared-leases": (
        "Five hundred clients that renew the same leases",
        watchers.SHARERS,
        [watchers.of_shared_leases],
    ),
    "watched-leases": (
        "Forty clients that renew ten thousand leases each",
        10_000,
        [watchers.of_many_leases],
    ),
    "chain": ("A chain of a million jobs", many.MANY, [edges.chain]),
    "fans": ("Jobs that wait for others", edges.FAN, [edges.fan_in, edges.fan_out]),
    "flows": ("A thousand jobs that wait for a thousand", edges.WIDTH, [edges.flow]),
    "links": ("A chain of jobs that expire together", edges.LINKS, [edges.chain_of_deaths]),
    "deaths": ("A hundred thousand jobs that wait for ten thousand", 110_000, [edges.deaths]),
    "queues": ("Twenty thousand queues", keys.QUEUES, [keys.due, keys.flushed]),
    "keys": ("A million other keys", many.MANY, [keys.swept]),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="turns", description="How long each turn of the event loop is at worst."
    )
    parser.add_argument("--only", action="append", choices=SCENES, help="these scenes (all)")
    parser.add_argument("--on", action="append", choices=KNOWN, help="those of make test")
    parser.add_argument(
        "--scale", type=float, default=1, help="a part of the jobs, for a first look (1)"
    )
    parser.add_argument(
        "--write", type=Path, help="the page on which the tables are kept, of all servers"
    )
    options = parser.parse_args()

    kinds = [KNOWN[name] for name in options.on] if options.on else KINDS
    results: dict[str, table.Measured] = {}
    for name in options.only or SCENES:
        title, size, cases = SCENES[name]
        measured = results[title] = {}
        for kind in kinds:
            for case in cases:
                with tempfile.TemporaryDirectory() as directory:
                    subject = Subject(kind, Path(directory))
                    try:
                        case(subject, int(size * options.scale))
                    finally:
                        subject.close()
                    measured.setdefault(case.__name__, {})[kind.name] = subject.rows
                    table.show(name, kind.name, subject.rows)
        # What comes later may fail.
        if options.write and kinds == KINDS and options.scale == 1:
            titles = [title for title, _, _ in SCENES.values()]
            options.write.write_text(table.page(options.write.read_text(), results, titles, kinds))
    return table.verdict(results)
