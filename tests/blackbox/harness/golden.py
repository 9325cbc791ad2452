"""Golden files: what each version of the module wrote (tests/golden), and what a client sees of
it.

Each version has a folder, made by make.py there, with the same queues in four forms:

    dump.rdb        SAVE
    session.aof     the log of the session that made the queues
    rewritten.aof   BGREWRITEAOF without an RDB preamble
    payloads.json   a DUMP payload of each queue, in hex

content.json has a time, and what a client sees of the queues at that time. The tests set the
server's clock to it, so that each job is in the state that was recorded. digests.json has the
queues' digests by the module as it is now: `make.py --record` writes it again when a change of the
module changes what goes into a digest.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from harness.paths import ROOT
from harness.queues import digests, info
from harness.resp import fields
from harness.server import Server, eventually
from harness.transcript import escaped
from harness.wall_clock import shifted_clock

FOLDER = ROOT / "tests" / "golden"
STATES = ["delayed", "ready", "reserved", "dead", "done"]
# More than any queue there has.
ALL = 1_000
AOF = "appendonlydir/appendonly.aof"
NO_PREAMBLE = "aof-use-rdb-preamble no"
Content = dict[str, Any]


@dataclass(frozen=True)
class Golden:
    """The files of one version."""

    folder: Path

    def __str__(self) -> str:
        return self.folder.name

    @property
    def clock_ms(self) -> int:
        """The time at which the files are to be looked at."""
        return self._json("content.json")["clock-ms"]

    @property
    def content(self) -> Content:
        return self._json("content.json")["queues"]

    @property
    def digests(self) -> dict[str, str]:
        return self._json("digests.json")

    @property
    def payloads(self) -> dict[str, bytes]:
        return {key: bytes.fromhex(text) for key, text in self._json("payloads.json").items()}

    def bytes_of(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def write(self, name: str, value: Any) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / name).write_text(laid_out(value) + "\n")

    def clock(self, shims: Path) -> dict[str, str]:
        """The environment of a server whose clock begins at the time at which the files are to be
        looked at.
        """
        return clock_at(shims, self.clock_ms)

    def _json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())


def laid_out(value: Any, indent: str = "") -> str:
    """JSON with one line for each map or list that contains no other."""
    parts = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list) or not any(
        isinstance(part, dict | list) for part in parts
    ):
        return json.dumps(value)
    inner = indent + " "
    laid = [laid_out(part, inner) for part in parts]
    if isinstance(value, dict):
        laid = [f"{json.dumps(name)}: {part}" for name, part in zip(value, laid, strict=True)]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return begin + ",".join(f"\n{inner}{part}" for part in laid) + f"\n{indent}{end}"


def clock_at(shims: Path, unix_ms: int) -> dict[str, str]:
    return shifted_clock(shims, by_s=unix_ms // 1_000 - int(time.time()))


def versions() -> list[Golden]:
    return [Golden(path.parent) for path in sorted(FOLDER.glob("*/content.json"))]


# ---- the forms, as what a server needs to start with them ----------------------------------------


@dataclass(frozen=True)
class Form:
    """Lines of redis.conf, and files in the server's directory, each with the golden file it is
    made from.
    """

    name: str
    config: list[str]
    files: dict[str, str]
    # What the server is told of the files of its AOF.
    manifest: str = ""

    def __str__(self) -> str:
        return self.name

    def files_of(self, golden: Golden) -> dict[str, bytes]:
        files = {name: golden.bytes_of(source) for name, source in self.files.items()}
        return files | ({f"{AOF}.manifest": self.manifest.encode()} if self.manifest else {})


RDB = Form("rdb", [NO_PREAMBLE], {"dump.rdb": "dump.rdb"})
SESSION = Form(
    "aof of the session",
    ["appendonly yes", NO_PREAMBLE],
    {f"{AOF}.1.incr.aof": "session.aof"},
    "file appendonly.aof.1.incr.aof seq 1 type i\n",
)
REWRITTEN = Form(
    "rewritten aof",
    ["appendonly yes", NO_PREAMBLE],
    {f"{AOF}.1.base.aof": "rewritten.aof"},
    "file appendonly.aof.1.base.aof seq 1 type b\n",
)
# A server begins without them, and is told to RESTORE them.
PAYLOADS = Form("payloads", [NO_PREAMBLE], {})
FORMS = [RDB, SESSION, REWRITTEN, PAYLOADS]


def restore(golden: Golden, r: redis.Redis) -> None:
    for key, payload in golden.payloads.items():
        r.restore(key, 0, payload)


# ---- what is to be seen --------------------------------------------------------------------------


def queues_in(r: redis.Redis) -> list[str]:
    return sorted(key.decode() for key in r.scan_iter(_type="delayq-dq", count=ALL))


def content(r: redis.Redis) -> Content:
    """All that a client sees of all queues, as JSON. The client must not decode replies."""
    return {key: {"info": shown(info(r, key)), "jobs": jobs_of(r, key)} for key in queues_in(r)}


def known_to(then: Any, now: Any) -> Any:
    """The content without the fields that the older version didn't have."""
    match then, now:
        case dict(), dict():
            return {
                name: known_to(then[name], value) for name, value in now.items() if name in then
            }
        case list(), list():
            return [known_to(*pair) for pair in zip(then, now, strict=False)] + now[len(then) :]
    return now


def jobs_of(r: redis.Redis, key: str) -> dict[str, list[dict[str, Any]]]:
    """The jobs by state, in the order in which they leave it."""
    return {
        state: [
            shown(fields(r.execute_command("DQ.GET", key, fields(job)["id"])))
            for job in r.execute_command("DQ.PEEK", key, "STATE", state, "COUNT", ALL)
        ]
        for state in STATES
    }


def shown(job: dict[str, Any]) -> dict[str, Any]:
    """Bytes as redis-cli shows them."""
    return {name: text(value) if isinstance(value, bytes) else value for name, value in job.items()}


def text(value: bytes) -> str:
    return "".join(map(escaped, value.decode("latin-1")))


def digests_of(r: redis.Redis) -> dict[str, str]:
    keys = queues_in(r)
    told = digests(r, *keys)
    return {key: digest.decode() for key, digest in zip(keys, told, strict=True)}


def load_its_aof(server: Server, r: redis.Redis) -> None:
    """Loads the AOF that the module writes now, in commands only, in place of the data there."""
    if not r.info("persistence")["aof_enabled"]:
        r.config_set("appendonly", "yes")
        eventually(lambda: is_written(r), 20)
    assert server.rewrite_aof().suffix == ".aof"
    r.execute_command("DEBUG", "LOADAOF")


def is_written(r: redis.Redis) -> bool:
    state = r.info("persistence")
    return not (state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"])
