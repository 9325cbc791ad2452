"""The Redis protocol over asyncio: pipelines out, replies in.

Strings are read as latin-1, so that any bytes survive the way into a history of JSON lines and back.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any

Word = str | int
Words = Iterable[Word]


class Failure(str):
    """An error reply with its prefix."""

    __slots__ = ()


class Incomplete(Exception):
    """The rest of a reply hasn't come yet."""


def encoded(words: Words) -> bytes:
    parts = [word.encode("latin-1") if isinstance(word, str) else b"%d" % word for word in words]
    return b"*%d\r\n" % len(parts) + b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in parts])


class Parser:
    """Bytes in, replies out; a reply that isn't whole is tried again when there are more bytes."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._at = 0

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def replies(self) -> Iterable[Any]:
        while self._at < len(self._bytes):
            begin = self._at
            try:
                reply = self._read()
            except Incomplete:
                self._at = begin
                break
            yield reply
        del self._bytes[: self._at]
        self._at = 0

    def _line(self) -> bytes:
        end = self._bytes.find(b"\r\n", self._at)
        if end < 0:
            raise Incomplete
        line = bytes(self._bytes[self._at : end])
        self._at = end + 2
        return line

    def _string(self, length: int) -> str:
        end = self._at + length
        if len(self._bytes) < end + 2:
            raise Incomplete
        text = self._bytes[self._at : end].decode("latin-1")
        self._at = end + 2
        return text

    def _read(self) -> Any:
        line = self._line()
        kind, rest = line[:1], line[1:]
        match kind:
            case b"+":
                return rest.decode("latin-1")
            case b":":
                return int(rest)
            case b"$":
                return None if rest == b"-1" else self._string(int(rest))
            case b"*" | b"~" | b">":
                return None if rest == b"-1" else [self._read() for _ in range(int(rest))]
            case b"-":
                return Failure(rest.decode("latin-1"))
            case b"_":
                return None
            case b"%":
                # As in RESP2, names and values in turn: the oracle then knows one form.
                return [self._read() for _ in range(2 * int(rest))]
            case b"#":
                return int(rest == b"t")
            case b",":
                return float(rest)
            case b"=":
                return self._string(int(rest))[len("txt:") :]
        raise ConnectionError(f"a reply of an unknown type: {line!r}")


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
        """In one write; each future gets its reply, or ConnectionError."""
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
                # Nobody may be waiting for the later replies of a pipeline.
                future.exception()
        self._awaited.clear()
