"""dq-module, the command that puts DQ into a server's configuration, on real servers."""

import re
import subprocess
from pathlib import Path

import pytest
import redis

from conftest import run
from harness.server import Kind, Server
from test_debian import deb
from test_load import works


@pytest.fixture
def dq_module(dist: Path, tmp_path: Path) -> Path:
    """As installed, with the module where the package was unpacked."""
    root = tmp_path / "root"
    run("dpkg-deb", "--extract", deb(dist, "dq-module"), root)
    command = root / "usr/sbin/dq-module"
    text = command.read_text()
    assert "loadmodule /usr/lib/$(" in text
    command.write_text(text.replace("loadmodule /usr/lib/$(", f"loadmodule {root}/usr/lib/$("))
    return command


def told(command: Path, *words: object) -> tuple[int, str]:
    done = subprocess.run([command, *map(str, words)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_one_command_enables_it_and_one_disables_it(
    dq_module: Path, kind: Kind, tmp_path: Path
) -> None:
    folder = tmp_path / f"{kind.family}-server"
    folder.mkdir()
    file = folder / "redis.conf"
    server = Server(kind, folder, module_args=None)
    assert told(dq_module, "status", file) == (1, f"{file}: DQ is not enabled\n")
    assert told(dq_module, "enable", file)[0] == 0
    enabled = file.read_text()
    assert f"/usr/lib/{kind.family}/modules/libdq.so" in enabled
    assert told(dq_module, "enable", file) == (0, f"{file}: DQ is enabled already\n")
    assert file.read_text() == enabled
    assert told(dq_module, "status", file) == (0, f"{file}: DQ is enabled\n")
    server.restart()
    with server.client() as client:
        works(client)
        # With a setting, and written by the server itself, as Sentinel lets it.
        client.config_set("dq.default-ttr", 1234)
        client.config_rewrite()
        # Without this no server starts without DQ: its file holds a queue.
        client.flushall()
        client.save()
    assert told(dq_module, "disable", file)[0] == 0
    server.restart()
    with server.client() as client, pytest.raises(redis.ResponseError, match="unknown command"):
        client.execute_command("DQ.LEN", "q")
    # The setting has waited.
    assert told(dq_module, "enable", file)[0] == 0
    server.restart()
    with server.client() as client:
        assert client.config_get("dq.default-ttr") == {"dq.default-ttr": "1234"}
    server.kill9()


@pytest.mark.parametrize(
    "line",
    [
        "loadmodule /usr/lib/redis/modules/libdq.so",
        '  LoadModule "/opt/a b/libdq.so" default-ttr 30000',
        "loadmodule\t/opt/libdq-musl.so",
    ],
)
def test_a_line_that_a_person_wrote_is_known(dq_module: Path, tmp_path: Path, line: str) -> None:
    file = tmp_path / "redis.conf"
    file.write_text(f"port 1\n{line}\ndq.default-ttr 5\n# dq.x\n")
    assert told(dq_module, "enable", file) == (0, f"{file}: DQ is enabled already\n")
    assert told(dq_module, "disable", file)[0] == 0
    assert file.read_text() == f"port 1\n#dq-module# {line}\n#dq-module# dq.default-ttr 5\n# dq.x\n"
    assert told(dq_module, "enable", file)[0] == 0
    assert file.read_text() == f"port 1\n{line}\ndq.default-ttr 5\n# dq.x\n"


@pytest.mark.parametrize(
    "line", ["# loadmodule /x/libdq.so", "loadmodule /x/librejson.so", "port 1"]
)
def test_another_line_is_none_of_ours(dq_module: Path, tmp_path: Path, line: str) -> None:
    file = tmp_path / "redis.conf"
    # Without a newline at the end.
    file.write_text(line)
    assert told(dq_module, "disable", file) == (0, f"{file}: DQ is not enabled\n")
    assert file.read_text() == line
    assert told(dq_module, "enable", file)[0] == 0
    assert re.fullmatch(
        rf"{line}\nloadmodule /.+/usr/lib/redis/modules/libdq\.so\n", file.read_text()
    )


def test_mode_and_link_of_the_file_stay(dq_module: Path, tmp_path: Path) -> None:
    file, link = tmp_path / "real.conf", tmp_path / "redis.conf"
    file.write_text("port 1\n")
    file.chmod(0o640)
    link.symlink_to(file)
    assert told(dq_module, "enable", link)[0] == 0
    assert link.is_symlink()
    assert "loadmodule" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {"root", "real.conf", "redis.conf"}


def test_what_it_can_t_do_it_says(dq_module: Path, tmp_path: Path) -> None:
    for words in ((), ("start",), ("--help",)):
        code, said = told(dq_module, *words)
        assert code == 2
        assert said.startswith("usage: dq-module enable|disable|status")
    code, said = told(dq_module, "enable", tmp_path / "none")
    assert (code, said) == (1, f"dq-module: {tmp_path / 'none'} can't be read\n")


def test_the_man_page_has_each_command(dq_module: Path) -> None:
    page = run("zcat", dq_module.parents[2] / "usr/share/man/man8/dq-module.8.gz")
    (told,) = re.findall(r"usage: dq-module (\S+) ", dq_module.read_text())
    assert re.findall(r"\.TP\n\.B (\w+)\n", page) == told.split("|")
