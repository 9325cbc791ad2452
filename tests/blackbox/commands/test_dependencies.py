"""Jobs that wait for others: AFTER, BEFORE, ONDEAD and HOLD of DQ.ADD, DQ.DEPS, DQ.RESUME ID."""

import time

import pytest

from harness.clock import DAY_MS, now_ms
from harness.consumers import Room
from harness.resp import Failure
from harness.server import Server
from harness.shown import info, job
from harness.transcript import Session

# a is ready, b waits for it.
TWO = """
    > DQ.ADD q a x
    "a"
    > DQ.ADD q b y AFTER 1 a
    "b"
"""


def states(session: Session, queue: str, *names: str) -> list[str]:
    return [job(session, queue, name)["state"].decode() for name in names]


def test_a_job_is_held_until_the_last_one_that_it_names_is_done(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x
        "b"
        > DQ.ADD q c y AFTER 2 a b
        "c"
        > DQ.POP q COUNT 5
        [["a", "x", <a>, 1], ["b", "x", <b>, 1]]
        > DQ.FINISH q a <a>
        (integer) 1
        > DQ.POP q
        (nil)
        > DQ.DONE q b <b> RESULT 42
        (integer) 1
        > DQ.POP q
        [["c", "y", <*>, 1]]
        > DQ.DEPS q c
        [(nil), [["a", "done", (nil)], ["b", "done", "42"]]]
    """)


def test_a_worker_that_waits_gets_the_dependent_at_once(room: Room) -> None:
    room.play(TWO)
    room.play("""
        > DQ.POP q
        [["a", "x", <a>, 1]]
        one> DQ.POP q BLOCK 0
        > DQ.FINISH q a <a>
        (integer) 1
        one< [["b", "y", <*>, 1]]
    """)


def test_a_noack_pop_is_done(session: Session) -> None:
    session.check(TWO)
    session.check("""
        > DQ.POP q NOACK
        [["a", "x", (nil), 1]]
        > DQ.POP q
        [["b", "y", <*>, 1]]
        > DQ.DEPS q b
        [(nil), [["a", "done", (nil)]]]
    """)


def test_a_kept_done_job_counts_at_once_and_one_that_is_gone_does_not(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x KEEP 60000
        "a"
        > DQ.POP q
        [["a", "x", <a>, 1]]
        > DQ.DONE q a <a> RESULT 42
        (integer) 1
        > DQ.ADD q b y AFTER 1 a
        "b"
        > DQ.POP q
        [["b", "y", <b>, 1]]
        > DQ.DEPS q b
        [(nil), [["a", "done", "42"]]]
        > DQ.DEL q a
        (integer) 1
        > DQ.ADD q c z AFTER 1 a
        (error) NOJOB no job 'a' in this queue
        > DQ.LEN q
        (integer) 1
        > DQ.DEPS q b
        [(nil), [["a", "done", "42"]]]
    """)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("AFTER 1 none", "NOJOB no job 'none' in this queue"),
        ("AFTER 2 a none", "NOJOB no job 'none' in this queue"),
        ("AFTER 1 new", "NOJOB no job 'new' in this queue"),
        ("BEFORE 1 none", "NOTHELD no held job 'none' in this queue"),
        ("BEFORE 1 a", "NOTHELD no held job 'a' in this queue"),
        ("HOLD BEFORE 1 new", "NOTHELD no held job 'new' in this queue"),
        ("AFTER 2 a a", "ERR AFTER names 'a' twice"),
        ("BEFORE 2 b b", "ERR BEFORE names 'b' twice"),
        ("AFTER 1 a BEFORE 1 b", "ERR options AFTER and BEFORE exclude each other"),
        ("BEFORE 1 b ONDEAD RUN", "ERR option ONDEAD needs AFTER or HOLD"),
        ("AFTER 1 a AFTER 1 b", "ERR option AFTER is given twice"),
        ("AFTER 10001 a", "ERR AFTER must be an integer from 1 to 10000"),
        (
            "AFTER 1 tick",
            "ERR AFTER names 'tick', which has a schedule: it comes back when it is finished",
        ),
        (
            "EVERY 5 AFTER 1 a",
            "ERR option AFTER doesn't go with EVERY or CRON: a job with a schedule comes back when it is finished",
        ),
        (
            "EVERY 5 HOLD",
            "ERR option HOLD doesn't go with EVERY or CRON: a job with a schedule comes back when it is finished",
        ),
    ],
)
def test_edges_that_can_not_be_are_refused_and_nothing_is_added(
    session: Session, words: str, fault: str
) -> None:
    session.check(TWO)
    session.check(f"""
        > DQ.ADD q tick x EVERY 60000
        "tick"
        > DQ.ADD q new z {words}
        (error) {fault}
        > DQ.LEN q
        (integer) 3
    """)


