"""Real servers with the module loaded, each in its own directory and on its own port."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from harness.paths import TARGET
from harness.transcript import Session

# tests/dist runs some of the tests with the module of a release.
MODULE = Path(os.environ.get("DQ_MODULE", TARGET / "release" / "libdq.so"))
NOTHING: Mapping[str, Any] = MappingProxyType({})

CONFIG = """\
bind 127.0.0.1
save ""
appendonly no
enable-debug-command yes
enable-module-command yes
repl-diskless-sync-delay 0
repl-ping-replica-period 1
"""


@dataclass(frozen=True)
class Kind:
    """A kind of server that tests run on."""

    name: str
    path: Path
    version: str

    @property
    def binary(self) -> Path:
        """The server's program, in the version that the tests name."""
        if not self.path.exists():
            raise FileNotFoundError(f"{self.path} is missing: run `make setup`")
        if (told := version_of(self.path)) != self.version:
            raise RuntimeError(f"{self.path} is not version {self.version} but {told}")
        return self.path

    @property
    def family(self) -> str:
        """redis or valkey."""
        return self.name.split("-")[0]

    def is_since(self, family: str, major: int, minor: int = 0) -> bool:
        """Whether the server is of this family, and of this version or a later one."""
        return self.family == family and (major, minor) <= tuple(map(int, self.version.split(".")))

    def __str__(self) -> str:
        return self.name


def release_of(program: Path) -> str:
    """A release, such as 8.2.3."""
    told = subprocess.check_output([program, "--version"], text=True)
    return told.split(" v=")[1].split()[0]


def version_of(program: Path) -> str:
    """A version, such as 8.2."""
    return ".".join(release_of(program).split(".")[:2])


def fetched(family: str, version: str) -> Kind:
    """A server that `make setup` fetches."""
    name = f"{family}-{version}"
    return Kind(name, TARGET / "servers" / name / f"{family}-server", version)


def named(name: str) -> Kind:
    """A server by the name under which `make setup` fetches it, or by its path."""
    if name in KNOWN:
        return KNOWN[name]
    path = Path(name).absolute()
    if not path.is_file():
        raise FileNotFoundError(f"{name} is no path of a server, and none of {', '.join(KNOWN)}")
    family, version = path.name.split("-")[0], version_of(path)
    return Kind(f"{family}-{version}", path, version)


KNOWN = {
    kind.name: kind
    for kind in (
        fetched("redis", "7.0"),
        fetched("redis", "8.2"),
        fetched("valkey", "8.1"),
        fetched("valkey", "9.1"),
    )
}
DEFAULT = "redis-7.0 redis-8.2 valkey-9.1"
# `make test SERVERS="valkey-8.1 /usr/local/bin/redis-server"` for others.
KINDS = [named(name) for name in os.environ.get("DQ_SERVERS", DEFAULT).split()]


def eventually(condition: Callable[[], Any], within_s: float = 5) -> Any:
    """Waits until the condition holds and returns its value; fails at the deadline."""
    __tracebackhide__ = True
    deadline = time.monotonic() + within_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s} s: the last value was {value!r}")
        time.sleep(0.002)
    return value


