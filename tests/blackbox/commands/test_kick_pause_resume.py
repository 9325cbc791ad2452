"""What an operator does with dead and delayed jobs, and a whole queue: KICK, KICKJOB, PAUSE,
RESUME.
"""

import pytest

from harness.clock import unix_ms
from harness.resp import fields
from harness.server import Server, eventually
from harness.shown import info, job
from harness.states import bury
from harness.transcript import Session


def test_kick_revives_the_job_that_died_first(session: Session) -> None:
    bury(session, "c", "a", "b", "d")
    session.check("""
        > DQ.KICK q
        (integer) 1
        > DQ.GET q c
        [<...>, "state", "ready", "due", <now>, <...>, "attempts", 25, "attempt", 0, "attempts-left", 25,
         "lease", (nil), <...>, "since", <now>, <...>]
        > DQ.KICK q COUNT 2
        (integer) 2
        > DQ.LEN q STATE dead
        (integer) 1
        > DQ.POP q COUNT 9
        [["c", "x", <*>, 1], ["a", "x", <*>, 1], ["b", "x", <*>, 1]]
        > DQ.KICK q COUNT 4294967295
        (integer) 1
        > DQ.KICK q
        (integer) 0
        > DQ.KICK none
        (integer) 0
        > EXISTS none
        (integer) 0
    """)


def test_kick_revives_the_dead_of_every_kind_in_the_order_of_their_deaths(session: Session) -> None:
    begin = unix_ms(session)
    session.check("""
        > DQ.ADD q out-of-life x TTL 400 PRIORITY 200
        "out-of-life"
        > DQ.ADD q out-of-life-in-hand x TTL 600 PRIORITY 0
        "out-of-life-in-hand"
        > DQ.POP q
        [["out-of-life-in-hand", "x", <*>, 1]]
        > DQ.ADD q out-of-attempts x ATTEMPTS 1
        "out-of-attempts"
        > DQ.POP q TTR 500
        [["out-of-attempts", "x", <*>, 1]]
    """)
    bury(session, "buried")
    assert unix_ms(session) < begin + 400, "the machine is too slow to tell"
    session.eventually("> DQ.LEN q STATE dead\n(integer) 4")
    deaths = ["buried", "out-of-life", "out-of-attempts", "out-of-life-in-hand"]
    shown = [fields(told) for told in session.call("DQ.PEEK", "q", "STATE", "dead", "COUNT", 9)]
    assert [told["id"].decode() for told in shown] == deaths
    times = [told["since"] for told in shown]
    assert times == sorted(times)
    session.check("""
        > DQ.KICK q COUNT 3
        (integer) 3
        > DQ.PEEK q STATE dead
        [["id", "out-of-life-in-hand", <...>]]
        > DQ.KICK q
        (integer) 1
        > DQ.POP q COUNT 9
        [["out-of-life-in-hand", "x", <*>, 1], ["buried", "x", <*>, 1], ["out-of-attempts", "x", <*>, 1],
         ["out-of-life", "x", <*>, 1]]
    """)


@pytest.mark.parametrize("kick", ["DQ.KICK q", "DQ.KICKJOB q a"])
def test_a_kicked_job_begins_its_life_and_its_attempts_anew(session: Session, kick: str) -> None:
    session.check("""
        > DQ.ADD q a x TTL 500 ATTEMPTS 1
        "a"
        > DQ.POP q
        [["a", "x", <old>, 1]]
        > DQ.RELEASE q a <old> REASON "it failed"
        (integer) 1
    """)
    before = unix_ms(session)
    session.check(f"""
        > {kick}
        (integer) 1
        > DQ.FINISH q a <old>
        (integer) 0
    """)
    told = job(session, "q", "a")
    assert before + 500 <= told["expires"] <= unix_ms(session) + 500
    assert (told["state"], told["attempt"]) == (b"ready", 0)
    assert told["reason"] is None, "it begins anew"
    session.check('> DQ.POP q TTR 60000\n[["a", "x", <new>, 1]]')
    session.eventually("> DQ.LEN q STATE dead\n(integer) 1")
    assert unix_ms(session) >= told["expires"]


def test_kickjob_takes_dead_and_delayed_jobs_by_id(session: Session) -> None:
    bury(session, "dead", "other")
    session.check("""
        > DQ.ADD q done x KEEP 60000
        "done"
        > DQ.POP q NOACK
        [["done", "x", (nil), 1]]
        > DQ.ADD q reserved x
        "reserved"
        > DQ.POP q
        [["reserved", "x", <lease>, 1]]
        > DQ.ADD q ready x
        "ready"
        > DQ.ADD q delayed x DELAY 60000
        "delayed"
        > DQ.ADD q far x AT 281474976710655
        "far"
        > DQ.KICKJOB q delayed ready reserved done dead dead nobody
        (integer) 2
        > DQ.LEN q STATE dead
        (integer) 1
        > DQ.LEN q STATE reserved
        (integer) 1
        > DQ.POP q COUNT 9
        [["ready", "x", <*>, 1], ["delayed", "x", <*>, 1], ["dead", "x", <*>, 1]]
        > DQ.FINISH q reserved <lease>
        (integer) 1
        > DQ.KICKJOB none a
        (integer) 0
        > EXISTS none
        (integer) 0
    """)


