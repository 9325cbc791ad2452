"""The test program of this client: it carries out what the contract's runner asks for.

    program.py sync|asyncio|valkey

clients/contract/README.md describes the conversation. `sync` and `valkey` use the blocking clients
of redis-py and of valkey-py, `asyncio` the other one of redis-py.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import signal
import sys
import threading
from datetime import datetime, timedelta, timezone
from typing import Any

import dq_client
from dq_client import (
    Added,
    AsyncQueue,
    Backoff,
    Cron,
    Delivery,
    Outcome,
    Page,
    Queue,
    Rate,
    Sink,
    envelope,
)
from dq_client.errors import DQError, refusal
from dq_client.flow import flow_of
from dq_client.replies import wire_names
from dq_client.words import ms, unix_ms
from dq_client.worker import Worker
from scripted import Scripts

KIND = sys.argv[1]

CODECS = {"json": dq_client.JSON, "raw": dq_client.RAW, "msgpack": dq_client.Msgpack()}
RECORDS = {"backoff": Backoff, "rate": Rate, "grouprate": Rate, "cron": Cron, "sink": Sink}
# Names that Python keeps for itself, and one that says more.
RENAMED = {"del": "delete", "madd": "add_many", "from": "from_", "for": "for_"}


# ---- the contract's values in Python's types, and back -------------------------------------------


def value_in(value: Any) -> Any:
    match value:
        case {"ms": number}:
            return timedelta(milliseconds=number)
        case {"unix-ms": number}:
            return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=number)
        case {"base64": data}:
            return base64.b64decode(data)
        case list():
            return [value_in(each) for each in value]
    return value


def arguments_in(command: str, told: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and named arguments of the method."""
    given = {}
    for name, value in told.items():
        if name in RECORDS:
            value = RECORDS[name](**{part: value_in(each) for part, each in value.items()})
        given[RENAMED.get(name, name)] = value_in(value)
    match command:
        case "pop" if "finish" in given:
            return [[leased_in(job) for job in given.pop("finish")]], given
        case "mpop" if "finish" in given:
            finish = given.pop("finish")
            return [[(finish["key"], *leased_in(job)) for job in finish["job"]]], given
        case "add":
            return [given.pop("id", "*"), given.pop("body")], given
        case "madd":
            return [[job_in(job) for job in given.pop("job")]], given
        case "finish":
            return [
                (job["id"], job["lease"]) if "lease" in job else job["id"]
                for job in given.pop("job")
            ], given
        case "done":
            given["add"] = [added_in(each) for each in told.get("add", ())]
        case "renew":
            jobs = [(job["id"], job["lease"]) for job in given.pop("job")]
            return [given.pop("ttr"), given.pop("block"), jobs], given
        case "resume":
            return given.pop("id", []), given
        case "del" | "kickjob":
            return given.pop("id"), given
        case "next":
            return [given.pop("expression")], given
    return [], given


def leased_in(told: dict[str, Any]) -> tuple[Any, Any]:
    return value_in(told["id"]), told["lease"]


def job_in(told: dict[str, Any]) -> Any:
    """One of many: a body, or an id and a body."""
    body = value_in(told["body"])
    return (value_in(told["id"]), body) if "id" in told else body


def added_in(told: dict[str, Any]) -> dq_client.Add:
    (id, body), options = arguments_in("add", told)
    return dq_client.Add(body, id, **options)


def payload_in(value: Any) -> bytes:
    told: Any = value_in(value)
    return told.encode() if isinstance(told, str) else bytes(told)


def flow_in(told: dict[str, Any]) -> Any:
    match told:
        case {"step": id}:
            return dq_client.Step(None, id)
        case {"chain": parts}:
            return dq_client.chain(*map(flow_in, parts))
        case {"group": parts}:
            return dq_client.group(*map(flow_in, parts))
        case {"after": ids, "of": part}:
            return dq_client.after(ids, flow_in(part))
    raise ValueError(told)


def value_out(value: Any) -> Any:
    """A value of a reply."""
    match value:
        case timedelta():
            return ms(value)
        case datetime():
            return unix_ms(value)
        case bytes():
            return bytes_out(value)
        case str():
            return bytes_out(value.encode("utf-8", "surrogateescape"))
        case list():
            return [value_out(each) for each in value]
    return value


