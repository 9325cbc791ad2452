"""The Redis protocol, versions 2 and 3, read without interpretation.

A client library hides details that the tests check: an error's prefix, a status beside a string,
the order of a map.
"""

import socket
from collections.abc import Generator, Iterator
from io import BytesIO
from typing import Any


class Status(str):
    """A status reply such as OK, as opposed to a string of data."""


class Failure(str):
    """An error reply with its prefix."""


class Connection:
    """One connection to a server on this machine."""

    def __init__(self, port: int, *, protocol: int = 2, timeout_s: float = 30):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        self._stream = self._socket.makefile("rb")
        self.call("HELLO", protocol)

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def call(self, *words: str | bytes | int) -> Any:
        """Sends one command. An error comes back as a Failure."""
        encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded]
        self._socket.sendall(b"*%d\r\n%b" % (len(parts), b"".join(parts)))
        return self._read()

    def _read(self) -> Any:
        parsing = read_reply()
        length = next(parsing)
        while True:
            data = self._stream.readline() if length is LINE else self._stream.read(length)
            if not data.endswith(b"\r\n"):
                raise ConnectionError("the server closed the connection")
            try:
                length = parsing.send(data)
            except StopIteration as done:
                return done.value


# In place of a length.
LINE = None


def read_reply() -> Generator[int | None, bytes, Any]:
    """Reads one reply from any source: yields how many bytes it needs next, and is sent them."""
    line = yield LINE
    kind, rest = line[:1], line[1:-2]
    match kind:
        case b"+":
            return Status(rest.decode())
        case b"-":
            return Failure(rest.decode())
        case b":":
            return int(rest)
        case b",":
            return float(rest)
        case b"#":
            return rest == b"t"
        case b"_":
            return None
        case b"$":
            return None if rest == b"-1" else (yield int(rest) + 2)[:-2]
        case b"=":
            return (yield int(rest) + 2)[len(b"txt:") : -2]
        case b"*" | b"~" | b">":
            return None if rest == b"-1" else (yield from read_replies(int(rest)))
        case b"%":
            told = yield from read_replies(2 * int(rest))
            return dict(zip(told[::2], told[1::2], strict=True))
    raise ConnectionError(f"a reply of an unknown type: {line!r}")


def read_replies(count: int) -> Generator[int | None, bytes, list[Any]]:
    told = []
    for _ in range(count):
        told.append((yield from read_reply()))
    return told


def fields(flat: list[Any]) -> dict[str, Any]:
    """A RESP2 map. Names are text, whether or not the client decodes the values."""
    names = (name.decode() if isinstance(name, bytes) else name for name in flat[::2])
    return dict(zip(names, flat[1::2], strict=True))


def commands_in(log: bytes) -> Iterator[list[bytes]]:
    """The commands of an AOF; each is an array of strings."""
    stream = BytesIO(log)
    while header := stream.readline():
        assert header.startswith(b"*"), header
        lengths = (int(stream.readline()[1:]) for _ in range(int(header[1:])))
        yield [stream.read(length + 2)[:-2] for length in lengths]
