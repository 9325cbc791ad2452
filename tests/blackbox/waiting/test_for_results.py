"""DQ.RESULT … BLOCK: clients that wait for what becomes of a job."""

from collections.abc import Callable
from contextlib import closing

import pytest

from harness.clock import now_ms
from harness.consumers import Consumer, Room, in_one_go
from harness.resp import Failure
from harness.server import Server, eventually

LATE_MS_MAX = 1_500


@pytest.fixture
def waited(room: Room) -> Room:
    """`one` waits for job `a` of `q`."""
    room.play("""
        > DQ.ADD q a x TTR 60000
        "a"
        one> DQ.RESULT q a BLOCK 0
    """)
    return room


def check_nothing_is_watched(room: Room) -> None:
    eventually(lambda: room.server_says("watchers") == 0)


@pytest.mark.parametrize("keep", ["", "KEEP 60000"])
@pytest.mark.parametrize(
    ("end", "reply", "what"),
    [
        ("DQ.DONE q a * RESULT 42", "(integer) 1", '"42"'),
        ('DQ.DONE q a * RESULT ""', "(integer) 1", '""'),
        ("DQ.DONE q a * RESULT 42 KEEP 0", "(integer) 1", '"42"'),
        ("DQ.DONE q a * RESULT 42 KEEP 60000 ADD a y REPLACE", '["a"]', '"42"'),
        ("DQ.DONE q a *", "(integer) 1", "(nil)"),
        ("DQ.FINISH q a", "(integer) 1", "(nil)"),
    ],
)
def test_a_client_that_waits_is_told_the_result_of_a_finished_job_kept_or_not(
    room: Room, keep: str, end: str, reply: str, what: str
) -> None:
    room.play(f"""
        > DQ.ADD q a x TTR 60000 {keep}
        "a"
        one> DQ.RESULT q a BLOCK 0
        > DQ.POP q
        [["a", "x", <*>, 1]]
        one waits
        > {end}
        {reply}
        one< ["done", {what}]
    """)
    check_nothing_is_watched(room)


@pytest.mark.parametrize("way", ["DQ.POP q NOACK", "DQ.POP q NOACK ID a"])
def test_a_job_taken_with_noack_is_done(waited: Room, way: str) -> None:
    waited.play(f"""
        > {way}
        [["a", "x", (nil), 1]]
        one< ["done", (nil)]
    """)


def test_a_job_taken_with_noack_by_a_client_that_waits_is_done(room: Room) -> None:
    room.play("""
        > DQ.ADD q a x DELAY 60000
        "a"
        one> DQ.RESULT q a BLOCK 0
        two> DQ.POP q NOACK BLOCK 0
        > DQ.KICKJOB q a
        (integer) 1
        two< [["a", "x", (nil), 1]]
        one< ["done", (nil)]
    """)


@pytest.mark.parametrize(
    ("end", "reply", "reason"),
    [
        ("DQ.BURY q a * REASON broken", "(integer) 1", "broken"),
        ("DQ.BURY q a *", "(integer) 1", "buried"),
        ("DQ.RELEASE q a * REASON again", "(integer) 1", "again"),
    ],
)
def test_a_client_that_waits_is_told_why_a_job_is_dead(
    room: Room, end: str, reply: str, reason: str
) -> None:
    room.play(f"""
        > DQ.ADD q a x TTR 60000 ATTEMPTS 1
        "a"
        one> DQ.RESULT q a BLOCK 60000
        > DQ.POP q
        [["a", "x", <*>, 1]]
        > {end}
        {reply}
        one< ["dead", "{reason}"]
    """)


@pytest.mark.parametrize(
    ("options", "is_taken", "reason"),
    [
        ("TTL 300", False, "its time to live is over"),
        ("TTL 300", True, "its time to live is over"),
        ("LATE 300", False, "late"),
        ("DELAY 100 LATE 200", False, "late"),
        ("ATTEMPTS 1 TTR 300", True, "no attempts left"),
        ("ATTEMPTS 1 TTR 300 GROUP g", True, "no attempts left"),
    ],
)
def test_a_death_by_time_ends_the_wait_on_time(
    room: Room, options: str, is_taken: bool, reason: str
) -> None:
    room.call("DQ.ADD", "q", "a", "x", *options.split())
    if is_taken:
        assert room.call("DQ.POP", "q")
    begin = now_ms()
    one = room("one")
    one.send(("DQ.RESULT", "q", "a", "BLOCK", 0))
    assert one.hears() == [b"dead", reason.encode()]
    # The job was added some milliseconds before.
    assert now_ms() < begin + 300 + LATE_MS_MAX
    ((_, seen),) = [(room.call("TIME"), shown(room)["since"])]
    assert now_ms() >= seen
    check_nothing_is_watched(room)


