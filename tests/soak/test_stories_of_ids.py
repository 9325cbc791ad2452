"""The oracle, told small stories of jobs that are taken by their ids, and of priorities that a RELEASE changes."""

import pytest

from .story import Story

HOUR_MS = 3_600_000


def test_a_job_may_be_taken_by_id_before_its_time() -> None:
    story = Story()
    story.says(f"DQ.ADD q a x DELAY {HOUR_MS}", "a")
    story.says("DQ.POP q ID a", [["a", "x", 1_000, 1]])
    story.says("DQ.LEN q STATE reserved", 1)
    story.says("DQ.POP q ID a", None)
    story.says("DQ.FINISH q a 1000", 1)
    assert story.kinds() == set()


def test_a_dead_job_taken_by_id_begins_anew() -> None:
    for attempt, expected in [(1, set()), (2, {"double", "ghost", "attempt"})]:
        story = Story()
        story.says("DQ.ADD q a x", "a")
        story.says("DQ.POP q", [["a", "x", 1_000, 1]])
        story.says("DQ.BURY q a *", 1)
        story.says("DQ.POP q ID a", [["a", "x", 2_000, attempt]])
        assert story.kinds() <= expected and bool(story.kinds()) == bool(expected), attempt


@pytest.mark.parametrize("options", ["", f"DELAY {HOUR_MS}"])
def test_a_job_withheld_from_a_pop_by_id_is_found(options: str) -> None:
    story = Story()
    story.says(f"DQ.ADD q a x {options}", "a")
    story.says("DQ.POP q ID a ID b", None)
    assert story.kinds() == {"withheld"}


def test_a_reserved_job_handed_out_by_id_is_found() -> None:
    story = Story()
    story.says("DQ.ADD q a x", "a")
    story.says("DQ.POP q ID a", [["a", "x", 1_000, 1]])
    story.says("DQ.POP q ID a", [["a", "x", 2_000, 2]])
    assert story.kinds() == {"double"}


def test_a_pop_by_id_hands_out_in_the_order_of_its_ids() -> None:
    for first, expected in [("a", set()), ("b", {"order"})]:
        story = Story()
        for name in "ab":
            story.says(f"DQ.ADD q {name} x{name}", name)
        both = [["a", "xa", 1_000, 1], ["b", "xb", 2_000, 1]]
        if first == "b":
            both = [["b", "xb", 1_000, 1], ["a", "xa", 2_000, 1]]
        story.says("DQ.POP q ID a ID b", both)
        assert story.kinds() == expected


@pytest.mark.parametrize(
    ("said", "first", "expected"),
    [
        ("PRIORITY 200", "b", set()),
        ("PRIORITY 200", "a", {"order"}),
        ("PRIORITY 0", "a", set()),
        ("PRIORITY 0", "b", {"order"}),
    ],
)
def test_a_release_may_change_the_priority(said: str, first: str, expected: set[str]) -> None:
    story = Story()
    for name in "ab":
        story.says(f"DQ.ADD q {name} x{name}", name)
    story.says("DQ.POP q", [["a", "xa", 1_000, 1]])
    story.says(f"DQ.RELEASE q a * {said}", 1)
    story.says("DQ.POP q", [[first, f"x{first}", 2_000, 2 if first == "a" else 1]])
    assert story.kinds() == expected