def bytes_out(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def reply_out(reply: Any) -> Any:
    """A typed reply in the contract's form of it."""
    match reply:
        case Added(id):
            return {"added": value_out(id)}
        case dq_client.Taken() | dq_client.Over():
            return {}
        case Delivery():
            shown = {"key": reply.key, "id": reply.id, "body": reply.body, "lease": reply.lease}
            shown |= {"attempt": reply.attempt, "due": reply.due}
            return {name: value_out(each) for name, each in shown.items()}
        case Outcome():
            what = reply.value if reply.is_done else reply.reason
            shown = {"id": reply.id} if isinstance(reply, dq_client.Dep) else {}
            return shown | {"state": reply.state, "what": value_out(what)}
        case dq_client.Deps():
            return {"next": reply.next, "items": reply_out(reply.items)}
        case Page():
            return {"cursor": reply.cursor, "items": reply_out(reply.items)}
        case list():
            return [reply_out(each) for each in reply]
        case dq_client.Job():
            optional = ("group", "note", "result_payload")
            shown = fields_out(
                reply, without={name for name in optional if getattr(reply, name) is None}
            )
            for part in filter(None, (reply.edges, reply.schedule)):
                shown |= fields_out(part)
            return shown
        case dq_client.Info() | dq_client.Group():
            return fields_out(reply)
    return value_out(reply)


def fields_out(reply: Any, without: set[str] = frozenset()) -> dict[str, Any]:  # type: ignore[assignment]
    names = {name: wire for name, wire in wire_names(type(reply)).items() if name not in without}
    return {wire: value_out(getattr(reply, name)) for name, wire in names.items()}


def framed(command: str, reply: Any) -> Any:
    """Replies that are more than a list of what they hold."""
    if isinstance(reply, dq_client.FinishedAndTaken):
        return {"finished": reply.finished, "taken": framed(command, reply.jobs)}
    if command == "mpop":
        return {"key": reply[0].key, "jobs": reply_out(reply)} if reply else None
    if command == "done":
        return None if reply is None else {"added": reply_out(reply)}
    return reply_out(reply)


def error_out(error: BaseException) -> dict[str, Any]:
    typed = refusal(error) or error
    if isinstance(typed, DQError):
        return {"type": type(typed).__name__, "code": typed.code, "message": typed.message}
    code, _, message = str(error).partition(" ")
    code = getattr(error, "status_code", None) or code
    return {"type": type(error).__name__, "code": code, "message": message}


# ---- requests ------------------------------------------------------------------------------------


class Program:
    def __init__(self) -> None:
        self.client: Any = None
        self.scripts = Scripts(tell, added_in)
        self.working: asyncio.Task[None] | None = None

    async def answer(self, request: dict[str, Any]) -> Any:
        what = request.pop("do").replace("-", "_")
        return await getattr(self, what)(**request)

    async def connect(self, url: str, protocol: int, cluster: bool = False) -> Any:
        self.client = await connected(url, protocol, cluster)
        return True

    def queue(self, key: str, codec: str = "raw") -> Any:
        kind = AsyncQueue if KIND == "asyncio" else Queue
        return kind(self.client, key, codec=CODECS[codec])

    def prepared(
        self, command: str, arguments: dict[str, Any], key: Any = ""
    ) -> tuple[Any, list[Any], dict[str, Any]]:
        positional, named = arguments_in(command, arguments)
        if command == "mpop":
            key, *others = key
            positional.append(others)
        name = f"finish_and_{command}" if "finish" in arguments else RENAMED.get(command, command)
        return getattr(self.queue(key), name), positional, named

    async def call(self, command: str, arguments: dict[str, Any], key: Any = "") -> Any:
        method, positional, named = self.prepared(command, arguments, key)
        return framed(command, await settled(method(*positional, **named)))

    async def raw(self, words: list[str]) -> Any:
        return reply_out(await settled(self.client.execute_command(*encoded(words))))

    async def batch(self, calls: list[dict[str, Any]], transaction: bool) -> Any:
        """Typed calls and raw words on one pipeline."""
        pipeline = self.client.pipeline(transaction=transaction)
        later = []
        for call in calls:
            if "words" in call:
                later.append(pipeline.execute_command(*encoded(call["words"])))
            else:
                method, positional, named = self.prepared(**call)
                later.append(method(*positional, on=pipeline, **named))
        replies = await settled(pipeline.execute(raise_on_error=False))
        shown = []
        for call, each, reply in zip(calls, later, replies, strict=True):
            try:
                if "words" in call:
                    if isinstance(reply, Exception):
                        raise reply
                    shown.append({"reply": reply_out(reply)})
                else:
                    shown.append({"reply": framed(call["command"], each.of(replies))})
            except Exception as error:
                shown.append({"error": error_out(error)})
        return shown

    # ---- without a server ------------------------------------------------------------------------

    async def topic(self, name: str, shards: int, ids: list[str]) -> Any:
        topic = self.topic_in(name, shards)
        of = {id: topic.queue_of(id).name for id in ids}
        return {"queues": [queue.name for queue in topic.queues], "queue_of": of}

    async def encode(self, codec: str, value: Any) -> Any:
        return bytes_out(CODECS[codec].encode(value_in(value)))

    async def decode(self, codec: str, bytes: Any) -> Any:
        return value_out(CODECS[codec].decode(payload_in(bytes)))

    async def wrap(self, body: Any, headers: dict[str, str]) -> Any:
        return bytes_out(envelope.wrapped(payload_in(body), headers))

    async def unwrap(self, payload: Any) -> Any:
        body, headers = envelope.unwrapped(payload_in(payload))
        return {"body": bytes_out(body), "headers": headers}

    async def flow(self, flow: dict[str, Any]) -> Any:
        built = flow_in(flow)
        adds = [[step.id, list(before)] for step, before in flow_of(built).steps]
        return {"adds": adds, "last": list(flow_of(built).last)}

    # ---- a worker --------------------------------------------------------------------------------

    def topic_in(self, name: str, shards: int, before: dict[str, Any] | None = None) -> Any:
        kind: Any = dq_client.AsyncTopic if KIND == "asyncio" else dq_client.Topic
        earlier = self.topic_in(**before) if before else None
        return kind(self.client, name, shards, before=earlier)

    async def on_topic(self, topic: dict[str, Any], command: str, arguments: dict[str, Any]) -> Any:
        positional, named = arguments_in(command, arguments)
        method = getattr(self.topic_in(**topic), command)
        return reply_out(await settled(method(*positional, **named)))

    async def work(
        self,
        queues: dict[str, int] | None = None,
        topic: dict[str, Any] | None = None,
        schedules: list[dict[str, Any]] = [],  # noqa: B006
        hooks: bool = False,
        concurrency: int = 10,
        ttr: int = 60_000,
        grace: int = 30_000,
    ) -> Any:
        handler = self.scripts.play_async if KIND == "asyncio" else self.scripts.play
        weights = {self.queue(name, "json"): weight for name, weight in (queues or {}).items()}
        worker = Worker(
            self.topic_in(**topic) if topic else weights,
            handler,
            concurrency=concurrency,
            ttr=timedelta(milliseconds=ttr),
            grace=timedelta(milliseconds=grace),
            before=[self.scripts.before] if hooks else [],
            after=[self.scripts.after] if hooks else [],
        )
        for declared in schedules:
            (id, body), options = arguments_in("add", declared)
            worker.schedule(id, body, **options)
        self.working = asyncio.create_task(self.serve(worker))
        return True

    async def serve(self, worker: Worker) -> None:
        serving = asyncio.create_task(worker.serve(signals=[signal.SIGTERM]))
        while not worker.is_stopping and not serving.done():
            await asyncio.sleep(0.01)
        tell({"event": "stopping"})
        try:
            await serving
        except Exception as error:
            tell({"event": "failed"} | error_out(error))
            os._exit(1)
        os._exit(0)

    async def go(self, name: str) -> Any:
        self.scripts.go(name)
        return True


async def connected(url: str, protocol: int, cluster: bool) -> Any:
    if KIND == "valkey":
        import valkey

        return (valkey.ValkeyCluster if cluster else valkey.Valkey).from_url(url, protocol=protocol)
    if KIND == "sync":
        import redis

        return (redis.RedisCluster if cluster else redis.Redis).from_url(url, protocol=protocol)
    import redis.asyncio

    kind = redis.asyncio.RedisCluster if cluster else redis.asyncio.Redis
    return kind.from_url(url, protocol=protocol)


async def settled(reply: Any) -> Any:
    return await reply if KIND == "asyncio" else reply


def encoded(words: list[str]) -> list[bytes]:
    return [word.encode("latin-1") for word in words]


def tell(line: dict[str, Any]) -> None:
    with TELLING:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


TELLING = threading.Lock()


async def main() -> None:
    program = Program()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            tell({"reply": await program.answer(json.loads(line))})
        except Exception as error:
            tell({"error": error_out(error)})


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main())
