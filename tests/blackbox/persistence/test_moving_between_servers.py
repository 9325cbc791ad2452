"""Queues can move between Redis and Valkey in the ways that docs/format.md names, and in no
others.
"""

import re
from collections.abc import Callable
from itertools import permutations

import pytest
import redis

from harness.clock import DAY_MS
from harness.paths import ROOT
from harness.queues import binary_client, info, queues_of
from harness.server import KINDS, KNOWN, Kind, Server, eventually
from harness.zoo import make_zoo

StartServer = Callable[..., Server]

RELAXED = "rdb-version-check relaxed"
ROW = re.compile(
    r"^\| (Redis \S+|Valkey \S+) \| (Redis \S+|Valkey \S+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE
)
PAGE = (ROOT / "docs" / "format.md").read_text()
# By source and target: what the page says of files and payloads, and of replicas.
WAYS = {
    (source, target): (files, replicas) for source, target, files, replicas in ROW.findall(PAGE)
}

between_families = pytest.mark.parametrize(
    ("kind", "target"),
    [pair for pair in permutations(KINDS, 2) if pair[0].family != pair[1].family],
    indirect=["kind"],
    ids=str,
)


def line_of(kind: Kind) -> str:
    """As the page names it. Of Redis 7 it speaks of 7.0 alone."""
    major = min(int(kind.version.split(".")[0]), 8 if kind.family == "redis" else 9)
    return f"{kind.family.title()} {kind.version if major == 7 else major}"


def ways(source: Kind, target: Kind) -> tuple[str, str]:
    pair = (line_of(source), line_of(target))
    if pair not in WAYS:
        pytest.skip(f"docs/format.md says nothing of moving from {pair[0]} to {pair[1]}")
    return WAYS[pair]


def fill(server: Server) -> dict[str, str]:
    """Jobs of every kind in two databases; none changes by itself. Returns the digests of database
    0.
    """
    with binary_client(server) as r, binary_client(server, db=3) as there:
        make_zoo(r, "zoo")
        r.execute_command(
            "DQ.ADD", "schedules", "nightly", "x", "CRON", "30 2 1 1 *", "TZ", "Europe/Berlin"
        )
        r.execute_command(
            "DQ.ADD", "schedules", "daily", "x", "EVERY", DAY_MS, "RUNS", 5, "JITTER", 500
        )
        for n in range(6):
            r.execute_command("DQ.ADD", "groups", f"job-{n}", "x", "GROUP", f"customer-{n % 2}")
        r.execute_command(
            "DQ.ALTER", "groups", "GROUPCONCURRENCY", 1, "RATE", 100, DAY_MS, "CONCURRENCY", 5
        )
        r.execute_command("DQ.POP", "groups", "TTR", DAY_MS)
        r.execute_command("DQ.PAUSE", "groups", "GROUP", "customer-1")
        there.execute_command("DQ.ADD", "elsewhere", "a", "x", "DELAY", DAY_MS)
    return queues_of(server)


def holds(server: Server, before: dict[str, str]) -> None:
    """All that `fill` made, and consumers get it."""
    assert queues_of(server) == before
    with binary_client(server) as r, binary_client(server, db=3) as there:
        assert info(there, "elsewhere")["delayed"] == 1
        assert r.info("dq")["dq_diverged"] == 0
        ((id, _, lease, _),) = r.execute_command("DQ.POP", "zoo")
        assert r.execute_command("DQ.FINISH", "zoo", id, lease) == 1


def test_the_install_page_tells_of_moves_between_all_tested_servers() -> None:
    lines = {line_of(kind): kind.family for kind in KNOWN.values()}
    assert set(WAYS) == {(a, b) for a, b in permutations(lines, 2) if lines[a] != lines[b]}


@between_families
@pytest.mark.parametrize("had_an_aof", [False, True], ids=["without an AOF", "with one"])
def test_an_aof_without_a_preamble_moves_everything(
    fresh_server: StartServer, kind: Kind, target: Kind, had_an_aof: bool
) -> None:
    source = fresh_server("appendonly yes" if had_an_aof else "appendonly no")
    fill(source)
    with source.client() as r:
        r.config_set("aof-use-rdb-preamble", "no")
        if had_an_aof:
            r.bgrewriteaof()
        else:
            r.config_set("appendonly", "yes")
        rewritten = ("aof_rewrite_in_progress", "aof_rewrite_scheduled")
        eventually(lambda: not any(r.info("persistence")[field] for field in rewritten), 20)
        # What comes behind the rewrite is in the log.
        r.execute_command("DQ.ADD", "zoo", "later", "x", "DELAY", DAY_MS)
        r.execute_command("DQ.POP", "zoo", "COUNT", 2, "TTR", DAY_MS)
    before = queues_of(source)
    source.stop()
    folder = source.directory / "appendonlydir"
    files = {f"appendonlydir/{path.name}": path.read_bytes() for path in folder.iterdir()}
    holds(fresh_server("appendonly yes", on=target, files=files), before)


@between_families
def test_files_and_payloads_move_where_the_page_says_so(
    fresh_server: StartServer, kind: Kind, target: Kind
) -> None:
    told, _ = ways(kind, target)
    source = fresh_server()
    before = fill(source)
    with binary_client(source) as r:
        payload = r.dump("zoo")
        r.save()
    files = {"dump.rdb": (source.directory / "dump.rdb").read_bytes()}

    if told != "yes":
        with binary_client(fresh_server(on=target)) as there:
            with pytest.raises(redis.ResponseError, match="DUMP payload version"):
                there.restore("zoo", 0, payload)
            with pytest.raises(redis.ResponseError, match="DUMP payload version"):
                source.client().migrate("127.0.0.1", port_of(there), "zoo", 0, 5_000, copy=True)
        with pytest.raises(RuntimeError, match="did not start"):
            fresh_server(on=target, files=files)
    if told != "no":
        config = () if told == "yes" else (RELAXED,)
        holds(fresh_server(*config, on=target, files=files), before)
        with binary_client(fresh_server(*config, on=target)) as there:
            there.restore("zoo", 0, payload)
            source.client().migrate("127.0.0.1", port_of(there), "groups", 0, 5_000, copy=True)
            digests = there.execute_command("DEBUG", "DIGEST-VALUE", "zoo", "groups")
            assert [digest.decode() for digest in digests] == [before["zoo"], before["groups"]]


@between_families
def test_a_replica_takes_over_where_the_page_says_so(
    fresh_server: StartServer, kind: Kind, target: Kind
) -> None:
    _, told = ways(kind, target)
    source = fresh_server()
    fill(source)
    if told != "yes":
        replica = fresh_server(on=target)
        with replica.client() as r:
            r.replicaof("127.0.0.1", source.port)
            eventually(
                lambda: re.search("Failed trying to load the .+ synchronization DB", replica.log()),
                20,
            )
            assert r.dbsize() == 0
    if told != "no":
        replica = fresh_server(*(() if told == "yes" else (RELAXED,)), on=target)
        replica.replicate(source)
        with source.client() as r:
            r.execute_command("DQ.ADD", "zoo", "later", "x", "DELAY", DAY_MS)
            r.execute_command("DQ.POP", "zoo", "COUNT", 2, "TTR", DAY_MS)
        replica.catch_up(source)
        before = queues_of(source)
        with replica.client() as r:
            r.replicaof("NO", "ONE")
        holds(replica, before)


def port_of(r: redis.Redis) -> int:
    return r.connection_pool.connection_kwargs["port"]
