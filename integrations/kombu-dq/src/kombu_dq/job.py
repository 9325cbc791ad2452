"""A kombu message as a job of DQ, and a delivery of DQ as a kombu message. No network, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from kombu.transport.virtual import Base64
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import dumps, loads

from kombu_dq.wire import Delivery

#: A message as kombu's virtual transports make it: body, headers, properties, content-type,
#: content-encoding.
Payload = dict[str, Any]

MAX_ID_BYTES = 512
MAX_UNIX_MS = 2**48 - 1
#: By how much a worker's clock may be behind the server's.
CLOCK_SKEW_MS = 60_000

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Job:
    """What is added to the queue for a message."""

    id: str
    body: str
    due_ms: int | None
    priority: int

    def options(self) -> list[str | int]:
        """The words of DQ.ADD behind the body."""
        due: list[str | int] = [] if self.due_ms is None else ["AT", self.due_ms]
        return [*due, "PRIORITY", self.priority]

    def under_another_id(self, unique: str) -> Job:
        """For when the id is taken by a job that must stay."""
        other = f"{self.id}~{unique}"
        return replace(self, id=other if len(other.encode()) <= MAX_ID_BYTES else unique)


def job_of(message: Payload, priority: int) -> Job:
    headers = message.get("headers") or {}
    return Job(_id_of(message, headers), dumps(message), due_ms(headers.get("eta")), priority)


def _id_of(message: Payload, headers: Mapping[str, Any]) -> str:
    """A task's own id, so that it can be revoked and looked at by it; else the tag that kombu made
    up.
    """
    task_id = headers.get("id") if "task" in headers else None
    if isinstance(task_id, str) and 0 < len(task_id.encode()) <= MAX_ID_BYTES:
        return task_id
    return str(message["properties"]["delivery_tag"])


def due_ms(eta: object) -> int | None:
    """An ETA as a due time, not earlier than it says; None when there is none or it can't be read.

    One that says no zone is UTC: so Celery's worker reads it, whatever `timezone` and `enable_utc`
    say.
    """
    if not isinstance(eta, str):
        return None
    try:
        at = datetime.fromisoformat(eta.removesuffix("Z") + "+00:00" if eta.endswith("Z") else eta)
    except ValueError:
        return None  # the worker will say what is wrong with it
    try:
        aware = at if at.tzinfo else at.replace(tzinfo=timezone.utc)
        microseconds = (aware - _EPOCH) // _MICROSECOND
    except OverflowError:
        return None
    return min(max(0, -(-microseconds // 1000)), MAX_UNIX_MS)


def payload_of(delivery: Delivery, tag: str, now_ms: int) -> Payload:
    """The message in a job, as its consumer is to see it. Raises ValueError when there is none in
    it, whatever else a decoder raises: a body may be deeper than Python's stack.
    """
    try:
        payload = _loads(delivery.body)
        _check(payload)
        headers, properties = payload["headers"], payload["properties"]
        properties["delivery_tag"] = tag
        if delivery.attempt > 1:
            headers["redelivered"] = True
            properties.setdefault("delivery_info", {})["redelivered"] = True
        due = due_ms(headers.get("eta"))
        if due is not None and due > now_ms + CLOCK_SKEW_MS:
            headers["eta"] = None  # an operator has kicked the job: it is to be done now
    except Exception as error:
        raise ValueError(f"no message of kombu: {error!r}") from error
    return payload


def _check(payload: Payload) -> None:
    """What kombu and Celery take for granted, and would end a worker for."""
    properties, headers = payload["properties"], payload["headers"]
    kinds: list[tuple[str, object, type[object]]] = [
        ("headers", headers, dict),
        ("properties", properties, dict),
        ("delivery_info", properties.get("delivery_info") or {}, dict),
        ("content-type", payload.get("content-type") or "", str),
        ("content-encoding", payload.get("content-encoding") or "", str),
    ]
    kinds += [(name, headers.get(name) or "", str) for name in ("task", "id")]
    kinds += [("timelimit", headers.get("timelimit") or [], list)]
    for name, value, kind in kinds:
        if not isinstance(value, kind):
            raise TypeError(f"{name} is of type {type(value).__name__}")
    encoding, body = properties.get("body_encoding"), payload.get("body")
    if encoding == "base64":
        Base64().decode(body)
    elif encoding:
        raise ValueError(f"body_encoding is {encoding!r}")


def _loads(body: bytes) -> Payload:
    payload = loads(bytes_to_str(body))
    if not isinstance(payload, dict):
        raise ValueError("no message of kombu")
    return payload


def supersedes(message: Payload, present: bytes) -> bool:
    """Whether a message takes the place of the one that has its id: it is its retry, or its
    Task.replace.
    """
    try:
        mine, theirs = message["headers"], _loads(present)["headers"]
        return _generation(mine) > _generation(theirs)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _generation(headers: Mapping[str, Any]) -> tuple[int, int]:
    return int(headers.get("replaced_task_nesting") or 0), int(headers.get("retries") or 0)


def is_in_chord(present: bytes) -> bool:
    """Whether the end of the task in a job has to be told to a chord. A body that isn't JSON may be
    so.
    """
    try:
        message = _loads(present)
        if not message["headers"].get("group"):
            return False
        _args, _kwargs, embed = loads(_decoded_body(message))
        return embed.get("chord") is not None
    except (ValueError, KeyError, TypeError, AttributeError):
        return True


def _decoded_body(message: Payload) -> str:
    if message["content-type"] != "application/json":
        raise ValueError(message["content-type"])
    body = message["body"]
    encoding = message["properties"].get("body_encoding")
    return bytes_to_str(Base64().decode(body)) if encoding == "base64" else str(body)