def test_a_delayed_job_that_is_kicked_keeps_its_attempts(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x ATTEMPTS 2
        "a"
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > DQ.RELEASE q a <lease> DELAY 60000
        (integer) 1
        > DQ.KICKJOB q a
        (integer) 1
        > DQ.POP q
        [["a", "x", <last>, 2]]
        > DQ.RELEASE q a <last>
        (integer) 1
        > DQ.LEN q STATE dead
        (integer) 1
    """)


def test_a_job_that_waits_for_its_backoff_after_a_timeout_is_kicked(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x TTR 1 BACKOFF 60000 60000
        "a"
        > DQ.POP q
        [["a", "x", <old>, 1]]
    """)
    session.eventually("> DQ.LEN q STATE delayed\n(integer) 1")
    session.check("""
        > DQ.KICKJOB q a
        (integer) 1
        > DQ.FINISH q a <old>
        (integer) 0
        > DQ.POP q
        [["a", "x", <*>, 2]]
    """)


def test_a_paused_queue_hands_out_nothing(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x
        "b"
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > DQ.PAUSE q
        OK
        > DQ.POP q
        (nil)
        > DQ.POP q NOACK COUNT 5
        (nil)
        > DQ.ADD other c x
        "c"
        > DQ.MPOP 2 q other
        ["other", [["c", "x", <*>, 1]]]

        # All else goes on.
        > DQ.ADD q c x DELAY 60000
        "c"
        > DQ.TOUCH q a <lease>
        (integer) 1
        > DQ.FINISH q a <lease>
        (integer) 1
        > DQ.KICKJOB q c
        (integer) 1
        > DQ.LEN q STATE ready
        (integer) 2
        > DQ.PAUSE q
        OK
        > DQ.POP q
        (nil)
        > DQ.RESUME q
        OK
        > DQ.POP q COUNT 5
        [["b", "x", <*>, 1], ["c", "x", <*>, 1]]
        > DQ.RESUME q
        OK
    """)


def test_time_goes_on_in_a_paused_queue(session: Session) -> None:
    session.check("""
        > DQ.ADD q late x TTR 50 ATTEMPTS 1
        "late"
        > DQ.POP q
        [["late", "x", <*>, 1]]
        > DQ.ADD q due x DELAY 50
        "due"
        > DQ.ADD q mortal x TTL 50
        "mortal"
        > DQ.PAUSE q
        OK
    """)
    session.eventually("> DQ.LEN q STATE dead\n(integer) 2")
    session.eventually("> DQ.LEN q STATE ready\n(integer) 1")
    session.check("> DQ.POP q\n(nil)")


def test_a_pause_ends_by_itself_and_not_early(session: Session) -> None:
    before = unix_ms(session)
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.PAUSE q FOR 300
        OK
    """)
    told = info(session)
    assert told["paused"] == 1
    assert before + 300 <= told["paused-until"] <= unix_ms(session) + 300
    session.eventually('> DQ.POP q\n[["a", "x", <*>, 1]]')
    assert unix_ms(session) >= told["paused-until"]
    assert (info(session)["paused"], info(session)["paused-until"]) == (0, None)


def test_a_later_pause_replaces_an_earlier_one(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.PAUSE q FOR 1
        OK
        > DQ.PAUSE q
        OK
    """)
    assert (info(session)["paused"], info(session)["paused-until"]) == (1, None)
    begin = unix_ms(session)
    eventually(lambda: unix_ms(session) > begin + 5)
    session.check("> DQ.POP q\n(nil)\n> DQ.PAUSE q FOR 1\nOK")
    session.eventually('> DQ.POP q\n[["a", "x", <*>, 1]]')


def test_a_queue_can_be_paused_before_it_has_jobs(session: Session) -> None:
    session.check("""
        > DQ.RESUME q
        OK
        > EXISTS q
        (integer) 0
        > DQ.PAUSE q
        OK
        > TYPE q
        delayq-dq
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        (nil)
    """)


@pytest.mark.parametrize("protocol", [2, 3])
def test_replies_of_kick_pause_and_resume_in_both_protocols(server: Server, protocol: int) -> None:
    session = server.session(protocol=protocol)
    session.check("""
        > DQ.ALTER q TTR 60000
        OK
        > DQ.PAUSE q
        OK
        > DQ.RESUME q
        OK
        > DQ.POP q
        (nil)
        > DQ.MPOP 1 q
        (nil)
        > DQ.PEEK q
        []
        > DQ.SCAN q 0
        ["0", []]
        > DQ.ADD q a x
        "a"
        > DQ.SCAN q 0
        ["0", ["a"]]
        > DQ.MPOP 1 q
        ["q", [["a", "x", <lease>, 1]]]
        > DQ.TOUCH q a <lease>
        (integer) 1
        > DQ.RELEASE q a <lease>
        (integer) 1
        > DQ.MPOP 2 none q NOACK
        ["q", [["a", "x", (nil), 2]]]
        > DQ.BURY q a <lease>
        (integer) 0
        > DQ.KICK q
        (integer) 0
        > DQ.KICKJOB q a
        (integer) 0
        > DQ.PURGE q STATE dead
        (integer) 0
    """)
    session.close()
