"""A server under valgrind, and what valgrind reports about the module.

The module allocates through the server. Valgrind sees that where the server takes its memory from
the C library, as the tests' Valkey does, or from a jemalloc that is a library of its own, as
Debian's Redis does. It doesn't see a jemalloc that is inside of the server.
"""

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from harness.server import KNOWN, Kind, Server

# Of two servers: those whose allocator valgrind can stand in for.
SEEN: list[Kind] = [KNOWN["redis-7.0"], KNOWN["valkey-8.1"]]
MODULE_FILE = "libdq.so"
# The C library, and what valgrind puts in its place.
LIBRARIES = ("libc.so", "vgpreload")


@dataclass(frozen=True)
class Fault:
    """What valgrind found, and the functions that led there, the innermost first."""

    kind: str
    what: str
    stack: tuple[str, ...]

    def __str__(self) -> str:
        return "\n    ".join([f"{self.kind}: {self.what}", *self.stack[:16]])


def program(report: Path) -> list[str]:
    return [
        "valgrind",
        "--quiet",
        "--leak-check=full",
        "--show-leak-kinds=definite",
        "--num-callers=40",
        # Optimised Rust looks at the inside of an Option before it knows that there is one. Above
        # `src/server` there is no `unsafe`, and so no other way to read what wasn't written.
        "--undef-value-errors=no",
        # Memory that a forked child still holds when it has saved is no leak.
        "--child-silent-after-fork=yes",
        "--soname-synonyms=somalloc=libjemalloc.so.2",
        "--xml=yes",
        f"--xml-file={report}",
    ]


def faults_of_module(report: Path) -> list[Fault]:
    """What the module lost, and what it read or wrote outside its memory. Memory that the module
    gave to the server is the server's to free.
    """
    faults = []
    for error in ET.parse(report).iter("error"):
        kind = error.findtext("kind", "")
        frames = error.findall("stack/frame")
        if is_in_module(frames if kind.startswith("Leak_") else innermost(frames)):
            what = error.findtext("what") or error.findtext("xwhat/text") or ""
            stack = tuple(
                f"{frame.findtext('fn', '?')}  {frame.findtext('file', '')}" for frame in frames
            )
            faults.append(Fault(kind, what, stack))
    return faults


def is_in_module(frames: list[ET.Element]) -> bool:
    return any(MODULE_FILE in frame.findtext("obj", "") for frame in frames)


def innermost(frames: list[ET.Element]) -> list[ET.Element]:
    """The frame that is responsible: not memcpy and the like."""
    own = [
        frame
        for frame in frames
        if not any(name in frame.findtext("obj", "") for name in LIBRARIES)
    ]
    return own[:1]


class Watched:
    """A server under valgrind; `faults` are known when it has ended."""

    def __init__(self, kind: Kind, directory: Path, module: Path):
        self._report = directory / "valgrind.xml"
        self.server = Server(kind, directory, module=module, under=program(self._report))

    def faults(self) -> list[Fault]:
        self.server.stop(within_s=300)
        return faults_of_module(self._report)
