"""Consumers that wait, in transcripts.

    room = Room(server)
    room.play('''
        one> DQ.POP q BLOCK 0
        two> DQ.POP q BLOCK 0
        > DQ.ADD q a x
        "a"
        one< [["a", "x", <lease>, 1]]
        two waits
    ''')

`name> command` sends a command from the connection of that name, and goes on when the server says
that the client is blocked. The first use of a name opens its connection. `name< reply` is the next
reply on that connection; `name waits` checks that it is still blocked and got no reply. All other
lines are those of a transcript (transcript.py), on one more connection. Values that one connection
has bound are known to all.
"""

import re
import select
import time
from typing import Any

from harness.pipelined import Pipelined, Words
from harness.server import Server, eventually
from harness.transcript import PLACEHOLDER, Mismatch, Session, show, split

LINE = re.compile(r"([a-z][a-z0-9-]*)(> |< | waits$)(.*)")


class Consumer(Pipelined):
    """A connection that knows its client id."""

    def __init__(self, port: int, *, protocol: int = 2):
        super().__init__(port, protocol=protocol)
        self.id: int = self.call("CLIENT", "ID")

    def is_told_something(self, within_s: float = 0) -> bool:
        return bool(select.select([self._socket], [], [], within_s)[0])

    def is_closed(self, within_s: float = 5) -> bool:
        """The server has closed the connection without a further reply."""
        self._socket.settimeout(within_s)
        return self._stream.read(1) == b""

    def hears(self, within_s: float = 10) -> Any:
        """The next reply."""
        self._socket.settimeout(within_s)
        return self.receive()


class Room(Session):
    """One connection for a transcript's plain lines, and consumers by name."""

    def __init__(self, server: Server, *, protocol: int = 2):
        super().__init__(server.port, protocol=protocol)
        self.server = server
        self._protocol = protocol
        self._consumers: dict[str, Consumer] = {}

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()
        super().close()

    def __call__(self, name: str) -> Consumer:
        """The consumer of that name; a new one if there is none."""
        if name not in self._consumers:
            self._consumers[name] = Consumer(self.server.port, protocol=self._protocol)
        return self._consumers[name]

    def leave(self, name: str) -> None:
        """Closes the consumer's connection, and waits until the server has noticed."""
        consumer = self._consumers.pop(name)
        consumer.close()
        eventually(lambda: self.flags(consumer.id) is None)

    def play(self, transcript: str, **known: str | bytes | int) -> None:
        __tracebackhide__ = True
        spoken: list[str] = []
        for line in map(str.strip, [*transcript.splitlines(), ""]):
            match = LINE.fullmatch(line)
            if match is None:
                spoken.append(line)
                continue
            self.check("\n".join(spoken), **known)
            spoken = []
            name, verb, rest = match.groups()
            self._note(line)
            match verb:
                case "> ":
                    self.wait(name, *split(self._filled(rest)))
                case "< ":
                    self._hear(name, rest)
                case _:
                    self.check_waits(name)
        self.check("\n".join(spoken), **known)

    def wait(self, name: str, *words: str | bytes | int) -> Consumer:
        """Sends a command, and returns when the client is blocked."""
        consumer = self(name)
        consumer.send(words)
        eventually(lambda: self.is_blocked(consumer))
        return consumer

    def flags(self, id: int) -> str | None:
        """The client's flags in CLIENT LIST; None when there is no such client."""
        told = re.search(rb" flags=(\w+) ", self.call("CLIENT", "LIST", "ID", id))
        return told and told[1].decode()

    def is_blocked(self, consumer: Consumer) -> bool:
        return "b" in (self.flags(consumer.id) or "")

    def server_says(self, field: str) -> int:
        """A number of the module's own INFO section."""
        told = self.call("INFO", "dq").decode()
        return int(re.search(rf"^dq_{field}:(\d+)", told, re.MULTILINE)[1])

    def check_waits(self, name: str) -> None:
        __tracebackhide__ = True
        consumer = self(name)
        if consumer.is_told_something():
            raise Mismatch(f"{self._before()}{name} was told {show(consumer.receive())}")
        if not self.is_blocked(consumer):
            raise Mismatch(f"{self._before()}{name} is not blocked")

    def _hear(self, name: str, promised: str) -> None:
        __tracebackhide__ = True
        try:
            got = show(self(name).hears())
        except TimeoutError:
            raise Mismatch(f"{self._before()}{name} was told nothing") from None
        match = re.fullmatch(self._pattern(promised), got, re.DOTALL)
        if match is None:
            raise Mismatch(f"{self._before()}promised: {promised}\n     got: {got}")
        self._bound.update(match.groupdict())

    def _filled(self, command: str) -> str:
        return PLACEHOLDER.sub(self._value_of, command)

    def _before(self) -> str:
        return "\n".join([*self._past[-8:], ""])


def timed(consumer: Consumer, *words: str | bytes | int, within_s: float = 30) -> tuple[Any, float]:
    """The reply to a command, and how many milliseconds it took."""
    begin = time.monotonic()
    consumer.send(words)
    reply = consumer.hears(within_s)
    return reply, (time.monotonic() - begin) * 1_000


def in_one_go(port: int, *commands: Words) -> list[Any]:
    """Sends commands in one write. The server executes them in one turn of its event loop."""
    connection = Pipelined(port)
    connection.send(*commands)
    replies = [connection.receive() for _ in commands]
    connection.close()
    return replies
