"""A client for DQ, the delay queue of Redis and Valkey: queues, topics, flows and workers.

import redis
from dq_client import Queue

mail = Queue(redis.Redis(), "mail")
mail.add("welcome:ann", {"to": "ann@example.com"}, delay=timedelta(minutes=30), nx=True)
"""

from dq_client.codec import JSON, RAW, Codec, Msgpack
from dq_client.commands import Add
from dq_client.errors import (
    DQError,
    Exists,
    Full,
    Invalid,
    LeaseLost,
    NoJob,
    NoModule,
    NotHeld,
    WrongType,
)
from dq_client.flow import Flow, Step, after, chain, group
from dq_client.info import Info
from dq_client.queue import AsyncQueue, Queue
from dq_client.replies import (
    Added,
    Delivery,
    Dep,
    Deps,
    Edges,
    FinishedAndTaken,
    Group,
    Job,
    Outcome,
    Over,
    Page,
    Schedule,
    Taken,
)
from dq_client.seam import Later
from dq_client.topic import AsyncTopic, Topic
from dq_client.words import Backoff, Cron, Rate, Sink

__version__ = "0.1.0"

__all__ = [
    "JSON",
    "RAW",
    "Add",
    "Added",
    "AsyncQueue",
    "AsyncTopic",
    "Backoff",
    "Codec",
    "Cron",
    "DQError",
    "Delivery",
    "Dep",
    "Deps",
    "Edges",
    "Exists",
    "FinishedAndTaken",
    "Flow",
    "Full",
    "Group",
    "Info",
    "Invalid",
    "Job",
    "Later",
    "LeaseLost",
    "Msgpack",
    "NoJob",
    "NoModule",
    "NotHeld",
    "Outcome",
    "Over",
    "Page",
    "Queue",
    "Rate",
    "Schedule",
    "Sink",
    "Step",
    "Taken",
    "Topic",
    "WrongType",
    "after",
    "chain",
    "group",
]
