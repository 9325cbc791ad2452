"""Leases: only the latest lease of a job counts, and no number is given twice."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from harness.clock import DAY_MS, HOUR_MS, now_ms
from harness.pipelined import Pipelined
from harness.server import Server
from harness.shown import job
from harness.transcript import Session
from harness.wall_clock import US_PER_S, WallClock, shifted_clock

EXACT_IN_EVERY_CLIENT = 2**53
HOUR_US = HOUR_MS * 1_000


def test_a_stale_lease_does_not_count(session: Session) -> None:
    session.check("""
        > DQ.ADD q b x TTR 50
        "b"
        > DQ.POP q
        [["b", "x", <first>, 1]]
    """)
    session.eventually('> DQ.POP q\n[["b", "x", <second>, 2]]')
    assert session["second"] > session["first"]
    session.check("""
        > DQ.FINISH q b <first>
        (integer) 0
        > DQ.LEN q STATE reserved
        (integer) 1
        > DQ.FINISH q b <second>
        (integer) 1
        > DQ.GET q b
        (nil)
    """)


def test_a_bare_id_is_the_latest_lease(session: Session) -> None:
    session.check("""
        > DQ.ADD q b x
        "b"
        > DQ.POP q TTR 1
        [["b", "x", <first>, 1]]
    """)
    session.eventually('> DQ.POP q\n[["b", "x", <second>, 2]]')
    session.check("""
        > DQ.FINISH q b <first>
        (integer) 0
        > DQ.FINISH q b
        (integer) 1
    """)


def test_leases_grow_in_the_order_in_which_they_are_given(session: Session) -> None:
    leases = []
    for n in range(2_000):
        session.call("DQ.ADD", "q", n, "x")
        ((_, _, lease, _),) = session.call("DQ.POP", "q")
        leases.append(lease)
    assert sorted(set(leases)) == leases
    assert leases[-1] < EXACT_IN_EVERY_CLIENT


def test_leases_outgrow_the_numbers_that_a_millisecond_has(
    server: Server, session: Session
) -> None:
    """The clock gives 2,048 a millisecond, one call hands out 10,000: the next must still be
    higher.
    """
    with closing(Pipelined(server.port)) as pipe:
        pipe.call_all([("DQ.ADD", "q", n, "x") for n in range(10_000)])
    session.check("""
        > MULTI
        OK
        > DQ.POP q COUNT 10000
        QUEUED
        > DEL q
        QUEUED
        > DQ.ADD q a x
        QUEUED
        > DQ.POP q
        QUEUED
    """)
    many, _, _, one = session.call("EXEC")
    leases = [lease for _, _, lease, _ in many + one]
    assert len(leases) == 10_001
    assert sorted(set(leases)) == leases
    assert leases[-1] < EXACT_IN_EVERY_CLIENT


def test_leases_go_on_growing_when_a_queue_is_deleted_and_made_again(session: Session) -> None:
    seen = 0
    for removal in ["DEL q", "UNLINK q", "FLUSHALL", "FLUSHDB", "SET q x", "RENAME q other"]:
        session.check("""
            > DQ.ADD q a x
            "a"
            > DQ.POP q
            [["a", "x", <*>, 1]]
        """)
        lease = job(session, "q", "a")["lease"]
        assert lease > seen, removal
        seen = lease
        session.call(*removal.split())
        session.call("DEL", "q")


def test_a_worker_of_a_deleted_queue_cannot_finish_a_job_of_the_new_one(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <old>, 1]]
        > DEL q
        (integer) 1
        > DQ.ADD q a y
        "a"
        > DQ.POP q
        [["a", "y", <new>, 1]]
        > DQ.FINISH q a <old>
        (integer) 0
        > DQ.FINISH q a <new>
        (integer) 1
    """)


def test_a_queue_deleted_within_a_transaction_gives_no_lease_again(session: Session) -> None:
    session.check("""
        > MULTI
        OK
        > DQ.ADD q a x
        QUEUED
        > DQ.POP q
        QUEUED
        > DEL q
        QUEUED
        > DQ.ADD q a y
        QUEUED
        > DQ.POP q
        QUEUED
        > EXEC
        ["a", [["a", "x", <old>, 1]], 1, "a", [["a", "y", <new>, 1]]]
        > DQ.FINISH q a <old>
        (integer) 0
    """)
    assert session["new"] > session["old"]