def test_a_taken_id_goes_before_a_fault_of_edges(session: Session) -> None:
    session.check(TWO)
    session.check("""
        > DQ.ADD q a z AFTER 1 none
        (error) EXISTS id is taken in this queue
        > DQ.ADD q a z AFTER 1 none NX
        (nil)
    """)


def test_before_makes_a_batch_grow_while_it_runs(session: Session) -> None:
    session.check(TWO)
    session.check("""
        > DQ.ADD q c z BEFORE 1 b
        "c"
        > DQ.POP q COUNT 5
        [["a", "x", <a>, 1], ["c", "z", <c>, 1]]
        > DQ.DONE q a <a> ADD d z BEFORE 1 b
        ["d"]
        > DQ.FINISH q c <c>
        (integer) 1
        > DQ.POP q COUNT 5
        [["d", "z", <d>, 1]]
        > DQ.FINISH q d <d>
        (integer) 1
        > DQ.POP q
        [["b", "y", <*>, 1]]
        > DQ.DEPS q b
        [(nil), [["a", "done", (nil)], ["c", "done", (nil)], ["d", "done", (nil)]]]
    """)


def test_the_last_job_of_a_batch_may_add_more(session: Session) -> None:
    session.check(TWO)
    session.check("""
        > DQ.POP q
        [["a", "x", <a>, 1]]
        > DQ.DONE q a <a> RESULT 1 ADD more z BEFORE 1 b
        ["more"]
        > DQ.LEN q STATE held
        (integer) 1
        > DQ.POP q
        [["more", "z", <*>, 1]]
    """)


def test_hold_lasts_until_resume(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x HOLD
        "a"
        > DQ.ADD q b x HOLD AFTER 1 a
        "b"
        > DQ.POP q
        (nil)
        > DQ.RESUME q ID b none
        (integer) 1
        > DQ.RESUME q ID b
        (integer) 0
        > DQ.POP q
        (nil)
        > DQ.RESUME q ID a
        (integer) 1
        > DQ.POP q COUNT 5 NOACK
        [["a", "x", (nil), 1]]
        > DQ.POP q
        [["b", "x", <*>, 1]]
    """)
    assert session.call("DQ.RESUME", "no-queue", "ID", "a") == 0


def test_delay_counts_from_the_last_edge_and_at_is_a_lower_bound(session: Session) -> None:
    session.check(TWO)
    at = now_ms() + DAY_MS
    session.call("DQ.ADD", "q", "delayed", "x", "AFTER", 1, "a", "DELAY", DAY_MS)
    session.call("DQ.ADD", "q", "later", "x", "AFTER", 1, "a", "AT", at)
    session.call("DQ.ADD", "q", "past", "x", "AFTER", 1, "a", "AT", 5)
    assert job(session, "q", "delayed")["due"] is None
    time.sleep(0.02)
    before = now_ms()
    session.call("DQ.POP", "q", "NOACK")
    assert states(session, "q", "delayed", "later", "past") == ["delayed", "delayed", "ready"]
    assert job(session, "q", "delayed")["due"] >= before + DAY_MS
    assert job(session, "q", "later")["due"] == at
    assert job(session, "q", "past")["due"] >= before


def test_ttl_runs_from_add_and_ends_a_held_job(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x AFTER 1 a TTL 30
        "b"
    """)
    session.eventually("""
        > DQ.RESULT q b
        ["dead", "its time to live is over"]
    """)
    session.check("""
        > DQ.LEN q STATE held
        (integer) 0
        > DQ.LEN q STATE dead
        (integer) 1
        > DQ.POP q NOACK
        [["a", "x", (nil), 1]]
        > DQ.POP q
        (nil)
    """)


