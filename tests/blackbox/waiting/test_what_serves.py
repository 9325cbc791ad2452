"""Every command that makes a job ready serves a consumer that waits, and so does every move of a
queue to its key.
"""

import pytest

from harness.clock import now_ms
from harness.consumers import Room
from harness.transcript import show

# Before the bar stands what is there already when the consumer comes.
SERVED_BY = {
    "a delayed job": """
        > DQ.ADD q a x DELAY 120
        "a"
    """,
    "a job for a time": """
        > DQ.ADD q a x AT <soon>
        "a"
    """,
    "an entry of a log, from a client": """
        > DQ.ADD q b x DELAY 86400000
        "b"
        |
        > DQ.APPLY q <soon> check=0 DQ.ADD a x
        OK
    """,
    "a lease that ends": """
        > DQ.ADD q a x TTR 150
        "a"
        > DQ.POP q
        [["a", "x", <*>, 1]]
        |
    """,
    "RELEASE": """
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <old>, 1]]
        |
        > DQ.RELEASE q a <old>
        (integer) 1
    """,
    "RELEASE DELAY": """
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <old>, 1]]
        |
        > DQ.RELEASE q a <old> DELAY 80
        (integer) 1
    """,
    "KICK": """
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <old>, 1]]
        > DQ.BURY q a <old>
        (integer) 1
        |
        > DQ.KICK q
        (integer) 1
    """,
    "KICKJOB": """
        > DQ.ADD q a x DELAY 86400000
        "a"
        |
        > DQ.KICKJOB q a
        (integer) 1
    """,
    "ADD REPLACE": """
        > DQ.ADD q a y DELAY 86400000
        "a"
        |
        > DQ.ADD q a x REPLACE
        "a"
    """,
    "RESUME": """
        > DQ.ADD q a x
        "a"
        > DQ.PAUSE q
        OK
        |
        one waits
        > DQ.RESUME q
        OK
    """,
    "the end of a pause": """
        > DQ.ADD q a x
        "a"
        > DQ.PAUSE q FOR 150
        OK
        |
    """,
    "RENAME": """
        > DQ.ADD other a x
        "a"
        |
        > RENAME other q
        OK
    """,
    "RENAME of a delayed job": """
        > DQ.ADD other a x DELAY 250
        "a"
        |
        > RENAME other q
        OK
    """,
    "RENAME over another queue": """
        > DQ.ADD other a x
        "a"
        > DQ.ADD q b x DELAY 86400000
        "b"
        |
        > RENAME other q
        OK
    """,
    "COPY": """
        > DQ.ADD other a x
        "a"
        |
        > COPY other q
        (integer) 1
    """,
    "COPY REPLACE": """
        > DQ.ADD other a x
        "a"
        > DQ.ADD q b x DELAY 86400000
        "b"
        |
        > COPY other q REPLACE
        (integer) 1
    """,
    "RESTORE": """
        > DQ.ADD q a x
        "a"
        > DUMP q
        <dump>
        > DEL q
        (integer) 1
        |
        > RESTORE q 0 <dump>
        OK
    """,
    "SWAPDB": """
        > SELECT 3
        OK
        > DQ.ADD q a x
        "a"
        |
        > SWAPDB 0 3
        OK
    """,
    "SWAPDB to a delayed job": """
        > SELECT 3
        OK
        > DQ.ADD q a x DELAY 200
        "a"
        |
        > SWAPDB 0 3
        OK
    """,
    "MOVE": """
        > SELECT 3
        OK
        > DQ.ADD q a x
        "a"
        |
        > MOVE q 0
        (integer) 1
    """,
    "a key deleted and made again": """
        > DQ.ADD q a x DELAY 86400000
        "a"
        |
        > DEL q
        (integer) 1
        one waits
        > DQ.ADD q a x
        "a"
    """,
    "a key that was of another type meanwhile": """
        > DQ.ADD q a x DELAY 86400000
        "a"
        |
        > SET q "a string"
        OK
        one waits
        > DEL q
        (integer) 1
        > DQ.ADD q a x
        "a"
    """,
    "a queue that comes over a key of another type": """
        > DQ.ADD other a x
        "a"
        |
        > SET q "a string"
        OK
        > RENAME other q
        OK
    """,
    "a key flushed and made again": """
        > DQ.ADD q a x DELAY 100
        "a"
        |
        > FLUSHALL
        OK
        > DQ.ADD q a x
        "a"
    """,
    "a key that expired and was made again": """
        > DQ.ADD q b x DELAY 86400000
        "b"
        |
        > PEXPIRE q 1
        (integer) 1
        > DEBUG SLEEP 0.01
        OK
        > DQ.ADD q a x
        "a"
    """,
    "a transaction": """
        |
        > MULTI
        OK
        > DQ.ADD q a x
        QUEUED
        > EXEC
        ["a"]
    """,
    "a script": """
        |
        > EVAL "return redis.call('DQ.ADD', KEYS[1], 'a', 'x')" 1 q
        "a"
    """,
    "a reload": """
        > DQ.ADD q a x DELAY 250
        "a"
        |
        > DEBUG RELOAD
        OK
    """,
    "a file that has a ready job": """
        > DQ.ADD q a x
        "a"
        > SAVE
        OK
        > FLUSHALL
        OK
        |
        > DEBUG RELOAD NOSAVE
        OK
    """,
}


@pytest.mark.parametrize("how", SERVED_BY)
@pytest.mark.parametrize("command", ["DQ.POP q BLOCK 0", "DQ.MPOP 2 nothing-here q BLOCK 0"])
def test_a_waiting_consumer_is_served_by_whatever_makes_a_job_ready(
    room: Room, how: str, command: str
) -> None:
    """And with a lease that counts."""
    before, _, then = SERVED_BY[how].rpartition("|\n")
    room.play(before)
    room.wait("one", *command.split())
    room.play(then, soon=now_ms() + 100)
    got = room("one").hears()
    key, jobs = (b"q", got) if command.startswith("DQ.POP") else got
    assert key == b"q"
    assert [job[:2] for job in jobs] == [[b"a", b"x"]], show(got)
    # It is the same job with the same lease: nothing is said twice.
    room.call("SELECT", 0)
    (_, _, lease, _) = jobs[0]
    assert room.call("DQ.FINISH", "q", "a", lease) == 1
    assert not room("one").is_told_something()
