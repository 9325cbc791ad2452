"""The file of --history, as board/src/watch/charts/file.rs describes it: made here to have a past that
a test need not wait for.
"""

import zlib
from collections.abc import Iterable, Sequence
from itertools import groupby

# Name, slots, seconds of a slot.
SPANS = (("hour", 120, 30), ("day", 288, 300), ("week", 168, 3600))
# Added, delivered, finished, failed, dead, ready, oldest ready in ms, lateness p50 and p99 in µs.
Slot = Sequence[int | None]
NOTHING: Slot = (None,) * 9


def number(value: int) -> bytes:
    """LEB128."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def text(value: bytes) -> bytes:
    return number(len(value)) + value


def chart(now_s: float, spans: dict[str, Sequence[Slot]]) -> bytes:
    """The slots of spans up to now, oldest first."""
    encoded = number(int(now_s * 1000))
    for name, many, seconds in SPANS:
        slots = [tuple(slot) for slot in spans.get(name, ())][-many:]
        slots = [tuple(NOTHING)] * (many - len(slots)) + slots
        encoded += number(int(now_s / seconds))
        for slot, run in groupby(slots):
            encoded += number(len(list(run)))
            encoded += b"".join(number(0 if one is None else one + 1) for one in slot)
    return encoded


def file_of(title: str, every: bytes, queues: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A file with the chart of all queues and those of some, by name."""
    named = sorted(queues)
    body = b"dqcharts\x01" + number(1) + text(title.encode()) + every + number(len(named))
    body += b"".join(text(name) + one for name, one in named)
    return body + zlib.crc32(body).to_bytes(4, "little")
