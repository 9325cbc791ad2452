"""docs/commands and the sources describe the commands in the module's own words.

scripts/command_docs.py compares them, on every kind of server; a planted difference shows that it
can fail.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.paths import ROOT
from harness.server import Server

sys.path.insert(0, str(ROOT / "scripts"))

import command_docs


def run(mode: str, server: Server, *paths: str) -> subprocess.CompletedProcess[str]:
    address = f"redis://127.0.0.1:{server.port}"
    command = [sys.executable, command_docs.__file__, mode, "--server", address, *paths]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_the_docs_say_what_the_module_says(server: Server) -> None:
    checked = run("--check", server)
    assert checked.returncode == 0, f"{checked.stdout}\n{checked.stderr}"


def argument(
    name: str, kind: str = "string", token: str = "", flags: str = "", parts: Any = ()
) -> Any:
    words = {"token": token} if token else {}
    return {"name": name, "type": kind, "flags": flags.split(), "arguments": list(parts)} | words


def word(text: str) -> Any:
    return argument(text.lower(), "pure-token", text)


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (argument("key", "key"), "key"),
        (argument("n", "integer", "COUNT", "optional"), "[COUNT n]"),
        (argument("id", flags="multiple"), "id [id ...]"),
        (argument("id", flags="optional multiple"), "[id ...]"),
        (argument("ms", "integer", "DELAYS", "multiple"), "DELAYS ms [ms ...]"),
        (argument("ms", "integer", "DELAYS", "optional multiple"), "[DELAYS ms [ms ...]]"),
        (argument("ms", "integer", "AT", "optional multiple multiple_token"), "[AT ms ...]"),
        (argument("which", "oneof", parts=[argument("id"), word("*")]), "id|*"),
        (
            argument("what", "oneof", parts=[argument("records", token="GROUPS"), argument("id")]),
            "(GROUPS records | id)",
        ),
        (
            argument("taken", "oneof", "", "optional", [word("NX"), word("REPLACE")]),
            "[NX | REPLACE]",
        ),
        (
            argument("misfire", "oneof", "MISFIRE", "optional", [word("ONE"), word("ALL")]),
            "[MISFIRE ONE|ALL]",
        ),
        (argument("state", "oneof", "STATE", "", [word("ready"), word("dead")]), "STATE state"),
        (
            argument(
                "how",
                "oneof",
                "",
                "optional",
                [argument("ms", "integer", "DELAY"), word("UNBEGUN")],
            ),
            "[DELAY ms | UNBEGUN]",
        ),
        (
            argument(
                "backoff", "block", "BACKOFF", "optional", [argument("base-ms"), argument("max-ms")]
            ),
            "[BACKOFF base-ms max-ms]",
        ),
        (
            argument("more", "block", "", "optional multiple", [argument("id"), argument("lease")]),
            "[id lease ...]",
        ),
        (argument("milliseconds") | {"display_text": "ms"}, "ms"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arguments_are_written_in_redis_notation(told: Any, shown: str) -> None:
    assert command_docs.shown(told) == shown


def test_a_page_that_differs_from_the_module_is_shown_and_can_be_rewritten(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with command_docs.connection(f"redis://127.0.0.1:{server.port}") as client:
        found = command_docs.commands(client)
    copies = {path: tmp_path / path.relative_to(ROOT) for path, _ in command_docs.rewritten(found)}
    for path, copy in copies.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
    monkeypatch.setattr(command_docs, "ROOT", tmp_path)

    def says(mode: str) -> tuple[int, list[str]]:
        monkeypatch.setattr(sys, "argv", ["", mode, "--server", f"redis://127.0.0.1:{server.port}"])
        status = command_docs.main()
        return status, capsys.readouterr().out.splitlines()

    says("--write")
    assert says("--check") == (0, [])
    for copy in copies.values():
        copy.write_text(copy.read_text().replace("DQ.TOUCH key id lease", "DQ.TOUCH key lease id"))
    status, lines = says("--check")
    assert status == 1
    words = " ".join(found["touch"].pieces)
    assert f"+{words}" in lines
    assert f"+//! `{words}`" in lines
    assert says("--write") == (
        0,
        [f"written: {name}" for name in ("docs/commands/touch.md", "src/command/touch.rs")],
    )
    assert says("--check") == (0, [])