class Server:
    """One server process. Its port and directory stay the same when it is started again."""

    def __init__(
        self,
        kind: Kind,
        directory: Path,
        *config: str,
        module_args: str | None = "",
        module: Path = MODULE,
        files: Mapping[str, bytes] = NOTHING,
        environment: Mapping[str, str] = NOTHING,
        under: Sequence[str] = (),
    ):
        """`config` has lines of redis.conf. With `module_args` None the server starts without the
        module. `files` are in its directory when it starts. `environment` is set at each start.
        `under` is a program that runs the server, with its arguments.
        """
        if not module.exists():
            raise FileNotFoundError(f"{module} is missing: run `make build`")
        self.kind = kind
        self.directory = directory
        self.port, claim = claimed_port()
        weakref.finalize(self, claim.close)
        self.log_path = directory / "server.log"
        self._config_path = directory / "redis.conf"
        self._environment = os.environ | environment
        self._under = under
        self._process: subprocess.Popen[bytes] | None = None

        for name, content in files.items():
            path = directory / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        lines = [f"port {self.port}", f'dir "{directory}"', *config]
        if module_args is not None:
            lines.append(f'loadmodule "{module}" {module_args}')
        self._config_path.write_text(CONFIG + "\n".join(lines) + "\n")
        # Such a program may take its time.
        self.start(within_s=300 if under else 30)

    def __str__(self) -> str:
        return f"{self.kind} on port {self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server was stopped"
        return self._process.pid

    def is_up(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def has_died(self) -> bool:
        """The server has ended, and not because the test ended it."""
        return self._process is not None and self._process.poll() is not None

    def start(self, within_s: float = 30) -> None:
        """Starts the server; returns when it answers and its data is loaded."""
        __tracebackhide__ = True
        assert self._process is None or self.has_died(), f"{self} is already up"
        with self.log_path.open("ab") as log:
            # The kernel ends the server when pytest dies, however it dies. In a session of its own
            # the server doesn't see Ctrl-C: pytest ends it, when it has shown what was wrong.
            self._process = subprocess.Popen(
                [
                    "setpriv",
                    "--pdeathsig",
                    "KILL",
                    *self._under,
                    self.kind.binary,
                    self._config_path,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )
        deadline = time.monotonic() + within_s
        while not self._answers():
            if self.has_died() or time.monotonic() > deadline:
                self.kill9()
                raise RuntimeError(f"{self} did not start:\n{self.log()}")
            time.sleep(0.005)

    def stop(self, within_s: float = 20) -> None:
        """Shuts the server down. It saves where save points are configured."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=within_s)
            self._process = None
        except subprocess.TimeoutExpired:
            self.kill9()
            raise RuntimeError(f"{self} does not shut down:\n{self.log()}") from None

    def kill9(self) -> None:
        """A crash of the server and of any child that is saving for it."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def log(self, offset: int = 0) -> str:
        return self.log_path.read_bytes()[offset:].decode(errors="replace")

    def client(self, **options: Any) -> redis.Redis:
        """A redis-py client that sends no command twice: a repeated DQ.POP would hide a loss."""
        defaults = {
            "protocol": 2,
            "decode_responses": True,
            "socket_timeout": 60,
            "retry": Retry(NoBackoff(), 0),
        }
        return redis.Redis("127.0.0.1", self.port, **(defaults | options))

    def session(self, protocol: int = 2) -> Session:
        return Session(self.port, protocol=protocol)

    def cli(self, *args: str) -> str:
        """What redis-cli prints in a terminal."""
        program = TARGET / "servers" / "valkey-8.1" / "valkey-cli"
        command = [program, "-p", str(self.port), "--no-raw", *args]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=30
        ).stdout

    def rewrite_aof(self) -> Path:
        """Runs BGREWRITEAOF; returns the file that it made."""
        with self.client() as client:
            before = client.info("stats")["total_forks"]
            client.bgrewriteaof()

            def is_done() -> bool:
                state = client.info("persistence")
                is_busy = state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]
                return not is_busy and client.info("stats")["total_forks"] > before

            eventually(is_done, 20)
            assert client.info("persistence")["aof_last_bgrewrite_status"] == "ok"
        (base,) = (self.directory / "appendonlydir").glob("*.base.*")
        return base

    def replicate(self, primary: "Server") -> None:
        """Makes this server a replica, and waits until both ends say that the link is up."""
        with self.client() as client, primary.client() as there:
            client.replicaof("127.0.0.1", primary.port)
            eventually(lambda: client.info("replication")["master_link_status"] == "up", 20)
            eventually(lambda: self.port in ports_online(there), 20)

    def catch_up(self, primary: "Server") -> None:
        """Waits until this replica has applied all that its primary has sent."""
        with self.client() as mine, primary.client() as theirs:
            eventually(
                lambda: offset(mine, "slave_repl_offset") == offset(theirs, "master_repl_offset")
            )

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return client.ping()
        except redis.RedisError:  # no listener yet, or still loading
            return False


def offset(client: redis.Redis, field: str) -> int:
    return client.info("replication")[field]


def ports_online(primary: redis.Redis) -> list[int]:
    """The ports of the replicas that the primary takes for being online."""
    state = primary.info("replication")
    replicas = [state[f"slave{n}"] for n in range(state["connected_slaves"])]
    return [replica["port"] for replica in replicas if replica["state"] == "online"]


def claimed_port() -> tuple[int, socket.socket]:
    """A port of 127.0.0.1, and a claim to it. No other test on this machine, of any user, gets the
    port before the claim is closed. The claim is the same port of 127.0.0.2, on which no server
    listens.

    The port is below those of outgoing connections, so that none of them takes it while a server
    restarts.
    """
    for port in random.sample(range(20_000, 32_000), 100):
        claim = socket.socket()
        with socket.socket() as probe, contextlib.suppress(OSError):
            claim.bind(("127.0.0.2", port))
            probe.bind(("127.0.0.1", port))
            return port, claim
        claim.close()
    raise RuntimeError("no free port between 20000 and 32000")
