"""Tests that prepare something for a time that lies ahead. How far ahead depends on the machine."""

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
LONGEST_MS = 10_000


class TooSlow(AssertionError):
    """The time came before all was prepared: the test can't tell."""


def patiently(play: Callable[[int], Result], ahead_ms: int = 500) -> Result:
    """Plays with the time so far ahead; with twice that, and so on, while it was too slow."""
    while ahead_ms <= LONGEST_MS:
        try:
            return play(ahead_ms)
        except TooSlow:
            ahead_ms *= 2
    raise TooSlow
