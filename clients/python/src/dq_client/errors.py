"""What the server refuses, as types. Errors of the connection stay those of the client library."""

from __future__ import annotations

import re


class DQError(Exception):
    """The server refused a command, and nothing has changed."""

    def __init__(self, message: str, code: str = "ERR"):
        super().__init__(message)
        #: The first word of the server's error, such as EXISTS.
        self.code = code
        #: The rest of it.
        self.message = message


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

# What a pipeline puts before the server's words.
_ANNOTATION = re.compile(r"^Command # .* caused error: ", re.DOTALL)


def refusal(error: BaseException) -> DQError | None:
    """The typed error for one of redis-py or valkey-py; None when it isn't about the command.

    Both libraries cut off ERR, and leave other words that they don't know where they are.
    """
    if not _is_response_error(error):
        return None
    told = _ANNOTATION.sub("", str(error)).removeprefix("ERR ")
    code, _, message = told.partition(" ")
    if code in BY_CODE:
        return BY_CODE[code](message, code)
    if type(error).__name__ != "ResponseError" or code in _SERVERS_OWN:
        return None
    if told.startswith("unknown command"):
        return NoModule(told)
    return Invalid(told)


# Errors of the server's own, which either library may give as a plain ResponseError.
_SERVERS_OWN = {
    *("ASK", "BUSY", "CLUSTERDOWN", "CROSSSLOT", "EXECABORT", "LOADING", "MASTERDOWN", "MISCONF"),
    *("MOVED", "NOAUTH", "NOPERM", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN", "UNBLOCKED"),
    "WRONGPASS",
}


def _is_response_error(error: BaseException) -> bool:
    """By name, so that neither library has to be installed."""
    return any(kind.__name__ == "ResponseError" for kind in type(error).__mro__)
