"""Promises of docs/guarantees.md that no other test shows; and the tests that the page names
exist.
"""

import re
from collections.abc import Callable

from harness.paths import ROOT
from harness.server import Server, eventually
from harness.transcript import Session

JOBS = 200


def test_the_tests_that_the_page_names_exist() -> None:
    named = re.findall(r"`(test_\w+)`", (ROOT / "docs" / "guarantees.md").read_text())
    folders = [ROOT / "tests" / "blackbox", ROOT / "clients" / "contract" / "tests"]
    paths = [path for folder in folders for path in folder.glob("**/*.py")]
    sources = "".join(path.read_text() for path in paths)
    assert len(named) > 40
    assert [name for name in named if f"def {name}(" not in sources] == []


def test_what_a_replica_has_confirmed_survives_the_loss_of_the_primary(
    fresh_server: Callable[..., Server],
) -> None:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    session = primary.session()
    for n in range(JOBS):
        assert session.call("DQ.ADD", "q", f"job:{n}", "x") == f"job:{n}".encode()
        (delivery,) = session.call("DQ.POP", "q") if n % 2 else [None]
        if n % 4 == 1:
            assert session.call("DQ.FINISH", "q", *delivery[:1], delivery[2]) == 1
    leases = {job_id: lease for job_id, lease in reserved(session).items() if lease}
    assert session.call("WAIT", 1, 10_000) == 1
    digest = session.call("DEBUG", "DIGEST-VALUE", "q")

    primary.kill9()
    replica.client().replicaof("no", "one")
    promoted = replica.session()
    assert promoted.call("DEBUG", "DIGEST-VALUE", "q") == digest
    assert promoted.call("DQ.LEN", "q") == JOBS - JOBS // 4
    for job_id, lease in leases.items():
        assert promoted.call("DQ.FINISH", "q", job_id, lease) == 1


def reserved(session: Session) -> dict[bytes, int]:
    """The leases by id."""
    shown = [
        dict(zip(job[::2], job[1::2], strict=True))
        for job in session.call("DQ.PEEK", "q", "STATE", "reserved", "COUNT", JOBS)
    ]
    return {job[b"id"]: job[b"lease"] for job in shown}


def test_without_enough_replicas_nothing_is_added_handed_out_or_finished(
    fresh_server: Callable[..., Server],
) -> None:
    session = fresh_server().session()
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > DQ.ADD q b x DELAY 300
        "b"
        > CONFIG SET min-replicas-to-write 1
        OK
        > DQ.ADD q c x
        (error) NOREPLICAS Not enough good replicas to write.
        > DQ.POP q
        (error) NOREPLICAS Not enough good replicas to write.
        > DQ.FINISH q a <lease>
        (error) NOREPLICAS Not enough good replicas to write.
    """)
    # Nobody has lost anything when there are enough again.
    session.eventually("> DQ.LEN q STATE ready\n(integer) 1")
    session.check("""
        > CONFIG SET min-replicas-to-write 0
        OK
        > DQ.FINISH q a <lease>
        (integer) 1
        > DQ.POP q
        [["b", "x", <*>, 1]]
    """)


def test_only_a_policy_for_all_keys_evicts_a_queue(fresh_server: Callable[..., Server]) -> None:
    server = fresh_server()
    session = server.session()
    session.check("""
        > DQ.ADD q a x
        "a"
        > SET expiring x EX 100000
        OK
        > CONFIG SET maxmemory-policy volatile-lru maxmemory 1
        OK
    """)
    session.eventually("> EXISTS expiring\n(integer) 0")
    session.check("""
        > DQ.LEN q
        (integer) 1
        > CONFIG SET maxmemory-policy allkeys-lru
        OK
    """)
    with server.client() as client:
        eventually(lambda: client.dbsize() == 0)
