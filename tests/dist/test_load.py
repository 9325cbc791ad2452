"""The built module in real servers: every kind, on this machine's processor and on the other by qemu."""

import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from conftest import OTHER, VERSION, run
from harness.paths import ROOT, TARGET
from harness.ports import free_port
from harness.server import Kind, Server, eventually

QEMU = shutil.which(f"qemu-{OTHER}-static")


def numbered(version: str) -> int:
    major, minor, patch = map(int, version.split("."))
    return 10_000 * major + 100 * minor + patch


def test_the_packed_module_works(server: Server) -> None:
    works(server.client())


def works(client: redis.Redis) -> None:
    """A job is added, waited for, delivered and finished, and survives a reload meanwhile."""
    (module,) = (module for module in client.module_list() if module["name"] == "dq")
    assert module["ver"] == numbered(VERSION)
    assert client.info("dq")["dq_version"] == VERSION
    assert client.execute_command("DQ.ADD", "mail", "a", "hello", "DELAY", 50) == "a"
    client.execute_command("DEBUG", "RELOAD")
    ((job_id, body, lease, attempt),) = client.execute_command("DQ.POP", "mail", "BLOCK", 30_000)
    assert (job_id, body, attempt) == ("a", "hello", 1)
    assert client.execute_command("DQ.FINISH", "mail", "a", lease) == 1


@pytest.mark.timeout(900)
def test_the_packed_module_passes_the_tests_of_commands_and_old_files(unpacked: Path) -> None:
    """Those of `make test`, with the module of the release."""
    folders = [
        ROOT / "tests/blackbox" / name for name in ("commands", "persistence/test_golden.py")
    ]
    told = run(
        *(
            "env",
            f"DQ_MODULE={unpacked / 'libdq.so'}",
            sys.executable,
            "-m",
            "pytest",
            "--quiet",
            "-n4",
        ),
        *("--rootdir", ROOT, "--config-file", ROOT / "pyproject.toml", *folders),
    )
    assert re.search(r"\d\d\d passed", told), told


def test_a_file_that_is_not_executable_is_refused(
    kind: Kind, unpacked: Path, tmp_path: Path
) -> None:
    """As docs/install.md says."""
    module = tmp_path / "libdq.so"
    shutil.copyfile(unpacked / "libdq.so", module)
    module.chmod(0o644)
    with pytest.raises(RuntimeError, match="does not have execute permissions"):
        Server(kind, tmp_path, module=module)


def test_config_rewrite_keeps_the_module_and_its_settings(server: Server) -> None:
    with server.client() as client:
        client.config_set("dq.default-ttr", 12_345)
        client.config_rewrite()
    server.restart()
    client = server.client()
    assert client.config_get("dq.*")["dq.default-ttr"] == "12345"
    works(client)


def test_a_loadmodule_line_in_an_included_file_does_not_survive_config_rewrite(
    kind: Kind, unpacked: Path, tmp_path: Path
) -> None:
    """docs/install.md and redis.conf.example warn of it: the server writes a second loadmodule line."""
    included = tmp_path / "dq.conf"
    included.write_text(f'loadmodule "{unpacked / "libdq.so"}"\n')
    folder = tmp_path / "server"
    folder.mkdir()
    server = Server(kind, folder, f'include "{included}"', module_args=None)
    try:
        with server.client() as client:
            works(client)
            client.config_rewrite()
        server.stop()
        with pytest.raises(RuntimeError, match="Can't load module"):
            server.start()
    finally:
        server.kill9()


def test_the_packed_and_the_developers_module_read_each_others_files(
    kind: Kind, unpacked: Path, tmp_path: Path
) -> None:
    """And the other way round: a file doesn't depend on who compiled the module."""
    for first, second in ((None, "libdq.so"), ("libdq.so", None)):
        folder = tmp_path / f"from-{first}"
        folder.mkdir()
        modules = [{"module": unpacked / name} if name else {} for name in (first, second)]
        server = Server(kind, folder, **modules[0])
        with server.client() as client:
            client.execute_command("DQ.ADD", "mail", "a", "x", "DELAY", 3_600_000)
            digest = client.execute_command("DEBUG", "DIGEST-VALUE", "mail")
            client.save()
        server.kill9()
        after = tmp_path / f"to-{second}"
        after.mkdir()
        shutil.copy(folder / "dump.rdb", after)
        server = Server(kind, after, **modules[1])
        with server.client() as client:
            assert client.execute_command("DEBUG", "DIGEST-VALUE", "mail") == digest
        server.kill9()


