"""What the scripts of the Debian packages call where they see that systemd runs."""

import os
import subprocess
from pathlib import Path

import pytest

from conftest import run
from test_debian import SCRIPTS, deb

STATE = "var/lib/private/dq-board/history"
WANTED = "etc/systemd/system/multi-user.target.wants/dq-board.service"


@pytest.fixture
def machine(dist: Path, tmp_path: Path) -> Path:
    """A root with what the service left, and commands that write down their words in `called`."""
    for name in SCRIPTS:
        control = tmp_path / name
        run("dpkg-deb", "--control", deb(dist, name), control)
        for script in SCRIPTS[name]:
            text = (control / script).read_text()
            for folder in ("/run/systemd/", "/var/lib/", "/etc/systemd/"):
                text = text.replace(f" {folder}", f" {tmp_path}{folder}")
            (control / script).write_text(text)
    (tmp_path / "bin").mkdir()
    for command in ("systemctl", "deb-systemd-invoke", "dq-module"):
        path = tmp_path / "bin" / command
        # What they fail with must not fail dpkg.
        path.write_text(
            f'#!/bin/sh\necho "{command} $*" >>"{tmp_path}/called"\nexit ${{FAILS:-0}}\n'
        )
        path.chmod(0o755)
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    for name in (STATE, WANTED):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    return tmp_path


def called(machine: Path, script: str, *words: str, **environment: str) -> tuple[list[str], str]:
    """The commands that a script calls, and what it says. It has to succeed."""
    (machine / "called").write_text("")
    done = subprocess.run(
        [machine / script, *words],
        env={"PATH": f"{machine / 'bin'}:{os.environ['PATH']}", "DPKG_ROOT": ""} | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return (machine / "called").read_text().splitlines(), done.stderr


RELOADED = "systemctl --system daemon-reload"


@pytest.mark.parametrize("fails", ["0", "1"])
def test_an_installation_starts_nothing_and_an_upgrade_restarts_what_runs(
    machine: Path, fails: str
) -> None:
    configure = ("dq-board/postinst", "configure")
    assert called(machine, *configure, "", FAILS=fails)[0] == [RELOADED]
    assert called(machine, *configure, "0.2.9", FAILS=fails)[0] == [
        RELOADED,
        "deb-systemd-invoke try-restart dq-board.service",
    ]


@pytest.mark.parametrize("fails", ["0", "1"])
def test_a_board_that_is_removed_stops_and_purging_leaves_nothing(
    machine: Path, fails: str
) -> None:
    assert called(machine, "dq-board/prerm", "upgrade", "0.4.0", FAILS=fails)[0] == []
    assert called(machine, "dq-board/prerm", "remove", FAILS=fails)[0] == [
        "deb-systemd-invoke stop dq-board.service"
    ]
    assert called(machine, "dq-board/postrm", "remove", FAILS=fails)[0] == [RELOADED]
    assert (machine / STATE).exists()
    assert (machine / WANTED).exists()
    assert called(machine, "dq-board/postrm", "purge", FAILS=fails)[0] == [RELOADED]
    assert not (machine / STATE).parent.exists()
    assert not (machine / WANTED).exists()


def test_who_removes_the_module_hears_of_a_server_that_still_loads_it(machine: Path) -> None:
    assert called(machine, "dq-module/prerm", "upgrade", "0.4.0") == ([], "")
    said, warning = called(machine, "dq-module/prerm", "remove")
    assert said == ["dq-module status"]
    assert "a server is still configured to load DQ" in warning
    assert called(machine, "dq-module/prerm", "remove", FAILS="1") == (["dq-module status"], "")


def test_in_another_root_nothing_of_this_machine_is_touched(machine: Path) -> None:
    for script, word in (
        ("dq-board/postinst", "configure"),
        ("dq-board/prerm", "remove"),
        ("dq-board/postrm", "purge"),
        ("dq-module/prerm", "remove"),
    ):
        assert called(machine, script, word, "", DPKG_ROOT="/elsewhere") == ([], "")
    assert (machine / STATE).exists()
