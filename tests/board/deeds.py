"""Acts of a reader, for tests: what the server has, and a form as a program would send it."""

import time

import redis

from board import Board
from harness.server import eventually


def state(r: redis.Redis, queue: str, job_id: str | bytes) -> str | None:
    job = r.execute_command("DQ.GET", queue, job_id)
    return job and job[job.index(b"state") + 1].decode()


def everything(r: redis.Redis) -> list[str | None]:
    """The jobs of samples.every_state."""
    return [state(r, "mail", job_id) for job_id in ("ready", "delayed", "reserved", "dead", "done")]


def form(board: Board, verb: str, token: str | None = None, **more: str) -> dict[str, str]:
    token = token if token is not None else board.get("/queue", name="mail").token()
    return {"token": token, "verb": verb, "queue": "mail"} | more


def passes_a_millisecond() -> None:
    now = time.time()
    eventually(lambda: time.time() > now + 0.002)
