"""Sends the mail that is due: in batches, renewing its leases while it works, until it is told to
stop.

It survives outages of its server: it waits and tries again. Its leases stay valid.
"""

import logging
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

QUEUE = "mail"
REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
BATCH = 10
BLOCK_MS = 1_000  # how late a signal may be noticed
HEARTBEAT_S = 0.5  # well below the TTR of any job in the queue
TIMEOUT_S = 5  # for a reply: more than BLOCK_MS
PAUSE_S, LONGEST_PAUSE_S = 0.05, 2  # between two tries
GRACE_S = 5  # how long a worker that stops tries to say what came of its jobs
REASON_CHARS = 128  # a reason has 512 bytes, a character up to four
# Errors that waiting doesn't mend. Others pass: LOADING, READONLY, UNBLOCKED, CLUSTERDOWN and so
# on.
MISTAKES = {"ERR", "WRONGTYPE", "NOAUTH", "NOPERM", "WRONGPASS"}

log = logging.getLogger("worker")
server = redis.Redis.from_url(
    REDIS_URL,
    decode_responses=True,
    socket_timeout=TIMEOUT_S,
    socket_connect_timeout=TIMEOUT_S,
    retry=Retry(NoBackoff(), 0),  # `ask` tries again, and says so
)
stopping_since: float | None = None


class Hopeless(Exception):
    """Another attempt would fail as well."""


class LeaseLost(Exception):
    """The job was cancelled, or another worker has it."""


@dataclass
class Job:
    id: str
    body: str
    lease: int
    attempt: int
    is_mine: bool = True

    def check(self) -> None:
        if not self.is_mine:
            raise LeaseLost


def mail(job: Job) -> None:
    """The work; here it is pretended. It may be done twice, so it has to be idempotent."""
    for address in job.body.split():
        if "@" not in address:
            raise Hopeless(f"not an address: {address}")
        if address.endswith("@down.example"):
            raise ConnectionError("down.example does not answer")
        time.sleep(0.2)
        log.info("sent %s to %s", job.id, address)
        job.check()


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    while not is_stopping():
        # A signal doesn't break it off: its reply may be on the way, with jobs.
        popped, _ = ask("DQ.POP", QUEUE, "COUNT", BATCH, "BLOCK", BLOCK_MS, give_up=is_stopping)
        jobs = [Job(*delivery) for delivery in popped or []]
        with heartbeat(jobs):
            for job in jobs:
                if is_stopping():
                    settle(job, "given back", "DQ.RELEASE", "UNBEGUN")
                else:
                    work(job)
    log.info("stopped")


def stop(*_: Any) -> None:
    global stopping_since
    stopping_since = stopping_since or time.monotonic()


def is_stopping() -> bool:
    return stopping_since is not None


def is_out_of_time() -> bool:
    return stopping_since is not None and time.monotonic() > stopping_since + GRACE_S


def work(job: Job) -> None:
    try:
        job.check()
        mail(job)
    except LeaseLost:
        report(job, "lost")
    except Hopeless as error:
        settle(job, f"buried, {error}", "DQ.BURY", "REASON", str(error)[:REASON_CHARS])
    except Exception as error:  # it comes back after its backoff
        settle(job, f"failed, {error}", "DQ.RELEASE", "REASON", str(error)[:REASON_CHARS])
    else:
        settle(job, "finished", "DQ.FINISH")


def settle(job: Job, outcome: str, command: str, *options: str | int) -> None:
    """Reports what came of a job, with its lease. 0 means that it isn't ours any more."""
    job.is_mine = False
    accepted, tries = ask(command, QUEUE, job.id, job.lease, *options, give_up=is_out_of_time)
    if accepted is None:  # when its lease runs out, it comes back
        report(job, f"{outcome}, but the server can't be told")
    elif accepted or tries > 1:  # a try whose reply was lost may have been accepted
        report(job, outcome if accepted else f"{outcome} before, or lost")
    else:
        report(job, "lost")


def report(job: Job, outcome: str) -> None:
    log.info("%s: %s, attempt %d", job.id, outcome, job.attempt)


def ask(*words: str | int, give_up: Callable[[], bool]) -> tuple[Any, int]:
    """Sends a command until it is answered: the reply, None when it gave up, and how many tries it
    took.
    """
    pause = PAUSE_S
    tries = 1
    while True:
        try:
            return server.execute_command(*words), tries
        except redis.RedisError as error:
            if (error.status_code or str(error).split(" ")[0]) in MISTAKES:
                raise
            log.warning("%s: %s", words[0], error)
        # The address may lead to another server by now: leave the one that is no primary any more.
        server.connection_pool.disconnect(inuse_connections=False)
        if give_up():
            return None, tries
        time.sleep(random.uniform(pause / 2, pause))  # not all workers at once
        pause = min(2 * pause, LONGEST_PAUSE_S)
        tries += 1


@contextmanager
def heartbeat(jobs: list[Job]) -> Iterator[None]:
    """Renews the leases of a batch, also of the jobs not yet begun, on a connection of its own."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(HEARTBEAT_S):
            try:
                for job in jobs:
                    if job.is_mine and not server.execute_command(
                        "DQ.TOUCH", QUEUE, job.id, job.lease
                    ):
                        job.is_mine = False
            except redis.RedisError as error:  # the next beat may get through, on a new connection
                log.warning("heartbeat: %s", error)
                server.connection_pool.disconnect(inuse_connections=False)

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        yield
    finally:
        over.set()
        beating.join()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main()