@contextlib.contextmanager
def emulated(module: Path, folder: Path) -> Iterator[redis.Redis]:
    """A server for the other processor."""
    program = TARGET / "servers" / f"redis-{OTHER}" / "redis-server"
    libraries = Path(f"/usr/{OTHER}-linux-gnu")
    if not (QEMU and program.exists() and libraries.exists()):
        pytest.skip(
            f"no qemu-user, no server or no libraries for {OTHER}: scripts/setup.sh test-dist installs them"
        )
    port = free_port()
    config = f"--port {port} --bind 127.0.0.1 --appendonly no --enable-debug-command yes"
    process = subprocess.Popen(
        [
            *(QEMU, "-L", libraries, program),
            *config.split(),
            "--dir",
            folder,
            "--loadmodule",
            module,
        ],
        stdin=subprocess.DEVNULL,
        stdout=(folder / "log").open("wb"),
        stderr=subprocess.STDOUT,
    )
    try:
        client = redis.Redis("127.0.0.1", port, protocol=2, decode_responses=True)

        def answers() -> bool:
            assert process.poll() is None, (folder / "log").read_text()
            with contextlib.suppress(redis.ConnectionError):
                return client.ping()
            return False

        eventually(answers, 60)
        yield client
    finally:
        process.kill()
        process.wait()


def test_the_module_of_the_other_processor_works(other: Path, tmp_path: Path) -> None:
    with emulated(other / "libdq.so", tmp_path) as client:
        works(client)


def test_the_board_of_the_other_processor_starts(other: Path) -> None:
    if not QEMU:
        pytest.skip("no qemu-user: scripts/setup.sh test-dist installs it")
    told = subprocess.run(
        [QEMU, other / "dq-board", "--version"], capture_output=True, text=True, check=True
    )
    assert told.stdout == f"dq-board {VERSION}\n"


MUSL = Kind("redis-musl", TARGET / "servers" / "redis-musl" / "redis-server", "7.0")


@pytest.fixture
def musl_server(unpacked: Path, tmp_path: Path) -> Iterator[Server]:
    if not MUSL.path.exists():
        pytest.skip(
            "no server for musl: scripts/setup.sh test-dist builds one from Debian's source of Redis"
        )
    folder = tmp_path / "server"
    folder.mkdir()
    server = Server(MUSL, folder, module=unpacked / "libdq-musl.so")
    yield server
    server.kill9()


def test_the_module_for_musl_works_in_a_server_for_musl(musl_server: Server) -> None:
    with musl_server.client() as client:
        works(client)
        client.execute_command(
            "DQ.ADD", "reports", "nightly", "x", "CRON", "30 2 * * *", "TZ", "Europe/Berlin"
        )
        # What DEBUG RELOAD has saved is from before the job was finished.
        client.save()
    musl_server.restart()
    with musl_server.client() as client:
        assert client.execute_command("DQ.LEN", "reports", "STATE", "delayed") == 1
        works(client)


def test_the_module_for_glibc_does_not_load_with_musl(
    musl_server: Server, unpacked: Path, tmp_path: Path
) -> None:
    """So the test above is one of the module for musl."""
    folder = tmp_path / "another"
    folder.mkdir()
    with pytest.raises(RuntimeError):
        Server(MUSL, folder, module=unpacked / "libdq.so")


def test_musl_s_loader_takes_the_module_for_it(unpacked: Path) -> None:
    """Its loader finds every symbol that the module asks for."""
    loader = next(iter(Path("/lib").glob("ld-musl-*.so.1")), None)
    if loader is None:
        pytest.skip("no musl: scripts/setup.sh test-dist installs it")
    told = subprocess.run(
        [loader, "--list", unpacked / "libdq-musl.so"], capture_output=True, text=True
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "not found" not in told.stdout + told.stderr
