"""The oracle, told small stories: what must be found, and what may well have happened."""

import pytest

from .story import NOW_MS, Story, shown

JOB = [["a", "x", 1_000, 1]]
HOUR_MS = 3_600_000


def with_a_job(*, ttr: int = 60_000, options: str = "") -> Story:
    story = Story()
    story.says(f"DQ.ADD q a x TTR {ttr} {options}", "a")
    return story


def handed_out(*, ttr: int = 60_000, options: str = "") -> Story:
    story = with_a_job(ttr=ttr, options=options)
    story.says("DQ.POP q", JOB)
    return story


def test_a_plain_day_is_sound() -> None:
    story = handed_out()
    story.says("DQ.LEN q STATE reserved", 1)
    story.says("DQ.FINISH q a 1000", 1)
    story.says("DQ.LEN q", 0)
    assert story.kinds() == set()


def test_a_delivery_early_by_one_millisecond_is_found() -> None:
    """Due at a time that is known to the millisecond."""
    for at, expected in [(2, set()), (3, {"early"})]:
        story = Story()
        story.says(f"DQ.ADD q a x AT {NOW_MS + at}", "a")
        story.says("DQ.POP q", JOB)
        assert story.kinds() == expected, at


def test_a_job_withheld_from_its_millisecond_on_is_found() -> None:
    for at, expected in [(2, {"withheld"}), (3, set())]:
        story = Story()
        story.says(f"DQ.ADD q a x AT {NOW_MS + at}", "a")
        story.says("DQ.POP q", None)
        assert story.kinds() == expected, at


def test_a_clock_that_jumps_there_and_back_may_have_made_jobs_due() -> None:
    story = with_a_job(options=f"DELAY {HOUR_MS}")
    story.sets_clock(2 * HOUR_MS)
    story.sets_clock(-2 * HOUR_MS)
    story.says("DQ.POP q", JOB)
    assert story.kinds() == set()


@pytest.mark.parametrize(("ttr", "expected"), [(10, set()), (1_000, {"double"})])
def test_two_live_leases_of_a_job_are_found(ttr: int, expected: set[str]) -> None:
    story = handed_out(ttr=ttr)
    story.passes(100)
    story.says("DQ.POP q", [["a", "x", 1_001, 2]])
    assert story.kinds() == expected


def test_a_lease_is_good_until_the_job_is_handed_out_again() -> None:
    story = handed_out(ttr=10)
    story.passes(100)
    story.says("DQ.TOUCH q a 1000", 1)
    assert story.kinds() == set()


def test_a_stale_lease_that_counts_is_found() -> None:
    story = handed_out(ttr=10)
    story.passes(100)
    story.says("DQ.POP q", [["a", "x", 1_001, 2]])
    story.says("DQ.FINISH q a 1000", 1)
    assert story.kinds() == {"stale"}


@pytest.mark.parametrize("removal", ["DEL q", "UNLINK q", "FLUSHDB"])
def test_a_lease_given_twice_over_the_end_of_a_queue_is_found(removal: str) -> None:
    story = handed_out()
    story.says(removal, "OK" if removal == "FLUSHDB" else 1, shape="sealed")
    story.says("DQ.ADD q b y", "b")
    story.says("DQ.POP q", [["b", "y", 1_000, 1]])
    assert story.kinds() == {"lease-twice"}


def test_a_lease_given_twice_over_a_crash_that_lost_the_first_is_found() -> None:
    story = with_a_job()
    story.says("DQ.POP q", JOB)
    story.crashes(lost=2)
    story.says("DQ.POP q", JOB)
    assert story.kinds() == {"lease-twice"}


def test_a_crash_may_lose_a_pop_and_the_job_is_there_again() -> None:
    story = with_a_job()
    story.says("DQ.POP q", JOB)
    story.crashes(lost=2)
    story.says("DQ.POP q", [["a", "x", 9_000, 1]])
    story.says("DQ.FINISH q a 1000", 0)
    assert story.kinds() == set()


def test_a_lease_that_survived_a_crash_is_not_forgotten() -> None:
    story = handed_out()
    story.crashes()
    story.says("DQ.POP q", [["a", "x", 9_000, 1]])
    assert story.kinds() == {"double"}


def test_a_command_that_was_on_disk_must_survive_a_crash() -> None:
    story = handed_out()
    story.crashes(lost=2, kept=10**9)
    assert story.kinds() == {"durability"}


def test_a_command_that_wait_confirmed_must_survive_a_crash() -> None:
    story = handed_out()
    story.crashes(lost=2, waited=3)
    assert story.kinds() == {"durability"}


