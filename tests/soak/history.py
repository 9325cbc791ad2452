"""A session, written down as lines of JSON: what clients sent, the replies, the times, and what the nemesis did.

Times are microseconds since the session began, by this program's monotonic clock. A *mark* is `[n, server time]`: how
many marks the data set held when this one was made, and the server's own clock in microseconds. See README.md.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .resp import Failure

Record = dict[str, Any]
Mark = tuple[int, int]


@dataclass(slots=True)
class Op:
    """What a client sent in one go, and the reply."""

    id: int
    client: str
    epoch: int
    db: int
    sent: int
    # tight, loose, sealed, multi, script: README.md tells which is what.
    shape: str
    say: list[list[Any]]
    got: int | None = None
    # One reply a command; None when the reply was lost.
    told: list[Any] | None = None
    before: Mark | None = None
    after: Mark | None = None
    lost: str | None = None
    # Of an ambush: the clients that were killed in the same turn, and of a scan: which calls belong together.
    note: dict[str, Any] = field(default_factory=dict)

    def record(self) -> Record:
        names = (
            "client",
            "epoch",
            "db",
            "sent",
            "got",
            "shape",
            "say",
            "before",
            "after",
            "lost",
            "note",
        )
        record: Record = {"op": self.id}
        record.update((name, value) for name in names if (value := getattr(self, name)) is not None)
        if self.told is not None:
            record["told"] = [_plain(reply) for reply in self.told]
        if not self.note:
            del record["note"]
        return record

    @classmethod
    def of(cls, record: Record) -> "Op":
        told = record.get("told")
        return cls(
            id=record["op"],
            client=record["client"],
            epoch=record["epoch"],
            db=record["db"],
            sent=record["sent"],
            shape=record["shape"],
            say=record["say"],
            got=record.get("got"),
            told=None if told is None else [_reply(reply) for reply in told],
            before=_mark(record.get("before")),
            after=_mark(record.get("after")),
            lost=record.get("lost"),
            note=record.get("note", {}),
        )

    def __str__(self) -> str:
        return json.dumps(self.record())


def slim(op: Op) -> Op:
    """With a hash in place of each DUMP payload, since nothing reads those."""
    if op.say[0][0] == "DUMP" and op.told is not None:
        op.told = [_hash(reply) for reply in op.told]
    if op.say[0][0] == "RESTORE":
        op.say = [[*words[:3], _hash(words[3]), *words[4:]] for words in op.say]
    return op


def _hash(payload: Any) -> Any:
    if not isinstance(payload, str) or isinstance(payload, Failure):
        return payload
    return hashlib.sha256(payload.encode("latin-1")).hexdigest()[:24]


def _mark(pair: Any) -> Mark | None:
    return None if pair is None else (pair[0], pair[1])


def _plain(reply: Any) -> Any:
    if isinstance(reply, Failure):
        return {"error": str(reply)}
    if isinstance(reply, list):
        return [_plain(item) for item in reply]
    return reply


def _reply(plain: Any) -> Any:
    if isinstance(plain, dict):
        return Failure(plain["error"])
    if isinstance(plain, list):
        return [_reply(item) for item in plain]
    return plain


class Writer:
    """Appends records to a file. What was written stays, even if this program is killed."""

    def __init__(self, path: Path):
        self._file = path.open("w")
        self.ops = 0

    def op(self, op: Op) -> None:
        self.ops += 1
        self.write(op.record())

    def write(self, record: Record) -> None:
        self._file.write(json.dumps(record, separators=(",", ":")) + "\n")

    def close(self) -> None:
        self._file.close()


def read(path: Path) -> Iterator[Record]:
    with path.open() as file:
        for line in file:
            # A program that was killed leaves half a line.
            if line.endswith("\n"):
                yield json.loads(line)


def write(path: Path, records: Iterable[Record]) -> None:
    writer = Writer(path)
    for record in records:
        writer.write(record)
    writer.close()
