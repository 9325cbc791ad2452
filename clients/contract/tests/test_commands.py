"""commands.json is what the module says of its commands."""

import subprocess
import sys
from pathlib import Path

from harness.server import Server

MAKE = Path(__file__).resolve().parents[1] / "make.py"


def test_the_calls_are_those_of_the_module(server: Server) -> None:
    checked = subprocess.run(
        [sys.executable, MAKE, "--check", "--server", f"redis://127.0.0.1:{server.port}"],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr
