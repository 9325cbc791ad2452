"""The start of a package's README.md: a program that sends, beside workers."""

import signal
import subprocess
import sys
import time
from pathlib import Path


def send(folder: Path, workers: "subprocess.Popen[str]") -> list[str]:
    """What the workers print of send.py's jobs until they are stopped. It cancels a job, waits for a result
    and sends one job that is due in three seconds.
    """
    begun = time.time()
    sent = subprocess.run(
        [sys.executable, "send.py"], cwd=folder, capture_output=True, text=True, timeout=100
    )
    assert sent.stdout.splitlines() == ["cancelled: True", "result: 3"], sent.stderr
    assert time.time() >= begun + 3
    workers.send_signal(signal.SIGTERM)
    told, _ = workers.communicate(timeout=60)
    return told.splitlines()
