"""What the server refuses, as types. Errors of the connection stay those of the client library."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dq_client.words import text


class DQError(Exception):
    """The server refused a command, and nothing has changed."""

    #: The queue's key, and the id of the job that was to be added, where they are known.
    queue: str | None = None
    id: str | None = None

    def __init__(self, message: str, code: str = "ERR"):
        super().__init__(message)
        #: The first word of the server's error, such as EXISTS.
        self.code = code
        #: The rest of it.
        self.message = message

    def __str__(self) -> str:
        about = [] if self.queue is None else [f"queue {self.queue!r}"]
        about += [] if self.id is None else [f"id {self.id!r}"]
        return f"{self.message} ({', '.join(about)})" if about else self.message


class Exists(DQError):
    """The id is taken in this queue."""


class Full(DQError):
    """The queue holds as many jobs as its MAXJOBS allows."""


class NoJob(DQError):
    """A job that another one is to wait for isn't in the queue."""


class NotHeld(DQError):
    """A job that is to wait for another one isn't held any more."""


class WrongType(DQError):
    """The key holds something else than a queue."""


class Invalid(DQError):
    """The command isn't well formed: a value out of its range, options that exclude each other."""


class NoModule(DQError):
    """The server has no module DQ, or an older one without this command."""


class LeaseLost(Exception):
    """The job was deleted, replaced or finished by others, or another worker has it."""


BY_CODE: dict[str, type[DQError]] = {
    "EXISTS": Exists,
    "FULL": Full,
    "NOJOB": NoJob,
    "NOTHELD": NotHeld,
    "WRONGTYPE": WrongType,
}

# Before what the server says of one of many jobs.
_PLACE = re.compile(r"job (\d+): ")
# What a pipeline puts before the server's words.
_ANNOTATION = re.compile(r"^Command # .* caused error: ", re.DOTALL)


def refusal(error: BaseException, words: Sequence[Any] = ()) -> DQError | None:
    """The typed error for one of redis-py or valkey-py, with what the words of its command say of
    queue and id; None when it isn't about the command.

    Both libraries cut off ERR, and leave other words that they don't know where they are.
    """
    typed = _typed(error)
    if typed is not None and len(words) > 1 and words[0] not in _WITHOUT_A_KEY:
        typed.queue = text(words[1])
        if (id := _id_that_was_refused(typed.message, words)) not in (None, b"*"):
            typed.id = text(id)
    return typed


def _id_that_was_refused(message: str, words: Sequence[Any]) -> Any:
    """Of the jobs of a MADD it is the one whose place the server names."""
    if words[0] == "DQ.ADD":
        return words[2]
    place = _PLACE.match(message)
    return words[2 * int(place[1]) + 1] if words[0] == "DQ.MADD" and place else None


def _typed(error: BaseException) -> DQError | None:
    if not _is_response_error(error):
        return None
    told = _ANNOTATION.sub("", str(error)).removeprefix("ERR ")
    code, _, message = told.partition(" ")
    if code in BY_CODE:
        return BY_CODE[code](message, code)
    if type(error).__name__ != "ResponseError" or code in _SERVERS_OWN:
        return None
    if told.startswith("unknown command"):
        return NoModule(f"the server has no module DQ, or one without this command: {told}")
    if told.startswith("max number of clients"):
        return None
    return Invalid(told)


_WITHOUT_A_KEY = ("DQ.MPOP", "DQ.NEXT")

# Errors of the server's own, which either library may give as a plain ResponseError.
_SERVERS_OWN = {
    *("ASK", "BUSY", "CLUSTERDOWN", "CROSSSLOT", "EXECABORT", "LOADING", "MASTERDOWN", "MISCONF"),
    *("MOVED", "NOAUTH", "NOPERM", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN", "UNBLOCKED"),
    "WRONGPASS",
}


def _is_response_error(error: BaseException) -> bool:
    """By name, so that neither library has to be installed."""
    return any(kind.__name__ == "ResponseError" for kind in type(error).__mro__)