def shown(room: Room) -> dict[str, int]:
    told = room.call("DQ.GET", "q", "a")
    return {name.decode(): value for name, value in zip(told[::2], told[1::2], strict=True)}


def test_a_death_by_time_is_never_told_early(room: Room) -> None:
    for _ in range(20):
        room.call("DQ.ADD", "q", "a", "x", "TTL", 30, "REPLACE")
        one = room("one")
        one.send(("DQ.RESULT", "q", "a", "BLOCK", 0))
        assert one.hears() == [b"dead", b"its time to live is over"]
        assert now_ms() >= shown(room)["since"]


def test_a_lease_that_is_extended_puts_the_death_off(room: Room) -> None:
    room.play("""
        > DQ.ADD q a x TTR 300 ATTEMPTS 1
        "a"
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        one> DQ.RESULT q a BLOCK 0
        > DQ.TOUCH q a <lease> TTR 60000
        (integer) 1
        two> DQ.RESULT q a BLOCK 400
        two< ["reserved", (nil)]
        one waits
        > DQ.TOUCH q a <lease> TTR 20
        (integer) 1
        one< ["dead", "no attempts left"]
    """)


@pytest.mark.parametrize(
    "end",
    [
        "DQ.DEL q a",
        "DQ.PURGE q STATE ready",
        "DEL q",
        "UNLINK q",
        "FLUSHDB",
        "FLUSHALL SYNC",
        "SET q text",
        "RENAME q away",
        "MOVE q 7",
        "PEXPIRE q 1",
        "SWAPDB 0 7",
        "COPY other q REPLACE",
        "RENAME other q",
    ],
)
def test_the_wait_ends_at_once_when_the_job_is_removed(waited: Room, end: str) -> None:
    waited.call("DQ.ADD", "other", "b", "x")
    assert not isinstance(waited.call(*end.split()), Failure)
    waited.play("one< (nil)")
    check_nothing_is_watched(waited)


def test_restore_over_the_key_ends_the_wait_for_a_job_that_is_not_in_it(waited: Room) -> None:
    waited.call("DQ.ADD", "other", "b", "x")
    payload = waited.call("DUMP", "other")
    assert waited.call("RESTORE", "q", 0, payload, "REPLACE") == "OK"
    waited.play("one< (nil)")


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("DQ.ADD q a y REPLACE", '"a"'),
        ("DQ.ADD q a y REPLACE DELAY 60000", '"a"'),
        ("DQ.POP q", '[["a", "x", <*>, 1]]'),
        ("DQ.ADD q b y", '"b"'),
        ("DQ.DEL q b", "(integer) 0"),
        ("SWAPDB 5 7", "OK"),
        ("DEBUG RELOAD", "OK"),
    ],
)
def test_the_wait_goes_on_while_something_may_come_of_the_job(
    waited: Room, command: str, reply: str
) -> None:
    waited.play(f"""
        > {command}
        {reply}
        two> DQ.RESULT q a BLOCK 150
    """)
    assert waited("two").hears() is not None
    waited.play("one waits")
    if not waited.call("DQ.POP", "q", "ID", "a"):
        assert shown(waited)["state"] == b"reserved"
    waited.play("""
        > DQ.DONE q a * RESULT 42
        (integer) 1
        one< ["done", "42"]
    """)


def test_the_wait_goes_on_over_retries_and_kicks(room: Room) -> None:
    room.play("""
        > DQ.ADD q a x TTR 60000 DELAY 60000 ATTEMPTS 2
        "a"
        one> DQ.RESULT q a BLOCK 0
        > DQ.KICKJOB q a
        (integer) 1
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > DQ.RELEASE q a <lease>
        (integer) 1
        > DQ.POP q TTR 1
        [["a", "x", <*>, 2]]
        one< ["dead", "no attempts left"]
        > DQ.RESULT q a BLOCK 0
        ["dead", "no attempts left"]
        > DQ.KICKJOB q a
        (integer) 1
        one> DQ.RESULT q a BLOCK 0
        > DQ.POP q TTR 60000
        [["a", "x", <last>, 1]]
        one waits
        > DQ.DONE q a <last> RESULT 42
        (integer) 1
        one< ["done", "42"]
    """)


