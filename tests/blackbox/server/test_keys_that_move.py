"""A queue that the server moves to another key or database is served there in time, without a
command on it.

`INFO dq` tells how many queues wait for something; asking it touches none of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import redis

from harness.clock import HOUR_MS, now_ms
from harness.patience import TooSlow, patiently
from harness.queues import waiting
from harness.server import Server, eventually

# RENAME and MOVE tell nobody where a queue went: it is looked for, which takes longer among more
# keys.
FOUND_WITHIN_S = 1
LATE_S_MAX = 1


@dataclass(frozen=True)
class Place:
    key: str
    database: int = 0


@dataclass
class Watch:
    """A server, and the time when the queues on it are due."""

    server: Server
    due: int

    def at(self, database: int) -> redis.Redis:
        return self.server.client(db=database)

    def add(self, place: Place) -> None:
        with self.at(place.database) as r:
            r.execute_command("DQ.ADD", place.key, "a", "x", "AT", self.due)

    def check_in_time(self, *places: Place) -> None:
        """All these queues wait, no other does, and when they are due the timer sees to them."""
        __tracebackhide__ = True
        with self.server.client() as r:
            try:
                eventually(lambda: waiting(r) == len(places), FOUND_WITHIN_S)
            except AssertionError:
                self.check_not_yet()
                raise
            self.check_not_yet()
            eventually(lambda: waiting(r) == 0, (self.due - now_ms()) / 1_000 + LATE_S_MAX)
            assert now_ms() >= self.due, "too early, or forgotten"
            assert r.ping()
        for place in places:
            with self.at(place.database) as r:
                assert r.execute_command("DQ.LEN", place.key, "STATE", "ready") == 1

    def check_not_yet(self) -> None:
        if now_ms() >= self.due:
            raise TooSlow


HOME = Place("q", 5)


def play(server: Server, scenario: Callable[[Watch], None]) -> None:
    """A scenario that begins with a queue at home, due in a moment that leaves time for a
    search.
    """

    def begin(ahead_ms: int) -> None:
        with server.client() as r:
            r.flushall()
        watch = Watch(server, due=now_ms() + ahead_ms)
        watch.add(HOME)
        scenario(watch)

    patiently(begin, ahead_ms=600)


Move = Callable[[redis.Redis], list[Place]]


def rename(r: redis.Redis) -> list[Place]:
    r.rename("q", "renamed")
    return [Place("renamed", HOME.database)]


def rename_twice(r: redis.Redis) -> list[Place]:
    r.rename("q", "renamed")
    r.rename("renamed", "renamed-again")
    return [Place("renamed-again", HOME.database)]


def rename_there_and_back(r: redis.Redis) -> list[Place]:
    r.rename("q", "renamed")
    r.rename("renamed", "q")
    return [HOME]


def rename_over_another_queue(r: redis.Redis) -> list[Place]:
    r.execute_command("DQ.ADD", "renamed", "other", "x", "DELAY", HOUR_MS)
    r.rename("q", "renamed")
    return [Place("renamed", HOME.database)]


def rename_over_its_twin(r: redis.Redis) -> list[Place]:
    r.copy("q", "renamed")
    r.rename("q", "renamed")
    return [Place("renamed", HOME.database)]


def renamenx(r: redis.Redis) -> list[Place]:
    assert r.renamenx("q", "renamed")
    return [Place("renamed", HOME.database)]


def swap_names(r: redis.Redis) -> list[Place]:
    r.copy("q", "other")
    pipeline = r.pipeline(transaction=True)
    pipeline.rename("q", "between").rename("other", "q").rename("between", "other").execute()
    return [HOME, Place("other", HOME.database)]


def move(r: redis.Redis) -> list[Place]:
    assert r.move("q", 9)
    return [Place("q", 9)]


def copy(r: redis.Redis) -> list[Place]:
    assert r.copy("q", "copied")
    return [HOME, Place("copied", HOME.database)]


def copy_to_another_database(r: redis.Redis) -> list[Place]:
    assert r.copy("q", "q", destination_db=9)
    return [HOME, Place("q", 9)]


def copy_over_its_twin(r: redis.Redis) -> list[Place]:
    assert r.copy("q", "copied")
    assert r.copy("q", "copied", replace=True)
    return [HOME, Place("copied", HOME.database)]


def copy_over_an_earlier_one(r: redis.Redis) -> list[Place]:
    r.execute_command("DQ.ADD", "copied", "a", "x", "DELAY", 300)
    assert r.copy("q", "copied", replace=True)
    return [HOME, Place("copied", HOME.database)]


def restore(r: redis.Redis) -> list[Place]:
    r.restore("restored", 0, dump(r))
    return [HOME, Place("restored", HOME.database)]


def restore_over_itself(r: redis.Redis) -> list[Place]:
    r.restore("q", 0, dump(r), replace=True)
    return [HOME]


def restore_after_del(r: redis.Redis) -> list[Place]:
    payload = dump(r)
    r.delete("q")
    r.restore("q", 0, payload)
    return [HOME]


def dump(r: redis.Redis) -> bytes:
    """A binary reply, which a client that decodes can't read."""
    options = {**r.get_connection_kwargs(), "decode_responses": False}
    with redis.Redis(**{name: options[name] for name in ("host", "port", "db")}) as plain:
        return plain.dump("q")


