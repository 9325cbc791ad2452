"""Small histories of commands that others overtake, in pairs: what must be found, and what may well have happened."""

import pytest

from .oracle import limits
from .story import Story

JOB = [["a", "x", 1_000, 1]]


@pytest.mark.parametrize(("line", "told", "reserved", "expected"), [
    ("DQ.FINISH q a", 0, 1, set()), ("DQ.FINISH q a", 0, 0, {"count"}),
    ("DQ.FINISH q a", 1, 0, set()), ("DQ.FINISH q a", 1, 1, {"count"}),
    ("DQ.FINISH q a * b *", 0, 1, set()), ("DQ.FINISH q a * b *", 1, 1, set()), ("DQ.FINISH q a * b *", 1, 0, set()),
    ("DQ.DEL q a", 1, 0, set()), ("DQ.DEL q a", 1, 1, {"count"}),
])  # fmt: skip
def test_a_claim_that_did_not_count_came_before_the_delivery(
    line: str, told: int, reserved: int, expected: set[str]
) -> None:
    story = Story()
    story.says("DQ.ADD q a x", "a")
    story.says("DQ.ADD q b y DELAY 1", "b")
    claim = story.begins(line, client="d", shape="loose")
    story.says("DQ.POP q", JOB)
    if "b" in line:
        story.says("DQ.POP q", [["b", "y", 1_001, 1]])
    story.ends(claim, told)
    more = int("b" in line and not told)
    story.says("DQ.LEN q STATE reserved", reserved + more)
    found = story.kinds()
    assert found == expected


@pytest.mark.parametrize(("is_marked", "is_seen", "told", "expected"), [
    (False, False, 0, set()), (False, False, 1, set()),
    # Another's mark tells that it was before the delivery.
    (False, True, 1, set()), (False, True, 2, {"count"}),
    (True, False, 1, set()), (True, False, 2, {"count"}),
])  # fmt: skip
def test_a_look_whose_mark_is_refused_may_see_the_queue_before_a_delivery(
    is_marked: bool, is_seen: bool, told: int, expected: set[str]
) -> None:
    story = Story()
    story.says("DQ.ADD l a xa ATTEMPTS 0 TTR 9000 DELAY 40", "a", db=limits.DATABASE)
    waits = story.begins("DQ.POP l BLOCK 300", db=limits.DATABASE)
    looks = story.begins("DQ.LEN l STATE delayed", db=limits.DATABASE, is_marked=is_marked)
    story.ends(looks, told, is_marked=is_marked)
    if is_seen:
        story.says("DQ.LEN elsewhere", 0)
    story.passes(60)
    story.ends(waits, [["a", "xa", 7, 1]])
    story.says("DQ.FINISH l a 7", 1, db=limits.DATABASE)
    assert story.kinds() == expected
