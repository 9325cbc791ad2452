"""The meaning of the words of a command."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

# How many words follow each option.
_ADD = {
    "DELAY": 1,
    "AT": 1,
    "TTR": 1,
    "PRIORITY": 1,
    "ATTEMPTS": 1,
    "BACKOFF": 2,
    "TTL": 1,
    "KEEP": 1,
    "LATE": 1,
    "GROUP": 1,
    "NX": 0,
    "REPLACE": 0,
}
# The runner writes ID before each id of a POP by ids.
_POP = {"COUNT": 1, "BLOCK": 1, "TTR": 1, "NOACK": 0, "ID": 1}
_ALTER = {
    "TTR": 1,
    "ATTEMPTS": 1,
    "BACKOFF": 2,
    "KEEP": 1,
    "LATE": 1,
    "MAXJOBS": 1,
    "DEADKEEP": 1,
    "CONCURRENCY": 1,
    "GROUPCONCURRENCY": 1,
    "RATE": 2,
    "GROUPRATE": 2,
    "BURST": 1,
}
_RELEASE = {"DELAY": 1, "UNBEGUN": 0, "PRIORITY": 1, "REASON": 1}
_OTHERS = {
    "STATE": 1,
    "COUNT": 1,
    "OLDER": 1,
    "FOR": 1,
    "TTR": 1,
    "REASON": 1,
    "GROUP": 1,
    "AFTER": 1,
    "FROM": 1,
}

_FORECAST = {"FROM": 1, "STEP": 1, "COUNT": 1}

Options = dict[str, Any]


def options(words: Sequence[Any], begin: int, known: dict[str, int]) -> Options:
    """Options by name in capitals: True, a value, or a tuple of values; numbers as numbers."""
    found: Options = {}
    at = begin
    while at < len(words):
        name = str(words[at]).upper()
        count = known[name]
        values = tuple(_number(word) for word in words[at + 1 : at + 1 + count])
        found[name] = True if count == 0 else values[0] if count == 1 else values
        at += 1 + count
    return found


def _number(word: Any) -> Any:
    try:
        return int(word)
    except (TypeError, ValueError):
        return word


def add(words: Sequence[Any]) -> Options:
    return options(words, 4, _ADD)


def pop(words: Sequence[Any]) -> tuple[list[str], Options]:
    """The keys of a POP or MPOP, and its options."""
    if str(words[0]).upper() == "DQ.POP":
        return [str(words[1])], options(words, 2, _POP)
    count = int(words[1])
    return [str(word) for word in words[2 : 2 + count]], options(words, 2 + count, _POP)


def popped_by_id(words: Sequence[Any]) -> list[str]:
    """The jobs that a POP names; none if it takes the first ones."""
    if str(words[0]).upper() != "DQ.POP":
        return []
    return [str(id) for name, id in pairwise(words[2:]) if str(name).upper() == "ID"]


def alter(words: Sequence[Any]) -> Options:
    return options(words, 2, _ALTER)


def release(words: Sequence[Any]) -> Options:
    return options(words, 4, _RELEASE)


def others(words: Sequence[Any], begin: int) -> Options:
    return options(words, begin, _OTHERS)


def forecast(words: Sequence[Any]) -> tuple[int | None, int, int]:
    """The first moment, how long a step is, and how many steps there are."""
    said = options(words, 2, _FORECAST)
    return said.get("FROM"), said["STEP"], said["COUNT"]


def claims(words: Sequence[Any]) -> list[tuple[str, int | str]]:
    """Ids and leases of a FINISH; a bare id claims any lease."""
    rest = list(words[2:])
    if len(rest) == 1:
        rest.append("*")
    return [(str(id), _number(lease)) for id, lease in zip(rest[::2], rest[1::2], strict=True)]
