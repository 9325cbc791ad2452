"""Tests that read as a session with the server.

    session = Session(port)
    session.check('''
        # Work done and reported is gone.
        > DQ.ADD q a "hello you" TTR 200
        "a"
        > DQ.POP q
        [["a", "hello you", <lease>, 1]]
        > DQ.FINISH q a <lease>
        (integer) 1
    ''')

A line after `> ` is a command, quoted as in redis-cli. Below it stands the whole reply, as
redis-cli shows it; only arrays and maps stand in one line, `[1, "two", (nil)]` and `{"id": "a"}`,
which may go on in the next line after a comma. `#` starts a comment.

`<name>` in a reply stands for one number, string or nil. Where it is first met it takes the value;
from then on, in commands and replies of the same session, it means that value. `<*>` is any value,
`<...>` in an array or a map any further elements, one at least.
"""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.resp import Connection, Failure, Status

VALUE = r'-?\d+|"(?:[^"\\]|\\.)*"|\(nil\)'
PLACEHOLDER = re.compile(r"<(\*|\.\.\.|[a-z][a-z0-9_]*)>")
WORD = re.compile(r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"']\S*)(?:\s+|$)""")
ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
LATER = "# Later"
LATER_AT_MOST_S = 20
NAMED_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\a": "a", "\b": "b"}


class Mismatch(AssertionError):
    """A reply that differs from the promised one."""


@dataclass
class Step:
    """One command with the reply that is promised, or a comment."""

    text: str
    reply: str = ""

    @property
    def is_comment(self) -> bool:
        return self.text.startswith("#")


class Session(Connection):
    """One connection, and the values that its transcripts have bound."""

    def __init__(
        self,
        port: int,
        *,
        protocol: int = 2,
        echo: Callable[[str], None] = lambda line: None,
    ):
        super().__init__(port, protocol=protocol)
        self._bound: dict[str, str] = {}
        self._past: list[str] = []
        self._echo = echo

    def __getitem__(self, name: str) -> int | str:
        """The value bound to a placeholder."""
        text = self._bound[name]
        return int(text) if text.lstrip("-").isdigit() else unquote(text).decode()

    def check(self, transcript: str, **known: str | bytes | int) -> None:
        """Plays a transcript; `known` gives values of placeholders beforehand."""
        __tracebackhide__ = True
        for name, value in known.items():
            self._bound[name] = render(value.encode() if isinstance(value, str) else value)
        for step in parse(transcript):
            if step.is_comment:
                self._note(step.text)
            else:
                self._note(self._play(step))

    def eventually(self, transcript: str, within_s: float = 5) -> None:
        """Repeats one command until it gives the promised reply."""
        __tracebackhide__ = True
        (step,) = parse(transcript)
        deadline = time.monotonic() + within_s
        while True:
            try:
                self._note(self._play(step))
                return
            except Mismatch:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.002)

    def _note(self, line: str) -> None:
        self._past.append(line)
        self._echo(line)

    def _play(self, step: Step) -> str:
        __tracebackhide__ = True
        command = PLACEHOLDER.sub(self._value_of, step.text)
        got = show(self.call(*split(command)))
        match = re.fullmatch(self._pattern(step.reply), got, re.DOTALL)
        if match is None:
            promised = PLACEHOLDER.sub(lambda m: self._bound.get(m[1], m[0]), step.reply)
            lines = [*self._past[-8:], f"> {command}", f"promised: {promised}", f"     got: {got}"]
            raise Mismatch("\n".join(lines))
        self._bound.update(match.groupdict())
        return f"> {command}\n{got}"

    def _value_of(self, placeholder: re.Match[str]) -> str:
        if placeholder[1] not in self._bound:
            raise ValueError(f"nothing is bound to {placeholder[0]}")
        return self._bound[placeholder[1]]

    def _pattern(self, reply: str) -> str:
        pattern, end = "", 0
        new: set[str] = set()
        for placeholder in PLACEHOLDER.finditer(reply):
            pattern += re.escape(reply[end : placeholder.start()])
            end = placeholder.end()
            name = placeholder[1]
            if name == "*":
                pattern += f"(?:{VALUE})"
            elif name == "...":
                pattern += ".+?"
            elif name in self._bound:
                pattern += re.escape(self._bound[name])
            elif name in new:
                pattern += f"(?P={name})"
            else:
                new.add(name)
                pattern += f"(?P<{name}>{VALUE})"
        return pattern + re.escape(reply[end:])


def play(session: Session, transcript: str) -> None:
    """Plays a transcript as Session.check does. After a comment that begins with `# Later`, the
    command is repeated until it gives its reply.
    """
    __tracebackhide__ = True
    is_later = False
    for step in parse(transcript):
        if step.is_comment:
            session.check(step.text)
            is_later = is_later or step.text.startswith(LATER)
        elif is_later:
            session.eventually(f"> {step.text}\n{step.reply}", LATER_AT_MOST_S)
            is_later = False
        else:
            session.check(f"> {step.text}\n{step.reply}")


def parse(transcript: str) -> Iterator[Step]:
    """The steps of a transcript, in order."""
    step: Step | None = None
    for line in map(str.strip, transcript.splitlines()):
        if line.startswith(("> ", "#")):
            yield from finished(step)
            step = Step(line.removeprefix("> "))
        elif line and (step is None or step.is_comment):
            raise ValueError(f"a reply without a command: {line}")
        elif line:
            step.reply = f"{step.reply} {line}".lstrip()
    yield from finished(step)


def finished(step: Step | None) -> Iterator[Step]:
    if step is None:
        return
    if not step.reply and not step.is_comment:
        raise ValueError(f"a command without its reply: {step.text}")
    yield step


def split(command: str) -> list[bytes]:
    """The words of a command line, quoted as in redis-cli."""
    words, end = [], 0
    while end < len(command):
        word = WORD.match(command, end)
        if word is None:
            raise ValueError(f"unbalanced quotes: {command}")
        words.append(unquote(word[1]))
        end = word.end()
    return words


def unquote(word: str) -> bytes:
    if word.startswith("'"):
        return word[1:-1].encode()
    if not word.startswith('"'):
        return word.encode()
    named = {letter.encode(): char.encode() for char, letter in NAMED_ESCAPES.items()}
    return ESCAPE.sub(
        lambda m: bytes.fromhex(m[1].decode()) if m[1] else named.get(m[2], m[2]),
        word[1:-1].encode(),
    )


def show(reply: Any) -> str:
    """A whole reply, as redis-cli shows it."""
    if isinstance(reply, int) and not isinstance(reply, bool):
        return f"(integer) {reply}"
    return render(reply)


def render(reply: Any) -> str:
    """A reply as it stands inside an array."""
    match reply:
        case None:
            return "(nil)"
        case bool():
            return "(true)" if reply else "(false)"
        case Failure():
            return f"(error) {reply}"
        case Status():
            return str(reply)
        case bytes():
            return '"' + "".join(map(escaped, reply.decode("latin-1"))) + '"'
        case list():
            return "[" + ", ".join(map(render, reply)) + "]"
        case dict():
            return "{" + ", ".join(f"{render(k)}: {render(v)}" for k, v in reply.items()) + "}"
    return str(reply)


def escaped(char: str) -> str:
    if char in '\\"':
        return "\\" + char
    if char in NAMED_ESCAPES:
        return "\\" + NAMED_ESCAPES[char]
    return char if " " <= char <= "~" else f"\\x{ord(char):02x}"
