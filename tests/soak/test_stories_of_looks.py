"""Small histories of DQ.FORECAST and of walks with DQ.PEEK, in pairs: what must be found, and what looks like it."""

from typing import Any

import pytest

from .oracle.schedules import DATABASE
from .resp import Failure
from .story import NOW_MS, Story, shown


def filled() -> Story:
    story = Story()
    for id, delay in ("a", 1_000), ("b", 3_000), ("c", 3_500):
        story.says(f"DQ.ADD q {id} x{id} DELAY {delay}", id)
    story.says("DQ.ADD q d xd", "d")
    return story


@pytest.mark.parametrize(("told", "expected"), [
    ([1, 0, 1, 1], set()), ([2, 0, 1, 1], {"count"}), ([1, 0, 1, 0], {"count"}), ([1, 0, 2, 0], {"count"}),
    ([1, 0, 1], {"count"}),
])  # fmt: skip
def test_a_forecast_counts_jobs_that_come_due(told: list[int], expected: set[str]) -> None:
    story = filled()
    story.says(f"DQ.FORECAST q FROM {NOW_MS + 100} STEP 1000 COUNT 4", told)
    assert story.kinds() == expected


@pytest.mark.parametrize("told", [[1], [0]])
def test_a_job_at_the_border_of_two_forecast_steps_is_in_either(told: list[int]) -> None:
    story = Story()
    add = story.begins("DQ.ADD q a xa DELAY 1000")
    story.passes(5)
    story.ends(add, "a")
    story.says(f"DQ.FORECAST q FROM {NOW_MS} STEP 1003 COUNT 1", told)
    assert story.kinds() == set()


@pytest.mark.parametrize(("options", "told", "expected"), [
    ("TTL 500", 0, set()), ("TTL 500", 1, {"count"}), ("TTL 5000", 1, set()), ("TTL 5000", 0, {"count"}),
])  # fmt: skip
def test_a_forecast_leaves_out_a_job_that_dies_first(
    options: str, told: int, expected: set[str]
) -> None:
    story = Story()
    story.says(f"DQ.ADD q a xa DELAY 1000 {options}", "a")
    story.says(f"DQ.FORECAST q FROM {NOW_MS} STEP 60000 COUNT 1", [told])
    assert story.kinds() == expected


def delayed(id: str, due: int) -> list[Any]:
    return shown(id, body=f"x{id}", state="delayed", due=due)


# The third command of `filled` was carried out at its second mark, and so on.
DUE = {"a": NOW_MS + 1_001, "b": NOW_MS + 3_002, "c": NOW_MS + 3_503}


def walks(story: Story, pages: list[str], first: str = "") -> set[str]:
    """Two jobs a page; the last one is shorter."""
    behind = first
    for page in pages:
        told = [delayed(id, DUE[id]) for id in page]
        story.says(f"DQ.PEEK q STATE delayed COUNT 2{behind}", told, walk=1)
        if page:
            behind = f" AFTER {page[-1]} FROM {DUE[page[-1]]}"
    return story.kinds()


@pytest.mark.parametrize(("pages", "expected"), [
    (["ab", "c"], set()), (["ab", ""], {"lost"}), (["ac", ""], {"lost"}), (["ab", "bc", ""], {"view"}),
    (["ab", "ac", ""], {"order"}), (["aa", "bc", ""], {"view"}),
])  # fmt: skip
def test_a_walk_shows_each_job_once(pages: list[str], expected: set[str]) -> None:
    assert walks(filled(), pages) >= expected
    assert bool(walks(filled(), pages)) == bool(expected)


def test_a_walk_may_miss_a_job_that_leaves_on_the_way() -> None:
    story = filled()
    story.says("DQ.PEEK q STATE delayed COUNT 2", [delayed(id, DUE[id]) for id in "ab"], walk=1)
    story.says("DQ.DEL q c", 1)
    story.says("DQ.ADD q c xc DELAY 3500", "c")
    story.says(f"DQ.PEEK q STATE delayed COUNT 2 AFTER b FROM {DUE['b']}", [], walk=1)
    assert story.kinds() == set()


def ready(id: str, body: str, priority: int, due: int) -> list[Any]:
    return shown(id, body=body, state="ready", due=due, since=due, priority=priority)


@pytest.mark.parametrize(("is_replaced", "expected"), [(True, set()), (False, {"lost"})])
def test_a_walk_through_ready_goes_on_elsewhere_after_a_job_that_has_moved(
    is_replaced: bool, expected: set[str]
) -> None:
    story = Story()
    for id in "abc":
        story.says(f"DQ.ADD q {id} x{id}", id)
    dues = {id: NOW_MS + 1 + 2 * at for at, id in enumerate("abc")}
    story.says("DQ.PEEK q STATE ready COUNT 1", [ready("a", "xa", 128, dues["a"])], walk=1)
    if is_replaced:
        story.says("DQ.ADD q a y PRIORITY 200 REPLACE", "a")
    story.says("DQ.PEEK q STATE ready COUNT 1 AFTER a", [], walk=1)
    assert story.kinds() == expected


@pytest.mark.parametrize(("line", "expected"), [
    ("DQ.PEEK q AFTER nobody", set()), (f"DQ.PEEK q STATE dead AFTER nobody FROM {NOW_MS}", {"error"}),
])  # fmt: skip
def test_a_walk_with_a_time_always_goes_on(line: str, expected: set[str]) -> None:
    story = filled()
    story.says(line, Failure("ERR AFTER names no job that is there"))
    assert story.kinds() == expected


@pytest.mark.parametrize(
    ("told", "expected"), [(["a"], set()), ([], {"lost"}), (["a", "b"], {"ghost"})]
)
def test_a_scan_of_schedules_shows_those_and_no_others(told: list[str], expected: set[str]) -> None:
    story = Story()
    story.says(
        f"DQ.ADD s a x EVERY 50 AT {NOW_MS + 100} MISFIRE ONE ATTEMPTS 0 TTR 1000", "a", db=DATABASE
    )
    story.says("DQ.SCAN s 0 SCHEDULED COUNT 1000", ["0", told], db=DATABASE)
    assert story.kinds() == expected


@pytest.mark.parametrize(("told", "expected"), [([], set()), (["a"], {"ghost"})])
def test_a_scan_of_schedules_shows_no_job_without_one(told: list[str], expected: set[str]) -> None:
    story = filled()
    story.says("DQ.SCAN q 0 COUNT 1000 SCHEDULED", ["0", told], scan=1)
    assert story.kinds() == expected
