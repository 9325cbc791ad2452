"""Small histories of keys that expire, in pairs: what must be found, and what looks like it and is right."""

from typing import Any

import pytest

from .story import NOW_MS, Story

JOB = [["a", "x", 7, 1]]
NO_KEY = {"error": "ERR no such key"}


def with_an_end(after_ms: int) -> Story:
    """A queue with one job, whose key expires then."""
    story = Story()
    story.says("DQ.ADD q a x", "a")
    story.says(f"PEXPIREAT q {NOW_MS + after_ms}", 1, shape="sealed")
    return story


@pytest.mark.parametrize(
    ("passes", "told", "expected"), [(0, 1, set()), (200, 0, set()), (0, 0, {"count"})]
)
def test_a_key_is_there_until_it_expires(passes: int, told: int, expected: set[str]) -> None:
    story = with_an_end(100)
    story.passes(passes)
    story.says("DQ.LEN q", told)
    assert story.kinds() == expected


@pytest.mark.parametrize("passes", [0, 200])
@pytest.mark.parametrize("told", [0, 1])
def test_a_key_expires_at_its_time_after_a_trip_to_another_server(passes: int, told: int) -> None:
    story = with_an_end(100)
    story.says("MIGRATE host 6379 q 0 5000", "OK")
    story.says("SOAK.RETURN q", "OK", shape="loose")
    story.says("RENAME q p", "OK", shape="sealed")
    story.passes(passes)
    story.says("DQ.LEN p", told)
    assert story.kinds() == (set() if told == (0 if passes else 1) else {"count"})


def test_a_key_on_a_trip_expires_later_by_the_time_of_the_trip() -> None:
    """MIGRATE tells the rest of its life, so that it lives on by as long as it was under way."""
    for told in 0, 1:
        story = with_an_end(100)
        migrate = story.begins("MIGRATE host 6379 q 0 5000")
        story.passes(50)
        story.ends(migrate, "OK")
        story.says("SOAK.RETURN q", "OK", shape="loose")
        story.passes(75)
        story.says("DQ.LEN q", told)
        assert story.kinds() == set()


def test_a_key_that_expired_is_not_there_to_be_sent() -> None:
    for told, expected in ("NOKEY", set()), ("OK", {"ghost"}):
        story = with_an_end(100)
        story.passes(200)
        story.says("MIGRATE host 6379 q 0 5000", told)
        assert story.kinds() == expected
    story = with_an_end(100)
    story.says("MIGRATE host 6379 q 0 5000", "NOKEY")
    assert story.kinds() == {"lost"}


@pytest.mark.parametrize(("told", "later"), [(None, 0), (JOB, 0), (None, 1), (JOB, 1)])
def test_a_key_may_have_expired_while_a_command_was_under_way(told: Any, later: int) -> None:
    """So it is there, or not, or there is another one: each reply can be right."""
    story = with_an_end(100)
    story.passes(95)
    pop = story.begins("DQ.POP q", shape="loose")
    story.passes(10)
    story.ends(pop, told)
    story.says("COPY q p", later, shape="sealed")
    story.says("RENAME q r", "OK" if later else NO_KEY, shape="sealed")
    assert story.kinds() == set()
