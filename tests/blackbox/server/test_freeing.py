"""Large jobs are freed on another thread, whichever command removes them.

To free a body of 1 MiB takes a tenth of a millisecond, and a command may remove hundreds.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from harness.queues import binary_client
from harness.server import Server, eventually

JOBS = 20
BODY = b"x" * (1 << 20)
HOUR_MS = 3_600_000


def turns_of_lazyfree(server: Server) -> int:
    """How often the kernel has given it a processor; 0 while there is none."""
    for task in Path(f"/proc/{server.pid}/task").iterdir():
        if (task / "comm").read_text().strip() == "dq-lazyfree":
            return int((task / "schedstat").read_text().split()[2])
    return 0


def fill(r: redis.Redis, *options: str | int, jobs: int = JOBS) -> list[bytes]:
    pipeline = r.pipeline(transaction=False)
    for n in range(jobs):
        pipeline.execute_command("DQ.ADD", "q", n, BODY, *options)
    return pipeline.execute()


def take(r: redis.Redis, *options: str) -> list[list[bytes | int]]:
    return r.execute_command("DQ.POP", "q", "COUNT", 10, *options)


def finish(r: redis.Redis) -> None:
    r.execute_command(
        "DQ.FINISH", "q", *(word for id, _, lease, _ in take(r) for word in (id, lease))
    )


def finish_kept(r: redis.Redis) -> None:
    fill(r, "KEEP", 1, "REPLACE", jobs=1)
    r.execute_command("DQ.POP", "q", "NOACK", "COUNT", JOBS)
    eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "done") == 0)


def bury(r: redis.Redis) -> None:
    r.execute_command("DQ.ALTER", "q", "DEADKEEP", 1)
    ((id, _, lease, _),) = r.execute_command("DQ.POP", "q")
    r.execute_command("DQ.BURY", "q", id, lease)
    eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "dead") == 0)


def restore_over(r: redis.Redis) -> None:
    r.execute_command("DQ.ADD", "small", "a", "x")
    r.execute_command("RESTORE", "q", 0, r.execute_command("DUMP", "small"), "REPLACE")


REMOVALS: dict[str, Callable[[redis.Redis], object]] = {
    "DQ.DEL": lambda r: r.execute_command("DQ.DEL", "q", *range(JOBS)),
    "DQ.FINISH": finish,
    "DQ.PURGE": lambda r: r.execute_command("DQ.PURGE", "q", "STATE", "ready"),
    "DQ.ADD REPLACE": lambda r: r.execute_command("DQ.ADD", "q", 1, "x", "REPLACE"),
    "the end of KEEP": finish_kept,
    "the end of DEADKEEP": bury,
    "DEL": lambda r: r.delete("q"),
    "UNLINK": lambda r: r.unlink("q"),
    "SET": lambda r: r.set("q", "x"),
    "RENAME": lambda r: r.set("other", "x") and r.rename("other", "q"),
    "RESTORE REPLACE": restore_over,
    "EXPIRE": lambda r: r.pexpire("q", 1) and eventually(lambda: not r.exists("q")),
    "FLUSHDB SYNC": lambda r: r.execute_command("FLUSHDB", "SYNC"),
    "FLUSHALL ASYNC": lambda r: r.execute_command("FLUSHALL", "ASYNC"),
}


@pytest.mark.parametrize("removal", REMOVALS)
def test_large_jobs_are_freed_on_another_thread(server: Server, removal: str) -> None:
    with binary_client(server) as r:
        fill(r)
        before = turns_of_lazyfree(server)
        REMOVALS[removal](r)
        eventually(lambda: turns_of_lazyfree(server) > before)


def test_small_jobs_are_freed_at_once(fresh_server: Callable[..., Server]) -> None:
    """To wake a thread for each would take longer than to free it: there is none until it is
    needed.
    """
    server = fresh_server()
    with binary_client(server) as r:
        for n in range(50):
            r.execute_command("DQ.ADD", "q", n, "x" * 500)
        r.execute_command("DQ.DEL", "q", *range(10))
        r.execute_command(
            "DQ.FINISH", "q", *(word for id, _, lease, _ in take(r) for word in (id, lease))
        )
        r.execute_command("DQ.PURGE", "q", "STATE", "ready", "COUNT", 10)
        r.delete("q")
        assert turns_of_lazyfree(server) == 0


def test_a_replica_frees_large_jobs_on_another_thread_too(
    fresh_server: Callable[..., Server],
) -> None:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    with binary_client(primary) as r:
        fill(r)
        replica.catch_up(primary)
        assert turns_of_lazyfree(replica) == 0
        r.execute_command("DQ.DEL", "q", *range(JOBS))
        eventually(lambda: turns_of_lazyfree(replica) > 0)


def test_jobs_that_are_freed_give_their_memory_back(fresh_server: Callable[..., Server]) -> None:
    """The server gets the memory back, whichever thread freed it."""
    server = fresh_server()
    with binary_client(server) as r:
        fill(r, jobs=1)
        r.execute_command("DQ.DEL", "q", 0)
        used = r.info("memory")["used_memory"]
        for _ in range(3):
            fill(r, "DELAY", HOUR_MS)
            assert r.info("memory")["used_memory"] > used + JOBS * len(BODY) // 2
            r.execute_command("DQ.DEL", "q", *range(JOBS))
            eventually(lambda: r.info("memory")["used_memory"] < used + 2 * len(BODY))