def test_a_schedule_is_waited_for_until_its_last_run(room: Room) -> None:
    room.play("""
        > DQ.ADD q a x EVERY 20 RUNS 2 TTR 60000
        "a"
        one> DQ.RESULT q a BLOCK 0
        > DQ.POP q BLOCK 10000
        [["a", "x", <first>, 1]]
        > DQ.DONE q a <first> RESULT 1
        (integer) 1
        > DQ.POP q BLOCK 10000
        [["a", "x", <second>, 1]]
        one waits
        > DQ.DONE q a <second> RESULT 2
        (integer) 1
        one< ["done", "2"]
    """)


def test_what_is_known_is_told_at_once(room: Room) -> None:
    room.play("""
        > DQ.RESULT q a BLOCK 0
        (nil)
        > DQ.ADD q a x KEEP 60000
        "a"
        > DQ.RESULT q b BLOCK 0
        (nil)
        > DQ.POP q NOACK
        [["a", "x", (nil), 1]]
        > DQ.RESULT q a BLOCK 0
        ["done", (nil)]
        > DQ.ADD q b x
        "b"
        > DQ.POP q
        [["b", "x", <lease>, 1]]
        > DQ.BURY q b <lease>
        (integer) 1
        > DQ.RESULT q b BLOCK 0
        ["dead", "buried"]
    """)
    check_nothing_is_watched(room)


@pytest.mark.parametrize(
    ("options", "state"), [("", "ready"), ("DELAY 60000", "delayed"), ("DELAY 40", "ready")]
)
def test_at_the_end_of_the_time_the_reply_is_that_without_block(
    room: Room, options: str, state: str
) -> None:
    room.call("DQ.ADD", "q", "a", "x", *options.split())
    begin = now_ms()
    one = room("one")
    one.send(("DQ.RESULT", "q", "a", "BLOCK", 100))
    assert one.hears() == [state.encode(), None]
    assert 100 <= now_ms() - begin < 100 + LATE_MS_MAX
    check_nothing_is_watched(room)


@pytest.mark.parametrize(
    ("how", "reply"),
    [
        ("", '["ready", (nil)]'),
        ("TIMEOUT", '["ready", (nil)]'),
        ("ERROR", "(error) UNBLOCKED client unblocked via CLIENT UNBLOCK"),
    ],
)
def test_client_unblock_ends_the_wait(waited: Room, how: str, reply: str) -> None:
    assert waited.call("CLIENT", "UNBLOCK", waited("one").id, *how.split()) == 1
    waited.play(f"""
        one< {reply}
        two> DQ.RESULT q a BLOCK 0
        > DQ.DEL q a
        (integer) 1
        two< (nil)
    """)
    assert not waited("one").is_told_something()
    assert waited("one").call("PING") == "PONG"
    check_nothing_is_watched(waited)


@pytest.mark.parametrize("end", [("UNBLOCK",), ("UNBLOCK", "ERROR"), ("KILL",)])
def test_a_client_unblocked_in_the_turn_that_tells_it_gets_one_reply(
    waited: Room, end: tuple[str, ...]
) -> None:
    one = waited("one")
    verb, *how = end
    kill = ("CLIENT", verb, *(["ID"] if verb == "KILL" else []), one.id, *how)
    in_one_go(waited.server.port, ("DQ.POP", "q", "NOACK"), kill, ("DQ.ADD", "q", "b", "x"))
    if verb == "KILL":
        assert one.is_closed()
    else:
        reply = one.hears()
        assert isinstance(reply, Failure) or reply in ([b"done", None], None)
        assert one.call("ECHO", "and nothing else") == b"and nothing else"
    check_nothing_is_watched(waited)


def test_a_client_that_has_gone_is_told_nothing_and_the_others_are(waited: Room) -> None:
    waited.play("two> DQ.RESULT q a BLOCK 0")
    assert waited.server_says("watchers") == 2
    waited.leave("one")
    eventually(lambda: waited.server_says("watchers") == 1)
    waited.play("""
        > DQ.POP q NOACK
        [["a", "x", (nil), 1]]
        two< ["done", (nil)]
    """)
    check_nothing_is_watched(waited)


