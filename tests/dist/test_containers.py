"""The Containerfiles and compose.yaml. No image can be had here, and no container runtime: they are read by
linters, what they name is there, and what they start is started in a root of its own that can't be
written to, under their user (harness/container.py).
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from conftest import TOOLS, run
from harness.container import NEEDS_ROOT, Container, Image
from harness.paths import ROOT
from harness.ports import free_port
from harness.server import Kind, eventually

CONTAINERFILES = sorted((ROOT / "containers").glob("*.Containerfile"))


@pytest.mark.parametrize("path", CONTAINERFILES, ids=lambda path: path.stem)
def test_a_containerfile_is_sound(path: Path) -> None:
    run(TOOLS / "bin" / "hadolint", "--failure-threshold", "style", path)


@pytest.mark.parametrize("path", CONTAINERFILES, ids=lambda path: path.stem)
def test_a_containerfile_copies_all_that_the_build_needs(path: Path, tmp_path: Path) -> None:
    """Copied as the Containerfile and .dockerignore say, cargo finds each file of the package."""
    allowed = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copies = re.findall(r"^COPY (?!--from)(.+) (\S+)$", path.read_text(), re.MULTILINE)
    assert copies
    for sources, to in copies:
        for source in sources.split():
            assert source in allowed, f".dockerignore keeps {source} out"
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, tmp_path / to)
            else:
                shutil.copy(ROOT / source, tmp_path / to)
    (host,) = re.findall(r"^host: (.+)$", run("rustc", "-vV"), re.MULTILINE)
    run(
        "cargo",
        "metadata",
        "--locked",
        "--offline",
        # What only other systems need is not on this one.
        "--filter-platform",
        host,
        "--format-version",
        "1",
        "--manifest-path",
        tmp_path / "Cargo.toml",
    )
    included = {
        (source.parent / name).resolve()
        for source in tmp_path.rglob("*.rs")
        for name in re.findall(r'include_(?:str|bytes)!\("(.+)"\)', source.read_text())
    }
    assert all(file.exists() for file in included)


def last(instruction: str, path: Path) -> str:
    """What the last instruction of that name says: that of the image, not of the stage that builds."""
    return re.findall(rf"^{instruction} (.+)$", path.read_text(), re.MULTILINE)[-1]


def numbers(path: Path) -> tuple[int, int]:
    user, group = last("USER", path).split(":")
    return int(user), int(group)


@pytest.mark.parametrize("path", CONTAINERFILES, ids=lambda path: path.stem)
def test_an_image_runs_as_a_user_without_rights_and_has_a_healthcheck(path: Path) -> None:
    """By number: Kubernetes can't tell whether a name is root's."""
    assert min(numbers(path)) > 0
    stages = path.read_text().split("\nFROM ")
    assert "\nUSER " in stages[-1], "in the stage that becomes the image"
    command = json.loads(last("HEALTHCHECK", path).split(" CMD ", 1)[1])
    assert command[0] in ("redis-cli", "valkey-cli", "/dq-board")


@pytest.fixture
def start() -> Iterator[Callable[..., Container]]:
    started: list[Container] = []

    def start(*args: Any, **named: Any) -> Container:
        started.append(Container(*args, **named))
        return started[-1]

    yield start
    for container in started:
        container.stop()


as_root = pytest.mark.skipif(NEEDS_ROOT, reason="a root of its own is made as root only")


@as_root
def test_a_server_s_image_needs_its_volume_alone_to_write_to(
    kind: Kind, unpacked: Path, tmp_path: Path, start: Callable[..., Container]
) -> None:
    path = ROOT / "containers" / f"{kind.family}.Containerfile"
    image = Image(tmp_path / "image")
    image.add(kind.binary.resolve(), f"/usr/bin/{kind.family}-server")
    (place,) = re.findall(r" /dq/\S+ (\S+)$", path.read_text(), re.MULTILINE)
    image.add(unpacked / "libdq.so", place)
    data = tmp_path / "data"
    data.mkdir()
    port = free_port()

    def started_in(folder: str) -> Container:
        """A container has a network of its own; here others could reach the server."""
        more = ["--dir", folder, "--port", str(port), "--bind", "127.0.0.1"]
        return start(
            image,
            [*json.loads(last("CMD", path)), *more],
            user=numbers(path)[0],
            log=tmp_path / f"log-{folder.strip('/')}",
            environment={},
            volumes={"/data": data},
        )

    # The official images' folder of work.
    container = started_in("/data")
    with redis.Redis(port=port) as r:

        def answers() -> bool:
            assert container.is_up(), container.log()
            try:
                return r.ping()
            except redis.RedisError:
                return False

        eventually(answers, 20)
        r.execute_command("DQ.ADD", "mail", "a", "x")
        assert r.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        r.execute_command("BGREWRITEAOF")
        eventually(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0, 20)
    assert [*data.rglob("*.aof")]
    # Nowhere else: or the root wouldn't be what a runtime makes with --read-only.
    container.stop()
    elsewhere = started_in("/")
    assert elsewhere.wait() != 0
    assert "Read-only file system" in elsewhere.log()


@as_root
def test_the_board_s_image_is_the_program_alone(
    unpacked: Path, tmp_path: Path, start: Callable[..., Container]
) -> None:
    path = ROOT / "containers" / "board.Containerfile"
    image = Image(tmp_path / "image")
    image.add(unpacked / "dq-board", json.loads(last("ENTRYPOINT", path))[0])
    assert {file.name for file in image.root.rglob("*") if file.is_file()} == {"dq-board"}
    listen = ["--listen", f"127.0.0.1:{free_port()}"]
    settings: dict[str, Any] = {
        "user": numbers(path)[0],
        "log": tmp_path / "log",
        "environment": {},
        "volumes": {},
    }
    # Without a server it says so, and is well.
    server = ["--redis", f"redis://127.0.0.1:{free_port()}"]
    program = json.loads(last("ENTRYPOINT", path))
    check = json.loads(last("HEALTHCHECK", path).split(" CMD ", 1)[1])

    def is_well() -> bool:
        return start(image, [*check, *listen], **settings).wait() == 0

    assert not is_well()
    board = start(image, [*program, *server, *listen], **settings)
    eventually(is_well, 20)
    assert board.is_up(), board.log()


def test_compose_yaml_is_valid_by_its_schema() -> None:
    run(
        TOOLS / "bin" / "check-jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        ROOT / "compose.yaml",
    )


def test_files_that_compose_yaml_names_exist() -> None:
    compose = (ROOT / "compose.yaml").read_text()
    files = re.findall(r"^\s+(?:dockerfile: |- \./)([\w./-]+)", compose, re.MULTILINE)
    assert len(files) == 6
    for name in files:
        assert (ROOT / name).exists(), name
    published = re.findall(r'ports: \["(.+)"\]', compose)
    assert len(published) == 4
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_the_prometheus_of_compose_yaml_is_configured(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: scripts/setup.sh board installs it")
    shutil.copy(ROOT / "containers" / "prometheus.yml", tmp_path)
    shutil.copy(ROOT / "prometheus" / "alerts.yml", tmp_path)
    run(promtool, "check", "config", tmp_path / "prometheus.yml")


def test_the_board_of_compose_yaml_takes_its_options(unpacked: Path) -> None:
    """Each option of compose.yaml is one of dq-board's."""
    options = re.findall(
        r'"(--[a-z-]+)"', re.search(r"command: (\[.+\])", (ROOT / "compose.yaml").read_text())[1]
    )
    assert options
    told = run(unpacked / "dq-board", "--help")
    assert all(option in told for option in options)
