"""Tasks that `manage.py dq_worker` runs."""

import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from conftest import Program, finished, until
from django_dq import Bury, DQBackend, NoOutcome, Retry
from django_dq.framework import TaskResultDoesNotExist, TaskResultStatus
from shop import tasks

Start = Callable[..., Program]


@pytest.fixture
def worker(backend: DQBackend, start: Start) -> Program:
    return start("dq_worker")


def test_a_task_is_run(worker: Program) -> None:
    for task in (tasks.add, tasks.add_async):
        result = finished(task.enqueue(1, other=2))
        assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 3)
        assert (result.attempts, result.errors) == (1, [])
        assert result.enqueued_at is not None
        assert result.started_at is not None
        assert result.finished_at is not None
        assert result.enqueued_at <= result.started_at <= result.finished_at
        assert result.last_attempted_at == result.started_at
        assert result.worker_ids[0] in worker.said


def test_a_task_is_not_run_before_its_time(worker: Program) -> None:
    at = timezone.now() + timedelta(milliseconds=700)
    result = tasks.add.using(run_after=at).enqueue(1)
    assert finished(result).started_at is not None
    assert result.started_at >= at  # type: ignore[operator]


def test_a_task_that_raises_has_failed(worker: Program) -> None:
    result = finished(tasks.refuse.enqueue("no such parcel"))
    assert result.status == TaskResultStatus.FAILED
    (error,) = result.errors
    assert error.exception_class is LookupError
    assert error.traceback.endswith("LookupError: no such parcel\n")
    assert "raise LookupError(word)" in error.traceback
    assert result.finished_at is not None
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value
    until(lambda: "state=FAILED" in worker.said)


def test_a_value_that_json_has_not_is_a_failure(worker: Program) -> None:
    result = finished(tasks.give_what_json_has_not.enqueue())
    assert [error.exception_class for error in result.errors] == [TypeError]


def test_a_value_that_is_too_long_is_a_failure_at_once(worker: Program) -> None:
    assert len(finished(tasks.give.enqueue(1 << 19)).return_value) == 1 << 19
    result = finished(tasks.give.enqueue(1 << 20))
    assert result.status == TaskResultStatus.FAILED
    (error,) = result.errors
    assert error.exception_class is NoOutcome
    assert error.traceback == (
        "the result is refused: body must be at most 1048576 bytes long (dq.max-body-bytes)"
    )
    assert (result.attempts, tasks.told()) == (1, ["ran", "ran"])


def test_a_task_is_told_of_itself(worker: Program) -> None:
    result = finished(tasks.about.enqueue())
    assert result.return_value == [result.id, 1, "RUNNING"]


def test_a_task_is_tried_again_as_often_as_it_says(worker: Program) -> None:
    failed = finished(tasks.refuse_at_first.enqueue(3))
    assert [error.traceback.split()[-2:] for error in failed.errors] == [
        ["attempt", "1"],
        ["attempt", "2"],
        ["attempt", "3"],
    ]
    assert (failed.status, failed.attempts) == (TaskResultStatus.FAILED, 3)
    succeeded = finished(tasks.refuse_at_first.enqueue(2))
    assert (succeeded.return_value, len(succeeded.errors)) == ("attempt 3", 2)
    assert succeeded.started_at < succeeded.last_attempted_at  # type: ignore[operator]


def test_a_task_may_say_when_it_is_tried_again(worker: Program) -> None:
    result = finished(tasks.come_again.enqueue())
    assert result.return_value == 2
    assert [error.exception_class for error in result.errors] == [Retry]


def test_a_task_may_give_up(worker: Program) -> None:
    result = finished(tasks.give_up.enqueue())
    assert [error.exception_class for error in result.errors] == [Bury]


def test_a_failed_task_can_be_tried_once_more(backend: DQBackend, worker: Program) -> None:
    result = finished(tasks.refuse_at_first.enqueue(3))
    assert backend.queue("default").kickjob(result.id) == 1
    assert finished(result).return_value == "attempt 4"
    assert (result.attempts, len(result.errors)) == (4, 3)
    result = finished(tasks.refuse_at_first.enqueue(9))
    assert backend.queue("default").kickjob(result.id) == 1
    until(lambda: result.refresh() or result.attempts == 4)
    assert len(finished(result).errors) == 4


def test_a_task_uses_the_database(worker: Program) -> None:
    assert finished(tasks.query.enqueue()).return_value == 17


def test_connections_to_databases_are_those_of_one_task(backend: DQBackend, start: Start) -> None:
    worker = start("dq_worker", "--concurrency", "1")
    assert finished(tasks.query.enqueue()).return_value == 17
    files = Path(f"/proc/{worker.process.pid}/fd")
    until(lambda: not [file for file in files.iterdir() if "sqlite" in str(file.resolve())])
    assert finished(tasks.is_connected.enqueue()).return_value is False


def test_what_a_receiver_raises_is_not_the_task_s(worker: Program) -> None:
    result = finished(tasks.stumbled_over.enqueue())
    assert (result.return_value, result.attempts) == (17, 1)
    until(lambda: worker.said.count("LookupError: a receiver") == 2)