def test_all_that_wait_for_a_job_are_told_and_one_may_go_before(waited: Room) -> None:
    waited.play("""
        two> DQ.RESULT q a BLOCK 50
        three> DQ.RESULT q a BLOCK 60000
        two< ["ready", (nil)]
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > DQ.DONE q a <lease> RESULT 42
        (integer) 1
        one< ["done", "42"]
        three< ["done", "42"]
    """)


def test_waiting_takes_nothing_from_consumers(room: Room) -> None:
    room.play("""
        > DQ.ADD q a x DELAY 60000
        "a"
        one> DQ.RESULT q a BLOCK 0
        two> DQ.POP q BLOCK 0
        > DQ.ADD q b y
        "b"
        two< [["b", "y", <*>, 1]]
        one waits
    """)
    assert room.server_says("waiting_consumers") == 0
    assert room.server_says("watchers") == 1
    info = room.call("DQ.INFO", "q")
    told = dict(zip(info[::2], info[1::2], strict=True))
    assert (told[b"waiting-consumers"], told[b"watchers"]) == (0, 1)


@pytest.mark.parametrize("name", ["a", "b"])
def test_transactions_and_scripts_do_not_wait(room: Room, name: str) -> None:
    room.call("DQ.ADD", "q", "a", "x")
    expected = [b"ready", None] if name == "a" else None
    script = "return redis.call('DQ.RESULT', KEYS[1], ARGV[1], 'BLOCK', 0)"
    assert room.call("EVAL", script, 1, "q", name) == expected
    assert room.call("MULTI") == "OK"
    assert room.call("DQ.RESULT", "q", name, "BLOCK", 0) == "QUEUED"
    assert room.call("EXEC") == [expected]


def test_what_happened_in_a_transaction_is_told_and_not_what_is_left_behind_it(
    waited: Room,
) -> None:
    waited.play("""
        > DQ.POP q
        [["a", "x", <lease>, 1]]
        > MULTI
        OK
        > DQ.DONE q a <lease> RESULT 42 KEEP 60000
        QUEUED
        > DQ.DEL q a
        QUEUED
        > DQ.ADD q a again
        QUEUED
        > EXEC
        [1, 1, "a"]
        one< ["done", "42"]
        one> DQ.RESULT q a BLOCK 0
        > MULTI
        OK
        > DQ.DEL q a
        QUEUED
        > DQ.ADD q a again
        QUEUED
        > EXEC
        [1, "a"]
        one< (nil)
        one> DQ.RESULT q a BLOCK 0
        > EVAL "return redis.call('DQ.POP', KEYS[1], 'NOACK')" 1 q
        [["a", "again", (nil), 1]]
        one< ["done", (nil)]
    """)


def test_a_queue_that_is_renamed_away_and_back_tells_who_waits_then(waited: Room) -> None:
    waited.play("""
        > RENAME q away
        OK
        one< (nil)
        > RENAME away q
        OK
        one> DQ.RESULT q a BLOCK 0
        > DQ.POP q NOACK
        [["a", "x", (nil), 1]]
        one< ["done", (nil)]
    """)


def test_another_queue_that_is_swapped_in_has_the_job_too(room: Room) -> None:
    """Clients stay in their database."""
    room.play("""
        > SELECT 7
        OK
        > DQ.ADD q a y
        "a"
        > SELECT 0
        OK
        > DQ.ADD q a x
        "a"
        one> DQ.RESULT q a BLOCK 0
        > SWAPDB 0 7
        OK
        two> DQ.RESULT q a BLOCK 50
        two< ["ready", (nil)]
        one waits
        > DQ.POP q NOACK
        [["a", "y", (nil), 1]]
        one< ["done", (nil)]
    """)


def test_nobody_waits_on_a_replica(fresh_server: Callable[..., Server]) -> None:
    server, replica = fresh_server(), fresh_server()
    replica.replicate(server)
    with closing(Room(server)) as here, closing(Room(replica)) as there:
        here.call("DQ.ADD", "q", "a", "x")
        replica.catch_up(server)
        there.play("""
            > DQ.RESULT q a BLOCK 0
            ["ready", (nil)]
            > DQ.RESULT q b BLOCK 0
            (nil)
        """)


