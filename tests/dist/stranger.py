"""A stranger installs DQ on a bare Debian and a bare Ubuntu, from the files of a release and
nothing of the repository, by the commands of docs/install.md. `make test-install`; it fetches
packages, so it is no part of `make test-dist`.

scripts/bare_images.sh makes the root folders. Each test gets one as it was, with a layer of its own
above it. Nothing starts services there: the servers are started here, as the distribution's users
and by its configuration files.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import HERE, VERSION, run
from harness.container import end
from harness.paths import ROOT, TARGET
from harness.ports import free_port

IMAGES = TARGET / "images"
PAGE = (ROOT / "docs" / "install.md").read_text()
# $1: the folder of this machine's layers; $2: the image. What enters ends with it.
BOOT = """
set -eu
root=$1/root
mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" overlay "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind /etc/resolv.conf "$root/etc/resolv.conf"
echo up
while :; do sleep 3600; done
"""
INSTALL = "apt-get install --yes --no-install-recommends"
# While this says 101, Debian's packages start nothing.
POLICY = "#!/bin/sh\nexit 101\n"


class Machine:
    """A root folder, into which only `copy` brings files from outside."""

    def __init__(self, image: Path, folder: Path):
        self.folder = folder
        for name in ("root", "upper", "work"):
            (folder / name).mkdir(parents=True)
        self._write("etc/resolv.conf", "")
        self._write("etc/hosts", "127.0.0.1 localhost\n")
        self._write("usr/sbin/policy-rc.d", POLICY)
        (folder / "upper/usr/sbin/policy-rc.d").chmod(0o755)
        self._started: list[subprocess.Popen[bytes]] = []
        boot = ("sh", "-c", BOOT, "sh", str(folder), str(image))
        self._holder = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL"),
                *("unshare", "--mount", "--pid", "--fork", "--kill-child", *boot),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout.readline() == "up\n"
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children")
        self._pid = children.read_text().strip()

    def copy(self, *files: Path) -> None:
        for file in files:
            self.put(file.name, file.read_bytes())

    def put(self, name: str, content: bytes) -> None:
        """A file in root's home. A layer that is mounted is written to through its mount."""
        write = self._enter("sh", "-c", 'cat > "/root/$1"', "sh", name)
        subprocess.run(write, input=content, check=True)

    def sh(self, script: str) -> str:
        """What a script prints, run by root in its home."""
        return run(*self._enter("sh", "-euc", f"cd /root; {script}"))

    def start(self, *command: str) -> None:
        with (self.folder / f"started-{len(self._started)}.log").open("wb") as log:
            self._started.append(
                subprocess.Popen(
                    self._enter(*command), stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            )

    def until(self, script: str, told: str) -> str:
        """What the script prints as soon as that contains `told`."""
        deadline = time.monotonic() + 30
        while True:
            done = subprocess.run(self._enter("sh", "-c", script), capture_output=True, text=True)
            if told in done.stdout:
                return done.stdout
            if time.monotonic() > deadline:
                raise AssertionError(f"{script}: {done.stdout}{done.stderr}\n{self.logs()}")
            time.sleep(0.1)

    def logs(self) -> str:
        return "\n".join(
            path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log"))
        )

    def stop(self) -> None:
        for process in self._started:
            end(process)
        self._started.clear()

    def shut_down(self) -> None:
        self.stop()
        end(self._holder)

    def _enter(self, *command: str) -> list[str]:
        return [
            *("env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8"),
            *(
                "DEBIAN_FRONTEND=noninteractive",
                "nsenter",
                "--target",
                self._pid,
                "--mount",
                "--pid",
            ),
            *("chroot", str(self.folder / "root"), *command),
        ]

    def _write(self, place: str, text: str) -> None:
        path = self.folder / "upper" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def machine(request: pytest.FixtureRequest, dist: Path, tmp_path: Path) -> Iterator[Machine]:
    image = IMAGES / request.param
    if os.geteuid() != 0:
        pytest.skip("only root can enter a root folder")
    if not image.exists():
        pytest.skip(f"no {request.param} could be had: see target/images/{request.param}.log")
    machine = Machine(image, tmp_path / "machine")
    machine.sh("apt-get update")
    yield machine
    machine.shut_down()


def on(*images: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("machine", images, indirect=True)


def block(title: str, word: str) -> list[str]:
    """The lines of the section's code block that has a word in it."""
    section = PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    (found,) = (
        text for text in re.findall(r"^```\n(.*?)^```$", section, re.M | re.S) if word in text
    )
    return found.splitlines()


def packages(dist: Path) -> list[Path]:
    arch = {"x86_64": "amd64", "aarch64": "arm64"}[HERE]
    return [dist / f"{name}_{VERSION}_{arch}.deb" for name in ("dq-module", "dq-board")]


def enable(machine: Machine) -> None:
    """As the page says. There is no systemd here, and the server has another port."""
    for line in block("Debian packages", "MODULE LIST"):
        if not line.startswith(("systemctl ", "redis-cli ")):
            machine.sh(line)


def start_server(machine: Machine, family: str) -> str:
    """As its unit does; returns the client's command."""
    port = free_port()
    machine.start(
        *("setpriv", f"--reuid={family}", f"--regid={family}", "--init-groups", "--no-new-privs"),
        *(f"/usr/bin/{family}-server", f"/etc/{family}/{family}.conf"),
        *(
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--daemonize",
            "no",
            "--pidfile",
            "",
            "--logfile",
            "",
        ),
    )
    cli = f"{family}-cli -p {port}"
    machine.until(f"{cli} PING", "PONG")
    return cli


def jobs_come(machine: Machine, cli: str) -> None:
    assert "dq" in machine.sh(f"{cli} MODULE LIST").split()
    assert VERSION in machine.sh(f"{cli} INFO dq")
    assert machine.sh(f"{cli} DQ.ADD mail a hello DELAY 200") == "a\n"
    # Id, body, lease and attempt.
    assert re.fullmatch(r"a\nhello\n\d+\n1\n", machine.sh(f"{cli} DQ.POP mail BLOCK 20000"))
    assert machine.sh(f"{cli} DQ.FINISH mail a") == "1\n"


def board_shows_it(machine: Machine, cli: str, program: str) -> None:
    machine.sh(f"{cli} DQ.ADD a-queue b hello")
    assert VERSION in machine.sh(f"{program} --version")
    port = free_port()
    redis = f"redis://127.0.0.1:{cli.split()[-1]}"
    nobody = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--no-new-privs")
    machine.start(*nobody, program, "--redis", redis, "--listen", f"127.0.0.1:{port}")
    # The bare machine has no browser: any client on this one is one.
    deadline = time.monotonic() + 30
    while True:
        command = ["curl", "--silent", "--max-time", "10", f"http://127.0.0.1:{port}/"]
        if "a-queue" in subprocess.run(command, capture_output=True, text=True).stdout:
            return
        assert time.monotonic() < deadline, machine.logs()
        time.sleep(0.1)


def has_manuals(machine: Machine) -> None:
    machine.sh(f"{INSTALL} man-db")
    for page in ("dq-module", "dq-board", "dq-exporter"):
        assert "DESCRIPTION" in machine.sh(f"man --pager=cat {page}")


def without_options(line: str) -> str:
    """apt asks before it installs more than it was told to."""
    return line.replace("apt install", INSTALL)


@pytest.mark.timeout(600)
@on("bookworm", "trixie", "noble")
def test_the_packages_on_a_bare_machine_with_its_own_redis(machine: Machine, dist: Path) -> None:
    machine.copy(*packages(dist))
    machine.sh(f"{INSTALL} redis-server")
    (install,) = block("Debian packages", "apt install")
    machine.sh(without_options(install))
    machine.sh(without_options(install.replace("dq-module", "dq-board")))
    enable(machine)
    cli = start_server(machine, "redis")
    jobs_come(machine, cli)
    board_shows_it(machine, cli, "/usr/bin/dq-board")
    assert machine.sh("dpkg --verify dq-module dq-board") == ""
    has_manuals(machine)
    machine.stop()
    # A server doesn't start without a module that its configuration names.
    machine.sh("dq-module disable")
    # With the settings in /etc/default, which `remove` keeps.
    machine.sh("apt-get purge --yes dq-module dq-board")
    assert start_server(machine, "redis")
    left = machine.sh(
        "find / -xdev -path /proc -prune -o -path /root -prune -o -path /var/cache/man -prune -o -name '*dq*' -print"
    )
    assert [path for path in left.split() if re.search(r"dq-board|dq-module|libdq", path)] == []


@pytest.mark.timeout(600)
@on("trixie")
def test_the_packages_on_a_bare_machine_with_its_own_valkey(machine: Machine, dist: Path) -> None:
    machine.copy(*packages(dist))
    machine.sh(f"{INSTALL} valkey-server ./dq-module_*.deb ./dq-board_*.deb")
    enable(machine)
    cli = start_server(machine, "valkey")
    jobs_come(machine, cli)
    board_shows_it(machine, cli, "/usr/bin/dq-board")


@pytest.mark.timeout(600)
@on("bookworm", "noble")
def test_the_archive_on_a_bare_machine(machine: Machine, dist: Path) -> None:
    machine.copy(dist / f"dq-{VERSION}-linux-{HERE}.tar.gz", dist / "SHA256SUMS")
    machine.sh(f"{INSTALL} redis-server")
    for line in block("Archives", "tar xzf"):
        machine.sh(line.replace("linux-x86_64", f"linux-{HERE}"))
    cli = start_server(machine, "redis")
    jobs_come(machine, cli)
    board_shows_it(machine, cli, f"/root/dq-{VERSION}-linux-{HERE}/dq-board")


WORKER = """
import os, redis
from dq_client import Queue
from dq_client.worker import Worker

r = redis.Redis(port=int(os.environ["PORT"]))
Queue(r, "mail").add("a", {"to": "ann"})

def send(job):
    print("to", job.body["to"], flush=True)
    worker.stop()

worker = Worker(Queue(r, "mail"), send)
worker.run()
"""


@pytest.mark.timeout(600)
@on("bookworm", "noble")
def test_the_python_client_on_a_bare_machine(machine: Machine, dist: Path, tmp_path: Path) -> None:
    """pip runs there without a network: a machine that tests may trust PyPI by a certificate of
    its own. So what pip would fetch is fetched here.
    """
    (wheel,) = dist.glob("dq_client-*.whl")
    wheels = tmp_path / "wheels"
    # The second is for Python 3.11.2.
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
    run(*pip, "--dest", wheels, "redis", "async-timeout")
    machine.copy(*packages(dist), wheel, *wheels.iterdir())
    machine.sh(f"{INSTALL} redis-server python3-venv ./dq-module_*.deb")
    enable(machine)
    cli = start_server(machine, "redis")
    machine.sh("python3 -m venv venv")
    machine.sh("venv/bin/pip install --quiet --no-index --find-links . ./dq_client-*.whl redis")
    machine.put("worker.py", WORKER.encode())
    port = cli.split()[-1]
    assert machine.sh(f"PORT={port} timeout 60 venv/bin/python worker.py") == "to ann\n"
