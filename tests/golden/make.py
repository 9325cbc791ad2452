#!/usr/bin/env python3
"""Makes golden files: what a version of the module writes, for all later ones to read.

tests/blackbox/harness/golden.py says what they are.

    target/venv/bin/python tests/golden/make.py VERSION [--module FILE] [--server NAME]
    target/venv/bin/python tests/golden/make.py --record [--server NAME]

The first makes tests/golden/VERSION, once for each version that is released, by the module in
target/release or the given one. It is not made again: that would be other files. The second writes
all digests.json anew, by the module in target/release, when a change of the module changes what
goes into a digest.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

import redis

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "blackbox"))

from harness.clock import DAY_MS, HOUR_MS
from harness.consumers import Room, in_one_go
from harness.golden import (
    FOLDER,
    NO_PREAMBLE,
    RDB,
    Golden,
    clock_at,
    content,
    digests_of,
    queues_in,
    versions,
)
from harness.queues import binary_client
from harness.server import KNOWN, MODULE, Kind, Server, eventually
from harness.transcript import play
from sessions import GIVEN_BACK, SESSIONS, WAITED

# The time at which all of them begin.
BEGIN_MS = int(datetime(2026, 1, 15, 8, tzinfo=timezone.utc).timestamp() * 1_000)
IDS = {"any_bytes": bytes(range(256)), "long": b"i" * 512}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", nargs="?", help="the folder to make, such as 0.1")
    parser.add_argument("--module", type=Path, default=MODULE)
    parser.add_argument("--server", choices=KNOWN, default="redis-7.0")
    parser.add_argument(
        "--record", action="store_true", help="write the digests of all versions anew"
    )
    options = parser.parse_args()
    kind = KNOWN[options.server]
    with tempfile.TemporaryDirectory() as directory:
        if options.record and options.version is None:
            record(kind, Path(directory))
        elif options.version is not None and not options.record:
            make(options.version, kind, options.module, Path(directory))
        else:
            parser.error("either a version or --record")


def make(version: str, kind: Kind, module: Path, directory: Path) -> None:
    folder = FOLDER / version
    if folder.exists():
        raise SystemExit(f"{folder} is there already: files of a version are made once")
    golden = Golden(directory / version)
    write_files(golden, kind, module, directory)
    golden.write("content.json", {"clock-ms": BEGIN_MS + HOUR_MS, "queues": {}})
    with loaded(golden, kind, module, directory) as r:
        golden.write("content.json", {"clock-ms": golden.clock_ms, "queues": content(r)})
        golden.write("digests.json", digests_of(r))
    shutil.copytree(golden.folder, folder)


def write_files(golden: Golden, kind: Kind, module: Path, directory: Path) -> None:
    """The four forms of the same queues."""
    config = ["appendonly yes", "appendfsync always", NO_PREAMBLE]
    with (
        started(
            kind,
            directory / "made",
            *config,
            module=module,
            environment=clock_at(directory, BEGIN_MS),
        ) as server,
        binary_client(server) as r,
    ):
        play_sessions(server)
        golden.write("payloads.json", {key: r.dump(key).hex() for key in queues_in(r)})
        r.save()
        (log,) = (server.directory / "appendonlydir").glob("*.incr.aof")
        files = {
            "dump.rdb": (server.directory / "dump.rdb").read_bytes(),
            "session.aof": log.read_bytes(),
            "rewritten.aof": server.rewrite_aof().read_bytes(),
        }
    for name, written in files.items():
        (golden.folder / name).write_bytes(written)


def play_sessions(server: Server) -> None:
    room = Room(server)
    for session in SESSIONS:
        room.check("# Of all of them.", far=BEGIN_MS + DAY_MS, **IDS)
        play(room, session)
    room.play(WAITED)
    killed = room.wait("who-is-killed", "DQ.POP", "waited", "BLOCK", 0)
    in_one_go(
        server.port,
        ("DQ.ADD", "waited", GIVEN_BACK, "x", "TTR", DAY_MS),
        ("CLIENT", "KILL", "ID", killed.id),
    )
    eventually(lambda: room.call("DQ.LEN", "waited", "STATE", "ready") == 1)
    room.close()


def record(kind: Kind, directory: Path) -> None:
    for golden in versions():
        with loaded(golden, kind, MODULE, directory) as r:
            golden.write("digests.json", digests_of(r))
        print(f"{golden.folder / 'digests.json'}")


@contextmanager
def loaded(golden: Golden, kind: Kind, module: Path, directory: Path) -> Iterator[redis.Redis]:
    """A client of a server that has loaded the RDB file, at the time at which it is to be looked
    at.
    """
    files, environment = RDB.files_of(golden), golden.clock(directory)
    with (
        started(
            kind,
            directory / f"loaded-{golden}",
            *RDB.config,
            module=module,
            files=files,
            environment=environment,
        ) as server,
        binary_client(server) as r,
    ):
        yield r


@contextmanager
def started(
    kind: Kind,
    directory: Path,
    *config: str,
    module: Path,
    environment: dict[str, str],
    files: dict[str, bytes] | None = None,
) -> Iterator[Server]:
    directory.mkdir()
    server = Server(
        kind, directory, *config, module=module, files=files or {}, environment=environment
    )
    try:
        yield server
    finally:
        server.kill9()


if __name__ == "__main__":
    main()
