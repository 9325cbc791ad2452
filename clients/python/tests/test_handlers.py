"""What a handler raises, returns or does to the process: it never ends the worker, never touches
other jobs, and there is always a line about it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dq_client import Job, Queue

PRELUDE = """
import asyncio, json, logging, sys, time, threading
from datetime import timedelta
import redis, redis.asyncio
from dq_client import *
from dq_client.worker import *
logging.basicConfig(level=logging.INFO)
url = sys.argv[1]
with redis.Redis.from_url(url) as first:
    jobs = Queue(first, "q")
    jobs.alter(attempts=1, keep=timedelta(hours=1))
def blocking(**options):
    return Queue(redis.Redis.from_url(url, **options), "q")
def looped(**options):
    return AsyncQueue(redis.asyncio.Redis.from_url(url, **options), "q")
def handler(job): return {"poison": poison}.get(job.id, good)(job)
async def ahandler(job):
    if job.id == "poison": return await apoison(job)
    return good(job)
def good(job):
    return "done"
class Mute(Exception):
    def __str__(self): raise ValueError("no text")
class Odd:
    def __eq__(self, other): raise ValueError("no truth")
"""
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(dq_url: str) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start(program: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + program, dq_url],
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def later(condition: Callable[[], Any], within_s: float = 20) -> Any:
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def settled(q: Queue, id: str) -> Callable[[], Job | None]:
    def look() -> Job | None:
        job = q.get(id)
        return job if job is not None and job.state in ("dead", "done") else None

    return look


FUNCTIONS = {
    "sys.exit": ("sys.exit(3)", "SystemExit: 3"),
    "StopIteration": ("next(iter([]))", "StopIteration"),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "GeneratorExit": ("raise GeneratorExit", "GeneratorExit"),
    "CancelledError": ("raise asyncio.CancelledError", "CancelledError"),
    "mute": ("raise Mute", "Mute, and its text can't be had"),
    "odd result": ("return Odd()", "outcome refused: TypeError"),
    "no JSON": ("return {1, 2}", "outcome refused: TypeError"),
    "NaN": ("return float('nan')", "outcome refused: ValueError"),
    "Done of what isn't": ("return Done(add=[5])", "outcome refused: TypeError: what is added"),
    "Done for 2.5": ("return Done(keep=2.5)", "outcome refused: TypeError: a duration"),
    "Retry of an exception": ("raise Retry(OSError('down'))", "OSError: down"),
    "Retry of a number": ("raise Retry(404)", "404"),
    "Retry of the mute": ("raise Retry(Mute())", "Mute, and its text"),
    "Retry in 2.5": ("raise Retry('x', in_=2.5)", "TypeError: in_ is a timedelta"),
    "Retry before": ("raise Retry('x', in_=timedelta(seconds=-1))", "outcome refused: DELAY must"),
    "Retry in ages": ("raise Retry('x', in_=timedelta(days=9**8))", "outcome refused: DELAY"),
    "priority 300": ("raise Retry('x', priority=300)", "outcome refused: PRIORITY must"),
    "priority 'high'": ("raise Retry('x', priority='high')", "TypeError: a priority"),
    "priority True": ("raise Retry('x', priority=True)", "outcome refused"),
    "Bury of a dictionary": ("raise Bury({'a': 1})", "{'a': 1}"),
    "half a surrogate pair": ("raise Bury('\\ud800')", "\\ud800"),
    "an id that is taken": ("return Done(add=[Add(1, 'good')])", "outcome refused: EXISTS"),
    "a long reason": ("raise Bury('x' * 5000)", "xxx"),
}


@pytest.mark.parametrize("kind", ["function", "coroutine"])
def test_a_handler_costs_its_own_job_an_attempt_and_nothing_else(
    start: Start, queue: Callable[..., Queue], kind: str
) -> None:
    """All of them in one worker, between jobs that are good, with fewer places than poisons."""
    bodies = [f"def h{at}(job): {body}" for at, (body, _) in enumerate(FUNCTIONS.values())]
    lines = [f"async {body}" if kind == "coroutine" else body for body in bodies]
    kinds = "looped(), ahandler" if kind == "coroutine" else "blocking(), handler"
    worker = start(
        "\n".join(lines)
        + f"""
