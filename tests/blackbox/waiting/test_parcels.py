"""Jobs on their way to a consumer that vanishes, while their queue goes somewhere else in the same turn: they
come back to the queue, wherever it is by then."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.consumers import Room, in_one_go
from harness.pipelined import Words
from harness.queues import digests
from harness.server import Server, eventually

ADD: Words = ("DQ.ADD", "q", "a", "x", "TTR", 60_000, "ATTEMPTS", 1)

# Each queue is another value in memory afterwards.
RELOAD: Words = ("DEBUG", "RELOAD")

# What happens to the queue `q`, and the database and key at which it is then.
MOVES: dict[str, tuple[list[Words], int, str]] = {
    "RENAME": ([("RENAME", "q", "r")], 0, "r"),
    "RENAME, a new queue at the old key": ([("RENAME", "q", "r"), ("DQ.ADD", "q", "b", "y")], 0, "r"),
    "RENAME twice": ([("RENAME", "q", "r"), ("RENAME", "r", "s")], 0, "s"),
    "RENAME there and back": ([("RENAME", "q", "r"), ("RENAME", "r", "q")], 0, "q"),
    "RENAME, a look and RENAME": ([("RENAME", "q", "r"), ("DQ.LEN", "r"), ("RENAME", "r", "s")], 0, "s"),
    "RENAME and a look": ([("RENAME", "q", "r"), ("DQ.PEEK", "r")], 0, "r"),
    "RENAME in a transaction": ([("MULTI",), ("RENAME", "q", "r"), ("EXEC",)], 0, "r"),
    "MOVE": ([("MOVE", "q", 3)], 3, "q"),
    "SWAPDB": ([("SWAPDB", 0, 3)], 3, "q"),
    "SWAPDB there and back": ([("SWAPDB", 0, 3), ("SWAPDB", 3, 0)], 0, "q"),
    "RENAME and SWAPDB": ([("RENAME", "q", "r"), ("SWAPDB", 0, 3)], 3, "r"),
    "a look between RENAME and SWAPDB": (
        [("RENAME", "q", "r"), ("DQ.LEN", "r"), ("SWAPDB", 0, 3)],
        3,
        "r",
    ),
    "COPY and DEL": ([("COPY", "q", "r"), ("DEL", "q")], 0, "r"),
    "COPY": ([("COPY", "q", "r")], 0, "r"),
    "COPY and RENAME of the copy": ([("COPY", "q", "r"), ("RENAME", "r", "s")], 0, "s"),
    "COPY there and back": ([("COPY", "q", "r"), ("COPY", "r", "q", "REPLACE")], 0, "q"),
    "RELOAD": ([RELOAD], 0, "q"),
    "RELOAD and RENAME": ([RELOAD, ("RENAME", "q", "r")], 0, "r"),
    "RELOAD, RENAME, a new queue": ([RELOAD, ("RENAME", "q", "r"), ("DQ.ADD", "q", "b", "y")], 0, "r"),
    "RELOAD, COPY and DEL": ([RELOAD, ("COPY", "q", "r"), ("DEL", "q")], 0, "r"),
    "RELOAD and MOVE": ([RELOAD, ("MOVE", "q", 3)], 3, "q"),
    "SWAPDB and RELOAD": ([("SWAPDB", 0, 3), RELOAD], 3, "q"),
    "RELOAD twice": ([RELOAD, RELOAD], 0, "q"),
}


@pytest.mark.parametrize("vanishes", ["before", "after"])
@pytest.mark.parametrize("options", ["", "NOACK"])
@pytest.mark.parametrize("moved_by", MOVES)
def test_a_parcel_follows_its_queue(
    fresh_server: Callable[..., Server], moved_by: str, options: str, vanishes: str
) -> None:
    server, replica = fresh_server(), fresh_server()
    replica.replicate(server)
    moves, database, key = MOVES[moved_by]
    room = Room(server)
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0, *options.split())
    kill: Words = ("CLIENT", "KILL", "ID", one.id)
    in_one_go(server.port, ADD, *([kill, *moves] if vanishes == "before" else [*moves, kill]))
    with server.client(db=database) as there:
        eventually(lambda: there.execute_command("DQ.LEN", key, "STATE", "ready") == 1)
        assert there.execute_command("DQ.LEN", key) == 1
        ((id, body, _, attempt),) = there.execute_command("DQ.POP", key)
        assert (id, body, attempt) == ("a", "x", 1)
        replica.catch_up(server)
        with replica.client(db=database) as here:
            assert digests(here, key) == digests(there, key)
    room.close()


@pytest.mark.parametrize("options", ["", "NOACK"])
def test_what_nobody_asks_for_comes_back_all_the_same(room: Room, options: str) -> None:
    """Nobody touches the queue at its new key. Looked for in INFO, which touches none."""
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0, *options.split())
    in_one_go(room.server.port, ADD, ("RENAME", "q", "r"), ("CLIENT", "KILL", "ID", one.id))
    eventually(lambda: room.server_says("jobs_ready") == 1, 30)


LOOKS: dict[str, tuple[Words, Any]] = {
    "LEN": (("DQ.LEN", "<key>", "STATE", "ready"), 1),
    "SCAN": (("DQ.SCAN", "<key>", 0, "STATE", "ready"), [b"0", [b"a"]]),
    "POP": (("DQ.POP", "<key>", "NOACK"), [[b"a", b"x", None, 1]]),
    "DEL": (("DQ.DEL", "<key>", "a"), 1),
}


@pytest.mark.parametrize("options", ["", "NOACK"])
@pytest.mark.parametrize("key", ["q", "r"])
@pytest.mark.parametrize("look", LOOKS)
def test_whoever_comes_next_finds_it_there(
    fresh_server: Callable[..., Server], look: str, key: str, options: str
) -> None:
    """In the same turn already."""
    server, replica = fresh_server(), fresh_server()
    replica.replicate(server)
    room = Room(server)
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0, *options.split())
    words, reply = LOOKS[look]
    words = tuple(key if word == "<key>" else word for word in words)
    moves: list[Words] = [] if key == "q" else [("RENAME", "q", key)]
    assert in_one_go(server.port, ADD, ("CLIENT", "KILL", "ID", one.id), *moves, words)[-1] == reply
    replica.catch_up(server)
    with server.client() as here, replica.client() as there:
        assert digests(here, key) == digests(there, key)
    room.close()


def test_who_waits_at_the_new_key_gets_it(room: Room) -> None:
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0)
    room.play("two> DQ.POP r BLOCK 0")
    in_one_go(room.server.port, ADD, ("RENAME", "q", "r"), ("CLIENT", "KILL", "ID", one.id))
    room.play('two< [["a", "x", <*>, 1]]')


def test_an_unrelated_queue_at_the_old_key_gets_nothing(room: Room) -> None:
    """Which would have room for the id."""
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0, "NOACK")
    in_one_go(
        room.server.port,
        ADD,
        ("RENAME", "q", "r"),
        ("DQ.ADD", "q", "other", "y"),
        ("CLIENT", "KILL", "ID", one.id),
    )
    eventually(lambda: room.call("DQ.LEN", "r", "STATE", "ready") == 1)
    assert room.call("DQ.LEN", "q") == 1


@pytest.mark.parametrize("options", ["", "NOACK"])
def test_a_queue_that_is_deleted_takes_it_along(room: Room, options: str) -> None:
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0, *options.split())
    in_one_go(
        room.server.port,
        ADD,
        ("RENAME", "q", "r"),
        ("CLIENT", "KILL", "ID", one.id),
        ("DEL", "r"),
        ("DQ.ADD", "q", "b", "y"),
    )
    two = room.wait("two", "DQ.POP", "r", "BLOCK", 300)
    assert two.hears() is None
    assert room.call("DQ.LEN", "q") == 1
    assert room.call("EXISTS", "r") == 0


def test_a_consumer_that_stays_is_told_the_key_at_which_it_waited(room: Room) -> None:
    one = room.wait("one", "DQ.MPOP", 2, "q", "other", "BLOCK", 0)
    in_one_go(room.server.port, ADD, ("RENAME", "q", "r"), ("DQ.LEN", "r"))
    key, ((id, _, lease, _),) = one.hears()
    assert (key, id) == (b"q", b"a")
    assert room.call("DQ.FINISH", "r", "a", lease) == 1


REMOVED: dict[str, tuple[Words, Words]] = {
    "a schedule, by DEL": (("EVERY", 60_000, "DELAY", 0), ("DQ.DEL", "q", "a")),
    "a schedule, by PURGE": (("EVERY", 60_000, "DELAY", 0), ("DQ.PURGE", "q", "STATE", "delayed")),
    "a job that is kept, by DEL": (("KEEP", 60_000), ("DQ.DEL", "q", "a")),
    "a job that is kept, by PURGE": (("KEEP", 60_000), ("DQ.PURGE", "q", "STATE", "done")),
    "a job that was kept, by DEL": (("KEEP", 10), ("DQ.DEL", "q", "a")),
    "a job that was kept, by PURGE": (("KEEP", 10), ("DQ.PURGE", "q", "STATE", "done")),
}


@pytest.mark.parametrize("what", REMOVED)
def test_what_was_removed_meanwhile_does_not_come_back(
    fresh_server: Callable[..., Server], what: str
) -> None:
    server, replica = fresh_server(), fresh_server()
    replica.replicate(server)
    options, remove = REMOVED[what]
    room = Room(server)
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0, "NOACK")
    kill: Words = ("CLIENT", "KILL", "ID", one.id)
    add: Words = ("DQ.ADD", "q", "a", "x", *options)
    # By the time that anybody looks, a KEEP may be over.
    sleep: Words = ("DEBUG", "SLEEP", "0.02")
    replies = in_one_go(server.port, add, remove, sleep, kill, ("DQ.LEN", "q"))
    assert replies[1] == 1 and replies[4] == 0
    with server.client() as here, replica.client() as there:
        assert here.execute_command("DQ.LEN", "q") == 0
        replica.catch_up(server)
        assert digests(here, "q") == digests(there, "q")
    room.close()


@pytest.mark.parametrize("options", [("KEEP", 1), ("KEEP", 1, "ATTEMPTS", 1), ()])
def test_what_nobody_has_removed_comes_back_though_its_keep_is_over(
    room: Room, options: tuple[str, ...]
) -> None:
    """The timer, which removes what was kept long enough, comes to the queue before it gives back the job."""
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0, "NOACK")
    in_one_go(
        room.server.port,
        ("DQ.ADD", "q", "a", "x", *options),
        ("CLIENT", "PAUSE", 50, "WRITE"),
        ("CLIENT", "KILL", "ID", one.id),
    )
    eventually(lambda: room.server_says("jobs_ready") == 1)
    room.check("> DQ.LEN q STATE ready\n(integer) 1")


def test_a_job_whose_lease_ends_on_its_way_is_not_removed_as_dead(room: Room) -> None:
    one = room.wait("one", "DQ.POP", "q", "BLOCK", 0, "TTR", 1)
    in_one_go(
        room.server.port,
        ("DQ.ALTER", "q", "DEADKEEP", 1),
        ("DQ.ADD", "q", "a", "x", "ATTEMPTS", 1),
        ("CLIENT", "PAUSE", 50, "WRITE"),
        ("CLIENT", "KILL", "ID", one.id),
    )
    eventually(lambda: room.server_says("jobs_ready") == 1)
    room.check("> DQ.LEN q STATE ready\n(integer) 1")
