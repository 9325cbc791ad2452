"""A dq-board process, on a port of its own."""

import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from harness.paths import TARGET
from harness.ports import free_port
from harness.server import Server

BINARY = Path(os.environ.get("DQ_BOARD_BINARY", TARGET / "release" / "dq-board"))


class Board:
    """Shows the queues of a server, or of what `redis` names."""

    def __init__(
        self,
        server: Server | None,
        directory: Path,
        *args: str,
        redis: str | None = None,
        program: Path = BINARY,
    ):
        if not BINARY.exists():
            raise FileNotFoundError(f"{BINARY} is missing: run `make build-board`")
        self.url = f"http://127.0.0.1:{free_port()}"
        self._command = [program, "--listen", self.url.removeprefix("http://"), *args]
        self._command += ["--redis", redis or f"redis://127.0.0.1:{server.port}"]
        self._log_path = directory / "board.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self._command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 20
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"dq-board did not start:\n{self.log()}")
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            assert self._process.wait(10) is not None
            self._process = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def log(self) -> str:
        return self._log_path.read_text(errors="replace")

    def link(self, path: str, **fields: str | bytes | int) -> str:
        """The address of a page, as pages name it or from the root; the values may be any bytes."""
        return urllib.parse.urljoin(f"{self.url}/", path) + (
            f"?{urllib.parse.urlencode(fields)}" if fields else ""
        )

    def get(
        self, path: str, headers: dict[str, str] | None = None, **fields: str | bytes | int
    ) -> "Answer":
        return self.send(urllib.request.Request(self.link(path, **fields), headers=headers or {}))

    def post(
        self,
        path: str,
        form: dict[str, str],
        headers: dict[str, str] | None = None,
        within_s: float = 30,
    ) -> "Answer":
        body = urllib.parse.urlencode(form).encode()
        request = urllib.request.Request(self.link(path), data=body, headers=headers or {})
        return self.send(request, within_s)

    def send_form(self, path: str, fields: list[tuple[str, str]]) -> "Answer":
        """A form in which a field may stand several times."""
        body = urllib.parse.urlencode(fields).encode()
        return self.send(urllib.request.Request(self.link(path), data=body))

    def metrics(self) -> dict[str, float]:
        """Each series with its value."""
        lines = self.get("/metrics").text.splitlines()
        series = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
        return {name: float(value) for name, value in series}

    @staticmethod
    def send(request: urllib.request.Request, within_s: float = 30) -> "Answer":
        try:
            with urllib.request.build_opener(NoRedirect).open(request, timeout=within_s) as answer:
                return Answer(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read())

    def _answers(self) -> bool:
        try:
            return self.get("/healthz").status in (200, 401)
        except OSError:
            return False


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.body = body

    @property
    def text(self) -> str:
        return self.body.decode()

    def token(self) -> str:
        """What a form of this page proves that it came from here."""
        found = re.search(r'name="token" value="([^"]+)"', self.text)
        assert found, "no form on this page"
        return found[1]