def test_late_runs_from_the_due_time(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x AFTER 1 a LATE 30
        "b"
    """)
    time.sleep(0.1)
    assert states(session, "q", "b") == ["held"]
    session.call("DQ.POP", "q", "NOACK")
    session.eventually("""
        > DQ.RESULT q b
        ["dead", "late"]
    """)


def test_with_ondead_hold_a_kick_of_the_cause_sets_all_behind_it_going(session: Session) -> None:
    session.check(TWO)
    session.check("""
        > DQ.ADD q c z AFTER 1 b
        "c"
        > DQ.POP q
        [["a", "x", <a>, 1]]
        > DQ.BURY q a <a> REASON why
        (integer) 1
        > DQ.DEPS q b
        [(nil), [["a", "dead", "why"]]]
        > DQ.LEN q STATE dead
        (integer) 1
    """)
    assert info(session)["held-behind-dead"] == 1
    session.check("""
        > DQ.KICK q
        (integer) 1
        > DQ.POP q NOACK
        [["a", "x", (nil), 1]]
        > DQ.POP q NOACK
        [["b", "y", (nil), 1]]
        > DQ.POP q NOACK
        [["c", "z", (nil), 1]]
    """)


def test_with_ondead_run_a_death_settles_the_edge_with_its_reason(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b y AFTER 1 a ONDEAD RUN
        "b"
        > DQ.POP q
        [["a", "x", <a>, 1]]
        > DQ.BURY q a <a> REASON why
        (integer) 1
        > DQ.POP q
        [["b", "y", <*>, 1]]
        > DQ.DEPS q b
        [(nil), [["a", "dead", "why"]]]
    """)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("DELAY 60000 TTL 60", "its time to live is over"),
        ("GROUP paused LATE 60", "late"),
        ("ATTEMPTS 1 TTR 60", "no attempts left"),
    ],
)
def test_deaths_by_time_settle_edges_on_time(room: Room, options: str, reason: str) -> None:
    begin = now_ms()
    room.play(f"""
        > DQ.PAUSE q GROUP paused
        OK
        > DQ.ADD q a x {options}
        "a"
        > DQ.ADD q b y AFTER 1 a ONDEAD RUN
        "b"
    """)
    if "ATTEMPTS" in options:
        room.call("DQ.POP", "q")
    room.play("""
        one> DQ.POP q BLOCK 0
        one< [["b", "y", <*>, 1]]
    """)
    assert now_ms() - begin >= 60
    room.check(f"""
        > DQ.DEPS q b
        [(nil), [["a", "dead", "{reason}"]]]
    """)


def test_a_removed_predecessor_ends_what_waits_for_it(session: Session) -> None:
    session.check(TWO)
    session.check("""
        > DQ.ADD q c y AFTER 1 a ONDEAD RUN
        "c"
        > DQ.DEL q a
        (integer) 1
        > DQ.RESULT q b
        ["dead", "job 'a' that it waits for was removed"]
        > DQ.DEPS q b
        [(nil), [["a", "gone", (nil)]]]
        > DQ.POP q
        [["c", "y", <*>, 1]]
        > DQ.DEPS q c
        [(nil), [["a", "gone", (nil)]]]
    """)


def test_deadkeep_and_purge_remove_predecessors_too(session: Session) -> None:
    session.check(TWO)
    session.check("""
        > DQ.ADD q c y AFTER 1 b
        "c"
        > DQ.ADD q d y AFTER 1 c ONDEAD RUN TTR 60000
        "d"
        > DQ.POP q
        [["a", "x", <a>, 1]]
        > DQ.BURY q a <a>
        (integer) 1
        > DQ.ALTER q DEADKEEP 1
        OK
        > DQ.POP q BLOCK 20000
        [["d", "y", <*>, 1]]
        > DQ.DEPS q d
        [(nil), [["c", "dead", "job 'b' that it waits for was removed"]]]
    """)
    session.check("""
        > DQ.ADD p a x
        "a"
        > DQ.ADD p b y AFTER 1 a ONDEAD RUN
        "b"
        > DQ.PURGE p STATE ready COUNT 1
        (integer) 1
        > DQ.POP p
        [["b", "y", <*>, 1]]
    """)


