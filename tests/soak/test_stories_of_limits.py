"""Small histories of queues with limits and groups, in pairs: what must be found, and what looks like it and is right."""

from typing import Any

import pytest

from .oracle.limits import DATABASE
from .story import NOW_MS, Story

FOREVER = 1_000_000


class Limited(Story):
    """A queue with some jobs, in which nothing else happens. Who waits is another client."""

    def __init__(self, limits: str = ""):
        super().__init__()
        if limits:
            self.tell(f"DQ.ALTER l {limits}", "OK")

    def tell(self, line: str, told: Any, **note: Any) -> None:
        self.says(line, told, db=DATABASE, **note)

    def add(self, id: str, group: str = "", options: str = "") -> None:
        in_group = f" GROUP {group}" if group else ""
        self.tell(f"DQ.ADD l {id} x{id} ATTEMPTS 0 TTR {FOREVER}{in_group} {options}", id)

    def gives(
        self, *jobs: str, lease: int = 7, ask: str = "DQ.POP l COUNT 1", attempt: int = 1
    ) -> None:
        told = [[id, f"x{id}", lease + at, attempt] for at, id in enumerate(jobs)]
        self.tell(ask, told or None)

    def waits(self, ask: str = "DQ.POP l BLOCK 9000") -> Any:
        return self.begins(ask, db=DATABASE)

    def lives_on(self, ms: int) -> None:
        self.lives(ms)


# ---- places ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limits", "expected"), [
    ("CONCURRENCY 2", {"limit"}), ("CONCURRENCY 3", set()), ("CONCURRENCY 0", set()),
])  # fmt: skip
def test_no_more_leases_are_live_than_concurrency_allows(limits: str, expected: set[str]) -> None:
    story = Limited(limits)
    for id in "abc":
        story.add(id)
    story.gives("a")
    story.gives("b", "c", lease=8, ask="DQ.POP l COUNT 2")
    assert story.kinds() == expected


@pytest.mark.parametrize(("ttr", "expected"), [(50, set()), (FOREVER, {"limit"})])
def test_a_concurrency_place_is_free_when_the_lease_has_ended(ttr: int, expected: set[str]) -> None:
    story = Limited("CONCURRENCY 1")
    story.add("a")
    story.add("b")
    story.gives("a", ask=f"DQ.POP l TTR {ttr}")
    story.passes(100)
    story.gives("b", lease=8, ask="DQ.POP l")
    assert story.kinds() - {"order", "withheld"} == expected


@pytest.mark.parametrize(("end", "expected"), [
    ("DQ.FINISH l a 7", set()), ("DQ.RELEASE l a 7 DELAY 500", set()), ("DQ.DEL l a", set()),
    ("DQ.TOUCH l a 7", {"limit"}),
])  # fmt: skip
def test_a_concurrency_place_is_free_when_the_job_has_been_given_back(
    end: str, expected: set[str]
) -> None:
    story = Limited("CONCURRENCY 1")
    story.add("a")
    story.add("b")
    story.gives("a")
    story.tell(end, 1)
    story.gives("b", lease=8)
    assert story.kinds() == expected


def test_a_lease_that_is_over_needs_a_place_to_live_again() -> None:
    story = Limited("CONCURRENCY 1")
    story.add("a")
    story.add("b", options="DELAY 50")
    story.gives("a", ask="DQ.POP l TTR 20")
    story.passes(60)
    story.tell("DQ.DEL l a", 1)
    story.add("c")
    story.gives("b", lease=8, ask="DQ.POP l TTR 20")
    story.passes(60)
    story.gives("c", lease=9)
    story.tell("DQ.TOUCH l b 8", 0)
    assert story.kinds() - {"order"} == set()
    story.tell("DQ.TOUCH l b 8", 1)
    assert "limit" in story.kinds()


@pytest.mark.parametrize(("first", "second", "expected"), [
    ("g", "g", {"limit"}), ("g", "h", set()), ("g", "", set()), ("", "", set()),
])  # fmt: skip
def test_groups_have_concurrency_places_of_their_own(
    first: str, second: str, expected: set[str]
) -> None:
    story = Limited("GROUPCONCURRENCY 1")
    story.add("a", first)
    story.add("b", second)
    story.gives("a", "b", ask="DQ.POP l COUNT 2")
    assert story.kinds() == expected


