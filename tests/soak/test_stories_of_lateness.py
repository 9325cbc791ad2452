"""Small histories of jobs that nobody takes in time: what must be found, and what may well have happened."""

import pytest

from .story import NOW_MS, Story

JOB = [["a", "x", 1_000, 1]]
AGAIN = [["a", "x", 1_001, 2]]


def with_a_job(options: str) -> Story:
    story = Story()
    story.says(f"DQ.ADD q a x {options}", "a")
    return story


@pytest.mark.parametrize(
    ("passes", "told", "expected"), [(0, JOB, set()), (200, JOB, {"ghost"}), (200, None, set())]
)
def test_a_job_is_there_until_it_is_too_late(passes: int, told: object, expected: set[str]) -> None:
    story = with_a_job("LATE 100")
    story.passes(passes)
    story.says("DQ.POP q", told)
    assert story.kinds() == expected


@pytest.mark.parametrize(("late", "dead"), [(100, 1), (0, 0), (1_000, 0)])
def test_a_job_that_is_too_late_is_dead(late: int, dead: int) -> None:
    for told in 0, 1:
        story = with_a_job(f"LATE {late}")
        story.passes(200)
        story.says("DQ.LEN q STATE dead", told)
        assert story.kinds() == (set() if told == dead else {"count"})


def test_a_queue_has_a_late_for_jobs_that_give_none() -> None:
    for told, kinds in (1, set()), (0, {"count"}):
        story = Story()
        story.says("DQ.ALTER q LATE 100", "OK", shape="sealed")
        story.says("DQ.ADD q a x", "a")
        story.passes(200)
        story.says("DQ.LEN q STATE dead", told)
        assert story.kinds() == kinds


def test_each_attempt_has_its_own_late() -> None:
    for passes, told in (100, AGAIN), (200, None):
        story = with_a_job("LATE 100 TTR 50")
        story.says("DQ.POP q", JOB)
        story.passes(passes)
        story.says("DQ.POP q", told)
        assert story.kinds() == set()


def test_a_lease_still_counts_where_the_job_died_of_late_after_it() -> None:
    story = with_a_job("LATE 100 TTR 50")
    story.says("DQ.POP q", JOB)
    story.passes(300)
    story.says("DQ.LEN q STATE dead", 1)
    story.says("DQ.TOUCH q a 1000", 1)
    story.says("DQ.LEN q STATE reserved", 1)
    story.says("DQ.FINISH q a 1000", 1)
    assert story.kinds() == set()


def test_a_kicked_job_has_its_late_again() -> None:
    story = with_a_job("LATE 100")
    story.passes(200)
    story.says("DQ.KICKJOB q a", 1)
    story.says("DQ.POP q", JOB)
    assert story.kinds() == set()


def test_a_job_due_at_a_known_time_dies_of_late_to_the_millisecond() -> None:
    for late, told, kinds in (2, None, set()), (40, None, {"withheld"}):
        story = with_a_job(f"AT {NOW_MS} LATE {late}")
        story.passes(20)
        story.says("DQ.POP q", told)
        assert story.kinds() == kinds


@pytest.mark.parametrize(("late", "told", "expected"), [
    (100, 0, set()), (0, 0, {"count"}), (0, 1, set()),
])  # fmt: skip
def test_a_job_that_died_of_late_is_kept_since_then_though_its_ttl_ends_later(
    late: int, told: int, expected: set[str]
) -> None:
    """DEADKEEP counts from the first of what ends a job."""
    story = Story()
    story.says("DQ.ALTER q DEADKEEP 1000", "OK")
    story.says(f"DQ.ADD q a x TTL 1000 LATE {late}", "a")
    story.lives(1_500)
    story.says("DQ.LEN q STATE dead", told)
    assert story.kinds() == expected
