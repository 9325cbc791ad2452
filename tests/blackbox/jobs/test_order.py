"""The one total order in which ready jobs leave: priority, due time, order of scheduling."""

import random
from contextlib import closing

from harness.clock import unix_ms
from harness.patience import TooSlow, patiently
from harness.pipelined import Pipelined
from harness.resp import fields
from harness.server import Server
from harness.transcript import Session


def test_jobs_due_at_once_leave_in_the_order_of_their_adds(session: Session) -> None:
    session.check("""
        > DQ.ADD q c x
        "c"
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x AT 0
        "b"
        > DQ.POP q COUNT 9
        [["c", "x", <*>, 1], ["a", "x", <*>, 1], ["b", "x", <*>, 1]]
    """)


def test_a_lower_priority_number_leaves_first(session: Session) -> None:
    session.check("""
        > DQ.ADD q last x PRIORITY 255
        "last"
        > DQ.ADD q later x PRIORITY 129
        "later"
        > DQ.ADD q normal x
        "normal"
        > DQ.ADD q sooner x PRIORITY 127
        "sooner"
        > DQ.ADD q first x PRIORITY 0
        "first"
        > DQ.POP q COUNT 9
        [["first", "x", <*>, 1], ["sooner", "x", <*>, 1], ["normal", "x", <*>, 1],
         ["later", "x", <*>, 1], ["last", "x", <*>, 1]]
    """)


def test_a_due_time_in_the_past_is_no_head_start(session: Session) -> None:
    session.check('> DQ.ADD q first x\n"first"')
    # In the same millisecond or a later one: behind it in both cases.
    session.check(f"""
        > DQ.ADD q second x AT {unix_ms(session) - 60_000}
        "second"
        > DQ.POP q COUNT 2
        [["first", "x", <*>, 1], ["second", "x", <*>, 1]]
    """)


def test_among_equal_priorities_the_earlier_due_time_leaves_first(session: Session) -> None:
    at = unix_ms(session) + 100
    session.check(f"""
        > DQ.ADD q d x AT {at + 2}
        "d"
        > DQ.ADD q b x AT {at}
        "b"
        > DQ.ADD q e x AT {at + 2}
        "e"
        > DQ.ADD q c x AT {at + 1}
        "c"
        > DQ.ADD q a x AT {at}
        "a"
        > DQ.ADD q urgent x AT {at + 2} PRIORITY 1
        "urgent"
        > DQ.POP q
        (nil)
    """)
    session.eventually("> DQ.LEN q STATE ready\n(integer) 6")
    session.check("""
        > DQ.POP q COUNT 9
        [["urgent", "x", <*>, 1], ["b", "x", <*>, 1], ["a", "x", <*>, 1], ["c", "x", <*>, 1],
         ["d", "x", <*>, 1], ["e", "x", <*>, 1]]
    """)


def test_replacing_a_job_schedules_it_anew(session: Session) -> None:
    at = unix_ms(session) + 50
    session.check(f"""
        > DQ.ADD q a x AT {at}
        "a"
        > DQ.ADD q b x AT {at}
        "b"
        > DQ.ADD q a y AT {at} REPLACE
        "a"
    """)
    session.eventually("> DQ.LEN q STATE ready\n(integer) 2")
    session.check("""
        > DQ.POP q COUNT 2
        [["b", "x", <*>, 1], ["a", "y", <*>, 1]]
    """)


def test_a_job_whose_lease_ended_is_due_since_that_end(session: Session) -> None:
    session.check("""
        > DQ.ADD q returns x
        "returns"
        > DQ.POP q TTR 50
        [["returns", "x", <*>, 1]]
        > DQ.GET q returns
        ["id", "returns", "body", "x", "state", "reserved", "due", <end>, <...>, "priority", 128,
         "ttr", 60000, "attempts", 25, "attempt", 1, <...>, "lease", <*>, "created", <*>, <...>]
    """)
    session.check(f"""
        > DQ.ADD q before x AT {session["end"] - 1}
        "before"
        > DQ.ADD q same x AT <end>
        "same"
        > DQ.ADD q after x AT {session["end"] + 1}
        "after"
    """)
    session.eventually("> DQ.LEN q STATE ready\n(integer) 4")
    # "same" was scheduled for that millisecond after the lease was.
    session.check("""
        > DQ.POP q COUNT 9
        [["before", "x", <*>, 1], ["returns", "x", <*>, 2], ["same", "x", <*>, 1],
         ["after", "x", <*>, 1]]
    """)


