"""Sends the mail that is due, as a member of a consumer group. The queue has a sink: what is due
goes to a stream, and this program reads that. It needs no command of DQ to get its jobs.

Start as many of them as you like. It survives outages of its server: it waits and tries again.
"""

import contextlib
import logging
import os
import signal
import socket
import time
from typing import Any

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

QUEUE = "mail"
STREAM = "{mail}:out"  # of the queue's slot, in a cluster
FAILED = "{mail}:failed"
GROUP, NAME = "mailers", f"{socket.gethostname()}-{os.getpid()}"
REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
KEPT = 1_000_000  # entries, about: what consumers miss in their longest outage
BATCH = 10
BLOCK_MS = 1_000  # how late a signal may be noticed
TAKEN_FOR_DEAD_MS = 5_000  # several times as long as a batch takes
AGAIN_MS = 500
TIMEOUT_S = 5  # for a reply: more than BLOCK_MS

log = logging.getLogger("stream_consumer")
server = redis.Redis.from_url(
    REDIS_URL,
    decode_responses=True,
    socket_timeout=TIMEOUT_S,
    socket_connect_timeout=TIMEOUT_S,
    # What is sent twice does no harm here: see `settle`.
    retry=Retry(ExponentialBackoff(cap=2, base=0.05), 1_000),
    retry_on_error=[redis.BusyLoadingError, redis.ReadOnlyError],
)
is_stopping = False


class Hopeless(Exception):
    """Another attempt would fail as well."""


def mail(job: dict[str, str]) -> None:
    """The work; here it is pretended. It may be done twice, so it has to be idempotent."""
    for address in job["body"].split():
        if "@" not in address:
            raise Hopeless(f"not an address: {address}")
        if address.endswith("@down.example"):
            raise ConnectionError("down.example does not answer")
        time.sleep(0.2)
        log.info("sent %s to %s", job["id"], address)


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    server.execute_command("DQ.ALTER", QUEUE, "SINK", STREAM, "MAXLEN", KEPT)
    with contextlib.suppress(redis.ResponseError):  # BUSYGROUP: there is one
        server.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    while not is_stopping:
        for entry, job in left_by_the_dead() or new():
            work(entry, job)
    log.info("stopped")


def stop(*_: Any) -> None:
    global is_stopping
    is_stopping = True


def left_by_the_dead() -> list[tuple[str, dict[str, str]]]:
    """Entries that another consumer has read and not acknowledged for so long."""
    _, entries, *_ = server.xautoclaim(STREAM, GROUP, NAME, TAKEN_FOR_DEAD_MS, count=BATCH)
    return entries


def new() -> list[tuple[str, dict[str, str]]]:
    """Waits for entries. The server wakes it as soon as a job is due."""
    streams = server.xreadgroup(GROUP, NAME, {STREAM: ">"}, count=BATCH, block=BLOCK_MS)
    return streams[0][1] if streams else []


def work(entry: str, job: dict[str, str]) -> None:
    try:
        mail(job)
    except Hopeless as error:
        settle(
            entry, job, f"given up, {error}", "XADD", FAILED, "*", *pairs(job, reason=str(error))
        )
    except Exception as error:
        # Back to the queue, which keeps it until then. If it was queued anew, that stays.
        again = ("DQ.ADD", QUEUE, job["id"], job["body"], "DELAY", AGAIN_MS, "NX")
        settle(entry, job, f"failed, {error}", *again)
    else:
        settle(entry, job, "finished")


def pairs(job: dict[str, str], **more: str) -> list[str]:
    return [word for pair in (job | more).items() for word in pair]


def settle(entry: str, job: dict[str, str], outcome: str, *command: str | int) -> None:
    """The command and the acknowledgement in one step: both are done, or neither."""
    with server.pipeline(transaction=True) as transaction:
        if command:
            transaction.execute_command(*command)
        transaction.xack(STREAM, GROUP, entry)
        transaction.execute()
    log.info("%s: %s", job["id"], outcome)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main()
