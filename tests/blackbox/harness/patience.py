"""For tests that prepare something for a time in the future. How far in the future depends on the
machine.
"""

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
LONGEST_MS = 10_000


class TooSlow(AssertionError):
    """The time came before all was prepared, so the test proves nothing."""


def patiently(play: Callable[[int], Result], ahead_ms: int = 500) -> Result:
    """Plays with this much time ahead. While the play was too slow, plays again with twice as
    much.
    """
    while ahead_ms <= LONGEST_MS:
        try:
            return play(ahead_ms)
        except TooSlow:
            ahead_ms *= 2
    raise TooSlow