def handler(job): return globals().get(job.id, good)(job)
async def ahandler(job):
    if job.id in globals(): return await globals()[job.id](job)
    return good(job)
jobs.add("good", 1)
for at in range({len(bodies)}):
    jobs.add(f"h{{at}}", 1)
    jobs.add(f"good:{{at}}", 1)
Worker({kinds}, concurrency=3).run()
"""
    )
    q = queue()
    wrong = []
    for at, (name, (_, reason)) in enumerate(FUNCTIONS.items()):
        if (kind, name) == ("coroutine", "StopIteration"):
            reason = "RuntimeError: coroutine raised StopIteration"
        poison, good = later(settled(q, f"h{at}")), later(settled(q, f"good:{at}"))
        if poison.state != "dead" or reason not in (poison.reason or ""):
            wrong.append((name, poison.state, poison.reason))
        assert (good.state, good.attempt) == ("done", 1)
    assert wrong == []
    worker.send_signal(signal.SIGTERM)
    _, log = worker.communicate(timeout=30)
    assert worker.returncode == 0
    for at in range(len(FUNCTIONS)):
        (line,) = [line for line in log.splitlines() if f"queue 'q': job 'h{at}'" in line]
        assert "attempt 1 of 1, dead" in line


@pytest.mark.parametrize(
    "poison",
    [
        "await asyncio.create_task(leaving())",
        "asyncio.get_running_loop().call_soon(sys.exit); await asyncio.sleep(0.1); sys.exit(1)",
        "asyncio.get_running_loop().stop(); await asyncio.sleep(0.1); sys.exit(1)",
        "await asyncio.to_thread(next, iter([]))",
        "await asyncio.to_thread(sys.exit)",
    ],
)
def test_what_a_coroutine_starts_does_not_end_the_worker(
    start: Start, queue: Callable[..., Queue], poison: str
) -> None:
    worker = start(f"""
async def leaving(): sys.exit(1)
async def apoison(job): {poison}
jobs.add('poison', 1)
jobs.add('good', 1)
Worker(looped(), ahandler, concurrency=1).run()
""")
    q = queue()
    assert later(settled(q, "poison")).state == "dead"
    assert later(settled(q, "good")).state == "done"
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=30)
    assert worker.returncode == 0


@pytest.mark.parametrize("kind", ["function", "coroutine"])
@pytest.mark.parametrize(
    "body",
    [
        "pid = os.fork()\n    if not pid: sys.exit(3)\n    os.waitpid(pid, 0)",
        "pid = os.fork()\n    if not pid: return 1\n    os.waitpid(pid, 0)",
        """import multiprocessing
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    child.start()
    child.terminate()
    child.join(20)
    assert child.exitcode == -15""",
        """import subprocess
    child = subprocess.Popen(["sleep", "600"])
    child.terminate()
    assert child.wait() == -15""",
    ],
    ids=["exit in a fork", "return in a fork", "a process that is ended", "a program"],
)
def test_what_becomes_of_a_child_process_is_nothing_to_the_worker(
    start: Start, queue: Callable[..., Queue], body: str, kind: str
) -> None:
    is_async = kind == "coroutine"
    worker = start(f"""
import os
{"async " * is_async}def {"a" * is_async}poison(job):
    {body}
jobs.add('poison', 1)
Worker({"looped(), ahandler" if is_async else "blocking(), handler"}).run()
""")
    q = queue()
    assert later(settled(q, "poison")).state == "done"
    q.add("good", 1)
    assert later(settled(q, "good")).state == "done"
    assert worker.poll() is None
    worker.send_signal(signal.SIGTERM)
    _, log = worker.communicate(timeout=30)
    assert worker.returncode == 0, log


STUBBORN = {
    "a function": "def poison(job): time.sleep(600)",
    "a thread of asyncio": "async def apoison(job): await asyncio.to_thread(time.sleep, 600)",
    "a coroutine that swallows": """
