"""Jobs that are no messages of Celery: each is dead with a reason, and the worker goes on."""

import json
from types import ModuleType
from typing import Any

import pytest

from conftest import Start
from harness.server import Server, eventually
from kombu_dq.job import payload_of
from kombu_dq.leases import bury
from kombu_dq.wire import Delivery
from workers import producer

#: What every message has. None of these is one.
PROPERTIES: dict[str, Any] = {"delivery_info": {}, "body_encoding": "base64", "delivery_tag": "t"}
MESSAGE: dict[str, Any] = {
    "body": "W1tdLCB7fSwge31d",
    "content-type": "application/json",
    "content-encoding": "utf-8",
    "headers": {"task": "celery_tasks.add", "id": "x"},
    "properties": PROPERTIES,
}
POISON: dict[str, bytes] = {
    "bytes": b"\xff\xfe",
    "text": b"no message",
    "list": b"[]",
    "deep": b"[" * 200_000,
    "type without a decoder": json.dumps(MESSAGE | {"__type__": 1}).encode(),
    "unknown type": b'{"__type__": "none", "__value__": 1}',
    "no decimal": json.dumps(
        MESSAGE | {"headers": {"x": {"__type__": "decimal", "__value__": "x"}}}
    ).encode(),
    "no time": json.dumps(
        MESSAGE | {"headers": {"x": {"__type__": "datetime", "__value__": 1}}}
    ).encode(),
    "unhashable type": b'{"__type__": [], "__value__": 1}',
    "no base64": json.dumps(MESSAGE | {"body": "abc"}).encode(),
    "body is a number": json.dumps(MESSAGE | {"body": 17}).encode(),
    "encoding is a list": json.dumps(
        MESSAGE | {"properties": PROPERTIES | {"body_encoding": []}}
    ).encode(),
    "unknown encoding": json.dumps(
        MESSAGE | {"properties": PROPERTIES | {"body_encoding": "rot13"}}
    ).encode(),
    "headers are a list": json.dumps(MESSAGE | {"headers": [1]}).encode(),
    "headers are text": json.dumps(MESSAGE | {"headers": "eta"}).encode(),
    "headers are null": json.dumps(MESSAGE | {"headers": None}).encode(),
    "properties are a list": json.dumps(MESSAGE | {"properties": []}).encode(),
    "delivery_info is text": json.dumps(
        MESSAGE | {"properties": PROPERTIES | {"delivery_info": "x"}}
    ).encode(),
    "task is a list": json.dumps(MESSAGE | {"headers": {"task": [], "id": "x"}}).encode(),
    "task without an id": json.dumps(MESSAGE | {"headers": {"task": "celery_tasks.add"}}).encode(),
    "id is a list": json.dumps(
        MESSAGE | {"headers": {"task": "celery_tasks.add", "id": []}}
    ).encode(),
    "content-type is a list": json.dumps(MESSAGE | {"content-type": []}).encode(),
    "unknown task": json.dumps(MESSAGE | {"headers": {"task": "none", "id": "x"}}).encode(),
    "timelimit is a number": json.dumps(
        MESSAGE | {"headers": {"task": "celery_tasks.add", "id": "x", "timelimit": 17}}
    ).encode(),
    "expires is no time": json.dumps(
        MESSAGE | {"headers": {"task": "celery_tasks.add", "id": "x", "expires": "soon"}}
    ).encode(),
    "eta is no time": json.dumps(
        MESSAGE | {"headers": {"task": "celery_tasks.add", "id": "x", "eta": "soon"}}
    ).encode(),
    "no content-type": json.dumps(
        {k: v for k, v in MESSAGE.items() if k != "content-type"}
    ).encode(),
}


@pytest.fixture
def tasks(one_broker: Server) -> ModuleType:
    return producer(one_broker.port)


@pytest.mark.parametrize("pool", ["prefork", "solo"])
def test_a_worker_survives_jobs_that_are_no_messages(
    pool: str, one_broker: Server, worker: Start, tasks: ModuleType
) -> None:
    with one_broker.client(decode_responses=False) as r:
        for job_id, body in POISON.items():
            r.execute_command("DQ.ADD", "celery", job_id, body)
        r.execute_command("DQ.ADD", "celery", b"\xff\xfe\x00 id", b"no message")
        one = worker("-c", "1", "-P", pool, TTR="60")
        assert tasks.add.delay(1, 2).get(timeout=30) == 3
        eventually(
            lambda: (
                not any(
                    r.execute_command("DQ.LEN", "celery", "STATE", state)
                    for state in ("ready", "reserved")
                )
            ),
            20,
        )
        # All are dead, but those that Celery answers by a failure of its own, which ends the job.
        jobs = r.execute_command("DQ.PEEK", "celery", "STATE", "dead", "COUNT", 100)
        dead = {job[1] for job in jobs}
        assert b"\xff\xfe\x00 id" in dead
        assert len(dead) >= len(POISON) - 3, {each.encode() for each in POISON} - dead
    assert one.stop() == 0


@pytest.mark.parametrize("name", POISON)
def test_what_is_no_message_is_said_in_one_way(name: str) -> None:
    try:
        payload = payload_of(Delivery(b"x", POISON[name], 1, 2), "tag", 0)
    except ValueError:
        return
    assert isinstance(payload["headers"], dict)


def test_a_reason_is_as_long_as_the_server_takes() -> None:
    assert bury("é" * 600)[-1] == "é" * 256
    assert bury("\ud800!")[-1] == "\\ud800!"
