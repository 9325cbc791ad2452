"""How the files of a release came to be: an in-toto statement with SLSA's provenance, version 1.

https://slsa.dev/spec/v1.0/provenance says what the fields mean. The statement isn't signed
by itself.
"""

import hashlib
import json
import re
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
# docs/install.md says what these two names mean.
BUILD_TYPE = "urn:dq:make-release:1"
BUILDER = "urn:dq:builder:a-person-by-hand"

# They pin, by hashes or versions, whatever else is fetched for a build.
LOCKS = (
    "Cargo.lock",
    "board/Cargo.lock",
    "clients/rust/Cargo.lock",
    "clients/typescript/package-lock.json",
    "release/requirements.txt",
)
PINNED = re.compile(r"^([\w.-]+)(?:\[.*\])?==(\S+)$", re.MULTILINE)

Resource = dict[str, Any]


@dataclass(frozen=True)
class Build:
    root: Path
    version: str
    architectures: tuple[str, ...]
    commit: str
    # Seconds: the time that all files bear.
    epoch: int
    finished: datetime
    builder: str = BUILDER


def statement(build: Build, files: list[Path]) -> str:
    told = {
        "_type": STATEMENT,
        "subject": [
            {"name": path.name, "digest": {"sha256": sha256(path)}} for path in sorted(files)
        ],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "version": build.version,
                    "architectures": list(build.architectures),
                    "source": {"digest": {"gitCommit": build.commit}},
                },
                "internalParameters": {"SOURCE_DATE_EPOCH": build.epoch},
                "resolvedDependencies": materials(build.root, build.commit),
            },
            "runDetails": {
                "builder": {"id": build.builder},
                "metadata": {"finishedOn": build.finished.strftime("%Y-%m-%dT%H:%M:%SZ")},
            },
        },
    }
    return json.dumps(told, indent=2) + "\n"


def materials(root: Path, commit: str) -> list[Resource]:
    """The sources, what pins the packages that they are built with, and the tools."""
    sources = {"name": "the sources of DQ", "digest": {"gitCommit": commit}}
    locks = [{"name": path, "digest": {"sha256": sha256(root / path)}} for path in LOCKS]
    tools = PINNED.findall((root / "release" / "requirements.txt").read_text())
    return [
        sources,
        *locks,
        _rustc(),
        *({"uri": f"pkg:pypi/{name.lower()}@{version}"} for name, version in tools),
    ]


def _rustc() -> Resource:
    """The compiler's own file, not the one of rustup that calls it."""
    version = _output("rustc", "--version").split()[1]
    program = Path(_output("rustc", "--print", "sysroot")) / "bin" / "rustc"
    return {"uri": f"pkg:generic/rustc@{version}", "digest": {"sha256": sha256(program)}}


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
