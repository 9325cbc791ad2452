"""DUMP payloads of queues, made by hand: healthy ones, and ones that no module ever wrote.

A payload is the value, two bytes with the version of the RDB format, and the CRC64 of both.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

TYPE_NAME = "delayq-dq"
ENCODING_VERSION = 2
RDB_MODULE = 7
RDB_VERSION = 10
FOOTER_BYTES = 10
OPCODE_END, OPCODE_UNSIGNED, OPCODE_STRING = 0, 2, 5
NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def crc64_table() -> list[int]:
    """The table of the polynomial that the servers use (Jones, bits reflected)."""
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
        table.append(crc)
    return table


CRC64 = crc64_table()


def crc64(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc = CRC64[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc


def sealed(value: bytes) -> bytes:
    """Adds a valid footer, so that the server looks at the value itself."""
    versioned = value + RDB_VERSION.to_bytes(2, "little")
    return versioned + crc64(versioned).to_bytes(8, "little")


def unsealed(payload: bytes) -> bytes:
    return payload[:-FOOTER_BYTES]


def rdb_length(number: int) -> bytes:
    return number.to_bytes(1, "big") if number < 64 else b"\x81" + number.to_bytes(8, "big")


def rdb_unsigned(number: int) -> bytes:
    return bytes([OPCODE_UNSIGNED]) + rdb_length(number)


def rdb_string(data: bytes, claimed_len: int | None = None) -> bytes:
    claimed_len = len(data) if claimed_len is None else claimed_len
    return bytes([OPCODE_STRING]) + rdb_length(claimed_len) + data


def module_header(encoding_version: int) -> bytes:
    number = 0
    for character in TYPE_NAME:
        number = number << 6 | NAME_CHARACTERS.index(character)
    return bytes([RDB_MODULE, 0x81]) + (number << 10 | encoding_version).to_bytes(8, "big")


def msgpack(value: Any) -> bytes:
    """The few MessagePack forms that the records use."""
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int():
            return b"\xcf" + value.to_bytes(8, "big")
        case bytes():
            return b"\xc5" + len(value).to_bytes(2, "big") + value
        case list() | tuple():
            return bytes([0x90 | len(value)]) + b"".join(map(msgpack, value))
    raise ValueError(f"no form for {value!r}")


@dataclass(frozen=True)
class JobRecord:
    """The fields of a job in a file. By default the job is reserved."""

    time: int = 1_763_725_200_500
    created: int = 1_763_725_200_000
    ttr: int = 60_000
    attempts: int = 25
    priority: int = 128
    attempt: int = 2
    lease: int = 3_612_109_209_600_001
    stage: int = 1
    # What most jobs don't have.
    extra: "Extra | None" = None

    def encoded(self) -> bytes:
        *plain, extra = vars(self).values()
        return msgpack(plain if extra is None else [*plain, list(vars(extra).values())])


@dataclass(frozen=True)
class Extra:
    backoff: tuple[int, int] = (0, 0)
    ttl: int = 0
    dies: int | None = None
    keep: int = 0
    reason: bytes | None = None


@dataclass(frozen=True)
class QueueRecord:
    last_lease: int = 3_612_109_209_600_001
    # The time and the number of the last id that the queue made.
    serial: tuple[int, int] = (1_763_725_200_000, 0)
    totals: tuple[int, ...] = (2, 0, 4, 2, 0, 0, 0, 0, 0, 0, 0, 0)
    counted: int = 0
    paused_until: int = 0
    settings: "Settings" = field(default_factory=lambda: Settings())
    # The clock, the defaults that were told last, and the check.
    heading: tuple[Any, ...] = (0, (0, 0), 0)
    # Where the rate has got to; how many groups there are, and where they have got to.
    arrival: tuple[int, int] = (0, 0)
    groups: tuple[int, int, int] = (0, 0, 0)
    # What most queues don't have.
    sink: tuple[bytes, int] | None = None
    # How many jobs have edges.
    edges: int = 0

    def encoded(self) -> bytes:
        fields = vars(self) | {"settings": list(vars(self.settings).values())}
        fields["sink"] = (self.sink, fields.pop("edges"))
        if fields["sink"] == (None, 0):
            del fields["sink"]
        return msgpack(list(fields.values()))


@dataclass(frozen=True)
class Settings:
    ttr: int | None = None
    attempts: int | None = None
    backoff: tuple[int, int] = (0, 0)
    keep: int = 0
    late: int = 0
    max_jobs: int | None = None
    dead_keep: int = 0
    concurrency: int | None = None
    rate: tuple[int, int, int] | None = None
    group_concurrency: int | None = None
    group_rate: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class Edges:
    """What a job waits for: an id and a state (0 open, 1 open of a dead one, 2 done …) for each."""

    id: bytes
    edges: tuple[tuple[bytes, int], ...] = ()
    is_first: bool = True
    continues: bool = False
    on_dead: int = 0
    is_on_hold: bool = False
    delay: int = 0
    at: int = 0

    def fields(self) -> list[Any]:
        edges = [(*edge, None) for edge in self.edges]
        return [*(vars(self) | {"edges": edges}).values()]


def edges_of(*records: Edges) -> bytes:
    return msgpack([record.fields() for record in records])


@dataclass(frozen=True)
class Job:
    id: bytes = b"a"
    body: bytes = b"hello"
    record: bytes = field(default_factory=lambda: JobRecord().encoded())

    def encoded(self) -> bytes:
        return b"\x93" + msgpack(self.id) + msgpack(self.body) + self.record


@dataclass(frozen=True)
class Payload:
    """A queue in a DUMP; `parts` is what stands between header and end."""

    parts: tuple[bytes, ...]
    encoding_version: int = ENCODING_VERSION
    end: bytes = bytes([OPCODE_END])

    def sealed(self) -> bytes:
        return sealed(module_header(self.encoding_version) + b"".join(self.parts) + self.end)

    def with_part(self, at: int, part: bytes) -> "Payload":
        return replace(self, parts=(*self.parts[:at], part, *self.parts[at + 1 :]))


def payload_of(
    jobs: Iterable[Job] = (Job(b"a"), Job(b"b")),
    *,
    count: int | None = None,
    queue: bytes | None = None,
    edges: Iterable[Edges] = (),
    edges_count: int = 0,
) -> Payload:
    jobs, edges = list(jobs), list(edges)
    if queue is None and edges_count:
        queue = QueueRecord(edges=edges_count).encoded()
    return Payload(
        (
            rdb_unsigned(len(jobs) if count is None else count),
            rdb_string(QueueRecord().encoded() if queue is None else queue),
            *([rdb_string(b"".join(job.encoded() for job in jobs))] if jobs else []),
            *([rdb_string(edges_of(*edges))] if edges else []),
        )
    )
