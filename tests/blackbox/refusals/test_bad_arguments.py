"""Bad input, as in test_bad_options.py: the words before the options, and the number of words."""

import pytest

from harness.marks import on_one_kind
from harness.observer import NO_NUMBERS, Observer, check_refused
from harness.resp import Failure
from harness.server import Server
from harness.transcript import Session

pytestmark = on_one_kind

ONE_ID = ["", " {}"]
ID_AND_LEASE = ["", " {}", " {} a"]


@pytest.mark.parametrize(
    ("command", "tails"),
    [
        ("dq.add", ["", " {}", " {} a"]),
        ("dq.madd", ["", " {}", " {} 1", " {} 1 a", " {} 2 a x b"]),
        ("dq.pop", [""]),
        ("dq.mpop", ["", " 1"]),
        ("dq.finish", ONE_ID),
        ("dq.release", ID_AND_LEASE),
        ("dq.touch", ID_AND_LEASE),
        ("dq.renew", ["", " {}", " {} 0", " {} 0 0", " {} 0 0 a"]),
        ("dq.done", ID_AND_LEASE),
        ("dq.bury", ID_AND_LEASE),
        ("dq.del", ONE_ID),
        ("dq.kick", [""]),
        ("dq.kickjob", ONE_ID),
        ("dq.pause", [""]),
        ("dq.resume", [""]),
        ("dq.purge", ["", " {}", " {} STATE"]),
        ("dq.alter", ["", " {}"]),
        ("dq.get", ["", " {}", " {} a b"]),
        ("dq.deps", ["", " {}"]),
        ("dq.result", ["", " {}"]),
        ("dq.peek", [""]),
        ("dq.scan", ["", " {}"]),
        ("dq.groups", ["", " {}"]),
        ("dq.len", [""]),
        ("dq.forecast", ["", " {}", " {} STEP 5", " {} STEP 5 COUNT"]),
        ("dq.info", ["", " {} a"]),
        ("dq.next", [""]),
        ("dq.apply", ["", " {}", " {} JOBS"]),
    ],
)
def test_a_wrong_number_of_arguments_is_refused(
    lone: Server, lone_session: Session, command: str, tails: list[str]
) -> None:
    error = f"ERR wrong number of arguments for '{command}' command"
    table = [(name + tail, error) for tail in tails for name in (command, command.upper())]
    check_refused(lone, lone_session, table)


@pytest.mark.parametrize("word", ['""', "i" * 513, "i" * 100_000])
def test_bad_ids_are_refused(lone: Server, lone_session: Session, word: str) -> None:
    commands = [
        f"DQ.ADD {{}} {word} x",
        f"DQ.ADD {{}} {word} x NX DELAY 5",
        f"DQ.FINISH {{}} {word}",
        f"DQ.FINISH {{}} {word} *",
        f"DQ.FINISH {{}} reserved * {word} *",
        f"DQ.RELEASE {{}} {word} *",
        f"DQ.RELEASE {{}} {word} * DELAY 5 REASON x",
        f"DQ.TOUCH {{}} {word} *",
        f"DQ.RENEW {{}} 0 0 {word} *",
        f"DQ.RENEW {{}} 0 0 reserved * {word} *",
        f"DQ.RESULT {{}} {word}",
        f"DQ.BURY {{}} {word} *",
        f"DQ.DEL {{}} {word}",
        f"DQ.DEL {{}} ready {word}",
        f"DQ.DEL {{}} {word} ready",
        f"DQ.KICKJOB {{}} {word}",
        f"DQ.KICKJOB {{}} dead {word}",
        f"DQ.KICKJOB {{}} {word} delayed",
        f"DQ.GET {{}} {word}",
        f"DQ.PEEK {{}} STATE dead AFTER {word} FROM 5",
    ]
    table = [(command, "ERR id must be 1 to 512 bytes long") for command in commands]
    check_refused(lone, lone_session, table)


def test_bad_leases_are_refused(lone: Server, lone_session: Session) -> None:
    error = "ERR lease must be a positive integer or *"
    words = [word for word in [*NO_NUMBERS, "0", "**", "1,2"] if word not in ("*", str(2**63))]
    table = [
        (f"{command} {{}} reserved {word}", error)
        for command in ("DQ.FINISH", "DQ.DONE", "DQ.RELEASE", "DQ.TOUCH", "DQ.BURY")
        for word in words
    ]
    # What is right before and behind it isn't done either.
    table += [
        ("DQ.FINISH {} reserved * ready x", error),
        ("DQ.FINISH {} ready x reserved *", error),
        ("DQ.FINISH {} reserved <lease> ready -1", error),
        ("DQ.RELEASE {} reserved x DELAY 5", error),
        ("DQ.RELEASE {} reserved DELAY 5", error),
        ("DQ.TOUCH {} reserved TTR 5", error),
        ("DQ.RENEW {} 0 0 reserved * ready x", error),
        ("DQ.RENEW {} 0 0 ready x reserved *", error),
        ("DQ.BURY {} reserved REASON why", error),
    ]
    check_refused(lone, lone_session, table)