def test_a_limit_holds_from_when_it_was_set() -> None:
    story = Limited()
    for id in "abc":
        story.add(id)
    story.gives("a", "b", ask="DQ.POP l COUNT 2")
    story.tell("DQ.ALTER l CONCURRENCY 1", "OK")
    assert story.kinds() == set()
    story.gives("c", lease=9)
    assert story.kinds() == {"limit"}


def test_a_pop_with_noack_waits_for_a_place_in_the_group() -> None:
    story = Limited("GROUPCONCURRENCY 1")
    story.add("a", "g")
    story.add("b", "g")
    story.gives("a")
    story.tell("DQ.POP l NOACK", None)
    assert story.kinds() == set()
    story.tell("DQ.POP l NOACK", [["b", "xb", None, 1]])
    assert story.kinds() == {"limit"}


# ---- rates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "expected"), [
    ("RATE 2 1000", {"limit"}), ("RATE 2 1000 BURST 2", set()), ("RATE 3 30", set()), ("RATE 0 0", set()),
    ("GROUPRATE 2 1000", {"limit"}), ("GROUPRATE 2 1000 BURST 2", set()),
])  # fmt: skip
def test_a_rate_lets_jobs_through_at_even_distances(rate: str, expected: set[str]) -> None:
    story = Limited(rate)
    story.add("a", "g")
    story.add("b", "g")
    story.gives("a")
    story.passes(20)
    story.gives("b", lease=8)
    assert story.kinds() == expected


def test_no_window_has_more_than_the_rate_allows_though_the_delivery_times_are_unknown() -> None:
    story = Limited("RATE 2 5000 BURST 2")
    for id in "abcd":
        story.add(id)
    for at, id in enumerate("abcd"):
        waits = story.waits()
        story.passes(5)
        story.tell("DQ.LEN l", 4)
        story.ends(waits, [[id, f"x{id}", 7 + at, 1]])
    assert story.kinds() == {"limit"}


def test_a_changed_rate_begins_anew() -> None:
    story = Limited("RATE 1 1000")
    for id in "ab":
        story.add(id)
    story.gives("a")
    story.tell("DQ.ALTER l RATE 0 0", "OK")
    story.tell("DQ.ALTER l RATE 1 1000", "OK")
    story.gives("b", lease=8)
    assert story.kinds() == set()


# ---- held back, or not -------------------------------------------------------------------------------


@pytest.mark.parametrize(("limits", "expected"), [
    ("", {"withheld"}), ("CONCURRENCY 1", set()), ("CONCURRENCY 2", {"withheld"}),
    ("GROUPCONCURRENCY 1", set()), ("GROUPCONCURRENCY 2", {"withheld"}),
    ("RATE 1 1000", set()), ("RATE 1 3", {"withheld"}), ("GROUPRATE 1 1000", set()),
    ("GROUPRATE 1 1000 BURST 2", {"withheld"}),
])  # fmt: skip
def test_jobs_that_no_limit_holds_back_are_handed_out(limits: str, expected: set[str]) -> None:
    story = Limited(limits)
    story.add("a", "g")
    story.add("b", "g")
    story.gives("a")
    story.passes(10)
    story.gives(ask="DQ.POP l")
    assert story.kinds() == expected


@pytest.mark.parametrize(("pause", "end", "expected"), [
    ("DQ.PAUSE l", "", set()), ("DQ.PAUSE l FOR 5", "", {"withheld"}), ("DQ.PAUSE l", "DQ.RESUME l", {"withheld"}),
    ("DQ.PAUSE l GROUP g", "", set()), ("DQ.PAUSE l GROUP h", "", {"withheld"}),
    ("DQ.PAUSE l GROUP g", "DQ.RESUME l", set()), ("DQ.PAUSE l GROUP g", "DQ.RESUME l GROUP g", {"withheld"}),
])  # fmt: skip
def test_a_pause_holds_back_what_it_names(pause: str, end: str, expected: set[str]) -> None:
    story = Limited()
    story.add("a", "g")
    story.tell(pause, "OK")
    story.passes(20)
    if end:
        story.tell(end, "OK")
    story.gives(ask="DQ.POP l")
    assert story.kinds() == expected


