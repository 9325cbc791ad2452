"""Many consumers that wait, time out, disconnect and are killed, and producers. No job is lost or
stuck, and each was handed out as often as its attempts say.

`DQ_CONSUMERS` is the number of consumers (1000); each has its own connection.
"""

import os
import resource
from collections.abc import Callable

import pytest

from harness.crowd import QUEUES, Crowd
from harness.marks import alone, long
from harness.queues import digests
from harness.server import Server, eventually

pytestmark = [alone, long]

CONSUMERS = int(os.environ.get("DQ_CONSUMERS", "1000"))
JOBS = 4 * CONSUMERS
WITHIN_S = 60 + CONSUMERS / 50


@pytest.mark.timeout(WITHIN_S + 60)
@pytest.mark.parametrize("vanish", [False, True], ids=["who stay", "who vanish"])
def test_a_thousand_racing_consumers_lose_no_job(
    fresh_server: Callable[..., Server], vanish: bool
) -> None:
    raise_limit(CONSUMERS + 1_000)
    server = fresh_server("appendonly yes", "maxclients 20000")
    replica = fresh_server("maxclients 20000")
    replica.replicate(server)
    crowd = Crowd(server.port, CONSUMERS, JOBS, vanish)
    crowd.run(WITHIN_S)
    crowd.check()
    with server.client() as r, replica.client() as there:
        eventually(lambda: r.info("dq")["dq_waiting_consumers"] == 0)
        eventually(lambda: r.info("clients")["blocked_clients"] == 0)
        replica.catch_up(server)
        before = digests(r, *QUEUES)
        assert before == digests(there, *QUEUES)
    # Everything since the last sync to disk is with the kernel: only a crash of that would lose it.
    server.kill9()
    server.start()
    with server.client() as r:
        assert digests(r, *QUEUES) == before


def raise_limit(files: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, hard), hard))
