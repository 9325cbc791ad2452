"""Slots of a cluster."""

from __future__ import annotations

from binascii import crc_hqx

SLOTS = 16_384


def slot_of(key: str) -> int:
    """By what stands in the first braces, if anything does, or by the whole key."""
    data = key.encode("utf-8", "surrogateescape")
    _, opened, rest = data.partition(b"{")
    tag, closed, _ = rest.partition(b"}")
    return crc_hqx(tag if opened and closed and tag else data, 0) % SLOTS
