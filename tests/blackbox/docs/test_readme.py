"""The examples in README work: its worker, its session, its table of configs."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.address import Address
from harness.marks import on_one_kind
from harness.paths import ROOT
from harness.server import Server, eventually
from harness.transcript import Session

README = (ROOT / "README.md").read_text()
WORKER = re.search(r"<!-- worker: .*?```python\n(.*?)```", README, re.DOTALL).group(1)
# What the README says to replace: one that takes a while, and one that fails.
HANDLER = '    print("working on", body.decode(), flush=True)\n'
SLOW = HANDLER + '    time.sleep(1)\n    print("done", flush=True)\n'
FAILING = HANDLER + '    raise RuntimeError("\u00e9" * 300)\n'


class Worker:
    """The worker of the README, with another handler."""

    def __init__(self, port: int, output: Path, handler: str):
        assert WORKER.count(HANDLER) == 1
        self._output = output
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-c", WORKER.replace(HANDLER, handler)],
                env=os.environ | {"REDIS_URL": f"redis://127.0.0.1:{port}"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    def lines(self) -> list[str]:
        return self._output.read_text().splitlines()

    def said(self, line: str) -> None:
        __tracebackhide__ = True
        eventually(lambda: line in self.lines(), within_s=20)

    def complained(self) -> None:
        """It has said that a command failed."""
        __tracebackhide__ = True
        eventually(lambda: any(" failed: " in line for line in self.lines()), within_s=20)

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
    session.check("""
        > DQ.ADD mail a "Hello, Ann" DELAY 1000
        "a"
        > DQ.ADD mail b "Hello, Bob" PRIORITY 0
        "b"
    """)
    worker = start(server.port)
    session.eventually("> DQ.LEN mail\n(integer) 0", within_s=10)
    worker.is_told_to_stop()
    assert worker.has_stopped() == ["working on Hello, Bob", "working on Hello, Ann"]


def test_the_readmes_worker_gives_back_jobs_that_failed_or_were_not_begun(
    server: Server, session: Session, start: Callable[..., Worker]
) -> None:
    session.check("""
        > DQ.ADD mail a Ann ATTEMPTS 1
        "a"
    """)
    failing = start(server.port, FAILING)
    session.eventually("> DQ.LEN mail STATE dead\n(integer) 1", within_s=10)
    failing.is_told_to_stop()
    failing.has_stopped()
    session.check("""
        > DQ.ADD mail b Bob PRIORITY 0
        "b"
        > DQ.ADD mail c Cid ATTEMPTS 1
        "c"
    """)
    slow = start(server.port, SLOW)
    slow.said("working on Bob")
    slow.is_told_to_stop()
    assert slow.has_stopped() == ["working on Bob", "done"]
    session.check("""
        > DQ.POP mail COUNT 10
        [["c", "Cid", <*>, 1]]
    """)


def test_the_readmes_worker_outlives_its_server(
    fresh_server: Callable[..., Server], start: Callable[..., Worker]
) -> None:
    server = fresh_server("appendonly yes", "appendfsync always")
    worker = start(server.port, SLOW)
    server.session().check('> DQ.ADD mail a Ann\n"a"')
    worker.said("working on Ann")
    server.kill9()
    worker.complained()
    server.start()
    # What it had is finished, and not done again.
    server.session().eventually("> DQ.LEN mail\n(integer) 0", within_s=10)
    server.session().check('> DQ.ADD mail b Bob\n"b"')
    worker.said("working on Bob")

    # It doesn't wait for a server when it is told to stop.
    worker.said("done")
    server.kill9()
    worker.is_told_to_stop()
    assert [line for line in worker.has_stopped() if line.startswith("working")] == [
        "working on Ann",
        "working on Bob",
    ]


def test_the_readmes_worker_follows_its_address_to_a_new_primary(
    fresh_server: Callable[..., Server], start: Callable[..., Worker]
) -> None:
    old, new = fresh_server(), fresh_server()
    new.replicate(old)
    address = Address(old.port)
    try:
        worker = start(address.port, SLOW)
        old.session().check('> DQ.ADD mail a Ann\n"a"')
        worker.said("working on Ann")
        new.catch_up(old)
        new.client().replicaof("no", "one")
        address.lead_to(new.port)
        old.replicate(new)
        new.session().eventually("> DQ.LEN mail\n(integer) 0", within_s=20)
        new.session().check('> DQ.ADD mail b Bob\n"b"')
        worker.said("working on Bob")
    finally:
        address.close()


def test_the_readmes_session_gives_the_replies_it_shows(session: Session) -> None:
    """The commands stand in the README as below; replies there are as redis-cli shows them."""
    for command in (
        'DQ.ADD orders order:17 "cancel if unpaid" DELAY 1800000',
        "DQ.GET orders order:17",
        "DQ.DEL orders order:17",
        'DQ.ADD mail * "Hello, Ann" TTR 10000',
        "DQ.POP mail",
    ):
        assert f"127.0.0.1:6379> {command}" in README
    session.check("""
        > DQ.ADD orders order:17 "cancel if unpaid" DELAY 1800000
        "order:17"
        > DQ.DEL orders order:17
        (integer) 1
        > DQ.ADD mail * "Hello, Ann" TTR 10000
        <id>
        > DQ.POP mail
        [[<id>, "Hello, Ann", <lease>, 1]]
        > DQ.FINISH mail <id> <lease>
        (integer) 1
    """)


@on_one_kind
def test_the_table_of_configs_states_the_defaults(server: Server) -> None:
    stated = dict(re.findall(r"^\| `(dq\.[a-z-]+)` \| (\d+(?: \d+)?) \|", README, re.MULTILINE))
    assert stated == server.client().config_get("dq.*")


def test_the_life_of_a_job_is_drawn_as_in_the_guide() -> None:
    drawing = re.search(r"## The life of a job\n\n```\n(.*?)```", README, re.DOTALL)[1]
    assert drawing in (ROOT / "docs" / "guide.md").read_text()
