"""Revoking a task: Celery tells it to the workers that are there; here the job is deleted as well.

So a task that is due in a month is gone from the queue at once, and stays so however often workers
restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kombu.exceptions import ContentDisallowed, DecodeError
from kombu.log import get_logger
from kombu.serialization import loads
from kombu.transport.virtual import Base64
from redis import Redis

from kombu_dq.job import Payload, is_in_chord
from kombu_dq.wire import fields, in_one_go

logger = get_logger("kombu_dq")


def revoked_ids(exchange: str, message: Payload) -> list[str]:
    """Which tasks a broadcast revokes everywhere; none, if it is any other broadcast."""
    if not exchange.endswith(".pidbox"):
        return []
    try:
        command = _decoded(message)
    except (DecodeError, ContentDisallowed, KeyError) as error:
        logger.warning("can't read a broadcast: if it revokes tasks, their jobs stay: %s", error)
        return []
    if command.get("method") != "revoke" or command.get("destination") or command.get("pattern"):
        return []
    ids = (command.get("arguments") or {}).get("task_id") or []
    return [ids] if isinstance(ids, str) else [str(task_id) for task_id in ids]


def _decoded(message: Payload) -> Any:
    body = message["body"]
    if message["properties"].get("body_encoding") == "base64":
        body = Base64().decode(body)
    content = message["content-type"], message["content-encoding"]
    command: Any = loads(body, *content, accept={"application/json"})
    return command


def delete(client: Redis, keys: Sequence[str], task_ids: Sequence[str]) -> None:
    """Deletes the tasks' jobs, in whichever of the queues they are.

    A task in the header of a chord stays: the worker that gets it has to tell the chord, which
    waits for it.
    """
    wanted = [(key, task_id) for key in keys for task_id in task_ids]
    replies = in_one_go(client, [("DQ.GET", *words) for words in wanted])
    doomed = []
    for words, reply in zip(wanted, replies, strict=True):
        if isinstance(
            reply, Exception
        ):  # a key that is no queue, say: no reason to fail the broadcast
            logger.warning("revoking %s in %s: %s", words[1], words[0], reply)
        elif reply and not is_in_chord(fields(reply)["body"]):
            doomed.append(("DQ.DEL", *words))
    in_one_go(client, doomed)
