"""Checks that a queue stays the same after a restart, as a copy, and by DUMP and RESTORE."""

from collections.abc import Callable

from harness.queues import binary_client, digests, queues_of
from harness.server import Server

# A log, a log without an RDB preamble when it is rewritten, an RDB file.
FILES = (["appendonly yes"], ["appendonly yes", "aof-use-rdb-preamble no"], ["save 3600 1"])


def check_files_hold(server: Server, config: list[str], shown: Callable[[Server], object]) -> None:
    """Restarts the server: from its log as it is and from a rewritten one, or from its RDB file, as
    it is configured.
    """
    before = (shown(server), queues_of(server))
    if "appendonly yes" in config:
        server.restart()
        assert (shown(server), queues_of(server)) == before
        server.rewrite_aof()
    server.restart()
    assert (shown(server), queues_of(server)) == before


def check_copies_hold(server: Server, key: str) -> None:
    """Copies the queue to `copied` and `restored`, and leaves both there."""
    with binary_client(server) as r:
        assert r.copy(key, "copied")
        r.restore("restored", 0, r.dump(key))
        assert len(set(digests(r, key, "copied", "restored"))) == 1