@pytest.mark.parametrize(("pause", "expected"), [
    ("DQ.PAUSE l", {"paused"}), ("DQ.PAUSE l GROUP g", {"paused"}), ("DQ.PAUSE l GROUP h", set()),
    ("DQ.PAUSE l FOR 5", set()),
])  # fmt: skip
def test_no_job_comes_in_a_pause(pause: str, expected: set[str]) -> None:
    story = Limited()
    story.add("a", "g")
    story.tell(pause, "OK")
    story.passes(20)
    story.gives("a")
    assert story.kinds() == expected


@pytest.mark.parametrize(("ends", "ms", "expected"), [
    ("DQ.FINISH l a 7", 2_000, {"stuck"}), ("DQ.FINISH l a 7", 1_000, set()), ("DQ.LEN l", 2_000, set()),
    ("DQ.ALTER l CONCURRENCY 0", 2_000, {"stuck"}), ("DQ.ALTER l CONCURRENCY 1", 2_000, set()),
])  # fmt: skip
def test_a_waiting_consumer_is_woken_when_there_is_a_place(
    ends: str, ms: int, expected: set[str]
) -> None:
    story = Limited("CONCURRENCY 1")
    story.add("a")
    story.add("b")
    story.gives("a")
    waits = story.waits()
    story.passes(50)
    story.tell(ends, 2 if "LEN" in ends else "OK" if "ALTER" in ends else 1)
    story.lives_on(ms)
    story.ends(waits, None)
    assert story.kinds() == expected


@pytest.mark.parametrize(("limits", "ask", "expected"), [
    ("CONCURRENCY 1", "DQ.POP l TTR 300", {"stuck"}), ("CONCURRENCY 1", "DQ.POP l TTR 1500", set()),
    ("RATE 1 300", "DQ.POP l", {"stuck"}), ("RATE 1 1800", "DQ.POP l", set()),
    ("GROUPCONCURRENCY 1", "DQ.POP l TTR 300", {"stuck"}), ("GROUPRATE 1 1800", "DQ.POP l", set()),
])  # fmt: skip
def test_a_waiting_consumer_is_woken_when_time_lets_a_job_go(
    limits: str, ask: str, expected: set[str]
) -> None:
    story = Limited(limits)
    story.add("a", "g")
    story.add("b", "g")
    story.gives("a", ask=ask)
    waits = story.waits()
    story.lives_on(2_200)
    story.ends(waits, [["b", "xb", 8, 1]])
    assert story.kinds() - {"order"} == expected


@pytest.mark.parametrize(("theirs", "expected"), [(8, {"unfair"}), (6, set())])
def test_a_waiting_consumer_is_served_before_one_that_comes(
    theirs: int, expected: set[str]
) -> None:
    story = Limited("CONCURRENCY 4")
    waits = story.waits()
    story.passes(50)
    story.add("a")
    story.add("b")
    story.gives("b" if theirs < 7 else "a", lease=7)
    id = "a" if theirs < 7 else "b"
    story.ends(waits, [[id, f"x{id}", theirs, 1]])
    assert story.kinds() == expected


# ---- who was served when nobody can say until when -----------------------------------------------------


def both_are_served(
    guest: Any, warden: Any, *, ttr: int = 20, limits: str = "", ask: str = "BLOCK 300"
) -> Limited:
    """The guest is told first, but its mark is refused: by marks alone, it may have been served last."""
    story = Limited(limits)
    story.add("a")
    story.add("b", options="DELAY 40")
    guests = story.waits(f"DQ.POP l BLOCK 9000 TTR {ttr}")
    wardens = story.waits(f"DQ.POP l {ask}")
    story.passes(1)
    story.ends(guests, [guest], is_marked=False)
    story.passes(60)
    story.ends(wardens, [warden])
    return story


@pytest.mark.parametrize(("guest", "warden", "expected"), [
    # Leases grow: so these tell who was served first.
    (["a", "xa", 7, 1], ["a", "xa", 8, 2], set()),
    (["a", "xa", 7, 2], ["a", "xa", 8, 1], {"attempt"}),
    (["a", "xa", 7, 1], ["a", "xa", 8, 3], {"attempt"}),
    (["a", "xa", 7, 1], ["b", "xb", 8, 1], set()),
    (["b", "xb", 8, 1], ["a", "xa", 7, 1], {"unfair"}),
])  # fmt: skip
def test_leases_tell_which_consumer_was_served_first(
    guest: Any, warden: Any, expected: set[str]
) -> None:
    story = both_are_served(guest, warden)
    id, _, lease, _ = max(guest, warden, key=lambda item: item[2])
    story.tell(f"DQ.TOUCH l {id} {lease}", 1)
    assert story.kinds() == expected


