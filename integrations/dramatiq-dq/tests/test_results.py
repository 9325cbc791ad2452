"""What the result backend does beyond Dramatiq's own tests."""

import threading
import time
from datetime import timedelta

import pytest
from dramatiq import Message
from dramatiq.results import ResultFailure, ResultMissing, ResultTimeout

from dramatiq_dq import DQBackend
from harness.server import eventually

FOR_LONG = 600_000


def message() -> Message[int]:
    return Message("default", "actor", (), {}, {})


def test_a_result_that_comes_later_is_told_to_all_who_wait(results: DQBackend) -> None:
    awaited, told = message(), list[int]()

    def wait() -> None:
        told.append(results.get_result(awaited, block=True, timeout=20_000))

    waiting = [threading.Thread(target=wait) for _ in range(3)]
    for thread in waiting:
        thread.start()
    info = results.queue.info
    eventually(lambda: (found := info()) is not None and found.watchers == 3, within_s=20)
    results.store_result(awaited, 17, FOR_LONG)
    for thread in waiting:
        thread.join()
    assert told == [17, 17, 17]


def test_a_wait_may_be_shorter_than_a_second_and_leaves_nothing(results: DQBackend) -> None:
    begun = time.monotonic()
    with pytest.raises(ResultTimeout):
        results.get_result(message(), block=True, timeout=120)
    assert time.monotonic() >= begun + 0.119
    eventually(lambda: results.queue.len() == 0, within_s=20)


def test_who_waits_longer_than_another_gets_the_result(results: DQBackend) -> None:
    awaited, told = message(), list[int]()

    def wait(timeout: int) -> None:
        told.append(results.get_result(awaited, block=True, timeout=timeout))

    # The one who comes first makes the job that both wait for, and it dies with their wait.
    with pytest.raises(ResultTimeout):
        wait(100)
    results._expect(results.build_message_key(awaited), timedelta(milliseconds=100))
    waiting = threading.Thread(target=wait, args=(20_000,))
    waiting.start()

    def is_awaited_anew() -> bool:
        job = results.queue.get(results.build_message_key(awaited))
        return job is not None and job.ttl > timedelta(seconds=1)

    eventually(is_awaited_anew, within_s=20)
    results.store_result(awaited, 17, FOR_LONG)
    waiting.join()
    assert told == [17]


def test_the_latest_result_is_kept_for_its_time(results: DQBackend) -> None:
    stored = message()
    results.store_result(stored, 1, FOR_LONG)
    results.store_result(stored, 2, 300)
    assert results.get_result(stored) == 2
    eventually(lambda: results.queue.len() == 0, within_s=20)
    with pytest.raises(ResultMissing):
        results.get_result(stored)


def test_no_time_to_wait_is_a_look(results: DQBackend) -> None:
    stored = message()
    with pytest.raises(ResultTimeout):
        results.get_result(stored, block=True, timeout=0)
    results.store_result(stored, None, FOR_LONG)
    assert results.get_result(stored, block=True, timeout=0) is None


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("nothing to say")


@pytest.mark.parametrize("result", ["x" * (1 << 20), object(), "\ud800" * (1 << 19)], ids=type)
def test_a_result_that_cannot_be_stored_is_a_failure_in_its_place(
    results: DQBackend, result: object
) -> None:
    """Who waits is told at once, and nothing is left when its time is over."""
    awaited = message()
    results.store_result(awaited, result, 500)
    with pytest.raises(ResultFailure, match="ResultNotStored"):
        results.get_result(awaited, block=True, timeout=20_000)
    eventually(lambda: results.queue.len() == 0, within_s=20)


@pytest.mark.parametrize("error", [Mute(), ValueError("x" * (1 << 21))], ids=type)
def test_an_exception_that_cannot_be_stored_is_a_shorter_one(
    results: DQBackend, error: Exception
) -> None:
    awaited = message()
    results.store_exception(awaited, error, FOR_LONG)
    with pytest.raises(ResultFailure):
        results.get_result(awaited)
