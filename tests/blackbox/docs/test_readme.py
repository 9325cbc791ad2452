"""The examples in README work: its worker, its session; its figures are those that were measured."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.address import Address
from harness.paths import ROOT
from harness.server import Server, eventually
from harness.transcript import Session

README = (ROOT / "README.md").read_text()
WORKER = re.search(r"<!-- worker: .*?```python\n(.*?)```", README, re.DOTALL).group(1)
HANDLER = '    print("to", job.body["to"], "attempt", job.attempt, flush=True)\n'
SLOW = HANDLER + '    __import__("time").sleep(1)\n    print("done", flush=True)\n'
FAILING = HANDLER + '    raise RuntimeError("no such mailbox")\n'


class Worker:
    """The worker of the README, with another handler and the address of a test's server."""

    def __init__(self, port: int, output: Path, handler: str):
        assert WORKER.count(HANDLER) == WORKER.count("redis.Redis()") == 1
        program = WORKER.replace(HANDLER, handler)
        program = program.replace("redis.Redis()", f"redis.Redis(port={port})")
        self._output = output
        # The worker logs while it prints.
        with output.open("wb") as file, output.with_suffix(".log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program],
                env=os.environ | {"PYTHONPATH": str(ROOT / "clients" / "python" / "src")},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=log,
            )

    def lines(self) -> list[str]:
        return self._output.read_text().splitlines()

    def said(self, line: str) -> None:
        __tracebackhide__ = True
        eventually(lambda: line in self.lines(), within_s=20)

    def is_told_to_stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def has_stopped(self) -> list[str]:
        assert self._process.wait(timeout=20) == 0, self.lines()
        return self.lines()

    def kill9(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    workers: list[Worker] = []

    def start(port: int, handler: str = HANDLER) -> Worker:
        workers.append(Worker(port, tmp_path / f"worker-{len(workers)}", handler))
        return workers[-1]

    yield start
    for worker in workers:
        worker.kill9()


def test_the_readmes_worker_does_what_is_due_and_stops_at_sigterm(
    server: Server, session: Session, start: Callable[..., Worker]
) -> None:
    for line in (
        """DQ.ADD mail welcome:ann '{"to": "ann@example.com"}' DELAY 3000\n"welcome:ann"\n""",
        "pip install redis ./clients/python ",
    ):
        assert line in README
    worker = start(server.port)
    session.call("DQ.ADD", "mail", "welcome:ann", '{"to": "ann@example.com"}', "DELAY", 300)
    worker.said("to ann@example.com attempt 1")
    session.eventually("> DQ.LEN mail\n(integer) 0", within_s=10)
    worker.is_told_to_stop()
    worker.has_stopped()


def test_the_readmes_worker_retries_what_failed(
    server: Server, session: Session, start: Callable[..., Worker]
) -> None:
    session.call("DQ.ADD", "mail", "a", '{"to": "Ann"}', "ATTEMPTS", 2)
    failing = start(server.port, FAILING)
    failing.said("to Ann attempt 2")
    session.eventually("> DQ.LEN mail STATE dead\n(integer) 1", within_s=10)
    failing.is_told_to_stop()
    failing.has_stopped()


def test_the_readmes_worker_outlives_its_server(
    fresh_server: Callable[..., Server], start: Callable[..., Worker]
) -> None:
    server = fresh_server("appendonly yes", "appendfsync always")
    worker = start(server.port, SLOW)
    server.session().call("DQ.ADD", "mail", "a", '{"to": "Ann"}')
    worker.said("to Ann attempt 1")
    server.kill9()
    worker.said("done")
    server.start()
    # What it had is finished, and not done again.
    server.session().eventually("> DQ.LEN mail\n(integer) 0", within_s=20)
    server.session().call("DQ.ADD", "mail", "b", '{"to": "Bob"}')
    worker.said("to Bob attempt 1")
    worker.is_told_to_stop()
    assert [line for line in worker.has_stopped() if line.startswith("to ")] == [
        "to Ann attempt 1",
        "to Bob attempt 1",
    ]


def test_the_readmes_worker_follows_its_address_to_a_new_primary(
    fresh_server: Callable[..., Server], start: Callable[..., Worker]
) -> None:
    old, new = fresh_server(), fresh_server()
    new.replicate(old)
    address = Address(old.port)
    try:
        worker = start(address.port, SLOW)
        old.session().call("DQ.ADD", "mail", "a", '{"to": "Ann"}')
        worker.said("to Ann attempt 1")
        new.catch_up(old)
        new.client().replicaof("no", "one")
        address.lead_to(new.port)
        old.replicate(new)
        new.session().eventually("> DQ.LEN mail\n(integer) 0", within_s=20)
        new.session().call("DQ.ADD", "mail", "b", '{"to": "Bob"}')
        worker.said("to Bob attempt 1")
    finally:
        address.close()


def test_the_readmes_session_gives_the_replies_it_shows(session: Session) -> None:
    """The commands stand in the README as below; replies there are as redis-cli shows them."""
    for command in (
        'DQ.ADD orders order:17 "cancel if unpaid" DELAY 1800000',
        "DQ.DEL orders order:17",
        'DQ.ADD orders * "pack 18" TTR 10000',
        "DQ.POP orders",
    ):
        assert f"127.0.0.1:6379> {command}\n" in README
    session.check("""
        > DQ.ADD orders order:17 "cancel if unpaid" DELAY 1800000
        "order:17"
        > DQ.DEL orders order:17
        (integer) 1
        > DQ.ADD orders * "pack 18" TTR 10000
        <id>
        > DQ.POP orders
        [[<id>, "pack 18", <lease>, 1]]
        > DQ.FINISH orders <id> <lease>
        (integer) 1
    """)


def test_the_life_of_a_job_is_drawn_as_in_the_guide() -> None:
    drawing = re.search(r"## The life of a job\n\n```\n(.*?)```", README, re.DOTALL)[1]
    assert drawing in (ROOT / "docs" / "guide" / "life.md").read_text()


def test_the_bars_of_speed_are_the_figures_of_the_benchmarks() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    bars = re.findall(r"^([A-Z]\w+(?: \w+)?) +([\d,]+)  (█+)$", README, re.MULTILINE)
    assert [name for name, _, _ in bars] == ["DQ", "Lua scripts", "BullMQ"]
    most = int(bars[0][1].replace(",", ""))
    for name, told, bar in bars:
        figure = int(told.replace(",", ""))
        assert len(bar) == round(50 * figure / most)
        # The columns are contestant, enqueue, delayed, life; the last version of DQ comes last.
        rows = re.findall(rf"^\| {name}.*$", measured(page, "rates"), re.MULTILINE)
        assert figure == 1_000 * int(rows[-1].split("|")[4].strip(" °"))
    median = re.search(r"has a job ([\d.]+) ms after it is due", README)[1]
    rows = re.findall(r"^\| DQ.*$", measured(page, "lateness"), re.MULTILINE)
    assert float(median) == round(float(rows[-1].split("|")[2]), 1)


def measured(page: str, table: str) -> str:
    """A table that `make bench-docs` wrote."""
    return re.search(rf"<!-- bench:{table} -->(.*?)<!-- /bench:{table} -->", page, re.DOTALL)[1]
