"""Queues some mail, now and for later, and waits for what came of one of them."""

import os
from datetime import timedelta

import redis

from dq_client import Queue

server = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))
mail = Queue(server, "mail")


def main() -> None:
    added = mail.add("welcome:ann", {"to": "ann@example.com"}, nx=True, keep=timedelta(hours=1))
    print("queued" if added else "queued already:", added.id)
    mail.add("welcome:dan", {"to": "dan@down.example"}, nx=True)
    mail.add("welcome:nobody", {"to": "nobody"}, nx=True)
    mail.add("reminder:bob", {"to": "bob@example.com"}, delay=timedelta(minutes=30), nx=True)
    # Bob has paid.
    print("cancelled:", mail.delete("reminder:bob"))

    outcome = mail.result("welcome:ann", timedelta(seconds=20))
    print("welcome:ann:", outcome.value if outcome and outcome.is_done else outcome)


if __name__ == "__main__":
    main()
