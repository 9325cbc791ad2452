"""Consumers that wait for the turn of a group: when the group may go on, one consumer is woken,
without another command.
"""

from harness.consumers import Room


def test_a_group_that_was_held_back_wakes_one_consumer(room: Room) -> None:
    room.play("""
        > DQ.ALTER q GROUPCONCURRENCY 1
        OK
        > DQ.ADD q a x GROUP ann
        "a"
        > DQ.ADD q b x GROUP ann
        "b"
        > DQ.ADD q c x GROUP ann
        "c"
        > DQ.POP q
        [["a", "x", <a>, 1]]
        one> DQ.POP q BLOCK 0
        one waits
        > DQ.FINISH q a <a>
        (integer) 1
        one< [["b", "x", <b>, 1]]
        one> DQ.POP q BLOCK 0
        one waits
        > DQ.BURY q b <b>
        (integer) 1
        one< [["c", "x", <c>, 1]]
        one> DQ.POP q BLOCK 0
        > DQ.ADD q d x GROUP ann
        "d"
        one waits
        > DQ.ADD q e x GROUP bob
        "e"
        one< [["e", "x", <e>, 1]]
        one> DQ.POP q BLOCK 0
        one waits
        > DQ.ALTER q GROUPCONCURRENCY 2
        OK
        one< [["d", "x", <*>, 1]]
    """)


def test_the_end_of_a_group_pause_and_of_a_lease_wake_one_consumer(room: Room) -> None:
    room.play("""
        > DQ.PAUSE q GROUP ann
        OK
        > DQ.ADD q a x GROUP ann TTR 2000 BACKOFF 86400000 86400000
        "a"
        > DQ.ADD q b x GROUP ann
        "b"
        one> DQ.POP q BLOCK 0
        one waits
        > DQ.RESUME q GROUP ann
        OK
        one< [["a", "x", <a>, 1]]
        > DQ.ALTER q GROUPCONCURRENCY 1
        OK
        one> DQ.POP q BLOCK 0
        one< [["b", "x", <b>, 1]]
        > DQ.FINISH q b <b>
        (integer) 1
        > DQ.PAUSE q GROUP ann FOR 2000
        OK
        > DQ.ADD q c x GROUP ann
        "c"
        one> DQ.POP q BLOCK 0
        one< [["c", "x", <*>, 1]]
    """)


def test_the_rate_of_a_group_wakes_one_consumer_for_each_job(room: Room) -> None:
    room.play("""
        > DQ.ALTER q GROUPRATE 1 3000
        OK
        > DQ.ADD q a x GROUP ann
        "a"
        > DQ.ADD q b x GROUP ann
        "b"
        > DQ.ADD q c x GROUP ann
        "c"
        > DQ.POP q COUNT 5
        [["a", "x", <*>, 1]]
        one> DQ.POP q BLOCK 0
        two> DQ.POP q BLOCK 0
        one< [["b", "x", <*>, 1]]
        two< [["c", "x", <*>, 1]]
    """)
