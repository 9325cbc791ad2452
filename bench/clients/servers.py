"""A server for each contestant, what it has used, and the table of what was measured."""

import os
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "target" / "release" / "libdq.so"
TICKS = os.sysconf("SC_CLK_TCK")


def show(title: str, samples: dict[str, list[dict[str, float]]]) -> None:
    """Prints the median of each measure, by contestant; nothing where one has no such measure."""
    heads = list(dict.fromkeys(head for rounds in samples.values() for head in rounds[0]))
    print(f"| {title} | " + " | ".join(heads) + " |")
    print("| --- |" + " ---: |" * len(heads))
    for name, rounds in samples.items():
        values = [[sample[head] for sample in rounds if head in sample] for head in heads]
        cells = [f"{statistics.median(value):,.1f}" if value else "" for value in values]
        print(f"| {name} | " + " | ".join(cells) + " |")


@dataclass
class Server:
    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, decode_responses=True, protocol=2)

    def processor_s(self) -> float:
        fields = fields_of(Path(f"/proc/{self.pid}/stat"))
        return (int(fields[11]) + int(fields[12])) / TICKS


def fields_of(stat: Path) -> list[str]:
    """Those behind the name of the program."""
    return stat.read_text().rpartition(") ")[2].split()


@contextmanager
def server(program: str, *options: str) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        words = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", *options]
        child = subprocess.Popen(words, cwd=directory, stdout=subprocess.DEVNULL)
        started = Server(port, child.pid)
        deadline = time.monotonic() + 30
        try:
            while True:
                try:
                    started.client().ping()
                    break
                except redis.ConnectionError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.02)
            yield started
        finally:
            child.terminate()
            child.wait()
