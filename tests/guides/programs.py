"""The programs that stand in a guide, as files that can be run.

Each is a block of code under a line `<!-- program: name -->`.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.paths import TARGET
from harness.server import eventually

DOCS = TARGET.parent / "docs" / "migrate"
NODE_MODULES = TARGET / "guides" / "node_modules"
PROGRAM = re.compile(r"^<!-- program: (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIMIT_S = 60


class Guide:
    def __init__(self, name: str, directory: Path, **environment: str):
        """Writes its programs into the directory, where they run with this environment."""
        self._directory = directory
        self._environment = os.environ | environment | {"PYTHONUNBUFFERED": "1"}
        programs = PROGRAM.findall((DOCS / f"{name}.md").read_text())
        assert programs, f"no programs in {name}.md"
        for file, text in programs:
            (directory / file).write_text(text)
        self.programs = {file for file, _ in programs}
        if NODE_MODULES.exists():
            (directory / "node_modules").symlink_to(NODE_MODULES)

    def run(self, program: str, *arguments: str) -> str:
        """Runs it to its end, and returns what it printed."""
        done = subprocess.run(
            [*self._command(program), *arguments],
            cwd=self._directory,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def prints(self, program: str | list[str], *lines: str) -> None:
        """Runs it until it has printed these lines, in any order, and nothing else; ends it."""
        with self.running(program) as output:
            try:
                # Whole ones: a program may write a line in parts.
                eventually(lambda: output.read_text().count("\n") >= len(lines), LIMIT_S)
            finally:
                printed = output.read_text()
        assert sorted(printed.splitlines()) == sorted(lines), printed

    @contextmanager
    def running(self, program: str | list[str]) -> Iterator[Path]:
        command = program if isinstance(program, list) else self._command(program)
        output, errors = self._directory / "output.txt", self._directory / "errors.txt"
        with output.open("w") as out, errors.open("w") as err:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],
                cwd=self._directory,
                env=self._environment,
                stdout=out,
                stderr=err,
            )
        try:
            yield output
            assert process.poll() is None, errors.read_text()
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @staticmethod
    def _command(program: str) -> list[str]:
        runtime = {".py": sys.executable, ".mjs": "node", ".rb": "ruby"}[Path(program).suffix]
        path = shutil.which(runtime)
        assert path, f"{runtime} is missing"
        return [path, program]
