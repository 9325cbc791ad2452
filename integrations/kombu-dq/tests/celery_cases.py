"""Runs Celery's own integration cases with DQ for a broker: `make test-celery`.

They come with Celery's source, which scripts/setup.sh fetches. Arguments are for pytest: ARGS="-k
chord".
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests" / "blackbox"))

from harness.server import KINDS, Server  # noqa: E402, it lies where we just said

CASES = ["inspect", "worker", "tasks", "beat", "group_chains", "canvas"]

#: Not run, and why: how their names begin. All but the first fail with `redis://` as well, run like
#: this.
LEFT_OUT = {
    "inspect.py::test_Inspect::test_scheduled": "asks a worker for its ETA tasks: with DQ it holds none",
    "canvas.py::test_chain::test_chord_header_id_duplicated_on": "left out by Celery for redis:// as well",
    "worker.py::test_django_fixup": "needs Django",
    "tasks.py::test_trace_log_arguments": "wants a logging set-up of its own",
    "tasks.py::test_tasks::test_revoked_by_headers_complex_canvas": "waits in vain for a stamped task",
    "canvas.py::test_chord::test_chord_on_error": "looks for children that the result doesn't have yet",
}


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        server = Server(KINDS[0], Path(directory))
        try:
            return run(server.port)
        finally:
            server.stop()


def run(port: int) -> int:
    urls = {
        "TEST_BROKER": f"dq://127.0.0.1:{port}/2",
        "TEST_BACKEND": f"redis://127.0.0.1:{port}/1",
        "REDIS_PORT": str(port),
    }
    files = [f"t/integration/test_{name}.py" for name in CASES]
    options = ["-p", "no:cacheprovider", "-p", "celery.contrib.pytest", "-q", "-rfE"]
    left_out = [f"--deselect=t/integration/test_{name}" for name in LEFT_OUT]
    command = [sys.executable, "-m", "pytest", *options, *left_out, *files, *sys.argv[1:]]
    programs = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    }  # some start `celery`
    source = ROOT / "target" / "kombu" / "celery"
    return subprocess.run(command, cwd=source, env=os.environ | urls | programs).returncode


if __name__ == "__main__":
    sys.exit(main())
