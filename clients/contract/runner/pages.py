"""Sessions of docs/, played through a client: each command as a typed call, and what comes back
as the server's reply.

What no client can say by its types, such as an option that doesn't exist, goes through the client
as raw words. That belongs to the sections *Errors* of the pages; everywhere else it is a failure.
"""

from typing import Any

from harness.resp import Failure, Status
from harness.transcript import Session
from runner.program import Program, Refused
from runner.typed import COMMANDS, NotTyped, failure, plain, served, typed_call


class ClientSession(Session):
    """A session whose commands are sent by a client's test program."""

    def __init__(self, program: Program, protocol: int):
        # No connection of its own: only what plays transcripts.
        self._program = program
        self._protocol = protocol
        self._bound = {}
        self._past = []
        self._echo = lambda line: None
        self._multi: list[Any] | None = None
        self.raw_calls: list[list[bytes]] = []

    def call(self, *words: str | bytes | int) -> Any:
        encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        match encoded[0].upper():
            case b"MULTI":
                self._multi = []
                return Status("OK")
            case b"EXEC":
                calls, self._multi = self._multi or [], None
                return self._exec(calls)
        call = self._as_call(encoded)
        if self._multi is not None:
            self._multi.append(call)
            return Status("QUEUED")
        try:
            if "words" in call:
                return self._raw(call)
            return self._served(self._program.ask("call", **call), call)
        except Refused as refused:
            return failure(refused.error)

    def _as_call(self, words: list[bytes]) -> Any:
        try:
            if not words[0].upper().startswith(b"DQ."):
                return {"words": [word.decode("latin-1") for word in words]}
            return typed_call(words)
        except NotTyped:
            self.raw_calls.append(words)
            return {"words": [word.decode("latin-1") for word in words]}

    def _raw(self, call: Any) -> Any:
        return statused(call["words"][0], plain_deep(self._program.ask("raw", **call)))

    def _exec(self, calls: list[Any]) -> Any:
        replies = self._program.ask("batch", transaction=True, calls=calls)
        return [self._batched(reply, call) for reply, call in zip(replies, calls, strict=True)]

    def _batched(self, told: Any, call: Any) -> Any:
        if "error" in told:
            return failure(told["error"])
        if "words" in call:
            return statused(call["words"][0], plain_deep(told["reply"]))
        return self._served(told["reply"], call)

    def _served(self, reply: Any, call: Any) -> Any:
        return served(COMMANDS[call["command"]]["reply"], reply, self._protocol, call)

    def close(self) -> None:
        pass


def statused(command: str, reply: Any) -> Any:
    """Clients don't tell a status from a string, and some say true for OK."""
    if command.upper() in ("SET", "CONFIG", "XGROUP") and reply in (1, b"OK"):
        return Status("OK")
    return reply


def plain_deep(reply: Any) -> Any:
    if isinstance(reply, list):
        return [plain_deep(part) for part in reply]
    assert not isinstance(reply, Failure)
    return plain(reply)
