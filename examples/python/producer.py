"""Queues some mail. Safe to run again: what is queued already stays as it is."""

import os

import redis

QUEUE = "mail"
REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")


def main() -> None:
    server = redis.Redis.from_url(REDIS_URL, decode_responses=True)

    def add(job_id: str, body: str, *options: str | int) -> None:
        # NX: an id names a job once, so adding it again, say after a timeout, doesn't mail twice.
        added = server.execute_command("DQ.ADD", QUEUE, job_id, body, *options, "NX")
        print("added:" if added else "queued already:", job_id)

    # In half a second. A worker that says nothing for ten seconds is taken for dead.
    add("welcome:ann", "ann@example.com", "DELAY", 500, "TTR", 10_000)
    add("welcome:ann", "ann@example.com", "DELAY", 500, "TTR", 10_000)
    # Now.
    add("newsletter:7", "ann@example.com bob@example.com eve@example.com", "TTR", 10_000)
    # This server won't answer: tried three times, 200 and then 400 ms apart, then dead.
    add("welcome:dan", "dan@down.example", "ATTEMPTS", 3, "BACKOFF", 200, 60_000)
    # Not a mail address: its worker buries it.
    add("welcome:nobody", "nobody")
    # Bob pays at once, so he needs no reminder.
    add("reminder:bob", "bob@example.com", "DELAY", 86_400_000)
    if server.execute_command("DQ.DEL", QUEUE, "reminder:bob"):
        print("cancelled: reminder:bob")


if __name__ == "__main__":
    main()
