"""Python's values as words of a command, and the words of a reply as Python's values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

Word = str | bytes | int

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_DURATIONS = {
    *("block", "delay", "every", "for_", "jitter", "keep", "late", "older", "step", "ttl", "ttr"),
    *("deadkeep", "linger", "spread"),
}
_TIMES = {"at", "until"}
_FLAGS = {"ensure", "hold", "noack", "nosink", "nx", "replace", "scheduled", "unbegun", "withdue"}


@dataclass(frozen=True)
class Backoff:
    """How long a job waits after a failed attempt: `base`, doubled each time, up to `max`."""

    base: timedelta
    max: timedelta


@dataclass(frozen=True)
class Rate:
    """At most `n` jobs in `per`, up to `burst` of them at once."""

    n: int
    per: timedelta
    burst: int | None = None


@dataclass(frozen=True)
class Cron:
    """The times of a cron expression, in a time zone: UTC without one."""

    expression: str
    tz: str | None = None


@dataclass(frozen=True)
class Sink:
    """A stream to which jobs are added when they are due, trimmed to about `maxlen` entries."""

    stream: str
    maxlen: int | None = None


_KINDS: dict[str, tuple[type, ...]] = {
    "backoff": (Backoff,),
    "rate": (Rate,),
    "grouprate": (Rate,),
    "cron": (Cron, str),
    "sink": (Sink, str),
}

# ---- to the server -------------------------------------------------------------------------------


def ms(duration: timedelta) -> int:
    """In whole milliseconds, rounded up: a job is never early. A number is refused with TypeError:
    it may be meant in seconds.
    """
    if not isinstance(duration, timedelta):
        raise TypeError(
            f"a duration is a timedelta, such as timedelta(seconds=30), and not {duration!r}"
        )
    whole, rest = divmod(duration, _MILLISECOND)
    return whole + bool(rest)


def unix_ms(time: datetime) -> int:
    """In milliseconds since 1970. TypeError for what is no datetime, ValueError without a zone."""
    if not isinstance(time, datetime):
        raise TypeError(f"a time is a datetime with a time zone, and not {time!r}")
    if time.tzinfo is None:
        raise ValueError("a time needs a time zone: datetime.now(timezone.utc)")
    return ms(time - _EPOCH)


def unix_ms_or_none(time: datetime | None) -> int | None:
    return None if time is None else unix_ms(time)


def options(**given: Any) -> list[Word]:
    """`delay=timedelta(seconds=1), nx=True` as `DELAY 1000 NX`. What is None or False is left out.

    A trailing underscore is no part of a name: `from_` is FROM.
    """
    found: list[Word] = []
    for name, value in given.items():
        if value is None or value is False:
            continue
        found.append(name.rstrip("_").upper())
        if name not in _FLAGS:
            found += _words_of_option(name, value)
        elif value is not True:
            raise TypeError(f"{name} is True or False, and not {value!r}")
    return found


def _words_of_option(name: str, value: Any) -> list[Word]:
    if name in _DURATIONS:
        return [ms(value)]
    if name in _TIMES:
        return [unix_ms(value)]
    if name == "delays":
        return _each(ms, list_of("timedeltas", name, value), name)
    if name == "ats":
        return _each(unix_ms, list_of("datetimes", name, value), name)
    if value is True:
        raise TypeError(f"{name} needs a value, and not True")
    if name in _KINDS and not isinstance(value, _KINDS[name]):
        kinds = " or a ".join(kind.__name__ for kind in _KINDS[name])
        raise TypeError(f"{name} is a {kinds}, and not {value!r}")
    return words_of(value)


def _each(word_of: Callable[[Any], int], values: list[Any], name: str) -> list[Word]:
    try:
        return [word_of(each) for each in values]
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def list_of(what: str, name: str, value: Any) -> list[Any]:
    """Several of them. TypeError for a single one: the letters of a text, or the names of a
    mapping, would be taken for them.
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is a list of {what}, and not {value!r}")
    return list(value)


def words_of(value: Any) -> list[Word]:
    match value:
        case timedelta():
            return [ms(value)]
        case datetime():
            return [unix_ms(value)]
        case Backoff():
            return [ms(value.base), ms(value.max)]
        case Rate():
            return [value.n, ms(value.per), *options(burst=value.burst)]
        case Cron():
            return [value.expression, *options(tz=value.tz)]
        case Sink():
            return [sent(value.stream), *options(maxlen=value.maxlen)]
        case str():
            return [sent(value)]
        case int():
            return [int(value)]
        case bytes():
            return [value]
        case list() | tuple():
            return [len(value), *map(sent, value)]
    raise TypeError(f"{value!r} can't be sent")


def sent(text: str | bytes) -> bytes:
    """Ids and names are bytes; in Python they are text, in which any bytes survive."""
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"an id or a name is text or bytes, and not {text!r}")
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


# ---- from the server -----------------------------------------------------------------------------


def text(word: Any) -> str:
    return word.decode("utf-8", "surrogateescape") if isinstance(word, bytes) else str(word)


def text_or_none(word: Any) -> str | None:
    return None if word is None else text(word)


def blob(word: Any) -> bytes:
    """A client that decodes replies gives text."""
    return sent(word) if isinstance(word, str) else bytes(word)


def duration(number: int) -> timedelta:
    return timedelta(milliseconds=number)


def moment(number: int) -> datetime:
    """The last times that the server knows are after Python's last year: they are its last time."""
    try:
        return _EPOCH + number * _MILLISECOND
    except OverflowError:
        return datetime.max.replace(tzinfo=timezone.utc)


def fields(reply: Any) -> dict[str, Any]:
    """A map: as RESP3 has it, or as RESP2's names and values in turn."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    return {text(name): value for name, value in pairs}


def listed(value: str | bytes | Sequence[str | bytes]) -> list[bytes]:
    """One id or several."""
    return [sent(value)] if isinstance(value, (str, bytes)) else [sent(each) for each in value]


# ---- errors --------------------------------------------------------------------------------------


def text_of(reason: Any) -> str:
    """Of an exception its type and what it says; of anything else what it prints as. Never raises:
    programs write exceptions whose `__str__` fails.
    """
    if isinstance(reason, str):
        return str.__str__(reason)
    name = type(reason).__name__
    try:
        said = str(reason)
    except BaseException:
        return f"{name}, and its text can't be had"
    if not isinstance(reason, BaseException):
        return said
    return f"{name}: {said}" if said else name