@pytest.mark.parametrize("told", [0, 1])
def test_a_command_of_which_half_survived_a_crash_was_carried_out_or_not(told: int) -> None:
    """Its first mark did, its second didn't: it was carried out or not, and both are right."""
    story = Story()
    op = story.begins("DQ.ADD q a x")
    story.ends(op, "a")
    story.crashes(lost=1)
    story.says("DQ.LEN q", told)
    assert story.kinds() == set()


@pytest.mark.parametrize("told", [0, 1])
def test_a_lost_reply_may_have_been_an_error(told: int) -> None:
    story = Story()
    op = story.begins("DQ.ADD q a x")
    story.ends(op, "a")
    story.records.pop()
    op.after = op.told = None
    story.is_lost(op)
    story.says("DQ.LEN q", told)
    assert story.kinds() == set()


def test_a_command_that_is_not_in_the_journal_was_never_carried_out() -> None:
    story = Story()
    story.says("DQ.LEN q", 0)
    op = story.begins("DQ.ADD q a x")
    story.unmark()
    story.is_lost(op)
    story.says("DQ.LEN q", 1)
    assert story.kinds() == {"count"}


def test_a_move_to_a_key_that_is_taken_tells_nothing_of_a_queue_that_may_be_there() -> None:
    story = Story()
    add = story.begins("DQ.ADD q a x", shape="loose")
    story.says("DEL q", 0)
    story.ends(add, "a")
    story.says("DQ.ADD q b y", "b", db=1)
    story.says("MOVE q 1", 0)
    story.says("DQ.LEN q", 1)
    assert story.kinds() == set()


def test_a_clock_that_is_set_back_while_a_command_is_under_way_may_have_been_read_after_that() -> (
    None
):
    story = Story()
    add = story.begins("DQ.ADD q a x", shape="loose")
    story.sets_clock(-HOUR_MS)
    due = NOW_MS - HOUR_MS + 5
    story.passes(50)
    story.ends(add, "a")
    story.says("DQ.GET q a", shown("a", due=due, since=due))
    assert story.kinds() == set()


@pytest.mark.parametrize("told", ["OK", "no such key"])
def test_a_queue_came_back_from_another_server_while_databases_were_swapped(told: str) -> None:
    story = with_a_job()
    story.says("MIGRATE host 6379 q 0 5000", "OK")
    back = story.begins("SOAK.RETURN q", shape="loose")
    story.says("SWAPDB 0 1", "OK", shape="sealed")
    story.ends(back, "OK")
    story.says("RENAME q p", told if told == "OK" else {"error": "ERR no such key"}, shape="sealed")
    assert story.kinds() == set()


def test_a_swap_tells_nothing_of_a_queue_that_may_be_there() -> None:
    story = Story()
    add = story.begins("DQ.ADD q a x", shape="loose")
    story.says("SWAPDB 0 1", "OK", shape="sealed")
    story.says("DQ.ADD q b y", "b")
    story.says("MOVE q 1", 1)
    story.ends(add, "a")
    assert story.kinds() == set()


def test_a_job_out_of_sight_may_have_been_handed_out_while_its_add_was_under_way() -> None:
    story = with_a_job()
    story.says("DQ.GET q a", None)
    assert story.kinds() == {"lost"}
    add = story.begins("DQ.ADD q a y", shape="loose")
    story.says("DQ.POP q", [["a", "y", 1_000, 1]])
    story.ends(add, "a")
    story.says("DQ.FINISH q a 1000", 1)
    assert story.kinds() == {"lost"}


@pytest.mark.parametrize("told", [0, 1])
def test_a_queue_came_back_to_its_key_while_a_command_was_under_way(told: int) -> None:
    """Before or after the command."""
    story = handed_out()
    story.says("RENAME q p", "OK", shape="sealed")
    finish = story.begins("DQ.FINISH q a 1000", shape="loose")
    story.says("RENAME p q", "OK", shape="sealed")
    story.ends(finish, told)
    story.says("DQ.LEN q", 1 - told)
    assert story.kinds() == set()


def test_a_pause_makes_its_queue_for_certain() -> None:
    story = Story()
    add = story.begins("DQ.ADD q a x", shape="loose")
    story.says("DQ.PAUSE q", "OK")
    story.says("DEL q", 0)
    story.ends(add, "a")
    assert story.kinds() == {"lost"}