def test_a_replaced_and_a_deleted_job_keep_their_numbers_used(session: Session) -> None:
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.POP q
        [["a", "x", <first>, 1]]
        > DQ.ADD q a y REPLACE
        "a"
        > DQ.POP q
        [["a", "y", <second>, 1]]
        > DQ.DEL q a
        (integer) 1
        > DQ.ADD q a z
        "a"
        > DQ.POP q
        [["a", "z", <third>, 1]]
        > DQ.FINISH q a <first> a <second>
        (integer) 0
        > DQ.FINISH q a <third>
        (integer) 1
    """)
    assert session["first"] < session["second"] < session["third"]


def test_a_server_that_starts_again_with_the_same_file_gives_no_lease_again(
    fresh_server: Callable[..., Server],
) -> None:
    """A crash loses the leases that were given since the file was written, and so does the next
    one.
    """
    server = fresh_server()
    with closing(server.session()) as session:
        session.check("""
            > DQ.ADD q a x
            "a"
            > DQ.ADD q b x
            "b"
            > DQ.POP q
            [["a", "x", <first>, 1]]
            > SAVE
            OK
        """)
        leases = [session["first"]]
    for _ in range(3):
        server.kill9()
        server.start()
        with closing(server.session()) as session:
            session.check('> DQ.POP q\n[["b", "x", <lost>, 1]]')
            leases.append(session["lost"])
            session.check("> DQ.FINISH q a\n(integer) 1")
    assert sorted(set(leases)) == leases
    assert leases[-1] < EXACT_IN_EVERY_CLIENT


def test_a_server_that_lost_its_leases_and_whose_clock_was_set_back_gives_none_again(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    """The file knows of no lease at all."""
    clock = WallClock(tmp_path, "server")
    clock.set(60 * US_PER_S)
    server = fresh_server(environment=clock.environment)
    with closing(server.session()) as session:
        session.check("""
            > DQ.ADD q a x
            "a"
            > SAVE
            OK
            > DQ.POP q
            [["a", "x", <lost>, 1]]
        """)
        lost = session["lost"]
    server.kill9()
    clock.set(0)
    server.start()
    with closing(server.session()) as session:
        session.check('> DQ.POP q\n[["a", "x", <next>, 1]]')
        assert session["next"] > lost


def test_fast_restarts_give_no_lease_of_a_deleted_queue_again(
    fresh_server: Callable[..., Server],
) -> None:
    server = fresh_server()
    leases = []
    for is_deleted in [False, False, False, False, True, False]:
        client = server.client()
        client.execute_command("DQ.ADD", "q", "*", "x")
        leases.append(client.execute_command("DQ.POP", "q")[0][2])
        if is_deleted:
            client.delete("q")
        client.save()
        server.kill9()
        server.start()
    assert sorted(set(leases)) == leases


def test_a_pop_that_only_passes_over_late_runs_gives_no_lease_again(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    """A POP that only passes over what is too late gives no lease; those before it bind the queue
    still.
    """
    clock = WallClock(tmp_path, "server")
    clock.set(30 * US_PER_S)
    server = fresh_server(environment=clock.environment)
    with closing(server.session()) as session:
        session.check("""
            > DQ.ADD q a x
            "a"
            > DQ.POP q
            [["a", "x", <first>, 1]]
            > DEL q
            (integer) 1
            > DQ.ADD q s x EVERY 60000 LATE 1
            "s"
        """)
        clock.set(1_000 * US_PER_S)
        session.check("> DQ.POP q\n(nil)")
        clock.set(-600 * US_PER_S)
        session.check("""
            > DQ.ADD q a x
            "a"
            > DQ.POP q
            [["a", "x", <next>, 1]]
        """)
        assert session["next"] > session["first"]


def test_leases_of_a_queue_that_moves_to_and_fro_stay_within_the_margin(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    """Between servers whose clocks are a second apart."""
    servers = [fresh_server(environment=shifted_clock(tmp_path, 1)), fresh_server()]
    with closing(servers[0].session()) as session:
        for n in range(40):
            session.call("DQ.ADD", "q", n, "x")
    leases = []
    for n in range(40):
        here, there = servers[n % 2], servers[(n + 1) % 2]
        client = here.client()
        leases.append(client.execute_command("DQ.POP", "q")[0][2])
        client.execute_command("MIGRATE", "127.0.0.1", there.port, "q", 0, 5_000)
    assert sorted(set(leases)) == leases
    assert leases[-1] < (now_ms() + HOUR_MS + 60_000) << 11


def test_a_payload_from_far_ahead_takes_nothing_from_other_queues(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    """A client that may RESTORE one key can't make the leases of another key smaller."""
    almost_a_year = 366 * DAY_MS // 1_000 - 1
    from_afar = fresh_server(environment=shifted_clock(tmp_path, almost_a_year)).client()
    from_afar.execute_command("DQ.ADD", "far", "a", "x")
    from_afar.execute_command("DQ.POP", "far")
    server = fresh_server()
    with closing(server.session()) as session:
        # So its leases begin with the margin.
        session.call("DEBUG", "RELOAD")
        leases = []
        for n in range(3):
            session.call("DQ.ADD", "q", "a", "x")
            leases.append(session.call("DQ.POP", "q")[0][2])
            session.call("DEL", "q")
            if n == 0:
                server.client().restore("far", 0, from_afar.dump("far"))
    assert sorted(set(leases)) == leases


def test_an_entry_of_the_log_with_a_time_far_ahead_binds_its_own_queue_only(
    fresh_server: Callable[..., Server],
) -> None:
    """As the AOF of a server had it whose clock was wrong by decades."""
    server = fresh_server("appendonly yes")
    with closing(server.session()) as session:
        session.check("""
            > DQ.ADD one a x
            "a"
            > DQ.ADD other a x
            "a"
        """)
    server.stop()
    (file,) = (server.directory / "appendonlydir").glob("*.incr.aof")
    words = [b"DQ.APPLY", b"one", b"4398046511102", b"check=0", b"DQ.POP"]
    entry = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    with file.open("ab") as log:
        log.write(b"*%d\r\n%s" % (len(words), entry))
    server.start()
    with closing(server.session()) as session:
        session.check('> DQ.POP other\n[["a", "x", <lease>, 1]]')
        assert session["lease"] < (now_ms() + 2 * HOUR_MS) << 11
