"""DQ.RENEW: many leases are extended at once, and their holder learns at once which are void."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from harness.clock import now_ms
from harness.consumers import Consumer, Room, in_one_go
from harness.queues import digests
from harness.resp import Failure
from harness.server import Server, eventually

LATE_MS_MAX = 1_500


def shown(room: Room, id: str) -> dict[str, Any]:
    told = room.call("DQ.GET", "q", id)
    return {name.decode(): value for name, value in zip(told[::2], told[1::2], strict=True)}


@pytest.fixture
def holding(room: Room) -> Room:
    """The leases of jobs `a` and `b`, as <a> and <b>."""
    room.play("""
        > DQ.ADD q a x TTR 60000
        "a"
        > DQ.ADD q b y TTR 60000
        "b"
        > DQ.POP q COUNT 2
        [["a", "x", <a>, 1], ["b", "y", <b>, 1]]
    """)
    return room


def check_nothing_is_watched(room: Room) -> None:
    eventually(lambda: room.server_says("watchers") == 0)


def test_all_leases_are_extended_by_ttr_or_by_the_ttr_of_each_job(room: Room) -> None:
    room.call("DQ.ADD", "q", "a", "x", "TTR", 50_000)
    room.call("DQ.ADD", "q", "b", "x", "TTR", 70_000)
    (_, _, a, _), (_, _, b, _) = room.call("DQ.POP", "q", "COUNT", 2, "TTR", 1_000)
    for ttr, ends in [(0, (50_000, 70_000)), (90_000, (90_000, 90_000))]:
        begin = now_ms()
        assert room.call("DQ.RENEW", "q", ttr, 0, "a", a, "b", b) == []
        for id, span in zip("ab", ends, strict=True):
            end = shown(room, id)["deadline"]
            assert begin + span <= end <= now_ms() + span


def test_void_leases_are_told_and_the_others_extended(holding: Room) -> None:
    holding.play("""
        > DQ.DEL q a
        (integer) 1
        > DQ.RENEW q 0 0 a <a> b <b>
        ["a"]
        > DQ.RENEW q 0 60000 a <a> b <b> never 17
        ["a", "never"]
        > DQ.RENEW q 0 60000 b 17 b <b>
        ["b"]
        > DQ.RENEW q 0 0 b <b>
        []
        > DQ.RENEW q 0 0 b *
        []
        > DQ.RENEW nothere 0 60000 a 17 b *
        ["a", "b"]
    """)


def test_a_lease_that_ran_out_is_extended_until_the_job_is_delivered_again(room: Room) -> None:
    room.play("""
        > DQ.ADD q a x
        "a"
        > DQ.POP q TTR 1
        [["a", "x", <first>, 1]]
    """)
    eventually(lambda: shown(room, "a")["state"] == b"ready")
    room.play("""
        > DQ.RENEW q 20 0 a <first>
        []
        > DQ.POP q BLOCK 10000
        [["a", "x", <second>, 2]]
        > DQ.RENEW q 0 0 a <first>
        ["a"]
        > DQ.RENEW q 0 0 a <second>
        []
    """)


def test_a_lease_without_a_place_any_more_is_void(room: Room) -> None:
    room.play("""
        > DQ.ALTER q CONCURRENCY 1
        OK
        > DQ.ADD q a x BACKOFF 60000 60000
        "a"
        > DQ.ADD q b x
        "b"
        > DQ.POP q TTR 1
        [["a", "x", <a>, 1]]
        > DQ.POP q TTR 60000 BLOCK 10000
        [["b", "x", <b>, 1]]
        > DQ.RENEW q 0 60000 a <a> b <b>
        ["a"]
    """)


def test_a_dead_job_without_life_is_void_and_one_that_timed_out_is_revived(room: Room) -> None:
    room.play("""
        > DQ.ADD q a x TTL 1000 TTR 60000
        "a"
        > DQ.ADD q b x ATTEMPTS 1
        "b"
        > DQ.POP q
        [["a", "x", <a>, 1]]
        > DQ.POP q TTR 1
        [["b", "x", <b>, 1]]
    """)
    eventually(lambda: room.call("DQ.LEN", "q", "STATE", "dead") == 2)
    room.play("""
        > DQ.RENEW q 60000 60000 a <a> b <b>
        ["a"]
        > DQ.LEN q STATE reserved
        (integer) 1
    """)


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("DQ.DEL q a", "(integer) 1"),
        ("DQ.ADD q a y REPLACE", '"a"'),
        ("DQ.FINISH q a", "(integer) 1"),
        ("DQ.DONE q a * RESULT x KEEP 60000", "(integer) 1"),
        ("DQ.DONE q a * ADD a z", '["a"]'),
        ("DQ.RELEASE q a *", "(integer) 1"),
        ("DQ.BURY q a *", "(integer) 1"),
        ("DQ.PURGE q STATE reserved COUNT 1", "(integer) 1"),
        ("EVAL \"return redis.call('DQ.DEL', KEYS[1], 'a')\" 1 q", "(integer) 1"),
    ],
)
def test_the_holder_learns_at_once_that_a_lease_is_void(
    holding: Room, command: str, reply: str
) -> None:
    holding.play(f"""
        one> DQ.RENEW q 0 60000 a <a> b <b>
        > {command}
        {reply}
        one< ["a"]
        > DQ.RENEW q 0 0 b <b>
        []
    """)
    check_nothing_is_watched(holding)


@pytest.mark.parametrize(
    "command",
    [
        "DEL q",
        "UNLINK q",
        "FLUSHALL",
        "SET q text",
        "RENAME q away",
        "PEXPIRE q 1",
        "SWAPDB 0 7",
        "COPY other q REPLACE",
    ],
)
def test_all_leases_are_void_when_the_queue_is_gone(holding: Room, command: str) -> None:
    holding.call("DQ.ADD", "other", "c", "x")
    holding.play("one> DQ.RENEW q 0 60000 b <b> a <a>")
    assert not isinstance(holding.call(*command.split()), Failure)
    holding.play('one< ["b", "a"]')
    check_nothing_is_watched(holding)


def test_a_lease_that_another_worker_gets_is_void(room: Room) -> None:
    room.play("""
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <a>, 1]]
        one> DQ.RENEW q 30 60000 a <a>
        two> DQ.POP q BLOCK 0
        two< [["a", "x", <again>, 2]]
        one< ["a"]
        > DQ.RENEW q 0 0 a <again>
        []
    """)


def test_a_life_that_ends_makes_a_lease_void_on_time_and_not_early(room: Room) -> None:
    room.call("DQ.ADD", "q", "a", "x", "TTL", 300)
    room.call("DQ.ADD", "q", "b", "x")
    (_, _, a, _), (_, _, b, _) = room.call("DQ.POP", "q", "COUNT", 2, "TTR", 60_000)
    one = room("one")
    one.send(("DQ.RENEW", "q", 0, 60_000, "a", a, "b", b))
    assert one.hears() == [b"a"]
    since = shown(room, "a")["since"]
    assert since <= now_ms() < since + LATE_MS_MAX


@pytest.mark.parametrize(
    "command",
    [
        "DQ.TOUCH q a <a> TTR 50000",
        "DQ.RENEW q 0 0 a <a> b <b>",
        "DQ.ADD q c x",
        "DQ.FINISH q b 17",
        "DQ.RELEASE q a 17",
        "DQ.ADD q a x NX",
        "DEBUG RELOAD",
        "SWAPDB 5 7",
        "COPY q other",
    ],
)
def test_the_wait_goes_on_while_all_leases_are_good(holding: Room, command: str) -> None:
    holding.play("one> DQ.RENEW q 0 60000 a <a> b <b>")
    words = holding._filled(command).split()
    assert not isinstance(holding.call(*words), Failure)
    holding.play("""
        two> DQ.RENEW q 0 50 a <a>
        two< []
        one waits
        > DQ.DEL q b a
        (integer) 2
        one< ["a", "b"]
    """)


def test_at_the_end_of_the_time_the_reply_is_empty(holding: Room) -> None:
    begin = now_ms()
    one = holding.wait("one", "DQ.RENEW", "q", 0, 100, "a", holding["a"], "b", "*")
    assert one.hears() == []
    assert 100 <= now_ms() - begin < 100 + LATE_MS_MAX
    check_nothing_is_watched(holding)


def test_a_star_is_the_lease_that_the_job_had_then(holding: Room) -> None:
    holding.play("""
        one> DQ.RENEW q 0 60000 a *
        > DQ.RELEASE q a <a>
        (integer) 1
        one< ["a"]
    """)


@pytest.mark.parametrize(
    ("how", "reply"),
    [
        ("", "[]"),
        ("TIMEOUT", "[]"),
        ("ERROR", "(error) UNBLOCKED client unblocked via CLIENT UNBLOCK"),
    ],
)
def test_client_unblock_ends_the_wait(holding: Room, how: str, reply: str) -> None:
    one = holding.wait("one", "DQ.RENEW", "q", 0, 60_000, "a", holding["a"])
    assert holding.call("CLIENT", "UNBLOCK", one.id, *how.split()) == 1
    holding.play(f"one< {reply}\n> DQ.DEL q a\n(integer) 1")
    assert not one.is_told_something()
    assert one.call("PING") == "PONG"
    check_nothing_is_watched(holding)


@pytest.mark.parametrize("end", [("UNBLOCK",), ("UNBLOCK", "ERROR"), ("KILL", "ID")])
def test_a_client_unblocked_in_the_turn_that_tells_it_gets_one_reply(
    holding: Room, end: tuple[str, ...]
) -> None:
    one = holding.wait("one", "DQ.RENEW", "q", 0, 60_000, "a", holding["a"])
    verb, *how = end
    words = (verb, *how, one.id) if verb == "KILL" else (verb, one.id, *how)
    in_one_go(holding.server.port, ("DQ.DEL", "q", "a"), ("CLIENT", *words), ("DQ.DEL", "q", "b"))
    if verb == "KILL":
        assert one.is_closed()
    else:
        reply = one.hears()
        assert isinstance(reply, Failure) or reply == [b"a"]
        assert one.call("ECHO", "and nothing else") == b"and nothing else"
    check_nothing_is_watched(holding)


def test_a_client_that_has_gone_watches_nothing(holding: Room) -> None:
    holding.play("""
        one> DQ.RENEW q 0 60000 a <a> b <b>
        two> DQ.RENEW q 0 60000 a <a>
    """)
    holding.leave("one")
    eventually(lambda: holding.server_says("watchers") == 1)
    holding.play("""
        > DQ.DEL q a
        (integer) 1
        two< ["a"]
    """)
    check_nothing_is_watched(holding)


def test_transactions_and_scripts_extend_and_do_not_wait(holding: Room) -> None:
    holding.play("""
        > EVAL "return redis.call('DQ.RENEW', KEYS[1], 0, 60000, 'a', ARGV[1], 'b', 17)" 1 q <a>
        ["b"]
        > EVAL "return redis.call('DQ.RENEW', KEYS[1], 90000, 60000, 'a', ARGV[1])" 1 q <a>
        []
        > MULTI
        OK
        > DQ.RENEW q 80000 60000 a <a>
        QUEUED
        > EXEC
        [[]]
    """)
    until = shown(holding, "a")["deadline"]
    assert now_ms() + 60_000 < until <= now_ms() + 80_000


def test_a_dead_or_waiting_job_has_no_lease(room: Room) -> None:
    room.play("""
        > DQ.ADD q a x DELAY 60000
        "a"
        > DQ.ADD q b x
        "b"
        > DQ.RENEW q 0 60000 a * b *
        ["a", "b"]
    """)


def test_one_renew_and_one_result_may_watch_the_same_job(holding: Room) -> None:
    holding.play("""
        one> DQ.RENEW q 0 60000 a <a>
        two> DQ.RESULT q a BLOCK 0
        three> DQ.RENEW q 0 60000 a <a> b <b>
        > DQ.DONE q a <a> RESULT 42
        (integer) 1
        one< ["a"]
        two< ["done", "42"]
        three< ["a"]
    """)


def test_leases_extended_by_one_renew_are_the_same_on_a_replica_and_after_a_restart(
    fresh_server: Callable[..., Server],
) -> None:
    server, replica = fresh_server("appendonly yes"), fresh_server()
    replica.replicate(server)
    with closing(Room(server)) as room:
        for id in "abc":
            room.call("DQ.ADD", "q", id, "x", "TTL", 90_000)
        leases = {id: lease for id, _, lease, _ in room.call("DQ.POP", "q", "COUNT", 3)}
        room.call("DQ.DEL", "q", "c")
        words = [word for id, lease in leases.items() for word in (id, lease)]
        for ttr, block in [(0, 0), (70_000, 10), (30_000, 10)]:
            assert room.call("DQ.RENEW", "q", ttr, block, *words) == [b"c"]
            assert room.call("DQ.RENEW", "q", ttr, block, *words[:4]) == []
        one = room.wait("one", "DQ.RENEW", "q", 40_000, 60_000, *words[:4])
        replica.catch_up(server)
        with server.client() as here, replica.client() as there:
            assert here.info("dq")["dq_diverged"] == there.info("dq")["dq_diverged"] == 0
            before = digests(here, "q")
            assert before == digests(there, "q")
        one.close()
    server.restart()
    with server.client() as here:
        assert digests(here, "q") == before
        assert here.info("dq")["dq_diverged"] == 0


def test_only_a_renew_that_extends_something_is_a_change(holding: Room) -> None:
    holding.play("""
        two> DQ.RESULT q b BLOCK 0
        > WATCH q
        OK
    """)
    other = Consumer(holding.server.port)
    assert other.call("DQ.RENEW", "q", 0, 0, "a", 17) == [b"a"]
    assert holding.call("MULTI") == "OK"
    assert holding.call("PING") == "QUEUED"
    assert holding.call("EXEC") == ["PONG"]
    assert holding.call("WATCH", "q") == "OK"
    assert other.call("DQ.RENEW", "q", 0, 0, "a", holding["a"]) == []
    assert holding.call("MULTI") == "OK"
    assert holding.call("PING") == "QUEUED"
    assert holding.call("EXEC") is None
    other.close()


def test_a_failover_ends_the_wait_and_the_new_primary_knows_the_leases(
    fresh_server: Callable[..., Server],
) -> None:
    server, replica = fresh_server(), fresh_server()
    replica.replicate(server)
    with closing(Room(server)) as here, closing(Room(replica)) as there:
        here.call("DQ.ADD", "q", "a", "x", "TTR", 60_000)
        ((_, _, lease, _),) = here.call("DQ.POP", "q")
        one = here.wait("one", "DQ.RENEW", "q", 0, 60_000, "a", lease)
        replica.catch_up(server)
        assert here.call("FAILOVER") == "OK"
        reply = one.hears()
        assert isinstance(reply, Failure)
        assert reply.startswith("UNBLOCKED ")
        check_nothing_is_watched(here)
        with replica.client() as client:
            eventually(lambda: client.info("replication")["role"] == "master")
        one = there.wait("one", "DQ.RENEW", "q", 0, 60_000, "a", lease)
        there.call("DQ.DEL", "q", "a")
        assert one.hears() == [b"a"]


def test_a_worker_with_ten_thousand_leases_learns_of_one(room: Room) -> None:
    jobs = 10_000
    room.call("DQ.ALTER", "q", "TTR", 600_000)
    adder = room("adder")
    adder.call_all([("DQ.ADD", "q", n, "x") for n in range(jobs)])
    held = room.call("DQ.POP", "q", "COUNT", jobs)
    words = [word for id, _, lease, _ in held for word in (id, lease)]
    assert room.call("DQ.RENEW", "q", 0, 0, *words) == []
    one = room.wait("one", "DQ.RENEW", "q", 0, 60_000, *words)
    assert room.call("DQ.DEL", "q", 7_777) == 1
    assert one.hears() == [b"7777"]
    one = room.wait("one", "DQ.RENEW", "q", 0, 60_000, *words[:2000])
    assert room.call("DEL", "q") == 1
    assert one.hears() == words[:2000:2]
    check_nothing_is_watched(room)


@pytest.mark.parametrize(
    ("commands", "void"),
    [
        (["DQ.DEL q a", "DQ.DEL q b"], ["a", "b"]),
        (["DQ.DEL q b", "DQ.DEL q a"], ["a", "b"]),
        (["DQ.DEL q b", "DEL q"], ["a", "b", "c"]),
        (["DQ.DEL q b", "FLUSHALL"], ["a", "b", "c"]),
        (["DQ.DEL q b", "SWAPDB 0 7"], ["a", "b", "c"]),
        (["DQ.DEL q b", "RENAME q away"], ["a", "b", "c"]),
        (["DQ.DEL q b", "SET q text"], ["a", "b", "c"]),
        (["DQ.DEL q b", "COPY other q REPLACE"], ["a", "b", "c"]),
        (["DQ.BURY q a *", "DQ.ADD q b x REPLACE"], ["a", "b"]),
        (["DQ.FINISH q c", "DQ.PURGE q STATE reserved COUNT 1"], ["a", "c"]),
        # Another job with its id: the lease stays void.
        (["DQ.DEL q b", "DQ.ADD q b x", "DQ.POP q"], ["b"]),
        # A queue that was away and is back has its leases.
        (["DQ.DEL q b", "RENAME q away", "RENAME away q"], ["b"]),
        (["SWAPDB 0 7", "DQ.DEL q z", "SWAPDB 0 7", "DQ.DEL q c"], ["c"]),
    ],
)
@pytest.mark.parametrize("how", ["MULTI", "pipeline"])
def test_the_reply_has_all_leases_that_are_void_then_whatever_made_them_so(
    room: Room, how: str, commands: list[str], void: list[str]
) -> None:
    room.call("DQ.ADD", "other", "z", "x")
    held = {}
    for id in "abc":
        room.call("DQ.ADD", "q", id, "x", "TTR", 60_000)
        ((_, _, held[id], _),) = room.call("DQ.POP", "q")
    words = [word for id, lease in held.items() for word in (id, lease)]
    waiting = [room.wait(name, "DQ.RENEW", "q", 0, 60_000, *words) for name in ("one", "two")]
    sent = [tuple(command.split()) for command in commands]
    around = [("MULTI",)], [("EXEC",)]
    in_one_go(room.server.port, *(around[0] + sent + around[1] if how == "MULTI" else sent))
    for client in waiting:
        assert client.hears() == [id.encode() for id in void]
    check_nothing_is_watched(room)


def test_a_queue_that_was_gone_for_a_moment_ends_the_wait_without_a_void_lease(
    holding: Room,
) -> None:
    one = holding.wait("one", "DQ.RENEW", "q", 0, 60_000, "a", holding["a"])
    in_one_go(
        holding.server.port,
        ("MULTI",),
        ("RENAME", "q", "away"),
        ("RENAME", "away", "q"),
        ("EXEC",),
    )
    assert one.hears() == []
    one = holding.wait("one", "DQ.RENEW", "q", 0, 60_000, "a", holding["a"])
    assert holding.call("DQ.DEL", "q", "a") == 1
    assert one.hears() == [b"a"]


def test_what_two_hundred_workers_renew_together_is_void_for_each_of_them(room: Room) -> None:
    jobs, workers = 500, 200
    room("adder").call_all([("DQ.ADD", "q", n, "x", "TTR", 600_000) for n in range(jobs)])
    held = room.call("DQ.POP", "q", "COUNT", jobs)
    words = [word for id, _, lease, _ in held for word in (id, lease)]
    waiting = [
        room.wait(f"{n}", "DQ.RENEW", "q", 0, 60_000, *words[: 2 * (1 + n % jobs)])
        for n in range(workers)
    ]
    gone = room.wait("gone", "DQ.RENEW", "q", 0, 60_000, *words)
    gone.close()
    # Renewing takes as long as without them, and wakes none of them.
    assert room.call("DQ.RENEW", "q", 0, 0, *words) == []
    eventually(lambda: room.server_says("watchers") == workers)
    assert room.call("DQ.DEL", "q", *range(0, jobs, 2)) == jobs // 2
    for n, client in enumerate(waiting):
        assert client.hears() == [str(id).encode() for id in range(0, 1 + n, 2)]
    check_nothing_is_watched(room)