def test_ids_without_their_leases_are_refused(lone: Server, lone_session: Session) -> None:
    error = "ERR each id needs its lease: id lease [id lease ...]"
    table = [
        ("DQ.FINISH {} reserved * ready", error),
        ("DQ.FINISH {} reserved <lease> reserved", error),
        ("DQ.FINISH {} reserved ready delayed", error),
        ("DQ.FINISH {} a * b * c", error),
        ("DQ.RENEW {} 0 0 reserved * ready", error),
        ("DQ.RENEW {} 0 5 a * b * c", error),
    ]
    check_refused(lone, lone_session, table)


def test_times_of_renew_that_are_none_are_refused(lone: Server, lone_session: Session) -> None:
    table = [
        (command.format(word), f"ERR {name} must be an integer from 0 to {2**48 - 1}")
        for name, command in [
            ("ttr-ms", "DQ.RENEW {{}} {} 0 reserved <lease>"),
            ("block-ms", "DQ.RENEW {{}} 0 {} reserved <lease>"),
        ]
        for word in [*NO_NUMBERS, str(2**48)]
    ]
    past = "ERR ttr-ms reaches past the last time there is, 281474976710655"
    table.append((f"DQ.RENEW {{}} {2**48 - 1} 0 reserved <lease>", past))
    check_refused(lone, lone_session, table)


def test_too_many_leases_are_refused(lone: Server, lone_session: Session) -> None:
    leases = " a *" * 10_000
    table = [
        (f"DQ.RENEW {{}} 0 0{leases} reserved <lease>", "ERR DQ.RENEW takes at most 10000 leases")
    ]
    check_refused(lone, lone_session, table)


def test_a_wrong_numkeys_is_refused(lone: Server, lone_session: Session) -> None:
    error = "ERR numkeys must be the number of keys that follow it, at least 1"
    table = [(f"DQ.MPOP {number} {{}}", error) for number in [*NO_NUMBERS, "0", "2", "3"]]
    table += [
        ("DQ.MPOP 0 COUNT 5", error),
        ("DQ.MPOP {} 1", error),
        ("DQ.MPOP 4 {} COUNT 5", error),
        # The words that are counted are keys, whatever they look like.
        ("DQ.MPOP 1 nothing {}", "ERR unknown option '{}'"),
        ("DQ.MPOP 3 nothing COUNT 5 {}", "ERR unknown option '{}'"),
    ]
    observer = Observer(lone)
    for command, wrong in table:
        for key in "q", "none":
            lone_session.check(f"> {command.format(key)}\n(error) {wrong.format(key)}")
            observer.check_nothing_changed(command.format(key))


def test_bad_cursors_are_refused(lone: Server, lone_session: Session) -> None:
    error = "ERR cursor must be an integer from 0 to 4294967295"
    words = [*NO_NUMBERS, str(2**32)]
    table = [(f"DQ.SCAN {{}} {word}", error) for word in words]
    table += [(f"DQ.SCAN {{}} {word} COUNT 5 STATE ready", error) for word in words]
    check_refused(lone, lone_session, table)
    # One that is past the end is none that anybody was given, and the end.
    lone_session.check('> DQ.SCAN q 4294967295\n["0", []]')


def test_a_body_over_the_limit_is_refused(lone: Server, lone_session: Session) -> None:
    observer = Observer(lone)
    for job_id in "new", "ready", "*":
        for options in ["", "REPLACE", "NX DELAY 5"]:
            reply = lone_session.call("DQ.ADD", "q", job_id, b"b" * 1_048_577, *options.split())
            assert reply == "ERR body must be at most 1048576 bytes long (dq.max-body-bytes)"
            assert isinstance(reply, Failure)
            observer.check_nothing_changed(f"DQ.ADD {job_id} {options}")


def test_the_limit_of_a_body_is_a_setting(lone: Server, lone_session: Session) -> None:
    lone_session.check("> CONFIG SET dq.max-body-bytes 3\nOK")
    error = "ERR body must be at most 3 bytes long (dq.max-body-bytes)"
    check_refused(lone, lone_session, [("DQ.ADD {} a abcd", error)])
    lone_session.check("""
        > DQ.ADD q a abc
        "a"
        > CONFIG SET dq.max-body-bytes 0
        OK
        > DQ.ADD q b x
        (error) ERR body must be at most 0 bytes long (dq.max-body-bytes)
        > DQ.ADD q b ""
        "b"

        # It speaks of new jobs.
        > DQ.POP q COUNT 5
        [["ready", "x", <*>, 1], ["a", "abc", <*>, 1], ["b", "", <*>, 1]]
    """)


def test_a_taken_id_and_a_full_queue_refuse_an_add(lone: Server, lone_session: Session) -> None:
    lone_session.check("> DQ.ALTER q MAXJOBS 5\nOK")
    taken = "EXISTS id is taken in this queue"
    full = "FULL the queue holds as many jobs as it may"
    observer = Observer(lone)
    for state in "delayed", "ready", "reserved", "dead", "done":
        lone_session.check(f"> DQ.ADD q {state} y\n(error) {taken}")
        observer.check_nothing_changed(f"taken: {state}")
    for options in ["", "NX", "REPLACE", "DELAY 5 TTL 5"]:
        for job_id in "new", "*":
            lone_session.check(f"> DQ.ADD q {job_id} y {options}\n(error) {full}")
            observer.check_nothing_changed(f"full: {job_id} {options}")
    # A job that is there already needs no room.
    lone_session.check('> DQ.ADD q ready y REPLACE\n"ready"')
