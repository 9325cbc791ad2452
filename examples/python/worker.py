"""Mails what is due: in batches, keeping its leases while it works, until it is told to stop."""

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import redis

QUEUE = "mail"
REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
BATCH = 10
BLOCK_MS = 1_000  # how late a signal may be noticed; less than the client's socket timeout
HEARTBEAT_S = 0.5  # well below the TTR of any job in the queue
REASON_CHARS = 128  # a reason has 512 bytes, a character up to four

log = logging.getLogger("worker")
server = redis.Redis.from_url(REDIS_URL, decode_responses=True)
stopping = threading.Event()


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
    """The work; here it is pretended."""
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
        signal.signal(number, lambda *_: stopping.set())
    while not stopping.is_set():
        # Not broken off by a signal: its reply may be under way, with jobs.
        popped = server.execute_command("DQ.POP", QUEUE, "COUNT", BATCH, "BLOCK", BLOCK_MS)
        jobs = [Job(*delivery) for delivery in popped or []]
        with heartbeat(jobs):
            for job in jobs:
                if stopping.is_set():
                    settle(job, "given back", "DQ.RELEASE", "UNBEGUN")
                else:
                    work(job)
    log.info("stopped")


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
    """Tells the queue what came of a job, by the lease: 0 says that it isn't ours any more."""
    job.is_mine = False
    accepted = server.execute_command(command, QUEUE, job.id, job.lease, *options)
    report(job, outcome if accepted else "lost")


def report(job: Job, outcome: str) -> None:
    log.info("%s: %s, attempt %d", job.id, outcome, job.attempt)


@contextmanager
def heartbeat(jobs: list[Job]) -> Iterator[None]:
    """Keeps the leases of a batch, also of the jobs not yet begun, on a connection of its own."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(HEARTBEAT_S):
            for job in jobs:
                try:
                    if job.is_mine and not server.execute_command("DQ.TOUCH", QUEUE, job.id, job.lease):
                        job.is_mine = False
                except redis.RedisError as error:  # the next beat may get through
                    log.warning("heartbeat: %s", error)

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