def test_replace_of_a_predecessor_keeps_the_edge_and_of_a_dependent_sets_it_anew(
    session: Session,
) -> None:
    session.check(TWO)
    session.check("""
        > DQ.ADD q a anew REPLACE
        "a"
        > DQ.DEPS q b
        [(nil), [["a", "ready", (nil)]]]
        > DQ.ADD q c z
        "c"
        > DQ.ADD q b anew AFTER 1 c REPLACE
        "b"
        > DQ.DEPS q b
        [(nil), [["c", "ready", (nil)]]]
        > DQ.ADD q c z AFTER 1 a REPLACE
        (error) ERR jobs wait for 'c': no job with AFTER, EVERY or CRON can replace it
        > DQ.ADD q c z EVERY 5 REPLACE
        (error) ERR jobs wait for 'c': no job with AFTER, EVERY or CRON can replace it
        > DQ.ADD q c z EVERY 5 ENSURE
        (error) ERR jobs wait for 'c': no job with AFTER, EVERY or CRON can replace it
        > DQ.ADD q b anew REPLACE
        "b"
        > DQ.DEPS q b
        [(nil), []]
        > DQ.LEN q STATE ready
        (integer) 3
    """)


def test_a_held_job_is_finished_from_outside_by_a_star(session: Session) -> None:
    session.check("""
        > DQ.ADD flow ok:17 "" HOLD TTL 86400000
        "ok:17"
        > DQ.ADD flow ship:17 parcel AFTER 1 ok:17
        "ship:17"
        > DQ.FINISH flow ok:17 5
        (integer) 0
        > DQ.DONE flow ok:17 * RESULT yes
        (integer) 1
        > DQ.POP flow
        [["ship:17", "parcel", <*>, 1]]
        > DQ.DEPS flow ship:17
        [(nil), [["ok:17", "done", "yes"]]]
        > DQ.ADD flow b x HOLD KEEP 60000
        "b"
        > DQ.TOUCH flow b *
        (integer) 0
        > DQ.RELEASE flow b *
        (integer) 0
        > DQ.BURY flow b *
        (integer) 0
        > DQ.FINISH flow b
        (integer) 1
        > DQ.RESULT flow b
        ["done", (nil)]
    """)


def test_kickjob_makes_a_held_job_ready_and_pop_id_leaves_it_out(session: Session) -> None:
    session.check(TWO)
    session.check("""
        > DQ.POP q ID b
        (nil)
        > DQ.KICKJOB q b
        (integer) 1
        > DQ.POP q ID b
        [["b", "y", <*>, 1]]
        > DQ.DEPS q b
        [(nil), []]
    """)


def test_get_shows_edges_and_a_job_without_shows_none(session: Session) -> None:
    session.check(TWO)
    session.call("DQ.ADD", "q", "c", "z", "AFTER", 1, "b", "HOLD")
    shown = [job(session, "q", name) for name in "abc"]
    names = ("state", "due", "pending", "after", "before", "on-hold")
    seen = [[each.get(name) for name in names] for each in shown]
    assert seen[0][2:] == [0, 0, 1, 0]
    assert seen[1] == [b"held", None, 1, 1, 1, 0]
    assert seen[2] == [b"held", None, 1, 1, 0, 1]
    session.call("DQ.ADD", "q", "alone", "z")
    assert "pending" not in job(session, "q", "alone")


def test_looks_know_the_state(session: Session) -> None:
    session.check(TWO)
    session.check("""
        > DQ.ADD q h x HOLD
        "h"
        > DQ.LEN q STATE held
        (integer) 2
        > DQ.SCAN q 0 STATE held COUNT 100 MATCH h
        ["0", ["h"]]
        > DQ.PURGE q STATE held OLDER 60000
        (integer) 0
        > DQ.PURGE q STATE held
        (integer) 2
        > DQ.LEN q
        (integer) 1
    """)
    assert info(session)["held"] == 0


def test_held_jobs_are_peeked_in_the_order_of_adding(session: Session) -> None:
    for name in ("c", "a", "b"):
        session.call("DQ.ADD", "q", name, "x", "HOLD")
    peeked = session.call("DQ.PEEK", "q", "STATE", "held", "COUNT", 5)
    assert [shown[shown.index(b"id") + 1] for shown in peeked] == [b"c", b"a", b"b"]
    rest = session.call("DQ.PEEK", "q", "STATE", "held", "AFTER", "c", "COUNT", 5)
    assert [shown[shown.index(b"id") + 1] for shown in rest] == [b"a", b"b"]


