"""A planned failover, as a worker meets it.

old, new, address = failing_over     # a fixture: import it in conftest.py
fail_over(old)                       # the old primary stays, as a replica
address.lead_to(new.port)
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.address import Address
from harness.server import KINDS, Server, eventually


@pytest.fixture
def failing_over(tmp_path: Path) -> Iterator[tuple[Server, Server, Address]]:
    """A primary, its replica, and the address of whichever is the primary."""
    servers = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        servers.append(Server(KINDS[0], tmp_path / name, "appendonly yes", "appendfsync always"))
    address = Address(servers[0].port)
    servers[1].replicate(servers[0])
    yield servers[0], servers[1], address
    address.close()
    for server in servers:
        server.stop()


def fail_over(old: Server) -> None:
    with old.client() as r:
        r.execute_command("FAILOVER")
        eventually(lambda: r.info("replication")["role"] == "slave", 20)
