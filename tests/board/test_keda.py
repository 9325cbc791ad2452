"""`dq-board --keda` as KEDA uses it: gRPC calls to a board of a real server."""

import socket
import subprocess
from collections.abc import Callable
from contextlib import ExitStack

import grpc
import pytest
import redis

from board import BINARY
from harness.server import Server, eventually
from samples import HOUR, RIGHTS, pipe
from scaler import Scaler, about

Scalers = Callable[..., Scaler]


def refusal(call: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as refused:
        call()
    return refused.value.code(), refused.value.details()


def test_jobs_that_need_a_worker_now_or_soon_count(scalers: Scalers, r: redis.Redis):
    scaler = scalers()
    assert not scaler.is_active(queue="mail") and scaler.jobs(queue="mail") == 0

    add = ("DQ.ADD", "mail")
    pipe(r, (*add, "in-hand", "x", "TTR", HOUR), ("DQ.POP", "mail"), (*add, "ready", "x"))
    for seconds in (45, 200, 800, 5000):
        r.execute_command(*add, f"in-{seconds}", "x", "DELAY", seconds * 1000)
    pipe(r, (*add, "held", "x", "HOLD"), (*add, "dead", "x", "PRIORITY", 0))
    (job,) = r.execute_command("DQ.POP", "mail")
    r.execute_command("DQ.BURY", "mail", job[0], job[2])

    assert scaler.jobs(queue="mail") == 3, "within a minute, unless it says otherwise"
    found = {s: scaler.jobs(queue="mail", within=str(s)) for s in (1, 300, 900, 86_400)}
    assert found == {1: 2, 300: 4, 900: 5, 86_400: 6}
    assert scaler.is_active(queue="mail")

    r.execute_command("DQ.PAUSE", "mail")
    assert scaler.jobs(queue="mail", within="900") == 1, "only the job in hand"
    r.execute_command("DQ.DEL", "mail", "in-hand")
    assert not scaler.is_active(queue="mail", within="900")
    r.execute_command("DQ.RESUME", "mail")
    assert scaler.jobs(queue="mail", within="900") == 4


def test_a_worker_is_for_as_many_jobs_as_the_trigger_says(scalers: Scalers, server: Server):
    scaler = scalers()
    assert scaler.is_active(queue="mail") is False
    assert scaler.target(queue="mail") == ("dq-jobs", 10)
    assert scaler.target(queue="mail", jobsPerWorker="250") == ("dq-jobs", 250)


def test_a_stream_tells_when_work_comes_and_when_it_is_done(scalers: Scalers, r: redis.Redis):
    scaler = scalers()
    scaler.is_active(queue="mail")
    stream = scaler.activity(queue="mail", within="30")
    assert next(stream).result is False
    r.execute_command("DQ.ADD", "mail", "a", "x", "DELAY", 25_000)
    assert next(stream).result is True
    r.execute_command("DQ.DEL", "mail", "a")
    assert next(stream).result is False
    stream.cancel()


def test_wrong_metadata_is_refused_with_the_reason(scalers: Scalers, r: redis.Redis):
    scaler = scalers()
    scaler.is_active(queue="mail")
    wrong = grpc.StatusCode.INVALID_ARGUMENT
    for metadata, why in (
        ({}, "queue is missing"),
        ({"queue": "mail", "within": "0"}, "within must be 1 to 86400 seconds"),
        ({"queue": "mail", "within": "5m"}, "within must be a whole number, not 5m"),
        ({"queue": "mail", "jobsPerWorker": "0"}, "jobsPerWorker must be at least 1"),
    ):
        for call in (scaler.is_active, scaler.target, scaler.jobs):
            assert refusal(lambda call=call, m=metadata: call(**m)) == (wrong, why)
        assert refusal(lambda m=metadata: next(scaler.activity(**m))) == (wrong, why)

    r.set("text", "no queue")
    code, why = refusal(lambda: scaler.jobs(queue="text"))
    assert code == grpc.StatusCode.FAILED_PRECONDITION and "WRONGTYPE" in why


def test_calls_that_it_does_not_have_are_unimplemented(scalers: Scalers):
    """A newer KEDA asks for StreamMetricSpec, and takes that for a no."""
    scaler = scalers()
    assert scaler.is_active(queue="mail") is False
    call = scaler.channel.unary_stream(
        "/externalscaler.ExternalScaler/StreamMetricSpec",
        request_serializer=lambda message: message.SerializeToString(),
    )
    code, _ = refusal(lambda: next(call(about({"queue": "mail"}), timeout=20)))
    assert code == grpc.StatusCode.UNIMPLEMENTED


def test_a_server_that_is_gone_is_an_error_and_not_a_zero(
    scalers: Scalers, server: Server, r: redis.Redis
):
    """KEDA keeps as many workers as there are when it gets an error."""
    scaler = scalers()
    r.execute_command("DQ.ADD", "mail", "a", "x")
    assert scaler.jobs(queue="mail") == 1
    stream = scaler.activity(queue="mail")
    assert next(stream).result is True
    server.kill9()
    for call in (scaler.jobs, scaler.is_active):
        assert refusal(lambda call=call: call(queue="mail"))[0] == grpc.StatusCode.UNAVAILABLE
    assert refusal(lambda: next(stream))[0] == grpc.StatusCode.UNAVAILABLE
    server.start()
    eventually(lambda: answers(scaler), 20)


def answers(scaler: Scaler) -> bool:
    try:
        return scaler.jobs(queue="mail") == 0
    except grpc.RpcError:
        return False


def test_the_rights_of_a_read_only_board_are_enough(
    scalers: Scalers, server: Server, r: redis.Redis
):
    rights = RIGHTS.replace("~*", "~mail").split()
    r.execute_command("ACL", "SETUSER", "board", "on", ">sEcReT", *rights)
    scaler = scalers(redis=f"redis://board:sEcReT@127.0.0.1:{server.port}")
    pipe(r, ("DQ.ADD", "mail", "a", "x"), ("DQ.ADD", "other", "a", "x"))
    assert scaler.is_active(queue="mail") and scaler.jobs(queue="mail") == 1
    code, _ = refusal(lambda: scaler.jobs(queue="other"))
    assert code == grpc.StatusCode.PERMISSION_DENIED


def test_an_address_that_others_reach_has_to_be_meant(server: Server):
    """KEDA has no password to give."""
    for args in ((), ("--auth", "ann:secret")):
        done = subprocess.run(
            [BINARY, "--redis", f"redis://127.0.0.1:{server.port}", "--keda", "0.0.0.0:0", *args],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 1 and "KEDA gives no password" in done.stderr


def test_connections_that_say_nothing_are_closed(scalers: Scalers):
    """They keep a new one waiting, but not for good: at most 50 are open at a time."""
    scaler = scalers()
    assert scaler.is_active(queue="mail") is False
    with ExitStack() as opened:
        silent = [
            opened.enter_context(socket.create_connection(("127.0.0.1", scaler.port), timeout=60))
            for _ in range(60)
        ]
        late = opened.enter_context(Scaler(scaler.port))
        waited = refusal(lambda: late.is_active(1, queue="mail"))
        assert waited[0] == grpc.StatusCode.DEADLINE_EXCEEDED
        assert scaler.is_active(queue="mail") is False, "a connection that is open is served"
        assert late.is_active(60, queue="mail") is False
        assert silent[0].recv(1) == b""