async def apoison(job):
    while True:
        try: await asyncio.sleep(600)
        except asyncio.CancelledError: pass""",
    "a thread of its own": """
def poison(job):
    threading.Thread(target=time.sleep, args=(600,)).start()
    time.sleep(600)""",
    "an executor of its own": """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor()
def poison(job): pool.submit(time.sleep, 600).result()""",
    "a task that is left behind": """
async def apoison(job):
    async def stubborn():
        while True:
            try: await asyncio.sleep(600)
            except asyncio.CancelledError: pass
    apoison.task = asyncio.create_task(stubborn())
    await asyncio.sleep(600)""",
}


@pytest.mark.parametrize("name", STUBBORN)
def test_after_the_grace_time_the_process_ends_whatever_handlers_do(
    start: Start, queue: Callable[..., Queue], name: str
) -> None:
    is_async = "apoison" in STUBBORN[name]
    made = "looped(), ahandler" if is_async else "blocking(), handler"
    worker = start(f"""{STUBBORN[name]}
jobs.add('poison', 1)
Worker({made}, grace=timedelta(milliseconds=100)).run()
print("returned")
""")
    q = queue()
    later(lambda: q.len("reserved"))
    time.sleep(0.1)  # the handler is well within its work
    worker.send_signal(signal.SIGTERM)
    out, _ = worker.communicate(timeout=20)
    assert out == "returned\n"
    assert q.len("ready") == 1
    job = q.get("poison")
    assert job is not None and job.attempt == 0


def test_a_second_signal_ends_the_grace_time_and_a_blocked_loop(
    start: Start, queue: Callable[..., Queue]
) -> None:
    worker = start("""
async def apoison(job): time.sleep(600)
jobs.add('poison', 1)
Worker(looped(), ahandler).run()
""")
    q = queue()
    later(lambda: q.len("reserved"))
    time.sleep(0.3)
    worker.send_signal(signal.SIGTERM)
    worker.send_signal(signal.SIGINT)
    _, log = worker.communicate(timeout=40)
    assert worker.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    assert "the process is ended" in log


def test_a_second_signal_ends_a_grace_time_without_an_end(
    start: Start, queue: Callable[..., Queue]
) -> None:
    worker = start("""
def poison(job): time.sleep(600)
jobs.add('poison', 1)
Worker(blocking(), handler, grace=timedelta.max).run()
print("returned")
""")
    q = queue()
    later(lambda: q.len("reserved"))
    worker.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    worker.send_signal(signal.SIGTERM)
    out, _ = worker.communicate(timeout=20)
    assert out == "returned\n"


@pytest.mark.parametrize("first", ["one", "other", "none"])
def test_a_signal_is_one_to_all_workers_of_a_process(start: Start, first: str) -> None:
    """Also when one of them has ended before."""
    worker = start(f"""
async def main():
    numbers = (signal.SIGTERM, signal.SIGINT)
    one, other, none = Worker(looped(), good), Worker(looped(), good), Worker(looped(), good)
    serving = asyncio.gather(one.serve(signals=numbers), other.serve(signals=numbers))
    await asyncio.sleep(0.3)
    {first}.stop()
    await asyncio.sleep(0.3)
    print("works", flush=True)
    await serving
    print("ended")
import signal
asyncio.run(main())
""")
    assert worker.stdout is not None
    assert worker.stdout.readline() == "works\n"
    worker.send_signal(signal.SIGTERM)
    out, _ = worker.communicate(timeout=20)
    assert (out, worker.returncode) == ("ended\n", 0)


def test_a_handler_that_is_stopped_before_it_serves_ends_at_once(start: Start) -> None:
    worker = start("""
worker = Worker(blocking(), handler)
worker.stop()
worker.run()
""")
    worker.communicate(timeout=20)
    assert worker.returncode == 0


def test_a_result_that_is_too_long_is_not_repeated(
    start: Start, queue: Callable[..., Queue], client: Any
) -> None:
    client.config_set("dq.max-body-bytes", 100)
    try:
        start("""