@pytest.mark.parametrize(("lease", "counts", "expected"), [
    (7, 0, set()), (7, 1, {"stale"}), (8, 1, set()), (8, 0, {"refused"}),
])  # fmt: skip
def test_only_the_lease_of_the_consumer_served_last_counts(
    lease: int, counts: int, expected: set[str]
) -> None:
    story = both_are_served(["a", "xa", 7, 1], ["a", "xa", 8, 2])
    story.tell(f"DQ.FINISH l a {lease}", counts)
    assert story.kinds() == expected


@pytest.mark.parametrize(("ttr", "expected"), [(20, set()), (FOREVER, {"double"})])
def test_a_job_is_had_again_when_the_lease_of_a_guest_has_ended(
    ttr: int, expected: set[str]
) -> None:
    story = both_are_served(["a", "xa", 7, 1], ["a", "xa", 8, 2], ttr=ttr)
    story.tell("DQ.FINISH l a 8", 1)
    assert story.kinds() == expected


@pytest.mark.parametrize(("ttr", "expected"), [(20, set()), (FOREVER, {"limit"})])
def test_a_guest_takes_its_place_when_it_is_served(ttr: int, expected: set[str]) -> None:
    story = both_are_served(["a", "xa", 7, 1], ["b", "xb", 8, 1], ttr=ttr, limits="CONCURRENCY 1")
    assert story.kinds() == expected


@pytest.mark.parametrize(("guest", "warden", "expected"), [
    (["a", "xa", 7, 1], ["a", "xa", None, 2], set()),
    (["a", "xa", 7, 2], ["a", "xa", None, 1], {"ghost"}),
    (["a", "xa", 7, 1], ["b", "xb", None, 1], set()),
])  # fmt: skip
def test_a_consumer_with_noack_is_the_last_that_had_the_job(
    guest: Any, warden: Any, expected: set[str]
) -> None:
    story = both_are_served(guest, warden, ask="BLOCK 300 NOACK")
    story.tell("DQ.GET l a" if warden[0] == "a" else "DQ.GET l b", None)
    assert story.kinds() == expected


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_crash_may_keep_what_the_leases_tell(is_kept: bool) -> None:
    story = both_are_served(["a", "xa", 7, 1], ["a", "xa", 8, 2])
    story.crashes(lost=0 if is_kept else 1)
    story.tell("DQ.FINISH l a 8", int(is_kept))
    assert story.kinds() == set()


# ---- groups ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("jobs", "expected"), [("ab", set()), ("ba", {"order"})])
def test_a_group_keeps_its_order(jobs: str, expected: set[str]) -> None:
    story = Limited()
    story.add("a", "g")
    story.add("b", "g")
    for at, id in enumerate(jobs):
        story.gives(id, lease=7 + at)
    assert story.kinds() == expected


@pytest.mark.parametrize(("priority", "expected"), [(127, {"order"}), (128, set()), (129, set())])
def test_priority_comes_before_turns(priority: int, expected: set[str]) -> None:
    story = Limited()
    story.add("a", "g")
    story.add("b", "h", f"PRIORITY {priority}")
    story.gives("a")
    assert story.kinds() == expected


@pytest.mark.parametrize(("jobs", "expected"), [("abz", set()), ("abc", {"unfair"})])
def test_no_group_waits_for_the_many_jobs_of_another(jobs: str, expected: set[str]) -> None:
    story = Limited()
    for id in "abcd":
        story.add(id, "g")
    story.add("z", "h")
    for at, id in enumerate(jobs):
        story.gives(id, lease=7 + at)
    assert story.kinds() == expected


@pytest.mark.parametrize(("jobs", "expected"), [("pyqr", set()), ("pqr", {"unfair"})])
def test_a_job_of_which_no_more_is_known_may_have_taken_its_groups_turn(
    jobs: str, expected: set[str]
) -> None:
    story = Limited()
    story.add("y", "h")
    story.is_lost(story.begins("DQ.POP l", db=DATABASE))
    for id in "pqr":
        story.add(id, "g")
    story.add("z", "h")
    for at, id in enumerate(jobs):
        story.gives(id, lease=8 + at)
    assert story.kinds() == expected


