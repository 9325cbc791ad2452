"""A connection that sends commands before the replies to earlier ones are there."""

from collections.abc import Sequence
from typing import Any

from harness.resp import Connection, Failure

Words = tuple[str | bytes | int, ...]


class Pipelined(Connection):
    def send(self, *commands: Words) -> None:
        self._socket.sendall(b"".join(map(encoded, commands)))

    def receive(self) -> Any:
        return self._read()

    def call_all(self, commands: Sequence[Words], at_once: int = 1_000) -> list[Any]:
        """Sends all commands; fails if a reply is an error."""
        replies = []
        for start in range(0, len(commands), at_once):
            batch = commands[start : start + at_once]
            self.send(*batch)
            for words in batch:
                reply = self.receive()
                assert not isinstance(reply, Failure), f"{words}: {reply}"
                replies.append(reply)
        return replies


def encoded(words: Words) -> bytes:
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    bulks = [b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]
    return b"*%d\r\n%b" % (len(bulks), b"".join(bulks))
