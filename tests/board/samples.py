"""Queues to look at."""

import json
from typing import Any

import redis

HOUR = 3_600_000
# What a read-only board needs.
RIGHTS = (
    "~* +hello +scan +info +dq.info +dq.get +dq.peek +dq.scan +dq.forecast +dq.groups +dq.deps"
    " +dq.next"
)


def pipe(r: redis.Redis, *commands: tuple[Any, ...]) -> list[Any]:
    """Many commands in one go."""
    pipeline = r.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command)
    return pipeline.execute()


def kill_some(r: redis.Redis, queue: str, count: int, reason: str) -> None:
    for job_id, _, lease, _ in r.execute_command("DQ.POP", queue, "COUNT", count):
        r.execute_command("DQ.BURY", queue, job_id, lease, "REASON", reason)


def every_state(r: redis.Redis, queue: str = "mail") -> None:
    """A queue with a job in each state: they are called as their states."""
    add = ("DQ.ADD", queue)
    pipe(r, (*add, "dead", "to nobody", "PRIORITY", 0))
    kill_some(r, queue, 1, "no such mailbox")
    pipe(r, (*add, "done", "to Ann", "KEEP", HOUR))
    r.execute_command("DQ.FINISH", queue, "done", r.execute_command("DQ.POP", queue)[0][2])
    pipe(r, (*add, "reserved", "to Bob", "TTR", HOUR, "BACKOFF", 1000, 60000), ("DQ.POP", queue))
    body = json.dumps({"to": "Cid", "lines": [1, 2.50, True], "note": "Grüße"}, ensure_ascii=False)
    pipe(r, (*add, "held", "to Eve", "HOLD"))
    pipe(r, (*add, "delayed", body, "DELAY", HOUR, "TTL", 2 * HOUR), (*add, "ready", "to Dan"))


def flow(r: redis.Redis, queue: str = "flow") -> None:
    """A job that waits for three: one is dead, one is done, one has a worker that tells how far it
    is.
    """
    add = ("DQ.ADD", queue)
    pipe(r, (*add, "pay", "charge the card"))
    kill_some(r, queue, 1, "card declined")
    pipe(r, (*add, "pack", "pack the parcel", "KEEP", HOUR), ("DQ.POP", queue))
    r.execute_command("DQ.DONE", queue, "pack", "*", "RESULT", '{"kg": 2}')
    pipe(r, (*add, "stamp", "print", "TTR", HOUR), ("DQ.POP", queue))
    r.execute_command("DQ.TOUCH", queue, "stamp", "*", "NOTE", "page 1 of 2")
    pipe(r, (*add, "ship", "send the parcel", "AFTER", 3, "pay", "pack", "stamp", "HOLD"))


def dead(r: redis.Redis, queue: str | bytes = "mail") -> list[dict[bytes, Any]]:
    """All dead jobs, oldest first."""
    jobs: list[dict[bytes, Any]] = []
    after: tuple[object, ...] = ()
    while True:
        page = r.execute_command("DQ.PEEK", queue, "STATE", "dead", "COUNT", 1_000, *after)
        if not page:
            return jobs
        jobs += [dict(zip(job[::2], job[1::2], strict=True)) for job in page]
        after = ("AFTER", jobs[-1][b"id"], "FROM", jobs[-1][b"since"])


# Six ways to die, each with what differs from job to job, and how many of a hundred die of it.
CAUSES = {
    "connect to #: timed out after # ms": (
        40,
        lambda n: f"connect to 10.0.{n % 9}.17:5432: timed out after {n} ms",
    ),
    "HTTP 502 Bad Gateway": (30, lambda n: "HTTP 502 Bad Gateway"),
    'no template "#" for order #': (15, lambda n: f'no template "t {n}" for order {n}'),
    "HTTP 429 Too Many Requests, retry after # s": (
        10,
        lambda n: f"HTTP 429 Too Many Requests, retry after {n % 60} s",
    ),
    "card cus_# declined": (4, lambda n: f"card cus_4f{n:06}Kq9 declined"),
    "no attempts left": (1, lambda n: ""),
}


def incident(r: redis.Redis, queue: str, jobs: int, dead: int) -> dict[str, int]:
    """A queue of so many jobs of which so many are dead: for each cause, how many died of it."""
    for start in range(0, jobs, 20_000):
        many = range(start, min(start + 20_000, jobs))
        pipe(
            r,
            *[
                ("DQ.ADD", queue, f"job-{n:07}", f'{{"to": "user-{n}"}}', "ATTEMPTS", 1)
                for n in many
            ],
        )
    causes = [(why, reason) for why, (share, reason) in CAUSES.items() for _ in range(share)]
    died = dict.fromkeys(CAUSES, 0)
    for start in range(0, dead, 1_000):
        popped = r.execute_command("DQ.POP", queue, "COUNT", min(1_000, dead - start))
        ends = []
        for at, (job_id, _, lease, _) in enumerate(popped, start):
            why, reason = causes[at * 37 % 100]
            died[why] += 1
            text = ("REASON", reason(at)) if reason(at) else ()
            ends.append(("DQ.RELEASE", queue, job_id, lease, *text))
        pipe(r, *ends)
    return died
