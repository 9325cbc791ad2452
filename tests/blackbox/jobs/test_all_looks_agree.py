"""After a random workload, all commands that look at a queue agree."""

from typing import Any

import pytest
import redis

from harness.queues import info, job, queues_of
from harness.resp import fields
from harness.server import Server, eventually
from harness.workload import STATES, Workload

ALL = 10_000


@pytest.mark.parametrize("seed", range(21, 25))
def test_counts_scans_and_peeks_agree(server: Server, r: redis.Redis, seed: int) -> None:
    workload = Workload(r, seed, groups=())
    for _ in range(10):
        workload.run(commands=200)
        for key in queues_of(server):
            check_agreement(r, key)
            check_that_peek_foretells_pop(r, key)


def check_agreement(r: redis.Redis, key: str) -> None:
    def told_at_once() -> list[Any] | None:
        """When nothing has changed by itself between the first look and the last."""
        pipeline = r.pipeline(transaction=True)
        pipeline.execute_command("DQ.INFO", key)
        for state in STATES:
            pipeline.execute_command("DQ.LEN", key, "STATE", state)
            pipeline.execute_command("DQ.SCAN", key, 0, "STATE", state, "COUNT", ALL)
            pipeline.execute_command("DQ.PEEK", key, "STATE", state, "COUNT", ALL)
        pipeline.execute_command("DQ.INFO", key)
        told = pipeline.execute()
        first, last = fields(told[0]), fields(told[-1])
        # Jobs change their states in one direction only while nobody takes any.
        return told if all(first[count] == last[count] for count in ("jobs", *STATES)) else None

    queue, *by_state, _ = eventually(told_at_once)
    counts = fields(queue)
    ids = []
    for at, state in enumerate(STATES):
        length, (cursor, scanned), peeked = by_state[3 * at : 3 * at + 3]
        jobs = [fields(told) for told in peeked]
        assert cursor == "0"
        assert counts[state] == length == len(scanned) == len(jobs), (key, state)
        assert set(scanned) == {job["id"] for job in jobs}
        assert all(job["state"] == state for job in jobs)
        check_order(state, jobs)
        ids += scanned
    assert len(ids) == len(set(ids)) == counts["jobs"]


def check_order(state: str, jobs: list[dict[str, Any]]) -> None:
    """Jobs leave a state when they are due, or when they die before that."""
    key = {
        "delayed": lambda job: min(job["due"], job["expires"] or job["due"]),
        "ready": lambda job: (job["priority"], job["due"]),
        "reserved": lambda job: min(job["deadline"], job["expires"] or job["deadline"]),
        "dead": lambda job: job["since"],
        "done": lambda job: job["kept-until"],
    }[state]
    order = list(map(key, jobs))
    assert order == sorted(order), state


def check_that_peek_foretells_pop(r: redis.Redis, key: str) -> None:
    r.copy(key, "copy", replace=True)
    r.execute_command("DQ.RESUME", "copy")
    # Those that become ready meanwhile come as well, somewhere between.
    foretold = [fields(told)["id"] for told in r.execute_command("DQ.PEEK", "copy", "COUNT", ALL)]
    handed_out = [
        id for id, *_ in r.execute_command("DQ.POP", "copy", "COUNT", ALL, "TTR", 10**9) or []
    ]
    assert [id for id in handed_out if id in foretold] == [
        id for id in foretold if id in handed_out
    ]
    assert all(has_died(r, id) for id in foretold if id not in handed_out)
    r.delete("copy")


def has_died(r: redis.Redis, id: str) -> bool:
    """Between the two looks its life may have ended, and then it may have been purged."""
    told = job(r, "copy", id)
    return info(r, "copy")["dead-keep"] > 0 if told is None else told["state"] == "dead"
