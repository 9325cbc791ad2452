"""Small histories of jobs with a schedule, in pairs: what must be found, and what looks like it and is right."""

from typing import Any

import pytest

from .oracle.schedules import DATABASE
from .story import NOW_MS, Story

FIRST_MS = 100
DUE = NOW_MS + FIRST_MS


class Schedule(Story):
    """One job, which comes every 50 ms from the hundredth on."""

    def __init__(self, options: str = "MISFIRE ONE ATTEMPTS 0 TTR 1000"):
        super().__init__()
        self.tell(f"DQ.ADD s a x EVERY 50 AT {DUE} {options}", "a")

    def tell(self, line: str, told: Any, **note: Any) -> None:
        self.says(line, told, db=DATABASE, **note)

    def runs(self, due: int, lease: int, *, attempt: int = 1) -> None:
        self.tell("DQ.POP s WITHDUE", [["a", "x", lease, attempt, due]])

    def is_finished(self, lease: int, told: int = 1) -> None:
        self.tell(f"DQ.FINISH s a {lease}", told)

    def passes_to(self, ms: int) -> None:
        self.passes(ms - self._ms)


@pytest.mark.parametrize(
    ("next_ms", "expected"), [(150, set()), (149, {"schedule"}), (200, {"schedule"})]
)
def test_a_run_comes_at_its_times_only(next_ms: int, expected: set[str]) -> None:
    story = Schedule()
    story.passes_to(110)
    story.runs(DUE, 7)
    story.is_finished(7)
    story.passes_to(300)
    story.runs(NOW_MS + next_ms, 8)
    assert story.kinds() == expected


def test_a_run_that_comes_before_it_is_due_is_found() -> None:
    story = Schedule()
    story.passes_to(50)
    story.runs(DUE, 7)
    assert "early" in story.kinds()


@pytest.mark.parametrize(("misfire", "dues", "expected"), [
    ("ONE", [100, 400], set()),
    ("ONE", [100, 150], {"schedule"}),
    ("ALL", [100, 150, 200], set()),
    ("ALL", [100, 200], {"schedule"}),
])  # fmt: skip
def test_missed_runs_come_as_one_or_each_as_misfire_says(
    misfire: str, dues: list[int], expected: set[str]
) -> None:
    story = Schedule(f"MISFIRE {misfire} ATTEMPTS 0 TTR 1000")
    story.passes_to(320)
    for lease, due in enumerate(dues, 7):
        story.passes_to(max(due + 1, 320 + 10 * lease))
        story.runs(NOW_MS + due, lease)
        story.is_finished(lease)
    assert story.kinds() == expected


def test_a_run_beside_another_is_found() -> None:
    story = Schedule()
    story.passes_to(110)
    story.runs(DUE, 7)
    story.passes_to(160)
    story.tell("DQ.POP s WITHDUE", None)
    assert story.kinds() == set()
    story.runs(DUE + 50, 8)
    assert "double" in story.kinds()


@pytest.mark.parametrize(("due", "attempt", "expected"), [(DUE, 2, set()), (DUE, 1, {"attempt"}), (DUE + 50, 2, {"schedule"})])  # fmt: skip
def test_a_run_whose_lease_ended_comes_again_as_the_same(
    due: int, attempt: int, expected: set[str]
) -> None:
    story = Schedule("MISFIRE ONE ATTEMPTS 0 TTR 30")
    story.passes_to(110)
    story.runs(DUE, 7)
    story.passes_to(200)
    story.runs(due, 8, attempt=attempt)
    assert story.kinds() == expected


def test_a_run_that_is_due_is_not_withheld() -> None:
    story = Schedule()
    story.passes_to(90)
    story.tell("DQ.POP s WITHDUE", None)
    assert story.kinds() == set()
    story.passes_to(150)
    story.tell("DQ.POP s WITHDUE", None)
    assert story.kinds() == {"withheld"}


@pytest.mark.parametrize(("back_ms", "expected"), [(0, {"withheld"}), (3_600_000, set())])
def test_a_run_made_up_for_by_a_clock_that_was_ahead_waits_for_that_time(
    back_ms: int, expected: set[str]
) -> None:
    """It was ready from the finish on: by that clock."""
    story = Schedule("MISFIRE ALL ATTEMPTS 0 TTR 1000")
    story.passes_to(3_600_000)
    story.runs(DUE, 7)
    story.is_finished(7)
    story.sets_clock(-back_ms)
    story.tell("DQ.POP s WITHDUE", None)
    assert story.kinds() == expected


@pytest.mark.parametrize("limit", ["RUNS 2", f"UNTIL {DUE + 50}"])
def test_a_schedule_ends_after_runs_and_until(limit: str) -> None:
    story = Schedule(f"MISFIRE ONE ATTEMPTS 0 TTR 1000 {limit}")
    for n in range(2):
        story.passes_to(110 + 50 * n)
        story.runs(DUE + 50 * n, 7 + n)
        story.is_finished(7 + n)
    story.passes_to(300)
    story.tell("DQ.POP s WITHDUE", None)
    story.tell("DQ.LEN s", 0)
    assert story.kinds() == set()
    story.runs(DUE + 100, 9)
    assert "ghost" in story.kinds()


def test_finishing_arms_the_next_run() -> None:
    story = Schedule()
    story.passes_to(110)
    story.runs(DUE, 7)
    story.is_finished(7)
    story.tell("DQ.LEN s", 0)
    assert story.kinds() == {"count"}


@pytest.mark.parametrize(
    ("lease", "told", "expected"), [(7, 0, {"refused"}), (6, 1, {"stale"}), (6, 0, set())]
)
def test_the_lease_of_a_run_counts_and_no_other(lease: int, told: int, expected: set[str]) -> None:
    story = Schedule()
    story.passes_to(110)
    story.runs(DUE, 7)
    story.is_finished(lease, told)
    assert story.kinds() == expected


@pytest.mark.parametrize(("due", "expected"), [(DUE, set()), (DUE + 50, {"schedule"})])
def test_a_crash_that_lost_the_finish_brings_the_run_again(due: int, expected: set[str]) -> None:
    story = Schedule("MISFIRE ONE ATTEMPTS 0 TTR 30")
    story.passes_to(110)
    story.runs(DUE, 7)
    story.is_finished(7)
    story.crashes(lost=2)
    story.passes_to(200)
    story.runs(due, 8, attempt=2)
    assert story.kinds() == expected


def test_after_a_lost_reply_to_finish_the_same_run_or_the_next_may_come() -> None:
    for due, attempt in (DUE, 2), (DUE + 50, 1):
        story = Schedule("MISFIRE ONE ATTEMPTS 0 TTR 30")
        story.passes_to(110)
        story.runs(DUE, 7)
        story.is_lost(story.begins("DQ.FINISH s a 7", db=DATABASE))
        story.passes_to(200)
        story.runs(due, 8, attempt=attempt)
        assert story.kinds() == set()
        story.passes_to(300)
        story.runs(due - 50, 9)
        assert story.kinds() != set()