def test_a_scan_is_over_when_the_data_is_loaded_anew() -> None:
    for reload, expected in [("DEBUG RELOAD", set()), ("DQ.LEN q", {"lost"})]:
        story = with_a_job()
        story.says("DQ.SCAN q 0", ["5", []], scan=1)
        story.says(reload, "OK" if reload == "DEBUG RELOAD" else 1)
        story.says("DQ.SCAN q 5", ["0", []], scan=1)
        assert story.kinds() == expected, reload


@pytest.mark.parametrize("told", [1, 2])
def test_an_add_of_unknown_id_was_under_way_when_the_server_crashed(told: int) -> None:
    """Its first mark survived. Whether the job did, nobody knows, nor its id."""
    story = with_a_job()
    op = story.begins("DQ.ADD q * y")
    story.is_lost(op)
    story.crashes()
    story.says("DQ.LEN q", told)
    story.says("DQ.LEN q STATE ready", told)
    assert story.kinds() == set()


def test_a_pop_whose_reply_was_lost_may_have_taken_any() -> None:
    for told in None, JOB:
        story = with_a_job()
        op = story.begins("DQ.POP q")
        story.ends(op, None)
        story.records.pop()
        op.after = op.told = None
        story.is_lost(op)
        story.says("DQ.POP q", told)
        assert story.kinds() == set()


def test_a_consumer_that_is_stuck_is_found() -> None:
    story = Story()
    waits = story.begins("DQ.POP q BLOCK 0")
    story.says("DQ.ADD q a x DELAY 100", "a")
    story.lives(5_000)
    story.ends(waits, None)
    assert story.kinds() == {"stuck"}


def test_a_consumer_that_is_served_late_is_found() -> None:
    for after_ms, expected in [(200, set()), (5_000, {"stuck"})]:
        story = Story()
        waits = story.begins("DQ.POP q BLOCK 0")
        story.says("DQ.ADD q a x DELAY 100", "a")
        story.lives(after_ms)
        story.ends(waits, JOB)
        assert story.kinds() == expected, after_ms


def test_no_consumer_is_stuck_while_the_server_stands_still_or_the_queue_is_paused() -> None:
    story = Story()
    waits = story.begins("DQ.POP q BLOCK 0")
    story.says("DQ.ADD q a x DELAY 100", "a")
    story.passes(60_000)
    story.ends(waits, JOB)
    paused = Story()
    waits = paused.begins("DQ.POP q BLOCK 0")
    paused.says("DQ.PAUSE q", "OK")
    paused.says("DQ.ADD q a x", "a")
    paused.lives(5_000)
    paused.says("DQ.RESUME q", "OK")
    paused.ends(waits, JOB)
    assert story.kinds() | paused.kinds() == set()


def test_the_consumer_that_came_first_is_served_first() -> None:
    for first, second, expected in [("one", "two", set()), ("two", "one", {"unfair"})]:
        story = Story()
        waits = {"one": story.begins("DQ.POP q BLOCK 0"), "two": story.begins("DQ.POP q BLOCK 0")}
        story.says("DQ.ADD q a x", "a")
        story.ends(waits[first], JOB)
        story.says("DQ.ADD q b y", "b")
        story.ends(waits[second], [["b", "y", 1_001, 1]])
        assert story.kinds() == expected, first


def test_the_order_of_two_deliveries_is_unknown_where_one_has_no_lease() -> None:
    story = Story()
    first, second = story.begins("DQ.POP q BLOCK 0"), story.begins("DQ.POP q NOACK BLOCK 0")
    story.says("DQ.ADD q a x", "a")
    story.says("DQ.ADD q b y", "b")
    story.ends(second, [["b", "y", None, 1]])
    story.ends(first, JOB)
    assert story.kinds() == set()


def test_a_paused_queue_hands_out_nothing() -> None:
    story = with_a_job()
    story.says("DQ.PAUSE q FOR 50", "OK")
    story.says("DQ.POP q", JOB)
    assert story.kinds() == {"paused"}


def test_two_jobs_of_one_transaction_have_an_order() -> None:
    story = Story()
    op = story.begins("DQ.ADD q a x", shape="multi")
    op.say.append(["DQ.ADD", "q", "b", "y"])
    story.ends(op, "a")
    story.records.pop()
    op.told = ["a", "b"]
    story.records.append(op.record())
    story.says("DQ.POP q COUNT 2", [["b", "y", 1_000, 1], ["a", "x", 1_001, 1]])
    assert story.kinds() == {"order"}