def test_leases_that_end_together_come_back_in_the_order_of_their_pops(session: Session) -> None:
    for job_id in ["c", "a", "b"]:
        session.call("DQ.ADD", "q", job_id, "x")
    session.check("""
        > DQ.POP q COUNT 3 TTR 1
        [["c", "x", <*>, 1], ["a", "x", <*>, 1], ["b", "x", <*>, 1]]
    """)
    session.eventually("> DQ.LEN q STATE ready\n(integer) 3")
    session.check("""
        > DQ.POP q COUNT 3
        [["c", "x", <*>, 2], ["a", "x", <*>, 2], ["b", "x", <*>, 2]]
    """)


def test_twenty_thousand_jobs_that_fall_due_leave_in_order(
    server: Server, session: Session
) -> None:
    """Priorities and due times at random, among them many equal ones, some deleted, some moved."""
    chance = random.Random(2)
    count = 20_000
    order: dict[int, tuple[int, int, int]] = {}

    def add_all(ahead_ms: int) -> None:
        assert session.call("FLUSHALL") == "OK"
        order.clear()
        begin = unix_ms(session) + ahead_ms

        def add(job_id: int, turn: int, *options: str) -> tuple[str | int, ...]:
            priority, at = chance.choice([0, 127, 128, 255]), begin + chance.randrange(20)
            order[job_id] = (priority, at, turn)
            return ("DQ.ADD", "q", job_id, "x", "AT", at, "PRIORITY", priority, *options)

        pipe.call_all([add(n, n) for n in range(count)])
        moved = chance.sample(range(count), 2_000)
        pipe.call_all([add(n, count + turn, "REPLACE") for turn, n in enumerate(moved)])
        deleted = chance.sample(range(count), 2_000)
        assert pipe.call_all([("DQ.DEL", "q", n) for n in deleted]) == [1] * len(deleted)
        for n in deleted:
            del order[n]
        if unix_ms(session) >= begin:
            raise TooSlow

    with closing(Pipelined(server.port)) as pipe:
        patiently(add_all, ahead_ms=1_000)
    session.eventually(f"> DQ.LEN q STATE ready\n(integer) {len(order)}")
    left: list[int] = []
    while popped := session.call("DQ.POP", "q", "COUNT", 777):
        left += [int(job_id) for job_id, *_ in popped]
    assert left == sorted(order, key=order.__getitem__)


def test_jobs_leave_in_order_while_others_fall_due(server: Server, session: Session) -> None:
    """Popped one by one from the first due time to the last: never one that comes before
    another.
    """
    chance = random.Random(3)

    def add_all(ahead_ms: int) -> list[int]:
        assert session.call("FLUSHALL") == "OK"
        begin = unix_ms(session) + ahead_ms
        dues = [begin + chance.randrange(300) for _ in range(3_000)]
        pipe.call_all([("DQ.ADD", "q", n, "x", "AT", due) for n, due in enumerate(dues)])
        if unix_ms(session) >= begin:
            raise TooSlow
        return dues

    with closing(Pipelined(server.port)) as pipe:
        dues = patiently(add_all, ahead_ms=300)
    left: list[int] = []
    while len(left) < len(dues):
        for popped in session.call("DQ.POP", "q", "COUNT", 5) or []:
            left.append(int(popped[0]))
        assert unix_ms(session) < max(dues) + 10_000, fields(session.call("DQ.INFO", "q"))
    assert left == sorted(range(len(dues)), key=lambda n: (dues[n], n))
