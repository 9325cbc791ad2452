"""Checks that bad input changes nothing."""

from typing import Any

from harness.queues import info
from harness.server import Server
from harness.transcript import Session

TIME_MAX = 2**48 - 1
COUNT_MAX = 2**32 - 1

# A job in each state.
QUEUE = """
    > DQ.ADD q dead x
    "dead"
    > DQ.POP q
    [["dead", "x", <dead>, 1]]
    > DQ.BURY q dead <dead>
    (integer) 1
    > DQ.ADD q done x KEEP 3600000
    "done"
    > DQ.POP q NOACK
    [["done", "x", (nil), 1]]
    > DQ.ADD q delayed x DELAY 3600000
    "delayed"
    > DQ.ADD q reserved x TTR 3600000
    "reserved"
    > DQ.POP q
    [["reserved", "x", <lease>, 1]]
    > DQ.ADD q ready x
    "ready"
"""

# What is no number.
NO_NUMBERS = [
    '""',
    "-1",
    "+1",
    "x",
    "1x",
    "1.0",
    "1e3",
    "0x1",
    "01",
    "00",
    '" 1"',
    '"1 "',
    r'"1\x00"',
    r'"\xd9\xa1"',  # one, in Arabic
    r'"\xff"',
    "*",
    "NX",
    "-9223372036854775809",
    str(2**63),
    str(2**64),
    str(2**64 + 1),
    "9" * 40,
]

Refused = tuple[str, str]


class Observer:
    """All that a client can see of a server, read by a connection of its own."""

    def __init__(self, server: Server):
        self._client = server.client()
        self._before = self._state()

    def check_nothing_changed(self, after: str) -> None:
        __tracebackhide__ = True
        assert self._state() == self._before, f"changed by {after}"

    def _state(self) -> dict[str, Any]:
        call = self._client.execute_command
        persistence, counters = self._client.info("persistence"), self._client.info("dq")
        return {
            "keys": call("DBSIZE"),
            "digest": call("DEBUG", "DIGEST"),
            "queue": info(self._client, "q"),
            "aof": persistence["aof_current_size"],
            "changes": persistence["rdb_changes_since_last_save"],
            "counters": {name: n for name, n in counters.items() if "_jobs_" in name},
        }


def check_refused(server: Server, session: Session, table: list[Refused]) -> None:
    """Each command gets its error, on a queue and without a key, and changes nothing."""
    __tracebackhide__ = True
    observer = Observer(server)
    for command, error in table:
        for key in "q", "none":
            session.check(f"> {command.format(key)}\n(error) {error}")
            observer.check_nothing_changed(command.format(key))
