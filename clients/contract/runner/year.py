"""A year of one worker's life: 365 short days on real servers. Each day brings jobs, some of them
poison. Now and then there is a fault: outages shorter and longer than the TTR, a server that is
silent or crashes, a failover, a worker that is killed or stopped. A seed decides what happens when.
What the handlers and the server say of it is judged by the oracle (oracle.py).
"""

import random
import signal
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from harness.address import Address
from harness.resp import Failure, fields
from harness.server import Server, eventually
from runner.oracle import Fault, Job, Life, Run
from runner.program import Program

DAYS = 365
DAY_S = 0.25
TTR_MS = 3_000
KEEP_MS = 3_600_000
QUEUE = "year"

OUTAGE_DAYS = int(1.5 * TTR_MS / 1000 / DAY_S)
# For how many days a fault lasts, and how often it comes.
FAULTS = {
    "outage": (OUTAGE_DAYS, 4),
    "silence": (OUTAGE_DAYS, 4),
    "hiccup": (1, 5),
    "crash": (1, 4),
    "failover": (1, 4),
    "kill": (1, 4),
    "stop": (1, 3),
}
DAYS_BETWEEN = range(3, 7)
JOBS_OF_A_DAY = range(1, 4)

WORKS = b"works for a while"
# A job's body, its ATTEMPTS, and the state in which it ends.
KINDS: dict[str, tuple[bytes, int, str]] = {
    "quick": (b"[]", 5, "done"),
    "returns": (b'[["return", 1]]', 5, "done"),
    "works": (WORKS, 5, "done"),
    "works-once": (WORKS, 1, "done"),
    "raises": (b'[["raise", "no route"]]', 2, "dead"),
    "retries": (b'[["retry", 50, "again"]]', 3, "dead"),
    "buries": (b'[["bury", "no such address"]]', 5, "dead"),
    "unreadable": (b"[not json", 2, "dead"),
    "not-utf-8": (b'["\xff\xfe"]', 2, "dead"),
    "yesterday": (b'[["retry", -86400000, "yesterday"]]', 2, "dead"),
    "never": (b'[["retry", 900000000000000, "never"]]', 2, "dead"),
    "priority": (b'[["done", {"add": [{"body": 1, "priority": 300}]}]]', 2, "dead"),
    "taken": (b'[["done", {"result": 1, "add": [{"id": "taken", "body": 1}]}]]', 2, "dead"),
    "too-long": (b'[["repeat", "x", 2000000]]', 2, "dead"),
    "odd-reason": (b'[["raise", "\\ud800 \\u0000 \\uffff"]]', 2, "dead"),
}
UNREADABLE = ("unreadable", "not-utf-8")
# Their handlers return, and the server refuses what they return.
REFUSED = ("priority", "taken", "too-long")


