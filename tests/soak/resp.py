"""The Redis protocol over asyncio: pipelines out, replies in.

Strings are read as latin-1, so that any bytes survive the way into a history of JSON lines and back.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any

from .borrowed import LINE, Failure, read_reply

__all__ = ["Connection", "Failure", "Word", "Words"]

Word = str | int
Words = Iterable[Word]


def encoded(words: Words) -> bytes:
    parts = [word.encode("latin-1") if isinstance(word, str) else b"%d" % word for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(
        [b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]
    )


class Parser:
    """Bytes in, replies out, as a history has them."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._begin()

    def _begin(self) -> None:
        self._reading = read_reply()
        self._needs = next(self._reading)

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def replies(self) -> Iterable[Any]:
        at = 0
        while True:
            end = self._bytes.find(b"\r\n", at) + 2 if self._needs is LINE else at + self._needs
            if end < at + 2 or end > len(self._bytes):
                break
            part, at = bytes(self._bytes[at:end]), end
            try:
                self._needs = self._reading.send(part)
            except StopIteration as done:
                yield as_told(done.value)
                self._begin()
        del self._bytes[:at]


def as_told(reply: Any) -> Any:
    """Strings as latin-1; maps as in RESP2, names and values in turn. So the oracle knows one form only."""
    match reply:
        case bytes():
            return reply.decode("latin-1")
        case bool():
            return int(reply)
        case list():
            return [as_told(one) for one in reply]
        case dict():
            return [as_told(one) for pair in reply.items() for one in pair]
    return reply


class Connection(asyncio.Protocol):
    """One connection to a server on this machine."""

    def __init__(self) -> None:
        self._parser = Parser()
        self._awaited: deque[asyncio.Future[Any]] = deque()
        self._transport: asyncio.Transport | None = None
        self.is_open = False

    @classmethod
    async def to(cls, port: int, *, protocol: int = 2) -> "Connection":
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, "127.0.0.1", port)
        if protocol == 3:
            reply = await connection.call("HELLO", 3)
            if isinstance(reply, Failure):
                connection.close()
                raise ConnectionError(reply)
        return connection

    def send(self, *commands: Words) -> list[asyncio.Future[Any]]:
        """Sends commands in one write. Each future gets its reply, or ConnectionError."""
        if not self.is_open or self._transport is None:
            raise ConnectionError("closed")
        self._transport.write(b"".join(map(encoded, commands)))
        futures = [asyncio.get_running_loop().create_future() for _ in commands]
        self._awaited.extend(futures)
        return futures

    async def call(self, *words: Word, within_s: float = 20) -> Any:
        (future,) = self.send(words)
        return await asyncio.wait_for(future, within_s)

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        for reply in self._parser.replies():
            if self._awaited:
                future = self._awaited.popleft()
                if not future.done():
                    future.set_result(reply)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        for future in self._awaited:
            if not future.done():
                future.set_exception(ConnectionError("the server closed the connection"))
                # It may be that nothing waits for the later replies of a pipeline.
                future.exception()
        self._awaited.clear()
