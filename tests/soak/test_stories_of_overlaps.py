"""Small histories of commands that others overtake, in pairs: what must be found, and what may well have happened."""

import pytest

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