def test_kept_jobs_that_never_go_are_found() -> None:
    for after_ms, expected in [(200, set()), (8_000, {"leak"})]:
        story = handed_out(options="KEEP 100")
        story.says("DQ.FINISH q a 1000", 1)
        story.lives(after_ms)
        story.says("DQ.LEN q STATE done", 1)
        assert story.kinds() == expected, after_ms


def test_dead_jobs_are_kept_until_deadkeep_says_otherwise() -> None:
    """They are to be removed from then on, which takes a moment."""
    for after_ms, expected in [(200, set()), (8_000, {"leak"})]:
        story = handed_out()
        story.says("DQ.BURY q a 1000", 1)
        story.lives(8_000)
        story.says("DQ.ALTER q DEADKEEP 1000", "OK")
        story.lives(after_ms)
        story.says("DQ.LEN q STATE dead", 1)
        assert story.kinds() == expected, after_ms


def test_a_queue_goes_where_its_key_goes() -> None:
    story = with_a_job()
    story.says("RENAME q r", "OK", shape="sealed")
    story.says("DQ.LEN q", 0)
    story.says("COPY r s", 1, shape="sealed")
    story.says("DQ.POP r", JOB)
    story.says("DQ.POP s", [["a", "x", 1_001, 1]])
    assert story.kinds() == set()


def test_a_job_that_did_not_move_with_its_queue_is_found() -> None:
    story = with_a_job()
    story.says("RENAME q r", "OK", shape="sealed")
    story.says("DQ.LEN r", 0)
    assert story.kinds() == {"count"}


def test_an_ambush_that_changes_a_queue_is_found() -> None:
    story = Story()
    victim = story.begins("DQ.POP k BLOCK 0", ambush="k")
    op = story.begins("DQ.ADD k a x", shape="burst", ambush="k")
    story.ends(op, "a")
    victim.after = None
    story.is_lost(victim)
    story.says("DQ.LEN k STATE ready", 0)
    assert story.kinds() == {"count"}


def test_lateness_that_stops_counting_is_found() -> None:
    for told, expected in [(2, {"lateness"}), (1_001, set())]:
        story = with_a_job()
        story.passes(1_000)
        story.says("DQ.POP q", JOB)
        info = Info(story).told(lateness=told)
        story.says("DQ.INFO q", info)
        assert story.kinds() == expected


def test_a_delivery_that_may_be_from_either_of_two_queues_counts_for_one_of_them() -> None:
    story = Story()
    story.says("DQ.PAUSE q", "OK")
    story.says("DQ.ADD q a x", "a")
    waits = story.begins("DQ.POP q NOACK BLOCK 0")
    story.says("UNLINK q", 1, shape="sealed")
    story.says("DQ.ADD q a x", "a")
    story.ends(waits, [["a", "x", None, 1]])
    nothing_left = {"jobs": 0, "reserved": 0, "last-lease": None}
    story.says("DQ.INFO q", Info(story).told(0, **nothing_left, **{"total-finished": 1}))
    assert story.kinds() == set()


def test_a_job_that_was_taken_by_a_pop_whose_reply_was_lost_counts_as_finished_and_for_lateness() -> (
    None
):
    for options, expected in [("NOACK", set()), ("", {"count"})]:
        story = with_a_job()
        story.passes(100)
        op = story.begins(f"DQ.POP q {options}")
        story.ends(op, None)
        story.records.pop()
        op.after = op.told = None
        story.is_lost(op)
        nothing_left = {"jobs": 0, "reserved": 0, "last-lease": None}
        story.says("DQ.INFO q", Info(story).told(101, **nothing_left, **{"total-finished": 1}))
        assert story.kinds() == expected


class Info:
    """What DQ.INFO tells of a queue with one reserved job, or with others."""

    def __init__(self, story: Story):
        self.story = story

    def told(self, lateness: int, **others: object) -> list[object]:
        zeros = (
            "default-keep",
            "default-backoff-base",
            "default-backoff-max",
            "max-jobs",
            "dead-keep",
            "paused",
        )
        totals = ("replaced", "finished", "released", "buried", "deleted", "kicked")
        fields: dict[str, object] = dict.fromkeys(zeros, 0)
        fields |= dict.fromkeys(("delayed", "ready", "dead", "done"), 0) | {
            "jobs": 1,
            "reserved": 1,
        }
        fields |= {f"total-{name}": 0 for name in totals} | {"total-added": 1, "total-popped": 1}
        fields |= {"last-lease": 1_000, "oldest-ready-ms": None, "lateness-max-ms": lateness}
        return [part for pair in (fields | others).items() for part in pair]