class Year:
    def __init__(
        self,
        seed: int,
        start_server: Callable[[], Server],
        start_program: Callable[[], Program],
    ):
        self.life = Life(TTR_MS / 1000)
        self._random = random.Random(seed)
        self._start_program = start_program
        self._primary, self._replica = start_server(), start_server()
        self._replica.replicate(self._primary)
        self._address = Address(self._primary.port)
        self._observer = self._primary.session()
        self._numbers = count()
        self._working: list[tuple[float, str]] = []
        self._released: list[str] = []
        self._workers: list[Program] = []

    def close(self) -> None:
        self._observer.close()
        self._address.close()

    def live(self) -> Life:
        """Plays all days, and waits until each job has come to an end."""
        self._call("DQ.ADD", QUEUE, "taken", "[]", "DELAY", KEEP_MS)
        self._start_worker()
        course = self._course()
        next_at, begin = 0, time.monotonic()
        for day in range(DAYS):
            if day >= next_at:
                next_at = day + next(course, DAYS)
            self._produce()
            self._pass_time(begin + (day + 1) * DAY_S)
            self._see_that_a_worker_lives()
        assert next(course, None) is None, "not all faults fit into the year"
        self._wait_for_the_last_jobs()
        self._end_worker()
        for job in self.life.jobs:
            shown = self._call("DQ.GET", QUEUE, job.id)
            job.shown = fields(shown) if shown else {}
        self.life.runs = list(self._runs())
        return self.life

    # ---- faults ----------------------------------------------------------------------------------

    def _course(self) -> Iterator[int]:
        """Each step of the year's faults, and how many days pass after it."""
        names = [name for name, (_, often) in FAULTS.items() for _ in range(often)]
        self._random.shuffle(names)
        yield 3
        for name in names:
            fault = Fault(name, time.monotonic())
            self.life.faults.append(fault)
            self._begin(name)
            yield FAULTS[name][0]
            self._end(name)
            fault.ended = time.monotonic()
            yield self._random.choice(DAYS_BETWEEN)

    def _begin(self, fault: str) -> None:
        match fault:
            case "outage" | "hiccup":
                self._address.cut()
            case "silence":
                self._address.silence()
            case "crash":
                self._observer.close()
                self._primary.kill9()
                self._primary.start()
                self._observer = self._primary.session()
            case "failover":
                self._fail_over()
            case "kill":
                self._workers[-1].close()
            case "stop":
                self._end_worker()

    def _end(self, fault: str) -> None:
        match fault:
            case "outage" | "hiccup" | "silence":
                self._address.cut()
                self._address.lead_to(self._primary.port)
            case "kill" | "stop":
                self._start_worker()

    def _fail_over(self) -> None:
        """In agreement with the primary, which is a replica from then on. Its connections stay, as
        where the address of a service is moved.
        """
        reply = self._call("FAILOVER", "TO", "127.0.0.1", self._replica.port)
        assert reply == "OK", reply
        for server, role in ((self._replica, b"master"), (self._primary, b"slave")):
            session = server.session()
            eventually(lambda: session.call("ROLE")[0] == role, 30)  # noqa: B023
            session.close()
        self._primary, self._replica = self._replica, self._primary
        self._observer.close()
        self._observer = self._primary.session()
        self._address.lead_to(self._primary.port)

    # ---- workers ---------------------------------------------------------------------------------

    def _start_worker(self) -> None:
        worker = self._start_program()
        worker.ask("connect", url=f"redis://127.0.0.1:{self._address.port}", protocol=3)
        worker.ask("work", queues={QUEUE: 1}, concurrency=8, ttr=TTR_MS, grace=10_000)
        for id in self._released:
            worker.ask("go", name=id)
        self._workers.append(worker)

    def _end_worker(self) -> None:
        """It is told to stop, finishes what it has in hand, and ends with 0."""
        self._workers[-1].signal(signal.SIGTERM)
        self._pass_time(time.monotonic() + 1)
        worker = self._workers[-1]
        assert worker.exit() == 0, f"{worker.told()[-3:]}\n{worker.said()}"

    def _see_that_a_worker_lives(self) -> None:
        worker, fault = self._workers[-1], self.life.faults[-1:]
        is_between = fault and fault[0].name in ("kill", "stop") and not fault[0].ended
        assert is_between or worker.is_up(), f"{worker.told()[-3:]}\n{worker.said()}"

    # ---- jobs ------------------------------------------------------------------------------------

    def _produce(self) -> None:
        for _ in range(self._random.choice(JOBS_OF_A_DAY)):
            # Half of the jobs take their time.
            kind = self._random.choice([*KINDS, *["works"] * len(KINDS)])
            body, attempts, ends_as = KINDS[kind]
            id = f"{kind}-{next(self._numbers)}"
            if body == WORKS:
                body = b'[["wait", "%s"], ["return", 1]]' % id.encode()
                self._working.append((time.monotonic() + self._random.uniform(0.1, 2), id))
            delay = self._random.choice((0, 0, 300, 1_500))
            options = ("DELAY", delay, "ATTEMPTS", attempts, "KEEP", KEEP_MS)
            added = self._call("DQ.ADD", QUEUE, id, body, *options)
            assert not isinstance(added, Failure), added
            self.life.jobs.append(
                Job(id, attempts, ends_as, kind not in UNREADABLE, kind in REFUSED)
            )

    def _pass_time(self, until: float) -> None:
        """Handlers whose work takes no longer go on meanwhile."""
        while (now := time.monotonic()) < until:
            for end, id in [each for each in self._working if each[0] <= now]:
                self._working.remove((end, id))
                self._released.append(id)
                if self._workers[-1].is_up():
                    self._workers[-1].send("go", name=id)
            time.sleep(0.01)

    def _wait_for_the_last_jobs(self) -> None:
        self._pass_time(time.monotonic() + 2)

        def is_over() -> bool:
            states = ("ready", "reserved", "delayed")
            left = [self._call("DQ.LEN", QUEUE, "STATE", state) for state in states]
            return left == [0, 0, 1]

        eventually(is_over, 60)

    def _call(self, *words: Any) -> Any:
        return self._observer.call(*words)

    # ---- what the handlers have said -------------------------------------------------------------

    def _runs(self) -> Iterator[Run]:
        for number, worker in enumerate(self._workers):
            open_runs: dict[str, Run] = {}
            for event in worker.told():
                if event["event"] == "begun":
                    run = Run(event["id"], number, event["attempt"], event["at"])
                    open_runs[run.id] = run
                    yield run
                elif event["event"] == "ended" and (run := open_runs.pop(event["id"], None)):
                    run.ended, run.how = event["at"], event["how"]
