"""Real Celery workers, each a process of its own, and the app as a producer sees it."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import kombu.pools

from harness.server import eventually

HERE = Path(__file__).resolve().parent
RESULTS_DATABASE = 9


def environment(port: int, **more: str) -> dict[str, str]:
    records = f"redis://127.0.0.1:{port}/{RESULTS_DATABASE}"
    urls = {
        "BROKER_URL": f"dq://127.0.0.1:{port}/0",
        "RESULT_URL": records,
        "RECORDS_URL": records,
    }
    return os.environ | urls | {"PYTHONPATH": str(HERE)} | more


def producer(port: int, **more: str) -> ModuleType:
    """The tasks, in this process, with connections that have declared nothing yet."""
    kombu.pools.reset()
    os.environ.update(environment(port, **more))
    sys.modules.pop("celery_tasks", None)
    import celery_tasks

    return celery_tasks


class Worker:
    def __init__(self, port: int, log: Path, *options: str, **more: str):
        self._log = log
        self.name = f"{log.stem}@test"
        command = [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker", "-l", "INFO"]
        with log.open("wb") as output:
            # The kernel ends it when pytest dies, however it dies.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command, "-n", self.name, *options],
                env=environment(port, **more),
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    def wait_until_ready(self) -> None:
        eventually(lambda: " ready." in self.log or self._process.poll() is not None, 30)
        assert self._process.poll() is None, self.log

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self, within_s: float = 30) -> int:
        return self._process.wait(within_s)

    def stop(self) -> int:
        """A warm shutdown."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """With all its children, as when a machine goes away."""
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()

    def rss_kib(self) -> int:
        """Of the main process: that which prefetches."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])