jobs.alter(attempts=25)
def poison(job): return "x" * 300
jobs.add('poison', 1)
Worker(blocking(), handler).run()
""")
        job = later(settled(queue(), "poison"))
    finally:
        client.config_set("dq.max-body-bytes", 1 << 20)
    assert (job.state, job.attempt) == ("dead", 1)
    assert "at most 100 bytes" in job.reason
    assert "302 bytes" in job.reason


def test_a_failure_is_a_line_with_the_traceback_and_what_comes_next(
    start: Start, queue: Callable[..., Queue]
) -> None:
    worker = start("""
jobs.alter(attempts=2)
def poison(job):
    nothing = {}
    return nothing["key"]
def on_error(job, error):
    print(json.dumps([job.id, job.attempt, type(error).__name__]))
    raise ValueError("of on_error")
jobs.add('poison', 1, backoff=Backoff(timedelta(milliseconds=300), timedelta(seconds=1)))
jobs.add('other', 1, delay=timedelta(milliseconds=100))
jobs.add('third', 1, attempts=1)
good = poison
Worker(blocking(), handler, on_error=on_error).run()
""")
    q = queue()
    for id in ("poison", "other", "third"):
        later(settled(q, id))
    worker.send_signal(signal.SIGTERM)
    out, log = worker.communicate(timeout=30)
    assert "job 'poison' failed, attempt 1 of 2, again in 0." in log
    assert "job 'poison' failed, attempt 2 of 2, dead: KeyError: 'key'" in log
    assert "job 'other' failed, attempt 1 of 2, again at once" in log
    assert "in poison\nKeyError: 'key'" in log
    # Once, though three jobs failed; at the start too.
    assert log.count("DQ.ALTER q BACKOFF 1000 600000") == 1
    told = sorted(map(json.loads, out.splitlines()))
    assert ["poison", 1, "KeyError"] in told and len(told) == 5
    assert "of on_error" in log


def test_with_a_backoff_there_is_no_hint(start: Start, queue: Callable[..., Queue]) -> None:
    worker = start("""
jobs.alter(attempts=1, backoff=Backoff(timedelta(milliseconds=300), timedelta(seconds=1)))
def poison(job): raise Retry("later", in_=timedelta(hours=1))
jobs.add('poison', 1)
Worker(blocking(), handler).run()
""")
    later(settled(queue(), "poison"))
    worker.send_signal(signal.SIGTERM)
    _, log = worker.communicate(timeout=30)
    assert "job 'poison' failed, attempt 1 of 1, dead: later" in log
    assert "BACKOFF" not in log
    assert "Traceback" not in log


def test_a_user_without_the_right_to_look_has_lines_all_the_same(
    start: Start, queue: Callable[..., Queue], client: Any
) -> None:
    rights = "+@connection +dq.pop +dq.finish +dq.done +dq.release +dq.renew"
    client.execute_command(*f"ACL SETUSER w reset on >w ~* {rights}".split())
    try:
        worker = start("""
def poison(job): raise ValueError("no")
jobs.add('poison', 1)
jobs.add('other', 1)
def good(job): raise Bury("no right to this")
Worker(blocking(username="w", password="w"), handler).run()
""")
        later(settled(queue(), "poison"))
        other = later(settled(queue(), "other"))
        worker.send_signal(signal.SIGTERM)
        _, log = worker.communicate(timeout=30)
        assert worker.returncode == 0
    finally:
        client.execute_command("ACL", "DELUSER", "w")
    assert "job 'poison' failed, attempt 1, given back: ValueError: no" in log
    # DQ.BURY was refused: a failed attempt, with that reason.
    assert "outcome refused" in other.reason


def test_a_loop_that_stands_still_is_named(start: Start, queue: Callable[..., Queue]) -> None:
    worker = start("""
jobs.alter(attempts=5)
async def apoison(job):
    await asyncio.sleep(0.1)
    if job.attempt == 1: time.sleep(1.5)
jobs.add('poison', 1)
Worker(looped(), ahandler, ttr=timedelta(milliseconds=600)).run()
""")
    later(settled(queue(), "poison"))
    worker.send_signal(signal.SIGTERM)
    _, log = worker.communicate(timeout=30)
    assert "the event loop stood still for 1." in log
    assert "'poison'" in log
