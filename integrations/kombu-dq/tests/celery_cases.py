"""Runs Celery's own integration cases with DQ for broker and result backend: `make test-celery`.

They run beside the same cases with `redis://` for both, on a server of their own, so that differences
are seen. They come with Celery's source, which scripts/setup.sh fetches. Arguments are for pytest:
ARGS="-k chord". SIDES=dq in the environment leaves `redis` out.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests" / "blackbox"))

from harness.server import KINDS, Server  # noqa: E402, it lies where we just said

CASES = ["inspect", "worker", "tasks", "beat", "group_chains", "canvas"]

#: Not run, and why: how their names begin. All but the first three fail with `redis://` as well, run
#: like this.
LEFT_OUT = {
    "inspect.py::test_Inspect::test_scheduled": "asks a worker for its ETA tasks: with DQ it holds none",
    "tasks.py::test_task_redis_result_backend::test_asyncresult_forget_cancels": "counts the channels of PUBLISH: waits for DQ's results have none",
    "tasks.py::test_task_redis_result_backend::test_asyncresult_get_cancels": "the same",
    "canvas.py::test_chain::test_chord_header_id_duplicated_on": "left out by Celery for redis:// as well",
    "worker.py::test_django_fixup": "needs Django",
    "tasks.py::test_trace_log_arguments": "wants a logging set-up of its own",
    "tasks.py::test_tasks::test_revoked_by_headers_complex_canvas": "waits in vain for a stamped task",
    "canvas.py::test_chord::test_chord_on_error": "reads the redis backend's own keys; there it looks for children that the result doesn't have yet",
}


#: What has both broker and result backend. The cases see a `redis://` for the results of each: see
#: celery_redis_cases.py.
SIDES = ["dq", "redis"]

Outcomes = dict[str, str]


def main() -> int:
    names = os.environ.get("SIDES", ",".join(SIDES)).split(",")
    with tempfile.TemporaryDirectory() as directory:
        found = {name: run_on_own_server(name, Path(directory) / name) for name in names}
    return report(found)


def run_on_own_server(side: str, directory: Path) -> Outcomes:
    directory.mkdir()
    server = Server(KINDS[0], directory)
    try:
        return run(side, server.port, directory / "outcomes.xml")
    finally:
        server.stop()


def run(side: str, port: int, outcomes: Path) -> Outcomes:
    urls = {
        "TEST_BROKER": f"{side}://127.0.0.1:{port}/2",
        "TEST_BACKEND": f"redis://127.0.0.1:{port}/1",
        "RESULTS": side,
        "REDIS_PORT": str(port),
        "PYTHONPATH": str(HERE),
        # Some start `celery`.
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    files = [f"t/integration/test_{name}.py" for name in CASES]
    options = ["-p", "no:cacheprovider", "-p", "celery.contrib.pytest", "-p", "celery_redis_cases"]
    options += ["-q", "-rfE", f"--junit-xml={outcomes}"]
    left_out = [f"--deselect=t/integration/test_{name}" for name in LEFT_OUT]
    command = [sys.executable, "-m", "pytest", *options, *left_out, *files, *sys.argv[1:]]
    print(f"==== {side}://, broker and results", flush=True)
    subprocess.run(command, cwd=ROOT / "target" / "kombu" / "celery", env=os.environ | urls)
    return read(outcomes)


def read(path: Path) -> Outcomes:
    """How each case ended. A session that broke off has written nothing down, and that is a failure."""
    if not path.exists():
        return {"the session": "failed"}
    found = {}
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag for child in case}
        is_bad = kinds & {"failure", "error"}
        name = f"{case.get('classname')}::{case.get('name')}"
        found[name] = "failed" if is_bad else "skipped" if "skipped" in kinds else "passed"
    return found


def report(found: dict[str, Outcomes]) -> int:
    """Says how many ended how on each side, and which ended otherwise on one than on the other."""
    for side, outcomes in found.items():
        print(f"==== {side}: {dict(Counter(outcomes.values()))}")
    for case in sorted(set().union(*found.values())):
        ends = {side: outcomes.get(case, "not run") for side, outcomes in found.items()}
        if len(set(ends.values())) > 1:
            print("differs:", case, ends)
    return int("failed" in found.get("dq", {}).values())


if __name__ == "__main__":
    sys.exit(main())