def swapdb(r: redis.Redis) -> list[Place]:
    r.swapdb(HOME.database, 9)
    return [Place("q", 9)]


def swapdb_with_queues_in_both(r: redis.Redis) -> list[Place]:
    r.copy("q", "other", destination_db=9)
    r.swapdb(HOME.database, 9)
    return [Place("q", 9), Place("other", HOME.database)]


def swapdb_right_after_rename(r: redis.Redis) -> list[Place]:
    r.rename("q", "renamed")
    r.swapdb(HOME.database, 9)
    return [Place("renamed", 9)]


def debug_reload(r: redis.Redis) -> list[Place]:
    r.execute_command("DEBUG", "RELOAD")
    return [HOME]


def a_key_that_never_expires_after_all(r: redis.Redis) -> list[Place]:
    r.expire("q", 100)
    r.persist("q")
    return [HOME]


MOVES: list[Move] = [
    rename,
    rename_twice,
    rename_there_and_back,
    rename_over_another_queue,
    rename_over_its_twin,
    renamenx,
    swap_names,
    move,
    copy,
    copy_to_another_database,
    copy_over_its_twin,
    copy_over_an_earlier_one,
    restore,
    restore_over_itself,
    restore_after_del,
    swapdb,
    swapdb_with_queues_in_both,
    swapdb_right_after_rename,
    debug_reload,
    a_key_that_never_expires_after_all,
]


@pytest.mark.parametrize("made_by", MOVES, ids=lambda move: move.__name__)
def test_a_moved_queue_is_looked_after(server: Server, made_by: Move) -> None:
    def scenario(watch: Watch) -> None:
        with watch.at(HOME.database) as r:
            places = made_by(r)
        watch.check_in_time(*places)

    play(server, scenario)


Removal = Callable[[redis.Redis], object]


def let_it_expire(r: redis.Redis) -> None:
    r.pexpire("q", 1)
    eventually(lambda: not r.exists("q"))


def overwrite(r: redis.Redis) -> None:
    r.set("q", "a string")
    assert r.type("q") == "string" and r.get("q") == "a string"
    r.delete("q")


def overwrite_by_rename(r: redis.Redis) -> None:
    r.set("text", "a string")
    r.rename("text", "q")
    r.delete("q")


REMOVALS: dict[str, Removal] = {
    "DEL": lambda r: r.delete("q"),
    "UNLINK": lambda r: r.unlink("q"),
    "FLUSHDB SYNC": lambda r: r.execute_command("FLUSHDB", "SYNC"),
    "FLUSHDB ASYNC": lambda r: r.execute_command("FLUSHDB", "ASYNC"),
    "FLUSHALL SYNC": lambda r: r.execute_command("FLUSHALL", "SYNC"),
    "FLUSHALL ASYNC": lambda r: r.execute_command("FLUSHALL", "ASYNC"),
    "EXPIRE": let_it_expire,
    "SET": overwrite,
    "RENAME over it": overwrite_by_rename,
}


@pytest.mark.parametrize("removed_by", REMOVALS)
def test_a_removed_queue_leaves_no_ghost(server: Server, removed_by: str) -> None:
    def scenario(watch: Watch) -> None:
        with watch.at(HOME.database) as r:
            REMOVALS[removed_by](r)
            eventually(lambda: waiting(r) == 0)
        watch.check_not_yet()

    play(server, scenario)