def test_a_running_task_says_so(worker: Program) -> None:
    result = tasks.work_until_told.enqueue("a")
    until(lambda: "began a" in tasks.told())
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.RUNNING, 1)
    assert result.started_at is not None
    assert result.finished_at is None
    tasks.tell("go on")
    assert finished(result).return_value == "a"


def test_a_result_is_kept_for_as_long_as_is_said(
    configured: Callable[..., DQBackend], start: Start
) -> None:
    configured(result_ttl=timedelta(0))
    start("dq_worker")
    result = tasks.note.enqueue("ran")
    until(lambda: tasks.told() == ["ran"])

    def is_gone() -> bool:
        try:
            result.refresh()
        except TaskResultDoesNotExist:
            return True
        return False

    until(is_gone)


def test_the_task_of_a_worker_that_was_killed_is_run_again(
    backend: DQBackend, start: Start
) -> None:
    first = start("dq_worker", "--ttr", "1")
    result = tasks.work_until_told.enqueue("a")
    until(lambda: "began a" in tasks.told())
    first.process.kill()
    start("dq_worker", "--ttr", "1")
    until(lambda: tasks.told() == ["began a", "began a"])
    tasks.tell("go on")
    assert finished(result).return_value == "a"
    assert (result.attempts, len(set(result.worker_ids)), result.errors) == (2, 2, [])


def test_a_task_whose_worker_never_came_back_has_failed(backend: DQBackend) -> None:
    result = tasks.add.enqueue(1)
    queue = backend.queue("default")
    (job,) = queue.pop()
    assert job.lease is not None
    queue.bury(job.id, job.lease, reason="by hand")
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    (error,) = result.errors
    assert (error.exception_class, error.traceback) == (NoOutcome, "by hand")
    assert result.finished_at is not None


def test_at_sigterm_tasks_in_hand_end(backend: DQBackend, start: Start) -> None:
    worker = start("dq_worker")
    result = tasks.work_until_told.enqueue("a")
    until(lambda: "began a" in tasks.told())
    worker.process.send_signal(signal.SIGTERM)
    tasks.tell("go on")
    assert worker.ended() == 0
    result.refresh()
    assert result.return_value == "a"


def test_after_the_grace_time_tasks_go_back(backend: DQBackend, start: Start) -> None:
    worker = start("dq_worker", "--grace", "0.1")
    result = tasks.work_until_told.enqueue("a")
    until(lambda: "began a" in tasks.told())
    assert worker.ended(signal.SIGTERM) == 0
    result.refresh()
    assert result.status == TaskResultStatus.READY


def test_queues_and_concurrency(backend: DQBackend, start: Start) -> None:
    start("dq_worker", "--queue", "emails=3", "--concurrency", "2", "--verbosity", "0")
    tasks.note.enqueue("default")
    running = [tasks.work_until_told.using(queue_name="emails").enqueue(word) for word in "abc"]
    until(lambda: len(tasks.told()) == 2)
    assert sorted(tasks.told()) == ["began a", "began b"]
    tasks.tell("go on")
    for result in running:
        finished(result)
    assert "default" not in tasks.told()
    assert backend.queue("default").len("ready") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--backend", "other"], "isn't a django_dq.DQBackend"),
        (["--backend", "none"], "The connection 'none' doesn't exist"),
        (["--queue", "none"], "not in QUEUES of this backend: none"),
        (["--queue", "emails=x"], "'x' isn't a weight"),
        (["--queue", "emails=0"], "a weight is 1 at least"),
        (["--ttr", "soon"], "'soon' isn't a number of seconds"),
    ],
)
def test_what_the_worker_refuses(start: Start, words: list[str], message: str) -> None:
    worker = start("dq_worker", *words)
    assert worker.ended() != 0
    assert message in worker.said


def test_a_changed_file_starts_the_worker_again(
    backend: DQBackend, start: Start, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    (folder / "shop").mkdir(parents=True)
    here = Path(__file__).parent
    for name in ("manage.py", "shop/__init__.py", "shop/settings.py", "shop/tasks.py"):
        (folder / name).write_text((here / name).read_text())
    worker = start("dq_worker", "--reload", folder=folder)
    running = tasks.work_until_told.enqueue("a")
    until(lambda: "began a" in tasks.told())
    changed = (folder / "shop/tasks.py").read_text().replace("one + other", "one - other")
    # Django sees no change of a file before it has looked at it once.
    until(lambda: _written(folder / "shop/tasks.py", changed) and "reloading" in worker.said)
    tasks.tell("go on")
    until(lambda: worker.said.count(" works on ") == 2)
    result = finished(running)
    assert (result.return_value, result.attempts) == ("a", 1)
    assert finished(tasks.add.enqueue(1, other=2)).return_value == -1


def _written(path: Path, text: str) -> bool:
    """At most every two seconds; it takes Django one to see it."""
    if time.time() > path.stat().st_mtime + 2:
        path.write_text(text)
    return True