def test_a_group_that_is_held_back_loses_no_waiting_time() -> None:
    story = Limited()
    for id in "abcd":
        story.add(id, "g")
    story.add("z", "h")
    story.tell("DQ.PAUSE l GROUP h", "OK")
    story.gives("a", "b", "c", "d", ask="DQ.POP l COUNT 4")
    assert story.kinds() == set()


def group(name: str, ready: int, reserved: int, delayed: int, paused: int = 0) -> list[Any]:
    counts = ["ready", ready, "reserved", reserved, "delayed", delayed]
    return ["group", name, *counts, "paused", paused, "paused-until", None, "blocked-until", None]


@pytest.mark.parametrize(("told", "expected"), [
    ([group("g", 1, 1, 1), group("h", 0, 0, 0, 1)], set()),
    ([group("g", 2, 1, 1), group("h", 0, 0, 0, 1)], {"count"}),
    ([group("g", 1, 1, 1), group("h", 0, 0, 0, 0)], {"view"}),
    ([group("h", 0, 0, 0, 1)], {"lost"}),
    ([group("g", 1, 1, 1), group("g", 1, 1, 1)], {"view"}),
])  # fmt: skip
def test_groups_are_counted(told: list[Any], expected: set[str]) -> None:
    story = Limited()
    story.add("a", "g")
    story.add("b", "g")
    story.add("c", "g", "DELAY 5000")
    story.add("d")
    story.gives("a")
    story.tell("DQ.PAUSE l GROUP h", "OK")
    story.tell("DQ.GROUPS l 0 COUNT 1000", ["0", told])
    assert story.kinds() == expected


def shown(id: str, **other: Any) -> list[Any]:
    fields: dict[str, Any] = {
        "id": id,
        "body": f"x{id}",
        "state": "ready",
        "due": NOW_MS,
        "deadline": None,
    }
    fields |= {"priority": 128, "ttr": FOREVER, "attempt": 0, "lease": None} | other
    return [word for pair in fields.items() for word in pair]


@pytest.mark.parametrize(("fields", "expected"), [
    ({"group": "g"}, set()), ({"group": "h"}, {"view"}), ({}, {"view"}), ({"group": "g", "state": "delayed"}, {"view"}),
])  # fmt: skip
def test_a_job_shows_its_group(fields: dict[str, Any], expected: set[str]) -> None:
    story = Limited()
    story.add("a", "g")
    story.tell("DQ.GET l a", shown("a", **fields))
    story.tell("DQ.PEEK l", [shown("a", **fields)])
    assert story.kinds() == expected


# ---- what a crash leaves open ------------------------------------------------------------------------


def test_limits_outlive_a_crash() -> None:
    story = Limited("CONCURRENCY 1")
    story.add("a")
    story.add("b")
    story.gives("a")
    story.crashes()
    story.gives("b", lease=8)
    assert story.kinds() == {"limit"}


def test_a_place_whose_lease_was_lost_in_a_crash_is_free_again() -> None:
    story = Limited("CONCURRENCY 1")
    story.add("a")
    story.add("b")
    story.gives("a")
    story.crashes(lost=2)
    story.gives("a", lease=8)
    assert story.kinds() == set()


def test_a_delivery_whose_reply_was_lost_is_unknown_until_it_is_shown() -> None:
    story = Limited("CONCURRENCY 1")
    story.add("a")
    story.add("b")
    story.is_lost(story.begins("DQ.POP l", db=DATABASE))
    story.gives(ask="DQ.POP l")
    assert story.kinds() == set()
    leased = {"state": "reserved", "deadline": NOW_MS + FOREVER, "lease": 7, "attempt": 1}
    story.tell("DQ.GET l a", shown("a", **leased))
    story.tell("DQ.GET l b", shown("b"))
    story.gives("b", lease=8)
    assert story.kinds() == {"limit"}


@pytest.mark.parametrize("line", ["DQ.ALTER l CONCURRENCY 0", "DQ.RESUME l"])
def test_a_change_whose_reply_was_lost_may_be_made_or_not(line: str) -> None:
    for comes in True, False:
        story = Limited("CONCURRENCY 1")
        story.add("a")
        story.add("b")
        story.gives("a")
        if "RESUME" in line:
            story.tell("DQ.FINISH l a 7", 1)
            story.tell("DQ.PAUSE l", "OK")
        story.is_lost(story.begins(line, db=DATABASE))
        story.gives(*(["b"] if comes else []), lease=8, ask="DQ.POP l")
        assert story.kinds() == set()
