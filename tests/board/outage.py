"""An outage: a million jobs in four queues, of which 10,000 are dead for six reasons."""

import socket
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import redis

from harness.server import KNOWN, Server
from samples import HOUR, pipe

QUEUE = "orders"
DEAD = 10_000
# How many jobs wait for their time in each queue: with the dead ones, a million.
WAITING = {QUEUE: 590_000, "mail": 250_000, "reports": 90_000, "thumbnails": 60_000}

RETRYABLE = "ConnectionError: connect to # timed out after # ms"
HOPELESS = 'KeyError: no template "#" for order #'
TRACE = "\n  at charge (/app/pay.js:88:17)\n  at work (/app/worker.js:12:5)"
# Each reason as the board folds it, its share of a hundred, and what a worker told.
REASONS = {
    f"{RETRYABLE} at charge (/app/pay.js:#) at work (/app/worker.js:#)": (
        40,
        lambda n: f"ConnectionError: connect to 10.0.{n % 9}.17:5432 timed out after {n} ms{TRACE}",
    ),
    "HTTP 502 Bad Gateway": (30, lambda n: "HTTP 502 Bad Gateway"),
    HOPELESS: (15, lambda n: f'KeyError: no template "paid {n}" for order {n}'),
    "HTTP 429 Too Many Requests, retry after # s": (
        10,
        lambda n: f"HTTP 429 Too Many Requests, retry after {n % 60} s",
    ),
    "card cus_# declined": (4, lambda n: f"card cus_4f{n:06}Kq9 declined"),
    "no attempts left": (1, lambda n: ""),
}
DIED = {pattern: share * DEAD // 100 for pattern, (share, _) in REASONS.items()}


def dump(directory: Path) -> bytes:
    """What a server with the outage saves: it is made once, and each server that loads it has it."""
    server = Server(KNOWN["redis-7.0"], directory)
    try:
        with server.client(decode_responses=False) as r:
            die(r)
            send(server, jobs())
            r.execute_command("SAVE")
        return (directory / "dump.rdb").read_bytes()
    finally:
        server.kill9()


def die(r: redis.Redis) -> None:
    """Each has two attempts, which end in the same way."""
    add = ("ATTEMPTS", 2, "BACKOFF", 0, 0)
    causes = [reason for share, reason in REASONS.values() for _ in range(share)]
    for start in range(0, DEAD, 1_000):
        numbers = range(start, start + 1_000)
        adds = [
            ("DQ.ADD", QUEUE, f"order-{n:05}", f'{{"order": {n}, "total": 42.5}}', *add)
            for n in numbers
        ]
        pipe(r, *adds)
        for _ in range(2):
            popped = r.execute_command("DQ.POP", QUEUE, "COUNT", len(numbers))
            ends = []
            for job_id, _, lease, _ in popped:
                n = int(job_id.removeprefix(b"order-"))
                reason = causes[n * 37 % 100](n)
                ends.append(
                    ("DQ.RELEASE", QUEUE, job_id, lease, *(("REASON", reason) if reason else ()))
                )
            pipe(r, *ends)


def jobs() -> Iterator[bytes]:
    for queue, many in WAITING.items():
        for n in range(many):
            yield command("DQ.ADD", queue, f"job-{n:06}", f"to user {n}", "DELAY", HOUR + n * 100)


def command(*words: object) -> bytes:
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n%s" % (
        len(parts),
        b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts),
    )


def send(server: Server, commands: Iterable[bytes]) -> None:
    """Very many commands, on one connection, whose replies are read meanwhile: none is an error."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        sender = threading.Thread(target=_send, args=(connection, commands))
        sender.start()
        while reply := connection.recv(1 << 20):
            assert b"-" not in reply.replace(b"job-", b""), reply[:200]
        sender.join()


def _send(connection: socket.socket, commands: Iterable[bytes]) -> None:
    left = iter(commands)
    while many := b"".join(islice(left, 10_000)):
        connection.sendall(many)
    connection.shutdown(socket.SHUT_WR)
