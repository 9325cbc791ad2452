"""What a worker does, step by step. A scenario is a text of steps, one a line:

    # a comment
    > DQ.LEN q                  a command by an observer, and below it the promised reply, as in
    (integer) 1                 tests/blackbox/harness/transcript.py; after `# Later` it is repeated
    work {"queues": {"q": 1}}   a worker starts, with these settings (README.md)
    event begun {"id": "a"}     waits until a handler has told this; each event counts once
    none begun {"id": "b"}      no handler has told this so far
    go NAME                     handlers that `wait` for NAME go on
    renewed q a                 waits until the lease of a job has been extended twice
    share {"a": 3, "b": 1}      waits for as many jobs, and counts of which queues they came
    reason q a "no route"       waits until this is part of the job's reason; `note` likewise
    calls dq.pop 1              how often the server has carried out a command
    signal TERM                 to the worker's program
    exit 0                      the program ends by itself, with this status
    kill                        the program is killed
    server kill|start           the server crashes; it is started again, with its AOF
    failover                    the replica is the new primary, and the server its replica
    address silence|cut|back    what is sent is swallowed; connections are closed; all is well again

A verb of workers may name one: `work@b`, `event@b`. Without a name it is `a`.
"""

import json
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.address import Address
from harness.resp import fields
from harness.server import Server, eventually
from harness.transcript import LATER, LATER_AT_MOST_S, Session
from runner.program import Program

VERBS = (
    *("work", "event", "none", "go", "signal", "exit", "kill", "renewed", "share", "reason"),
    *("note", "calls", "server", "failover", "address"),
)
STEP = re.compile(rf"({'|'.join(VERBS)})(?:@(\w+))?(?: (.*))?")


@dataclass
class Step:
    """A verb with the worker and the rest of its line, or commands with their replies."""

    verb: str
    worker: str
    rest: str

    def __str__(self) -> str:
        return f"{self.verb}@{self.worker} {self.rest}"


def steps(text: str) -> Iterator[Step]:
    commands: list[str] = []
    verb = "session"
    for line in map(str.strip, text.splitlines()):
        is_verb = STEP.fullmatch(line)
        if commands and (is_verb or line.startswith(("> ", "#"))):
            yield Step(verb, "", "\n".join(commands))
            commands, verb = [], "session"
        if line.startswith(LATER):
            verb = "later"
        elif is_verb:
            yield Step(is_verb[1], is_verb[2] or "a", is_verb[3] or "")
        elif line and not line.startswith("#"):
            commands.append(line)
    if commands:
        yield Step(verb, "", "\n".join(commands))


class Scenario:
    def __init__(self, start_server: Callable[[], Server], start_program: Callable[[], Program]):
        self._start_server = start_server
        self._start_program = start_program
        self._server = start_server()
        self._address = Address(self._server.port)
        self._observer: Session = self._server.session()
        self._programs: dict[str, Program] = {}
        self._seen: dict[str, set[int]] = {}

    def close(self) -> None:
        self._observer.close()
        self._address.close()

    def play(self, text: str) -> None:
        __tracebackhide__ = True
        for step in steps(text):
            try:
                self._play(step)
            except BaseException as error:
                said = "\n".join(program.said() for program in self._programs.values())
                raise AssertionError(f"{error}\nin the step: {step}\n{said}") from error

    def _play(self, step: Step) -> None:
        program = self._programs.get(step.worker)
        match step.verb:
            case "session":
                self._observer.check(step.rest)
            case "later":
                self._observer.eventually(step.rest, LATER_AT_MOST_S)
            case "work":
                self._work(step.worker, json.loads(step.rest))
            case "event":
                self._event(step.worker, *parted(step.rest))
            case "none":
                self._none(step.worker, *parted(step.rest))
            case "go":
                program.ask("go", name=step.rest)
            case "signal":
                program.signal(signal.Signals[f"SIG{step.rest}"])
            case "exit":
                assert program.exit() == int(step.rest)
            case "kill":
                program.close()
            case "renewed":
                self._renewed(*step.rest.split())
            case "share":
                self._share(step.worker, json.loads(step.rest))
            case "reason" | "note":
                self._shows(step.verb, *step.rest.split(maxsplit=2))
            case "calls":
                self._calls(*step.rest.split())
            case "server":
                self._crash_or_start(step.rest)
            case "failover":
                self._fail_over()
            case "address":
                self._lead(step.rest)

    # ---- workers ---------------------------------------------------------------------------------

    def _work(self, worker: str, settings: dict[str, Any]) -> None:
        program = self._programs[worker] = self._start_program()
        self._seen[worker] = set()
        program.ask("connect", url=f"redis://127.0.0.1:{self._address.port}", protocol=3)
        program.ask("work", **settings)

    def _event(self, worker: str, event: str, wanted: dict[str, Any]) -> None:
        """The first one that hasn't been waited for."""
        place = -1
        while place < 0 or place in self._seen[worker]:
            place = self._programs[worker].event(event, seen=place + 1, **wanted)
        self._seen[worker].add(place)

    def _none(self, worker: str, event: str, unwanted: dict[str, Any]) -> None:
        told = enumerate(self._programs[worker].told())
        fresh = [each for at, each in told if at not in self._seen[worker]]
        assert [e for e in fresh if e.items() >= (unwanted | {"event": event}).items()] == []

    def _share(self, worker: str, wanted: dict[str, int]) -> None:
        def begun() -> list[str]:
            told = self._programs[worker].told()
            return [event["queue"] for event in told if event["event"] == "begun"]

        many = sum(wanted.values())
        eventually(lambda: len(begun()) >= many, 20)
        assert Counter(begun()[:many]) == wanted

    def _job(self, key: str, id: str) -> dict[str, Any]:
        return fields(self._observer.call("DQ.GET", key, id))

    def _renewed(self, key: str, id: str) -> None:
        for _ in range(2):
            before = self._job(key, id)["deadline"]
            eventually(lambda before=before: self._job(key, id)["deadline"] > before, 20)

    def _shows(self, field: str, key: str, id: str, part: str) -> None:
        wanted = json.loads(part).encode()
        eventually(lambda: wanted in (self._job(key, id).get(field) or b""), 20)

    def _calls(self, command: str, wanted: str) -> None:
        told = self._observer.call("INFO", "commandstats").decode()
        found = re.search(rf"^cmdstat_{command}:calls=(\d+)", told, re.MULTILINE)
        assert found is not None and found[1] == wanted, told

    # ---- the server ------------------------------------------------------------------------------

    def _crash_or_start(self, what: str) -> None:
        if what == "kill":
            self._server.kill9()
        else:
            self._server.start()
            self._observe(self._server)

    def _fail_over(self) -> None:
        replica = self._start_server()
        replica.replicate(self._server)
        replica.catch_up(self._server)
        with replica.client() as there, self._server.client() as here:
            there.replicaof("NO", "ONE")
            here.replicaof("127.0.0.1", replica.port)
        self._server = replica
        self._address.lead_to(replica.port)
        self._observe(replica)

    def _observe(self, server: Server) -> None:
        """What the scenario has bound so far goes on in another session."""
        bound = self._observer._bound
        self._observer.close()
        self._observer = server.session()
        self._observer._bound = bound

    def _lead(self, what: str) -> None:
        if what == "silence":
            self._address.silence()
            return
        self._address.cut()
        if what == "back":
            self._address.lead_to(self._server.port)


def parted(wanted: str) -> tuple[str, dict[str, Any]]:
    event, _, told = wanted.partition(" ")
    return event, json.loads(told or "{}")
