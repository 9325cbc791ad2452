"""A server that is paused, busy or asleep: clients lose no job, get none early, and work goes on
afterwards.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
import redis

from harness.clock import now_ms
from harness.pipelined import Pipelined
from harness.queues import digests, info, job, waiting
from harness.server import Server, eventually, offset


@contextmanager
def connections(server: Server, how_many: int) -> Iterator[list[Pipelined]]:
    opened = [Pipelined(server.port) for _ in range(how_many)]
    yield opened
    for connection in opened:
        connection.close()


def add_some(r: redis.Redis, ahead_ms: int) -> int:
    """Two jobs, and a lease that ends between their due times. The first of these times."""
    r.execute_command("DQ.ADD", "q", "leased", "x", "TTR", ahead_ms + 50)
    assert r.execute_command("DQ.POP", "q")
    due = job(r, "q", "leased")["deadline"] - 50
    r.execute_command("DQ.ADD", "q", "first", "x", "AT", due)
    r.execute_command("DQ.ADD", "q", "last", "x", "AT", due + 100)
    return due


def check_all_there(r: redis.Redis, due: int) -> None:
    """All three are handed out, in order and not early."""
    eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "ready") == 3, 5)
    assert now_ms() >= due + 100
    handed_out = r.execute_command("DQ.POP", "q", "COUNT", 10)
    assert [(id, attempt) for id, _, _, attempt in handed_out] == [
        ("first", 1),
        ("leased", 2),
        ("last", 1),
    ]


@pytest.mark.parametrize("mode", ["WRITE", "ALL"])
def test_jobs_fall_due_during_a_client_pause(
    fresh_server: Callable[..., Server], mode: str
) -> None:
    """With a replica: during a pause the server must send it nothing."""
    server, replica = fresh_server(), fresh_server()
    replica.replicate(server)
    with server.client() as r, replica.client() as there, connections(server, 1) as [popper]:
        add_some(r, ahead_ms=200)
        replica.catch_up(server)
        before = digests(r, "q")
        paused_until = now_ms() + 799
        r.execute_command("CLIENT", "PAUSE", 800, mode)
        popper.send(("DQ.POP", "q"))
        if mode == "WRITE":
            # The timer works, as the readers see; writers wait.
            eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "ready") == 3, 0.55)
            eventually(lambda: waiting(r) == 0, 0.2)
            assert digests(r, "q") == before
            assert now_ms() < paused_until, "the machine is too slow to tell"
        ((id, *_),) = popper.receive()
        assert now_ms() >= paused_until
        assert id == b"first"
        r.execute_command("DQ.FINISH", "q", "first")
        handed_out = r.execute_command("DQ.POP", "q", "COUNT", 10)
        assert [(id, attempt) for id, _, _, attempt in handed_out] == [("leased", 2), ("last", 1)]
        replica.catch_up(server)
        assert digests(r, "q") == digests(there, "q")
        assert offset(r, "connected_slaves") == 1


def test_a_paused_server_is_asked_every_ten_milliseconds_whether_it_may_write(
    server: Server, r: redis.Redis
) -> None:
    """Not every millisecond, though a consumer waits for a job that is ready."""
    with connections(server, 1) as [consumer]:
        consumer.send(("DQ.POP", "q", "BLOCK", 0))
        eventually(lambda: r.info("dq")["dq_waiting_consumers"] == 1)
        r.execute_command("DQ.ADD", "q", "a", "x", "DELAY", 100)
        r.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "ready") == 1)
        runs, begin = r.info("dq")["dq_timer_runs"], time.monotonic()
        eventually(lambda: time.monotonic() > begin + 0.5)
        runs = r.info("dq")["dq_timer_runs"] - runs
        elapsed_ms = (time.monotonic() - begin) * 1_000
        assert 1 <= runs <= elapsed_ms / 5, f"{runs} runs in {elapsed_ms} ms"
        r.execute_command("CLIENT", "UNPAUSE")
        ((id, *_),) = consumer.receive()
        assert id == b"a"


def test_jobs_that_fell_due_in_a_client_pause_come_when_it_is_ended_early(
    server: Server, r: redis.Redis
) -> None:
    due = add_some(r, ahead_ms=100)
    r.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
    eventually(lambda: waiting(r) == 0)
    r.execute_command("CLIENT", "UNPAUSE")
    check_all_there(r, due)


def test_jobs_fall_due_while_a_script_is_busy(fresh_server: Callable[..., Server]) -> None:
    """Long enough for the server to answer others with BUSY, and to run its event loop."""
    server = fresh_server("busy-reply-threshold 50")
    with server.client() as r, connections(server, 1) as [script]:
        due = add_some(r, ahead_ms=300)
        runs = r.info("dq")["dq_timer_runs"]
        script.send(("EVAL", "while true do end", 0))
        eventually(lambda: is_busy(r))
        assert now_ms() < due, "the machine is too slow to tell"
        eventually(lambda: now_ms() > due + 150)
        assert is_busy(r)
        r.script_kill()
        assert "SCRIPT KILL" in script.receive()
        eventually(lambda: waiting(r) == 0, 1)
        assert r.info("dq")["dq_timer_runs"] > runs
        assert info(r, "q")["ready"] == 3
        check_all_there(r, due)


def is_busy(r: redis.Redis) -> bool:
    try:
        r.execute_command("DQ.POP", "q")
    except redis.ResponseError as error:
        assert str(error).startswith("BUSY"), error
        return True
    return False


def test_jobs_fall_due_while_the_server_sleeps(server: Server, r: redis.Redis) -> None:
    due = add_some(r, ahead_ms=150)
    with connections(server, 3) as [sleeper, popper, adder]:
        asleep = now_ms()
        sleeper.send(("DEBUG", "SLEEP", "0.5"))
        popper.send(("DQ.POP", "q", "COUNT", 10))
        adder.send(("DQ.ADD", "q", "added-meanwhile", "x", "AT", due + 100))
        sleeper.receive()
        handed_out = popper.receive()
        assert adder.receive() == b"added-meanwhile"
    assert now_ms() >= due + 100
    if handed_out is not None:
        # The POP came in after the sleep.
        assert now_ms() >= asleep + 500
    ids = [id for id, *_ in handed_out or []]
    while len(ids) < 4:
        ids += [
            id.encode()
            for id, *_ in eventually(lambda: r.execute_command("DQ.POP", "q", "COUNT", 10), 2)
        ]
    assert ids == [b"first", b"leased", b"last", b"added-meanwhile"]


def test_a_transaction_sees_time_pass_for_all_its_commands(server: Server, r: redis.Redis) -> None:
    due = add_some(r, ahead_ms=150)
    pipeline = r.pipeline(transaction=True)
    pipeline.execute_command("DQ.POP", "q")
    pipeline.execute_command("DEBUG", "SLEEP", "0.4")
    pipeline.execute_command("DQ.LEN", "q", "STATE", "ready")
    begin = time.monotonic()
    early, _, ready = pipeline.execute()
    assert time.monotonic() - begin >= 0.39
    assert early is None
    assert ready in (0, 3), "time passes for the queue as a whole"
    check_all_there(r, due)


def test_a_client_that_dies_with_its_job_leaves_a_lease_that_ends(
    server: Server, r: redis.Redis
) -> None:
    r.execute_command("DQ.ADD", "q", "a", "x", "TTR", 200)
    before = now_ms()
    with closing(Pipelined(server.port)) as worker:
        worker.send(("DQ.POP", "q"))
        eventually(lambda: info(r, "q")["reserved"] == 1)
    ((id, _, _, attempt),) = eventually(lambda: r.execute_command("DQ.POP", "q"))
    assert (id, attempt) == ("a", 2)
    assert now_ms() >= before + 200