def test_a_job_has_at_most_ten_thousand_edges_in_each_direction(lone: Server) -> None:
    with lone.client() as r:
        r.execute_command("DQ.ADD", "q", "a", "x", "HOLD")
        pipe = r.pipeline(transaction=False)
        for number in range(10_000):
            pipe.execute_command("DQ.ADD", "q", number, "x", "AFTER", 1, "a")
        pipe.execute()
        with pytest.raises(Exception, match="10000 jobs wait for 'a'"):
            r.execute_command("DQ.ADD", "q", "one-more", "x", "AFTER", 1, "a")
        r.execute_command("DQ.ADD", "q", "all", "x", "AFTER", 10_000, *range(10_000))
        with pytest.raises(Exception, match="'all' waits for 10000 jobs"):
            r.execute_command("DQ.ADD", "q", "one-more", "x", "BEFORE", 1, "all")
        next_place, first = r.execute_command("DQ.DEPS", "q", "all", "COUNT", 4_000)
        assert (next_place, len(first), first[0]) == (4_000, 4_000, ["0", "held", None])
        last, rest = r.execute_command("DQ.DEPS", "q", "all", "FROM", 4_000, "COUNT", 10_000)
        assert (last, len(rest)) == (None, 6_000)
        assert r.execute_command("DQ.FINISH", "q", "a") == 1
        assert r.execute_command("DQ.LEN", "q", "STATE", "ready") == 10_000


def test_dependents_are_served_in_a_transaction_and_a_script(session: Session) -> None:
    session.check(TWO)
    session.check("""
        > MULTI
        OK
        > DQ.POP q NOACK
        QUEUED
        > DQ.POP q NOACK
        QUEUED
        > EXEC
        [[["a", "x", (nil), 1]], [["b", "y", (nil), 1]]]
        > DQ.ADD q a x
        "a"
        > EVAL "redis.call('DQ.ADD', KEYS[1], 'b', 'y', 'AFTER', 1, 'a'); redis.call('DQ.POP', KEYS[1], 'NOACK'); return redis.call('DQ.DEPS', KEYS[1], 'b')" 1 q
        [(nil), [["a", "done", (nil)]]]
    """)


def test_done_checks_the_edges_of_all_its_adds_first(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <a>, 1]]
        > DQ.DONE q a <a> ADD b x ADD c x AFTER 2 b none
        (error) NOJOB no job 'none' in this queue
        > DQ.DONE q a <a> ADD b x AFTER 1 a
        (error) NOJOB no job 'a' in this queue
        > DQ.LEN q
        (integer) 1
        > DQ.DONE q a <a> RESULT 1 KEEP 60000 ADD b x AFTER 1 a ADD c x AFTER 1 b
        ["b", "c"]
        > DQ.DEPS q b
        [(nil), [["a", "done", "1"]]]
        > DQ.DEPS q c
        [(nil), [["b", "ready", (nil)]]]
    """)


def test_results_of_a_done_predecessor_count_to_memory(session: Session) -> None:
    session.check(TWO)
    session.call("DQ.POP", "q")
    session.call("DQ.DONE", "q", "a", "*", "RESULT", b"x" * 100_000)
    assert info(session)["memory"] > 100_000
    assert session.call("DQ.FINISH", "q", "b") == 0
    assert isinstance(session.call("DQ.ADD", "q", "c", "x", "AFTER", 1, "a"), Failure)


@pytest.mark.parametrize(
    "adds",
    [
        # The edge is settled at once.
        "ADD b x AFTER 1 a ADD a x EVERY 1000 REPLACE",
        "ADD b x AFTER 1 a ADD a x AFTER 1 other REPLACE",
        # The job that waited is replaced by one that doesn't.
        "ADD b x AFTER 1 other ADD b x REPLACE ADD other x EVERY 1000 REPLACE",
        "ADD waiting x REPLACE ADD other x EVERY 1000 REPLACE",
        "ADD c x BEFORE 1 waiting ADD waiting x REPLACE ADD c x EVERY 1000 REPLACE",
        # A dead job is waited for no more, with RUN.
        "ADD b x AFTER 1 dead ONDEAD RUN ADD dead x EVERY 1000 REPLACE",
    ],
)
def test_done_takes_what_its_adds_would_be_taken_for_one_by_one(
    session: Session, adds: str
) -> None:
    session.check("""
        > DQ.ADD q dead x
        "dead"
        > DQ.POP q
        [["dead", "x", <lease>, 1]]
        > DQ.BURY q dead *
        (integer) 1
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <a>, 1]]
        > DQ.ADD q other x
        "other"
        > DQ.ADD q waiting x AFTER 1 other
        "waiting"
    """)
    if "waiting" not in adds:
        session.check("> DQ.DEL q waiting\n(integer) 1")
    reply = session.call("DQ.DONE", "q", "a", "*", "KEEP", "60000", *adds.split())
    assert isinstance(reply, list), reply
