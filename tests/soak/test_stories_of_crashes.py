"""Small histories of commands on a whole queue that were under way when the server crashed, in pairs: what must be found,
and what may well have happened."""

from dataclasses import dataclass

import pytest

from .story import NOW_MS, Story, shown

JOB = [["a", "x", 1_000, 1]]
HOUR_MS = 3_600_000


def with_a_dead_job() -> Story:
    story = Story()
    story.says("DQ.ADD q a x", "a")
    story.says("DQ.POP q", JOB)
    story.says("DQ.BURY q a 1000", 1)
    return story


def crashed_in(story: Story, line: str) -> Story:
    """Its first mark survived. Whether it did, nobody knows."""
    story.is_lost(story.begins(line, client="c"))
    story.crashes()
    return story


@pytest.mark.parametrize(("line", "others"), [
    ("DQ.KICK q", [("DQ.LEN q STATE ready", 1)]),
    ("DQ.PURGE q STATE dead", [("DQ.LEN q", 0)]),
    ("DQ.PURGE q STATE ready", []),
])  # fmt: skip
def test_jobs_kicked_or_purged_in_a_crash_are_dead_or_not(
    line: str, others: list[tuple[str, int]]
) -> None:
    story = crashed_in(with_a_dead_job(), line)
    story.says("DQ.LEN q STATE dead", 1)
    assert story.kinds() == set()
    story = crashed_in(with_a_dead_job(), line)
    story.says("DQ.LEN q STATE dead", 0)
    for asked, told in others:
        story.says(asked, told)
    assert story.kinds() == (set() if others else {"count"})
    story = crashed_in(with_a_dead_job(), line)
    story.says("DQ.LEN q STATE dead", 2)
    assert story.kinds() == {"count"}


def test_jobs_kicked_before_a_crash_are_not_dead() -> None:
    story = with_a_dead_job()
    story.says("DQ.KICK q", 1)
    story.crashes()
    story.says("DQ.LEN q STATE dead", 1)
    assert story.kinds() == {"count"}


@pytest.mark.parametrize("told", [None, JOB])
@pytest.mark.parametrize("line", ["DQ.PAUSE q", "DQ.RESUME q"])
def test_a_queue_that_was_paused_in_a_crash_hands_out_or_not(line: str, told: object) -> None:
    story = Story()
    story.says("DQ.ADD q a x", "a")
    if "RESUME" in line:
        story.says("DQ.PAUSE q", "OK")
    crashed_in(story, line)
    story.says("DQ.POP q", told)
    assert story.kinds() == set()


@pytest.mark.parametrize(
    ("attempt", "expected"), [(1, set()), (2, set()), (3, {"attempt", "view"})]
)
def test_a_job_of_unknown_id_may_have_been_handed_out_by_a_lost_pop(
    attempt: int, expected: set[str]
) -> None:
    """Both were under way in the crash, or carried out and not told of. It shows when the lease has run out."""
    for are_over in False, True:
        story = Story()
        ops = [story.begins("DQ.ADD q * x", client="p")]
        if are_over:
            story.ends(ops[0], "")
        ops.append(story.begins("DQ.POP q TTR 10", client="w"))
        if are_over:
            story.ends(ops[1], None)
            del story.records[-2:]
        for op in ops:
            op.told = op.after = None
            story.is_lost(op)
        story.crashes()
        story.passes(100)
        story.says("DQ.POP q", [["1-1", "x", 2_000, attempt]])
        assert bool(story.kinds() & expected) == bool(story.kinds()) == bool(expected)


@pytest.mark.parametrize(("kicked", "expected"), [(1, set()), (0, {"view"})])
def test_a_job_of_unknown_id_may_have_been_kicked(kicked: int, expected: set[str]) -> None:
    story = Story()
    add = story.begins("DQ.ADD q * x TTL 10", client="p")
    story.passes(2)
    story.is_lost(add)
    story.crashes()
    story.passes(100)
    story.says("DQ.KICK q", kicked)
    story.says("DQ.PEEK q", [shown("1-1", due=NOW_MS + 104, ttl=10)])
    assert story.kinds() == expected


@pytest.mark.parametrize(("is_looked_at", "expected"), [(False, set()), (True, {"count"})])
def test_of_an_ambush_a_crash_may_keep_the_deliveries_alone(
    is_looked_at: bool, expected: set[str]
) -> None:
    """Until somebody has seen that the jobs were given back."""
    story = Story()
    victim = story.begins("DQ.POP k BLOCK 0", client="victim", ambush="k")
    op = story.begins("DQ.ADD k a x", client="c", shape="burst", ambush="k")
    story.ends(op, "a")
    victim.after, victim.got, victim.lost = None, (op.got or 0) + 1, "closed"
    story.records.append(victim.record())
    if is_looked_at:
        story.passes(1)
        story.says("DQ.LEN k STATE ready", 1)
    story.crashes()
    story.says("DQ.LEN k STATE reserved", 1)
    assert story.kinds() == expected


@dataclass
class Restored:
    """A queue whose delivery a crash loses, and that comes back from a payload with the same lease."""

    is_clock_set: bool = True
    lost_marks: int = 2
    is_dumped_behind_the_crash: bool = False
    is_restored_before_the_crash: bool = False
    is_of_another_key: bool = False

    def kinds(self) -> set[str]:
        story = Story()
        source = "r" if self.is_of_another_key else "q"
        story.says(f"DQ.ADD {source} a x", "a")
        if self.is_of_another_key:
            story.says("DQ.ADD q b x", "b")
        if self.is_clock_set:
            story.sets_clock(-HOUR_MS)
        if not self.is_dumped_behind_the_crash:
            story.says(f"DUMP {source}", "payload", shape="sealed")
        if self.is_restored_before_the_crash:
            story.says("RESTORE q 0 payload REPLACE", "OK", shape="sealed")
        story.says("DQ.POP q", [["b", "x", 1_000, 1]] if self.is_of_another_key else JOB)
        story.crashes(lost=self.lost_marks)
        if self.is_dumped_behind_the_crash:
            story.says(f"DUMP {source}", "payload", shape="sealed")
        if not self.is_restored_before_the_crash:
            story.says("RESTORE q 0 payload REPLACE", "OK", shape="sealed")
        story.says("DQ.POP q", JOB)
        return story.kinds()


@pytest.mark.parametrize("is_of_another_key", [False, True])
def test_a_lease_that_a_crash_lost_may_come_again_from_a_payload_from_before_it(
    *, is_of_another_key: bool
) -> None:
    """The known limit of "A lease is proof" in docs/guarantees.md."""
    assert Restored(is_of_another_key=is_of_another_key).kinds() == set()


@pytest.mark.parametrize("restored", [
    Restored(is_clock_set=False),
    Restored(is_clock_set=False, is_of_another_key=True),
    Restored(lost_marks=0),
    Restored(is_dumped_behind_the_crash=True),
    Restored(is_restored_before_the_crash=True),
])  # fmt: skip
def test_any_other_lease_that_comes_again_behind_a_restore_is_found(restored: Restored) -> None:
    assert restored.kinds() == {"lease-twice"}


def test_a_lease_comes_again_once_from_a_payload_from_before_a_crash() -> None:
    story = Story()
    story.says("DQ.ADD q a x", "a")
    story.sets_clock(-HOUR_MS)
    story.says("DUMP q", "payload", shape="sealed")
    story.says("DQ.POP q", JOB)
    story.crashes(lost=2)
    for _ in range(2):
        story.says("RESTORE q 0 payload REPLACE", "OK", shape="sealed")
        story.says("DQ.POP q", JOB)
    assert story.kinds() == {"lease-twice"}
