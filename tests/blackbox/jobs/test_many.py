"""DQ.MADD: many jobs in one step, all of them or none; and SPREAD, of DQ.KICK too."""

import time
from collections.abc import Callable

import pytest
import redis

from harness.consumers import Consumer
from harness.queues import digests, job
from harness.resp import commands_in
from harness.server import Server, eventually


def many(count: int, first: str = "job") -> list[str]:
    return [word for n in range(count) for word in (f"{first}-{n}", "x")]


def test_they_are_one_entry_of_the_log(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server("appendonly yes", "appendfsync always")
    with server.client() as r:
        r.execute_command("DQ.MADD", "q", 3, *many(3))
    (file,) = (server.directory / "appendonlydir").glob("*.incr.aof")
    entries = [entry for entry in commands_in(file.read_bytes()) if entry[0] != b"SELECT"]
    assert len(entries) == 1 and entries[0][-7:] == [word.encode() for word in ("3", *many(3))]


@pytest.mark.parametrize("options", [[], ["SPREAD", 60_000], ["DELAYS", 5, 60_000, 0], ["HOLD"]])
def test_a_replica_holds_the_same(
    fresh_server: Callable[..., Server], options: list[str | int]
) -> None:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    with primary.client() as r, replica.client() as there:
        r.execute_command("DQ.MADD", "q", 3, "a", "x", "*", "y", "b", "z", *options)
        replica.catch_up(primary)
        assert digests(r, "q") == digests(there, "q")
        assert there.info("dq")["dq_diverged"] == 0


def test_an_error_of_one_adds_none(r: redis.Redis) -> None:
    r.execute_command("DQ.ADD", "q", "taken", "x")
    r.execute_command("DQ.ALTER", "q", "MAXJOBS", 3)
    for words, error in (
        ((2, "a", "x", "taken", "x"), "EXISTS job 2: id is taken in this queue"),
        ((3, "a", "x", "b", "x", "a", "x"), "job 3: the id 'a' is given twice"),
        ((3, *many(3)), "FULL job 3: the queue holds as many jobs as it may"),
        ((2, "a", "x", "i" * 513, "x"), "job 2: id must be 1 to 512 bytes long"),
        ((2, *many(2), "AFTER", 1, "nobody"), "NOJOB job 1: no job 'nobody' in this queue"),
    ):
        with pytest.raises(redis.ResponseError) as raised:
            r.execute_command("DQ.MADD", "q", *words)
        assert str(raised.value) == error
    assert r.execute_command("DQ.LEN", "q") == 1
    # Nothing is made by what fails.
    with pytest.raises(redis.ResponseError):
        r.execute_command("DQ.MADD", "new", 2, "a", "x", "a", "x")
    assert not r.exists("new")


def test_too_much_is_refused(r: redis.Redis) -> None:
    body = "x" * (1 << 20)
    for words, error in (
        ((17, *(word for n in range(17) for word in (f"{n}", body))), "at most 16777216 bytes"),
        ((1, "a", body + "x"), "job 1: body must be at most 1048576 bytes long"),
        ((10_001, *many(10_001)), "n must be an integer from 1 to 10000"),
    ):
        with pytest.raises(redis.ResponseError, match=error):
            r.execute_command("DQ.MADD", "q", *words)
    r.execute_command("DQ.MADD", "q", 101, *many(101), "HOLD")
    with pytest.raises(redis.ResponseError, match="at most 10000 edges"):
        r.execute_command("DQ.MADD", "q", 100, *many(100, "n"), "AFTER", 101, *many(101)[::2])
    assert r.execute_command("DQ.LEN", "q") == 101


def test_jobs_that_are_spread_come_evenly_and_never_early(r: redis.Redis) -> None:
    begin = time.time() * 1000
    r.execute_command("DQ.MADD", "q", 10, *many(10), "SPREAD", 500)
    came = []
    while len(came) < 10:
        popped = r.execute_command("DQ.POP", "q", "BLOCK", 10_000, "WITHDUE", "COUNT", 10)
        came += [(job[4], time.time() * 1000) for job in popped]
    dues = [due for due, _ in came]
    assert [due - dues[0] for due in dues] == [n * 50 for n in range(10)]
    assert all(at >= due for due, at in came) and dues[0] >= begin - 1


def test_kicked_jobs_are_spread_over_a_time(r: redis.Redis) -> None:
    ids = [f"job-{n}" for n in range(10)]
    for id in ids:
        r.execute_command("DQ.ADD", "q", id, "x")
    for id, _, lease, _ in r.execute_command("DQ.POP", "q", "COUNT", 10):
        r.execute_command("DQ.BURY", "q", id, lease)
    # Those that are kicked count, not COUNT.
    assert r.execute_command("DQ.KICK", "q", "COUNT", 10_000, "SPREAD", 500) == 10
    came: list[tuple[str, int, float]] = []
    while len(came) < 10:
        popped = r.execute_command("DQ.POP", "q", "BLOCK", 10_000, "WITHDUE", "COUNT", 10)
        came += [(words[0], words[4], time.time() * 1000) for words in popped]
    assert [id for id, _, _ in came] == ids
    assert [due - came[0][1] for _, due, _ in came] == [n * 50 for n in range(10)]
    assert all(at >= due for _, due, at in came)


def test_a_spread_kick_is_the_same_on_a_replica_and_from_a_file(
    fresh_server: Callable[..., Server],
) -> None:
    primary, replica = fresh_server("appendonly yes"), fresh_server()
    replica.replicate(primary)
    with primary.client() as r, replica.client() as there:
        for id, options in (("a", "TTL 50000"), ("b", "KEEP 5"), ("c", "HOLD")):
            r.execute_command("DQ.ADD", "q", id, "x", *options.split())
        r.execute_command("DQ.RESUME", "q", "ID", "c")
        for id, _, lease, _ in r.execute_command("DQ.POP", "q", "COUNT", 3):
            r.execute_command("DQ.BURY", "q", id, lease)
        assert r.execute_command("DQ.KICK", "q", "COUNT", 3, "SPREAD", 60_000) == 3
        dues = [job(r, "q", id)["due"] for id in "abc"]
        assert [due - dues[0] for due in dues] == [0, 20_000, 40_000]
        replica.catch_up(primary)
        assert digests(r, "q") == digests(there, "q")
        assert there.info("dq")["dq_diverged"] == 0
        r.execute_command("DEBUG", "LOADAOF")
        assert [job(r, "q", id)["due"] for id in "abc"] == dues


def test_consumers_that_wait_are_served_in_their_order(server: Server, r: redis.Redis) -> None:
    consumers = [Consumer(server.port) for _ in range(5)]
    for n, consumer in enumerate(consumers):
        consumer.send(("DQ.POP", "q", "BLOCK", 0))
        eventually(lambda n=n: r.info("dq")["dq_waiting_consumers"] == n + 1)
    r.execute_command("DQ.MADD", "q", 7, *many(7))
    got = [consumer.hears()[0][0] for consumer in consumers]
    assert got == [f"job-{n}".encode() for n in range(5)]
    assert r.execute_command("DQ.LEN", "q", "STATE", "ready") == 2
    for consumer in consumers:
        consumer.close()


def test_in_a_transaction_and_in_a_script(r: redis.Redis) -> None:
    with r.pipeline() as transaction:
        transaction.execute_command("DQ.MADD", "q", 2, *many(2))
        transaction.execute_command("DQ.LEN", "q")
        assert transaction.execute() == [["job-0", "job-1"], 2]
    script = "return redis.call('DQ.MADD', KEYS[1], 2, 'a', 'x', 'b', 'y')"
    assert r.eval(script, 1, "q") == ["a", "b"]