@pytest.mark.parametrize("later_by", [-300, 0, 100])
@pytest.mark.parametrize("removed_by", REMOVALS)
def test_a_queue_is_not_harmed_by_one_that_was_there_before(
    server: Server, removed_by: str, later_by: int
) -> None:
    def scenario(watch: Watch) -> None:
        with watch.at(HOME.database) as r:
            REMOVALS[removed_by](r)
        watch.due += later_by
        watch.add(HOME)
        watch.check_in_time(HOME)

    play(server, scenario)


def test_queues_beside_a_flushed_database_go_on(server: Server) -> None:
    other = Place("q", 9)

    def scenario(watch: Watch) -> None:
        watch.add(other)
        with watch.at(HOME.database) as r:
            r.flushdb()
        watch.check_in_time(other)

    play(server, scenario)


@pytest.mark.parametrize("found", [rename, move], ids=lambda move: move.__name__)
def test_a_moved_queue_is_found_among_many_other_keys(server: Server, found: Move) -> None:
    """In a hundredth of the time, so this takes longer."""
    with server.client(db=HOME.database) as r:
        r.execute_command("DEBUG", "POPULATE", 100_000, "some")
        r.execute_command("DQ.ADD", "q", "a", "x", "DELAY", 10)
        found(r)
        eventually(lambda: r.info("dq")["dq_jobs_ready"] == 1, 60)


def test_many_queues_renamed_at_once_are_all_found(server: Server, r: redis.Redis) -> None:
    """More than are told apart one by one."""
    queues, due = 3_000, now_ms() + 6_000
    pipeline = r.pipeline(transaction=False)
    for n in range(queues):
        pipeline.execute_command("DQ.ADD", f"q{n}", "a", "x", "AT", due)
        pipeline.rename(f"q{n}", f"renamed{n}")
    pipeline.execute()
    eventually(lambda: waiting(r) == queues, (due - now_ms()) / 1_000)
    eventually(lambda: waiting(r) == 0, (due - now_ms()) / 1_000 + LATE_S_MAX)
    assert now_ms() >= due


def test_a_lease_goes_with_its_queue(server: Server, r: redis.Redis) -> None:
    r.execute_command("DQ.ADD", "q", "a", "x", "TTR", 900)
    ((_, _, lease, _),) = r.execute_command("DQ.POP", "q")
    r.rename("q", "renamed")
    eventually(lambda: waiting(r) == 1, 0.8)
    eventually(lambda: waiting(r) == 0, 1 + LATE_S_MAX)
    ((id, _, second_lease, attempt),) = r.execute_command("DQ.POP", "renamed")
    assert (id, attempt) == ("a", 2) and second_lease > lease
    assert r.execute_command("DQ.FINISH", "renamed", "a", lease) == 0
    assert r.execute_command("DQ.FINISH", "renamed", "a", second_lease) == 1


def test_a_new_primary_looks_after_what_moved_while_it_followed(
    fresh_server: Callable[..., Server],
) -> None:
    primary, replica = fresh_server(), fresh_server()
    replica.replicate(primary)
    watch = Watch(primary, due=now_ms() + 1_500)
    watch.add(Place("q"))
    with watch.at(0) as r:
        r.copy("q", "copied")
        r.copy("q", "to-be-moved")
        r.move("to-be-moved", 3)
        r.copy("q", "flushed", destination_db=2)
        r.swapdb(1, 2)
        r.rename("q", "renamed")
        r.swapdb(0, 7)
    with watch.at(1) as r:
        r.flushdb()
    replica.catch_up(primary)
    primary.kill9()
    with replica.client() as there:
        there.execute_command("REPLICAOF", "NO", "ONE")
    watch.server = replica
    watch.check_in_time(Place("copied", 7), Place("renamed", 7), Place("to-be-moved", 3))


def test_keys_that_loaded_in_other_databases_are_looked_after(
    fresh_server: Callable[..., Server],
) -> None:
    """A full sync of a replica that becomes a primary."""
    primary, replica = fresh_server(), fresh_server()
    watch = Watch(primary, due=now_ms() + 1_500)
    places = [Place("q", 0), Place("q", 5), Place("other", 9)]
    for place in places:
        watch.add(place)
    old = Watch(replica, due=now_ms() + 500)
    old.add(Place("gone after the sync"))
    replica.replicate(primary)
    with replica.client() as there:
        there.execute_command("REPLICAOF", "NO", "ONE")
    watch.server = replica
    watch.check_in_time(*places)