def test_a_failover_ends_the_wait_and_the_new_primary_tells_the_rest(
    fresh_server: Callable[..., Server],
) -> None:
    server, replica = fresh_server(), fresh_server()
    replica.replicate(server)
    with closing(Room(server)) as here, closing(Room(replica)) as there:
        here.call("DQ.ADD", "q", "a", "x", "TTR", 60_000)
        one = here.wait("one", "DQ.RESULT", "q", "a", "BLOCK", 0)
        replica.catch_up(server)
        assert here.call("FAILOVER") == "OK"
        reply = one.hears()
        assert isinstance(reply, Failure)
        assert reply.startswith("UNBLOCKED ")
        check_nothing_is_watched(here)
        with replica.client() as client:
            eventually(lambda: client.info("replication")["role"] == "master")
        there.play("""
            one> DQ.RESULT q a BLOCK 0
            > DQ.POP q
            [["a", "x", <lease>, 1]]
            > DQ.DONE q a <lease> RESULT 42
            (integer) 1
            one< ["done", "42"]
        """)


def test_a_client_pause_holds_nothing_back_that_happened_before(waited: Room) -> None:
    one = waited("one")
    in_one_go(
        waited.server.port,
        ("DQ.POP", "q", "NOACK"),
        ("CLIENT", "PAUSE", 100, "WRITE"),
    )
    assert one.hears() == [b"done", None]


CROWD = 1_000


@pytest.mark.parametrize("end", [("DQ.POP", "q", "NOACK"), ("DEL", "q"), ("FLUSHALL",)])
def test_a_crowd_that_waits_for_one_job_is_told_and_others_are_served_between(
    waited: Room, end: tuple[str, ...]
) -> None:
    crowd = [Consumer(waited.server.port) for _ in range(CROWD)]
    for consumer in crowd:
        consumer.send(("DQ.RESULT", "q", "a", "BLOCK", 0))
    eventually(lambda: waited.server_says("watchers") == CROWD + 1)
    in_one_go(waited.server.port, end)
    expected = [b"done", None] if end[0] == "DQ.POP" else None
    assert [consumer.hears() for consumer in crowd] == [expected] * CROWD
    check_nothing_is_watched(waited)
    for consumer in crowd:
        consumer.close()


@pytest.mark.parametrize(
    ("end", "reply", "told"),
    [
        ("DQ.DEL q a", "(integer) 1", '["dead", "job \'a\' that it waits for was removed"]'),
        ("DQ.DEL q b", "(integer) 1", "(nil)"),
        ("DQ.DONE q b * RESULT 42", "(integer) 1", '["done", "42"]'),
    ],
)
def test_a_held_job_is_waited_for_like_any_other(
    room: Room, end: str, reply: str, told: str
) -> None:
    room.play(f"""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b y AFTER 1 a
        "b"
        one> DQ.RESULT q b BLOCK 0
        > {end}
        {reply}
        one< {told}
    """)


def test_a_chain_is_waited_for_to_its_end(room: Room) -> None:
    room.play("""
        > DQ.ADD q a x TTR 60000
        "a"
        > DQ.ADD q b y AFTER 1 a
        "b"
        one> DQ.RESULT q b BLOCK 0
        > DQ.POP q NOACK
        [["a", "x", (nil), 1]]
        one waits
        > DQ.POP q
        [["b", "y", <lease>, 1]]
        > DQ.DONE q b <lease> RESULT 42
        (integer) 1
        one< ["done", "42"]
    """)


def test_a_held_job_that_loses_its_life_is_told_as_dead(room: Room) -> None:
    room.play("""
        > DQ.ADD q a x DELAY 60000
        "a"
        > DQ.ADD q b y AFTER 1 a TTL 200
        "b"
        > DQ.RESULT q b BLOCK 20000
        ["dead", "its time to live is over"]
    """)


def test_the_reply_is_what_ended_the_wait_whatever_happens_until_it_is_made(room: Room) -> None:
    for id, ends, reply in [
        ("a", [("DQ.BURY", "q", "a", "*"), ("DQ.KICKJOB", "q", "a")], b"dead"),
        ("b", [("DQ.DONE", "q", "b", "*", "RESULT", "1"), ("DQ.ADD", "q", "b", "y")], b"done"),
        ("c", [("DQ.DONE", "q", "c", "*", "RESULT", "1"), ("DEL", "q")], b"done"),
        ("d", [("DQ.DEL", "q", "d"), ("DQ.ADD", "q", "d", "y")], None),
    ]:
        room.call("DQ.ADD", "q", id, "x")
        room.call("DQ.POP", "q", "ID", id)
        one = room.wait("one", "DQ.RESULT", "q", id, "BLOCK", 0)
        in_one_go(room.server.port, ("MULTI",), *ends, ("EXEC",))
        told = one.hears()
        assert (told and told[0]) == reply, id
