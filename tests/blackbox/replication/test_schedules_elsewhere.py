"""A schedule is the same on replicas, in files and after a failover. Readers of the log need no
calendar.
"""

from collections.abc import Callable

import redis

from harness.clock import DAY_MS, HOUR_MS, now_ms
from harness.elsewhere import FILES, check_copies_hold, check_files_hold
from harness.queues import job, queues_of
from harness.resp import commands_in
from harness.server import Server, eventually

StartServer = Callable[..., Server]
# What a system says of time zones, where it says nothing right.
NO_ZONES = {"TZ": "Nowhere/Nowhen", "TZDIR": "/nonexistent"}


def make_schedules(r: redis.Redis) -> None:
    """Some that wait, one that is being worked on, one that missed some, one that failed, one that
    ended.
    """

    def add(id: str, *words: str | int) -> None:
        assert r.execute_command("DQ.ADD", "q", id, "x", *words) == id

    add("hourly", "EVERY", HOUR_MS, "JITTER", 5_000)
    add(
        "nightly", "CRON", "30 2,14 * * *", "TZ", "Australia/Lord_Howe", "MISFIRE", "ALL", "RUNS", 5
    )
    add("workdays", "CRON", "0 9 * * MON-FRI", "UNTIL", now_ms() + 40 * DAY_MS)
    add("late", "EVERY", DAY_MS, "AT", now_ms() - 10 * DAY_MS - 500, "PRIORITY", 1)
    add("begun", "CRON", "0 0 1 1 *", "TZ", "America/Santiago", "TTR", HOUR_MS, "PRIORITY", 1)
    add("failed", "CRON", "0 0 1 1 *", "ATTEMPTS", 1, "PRIORITY", 1)
    add("ended", "CRON", "@yearly", "PRIORITY", 1)
    assert r.execute_command("DQ.KICKJOB", "q", "begun", "failed", "ended") == 3
    taken = {one[0]: one[2] for one in r.execute_command("DQ.POP", "q", "COUNT", 4, "TTR", HOUR_MS)}
    assert sorted(taken) == ["begun", "ended", "failed", "late"]
    assert r.execute_command("DQ.FINISH", "q", "late", taken["late"]) == 1
    assert r.execute_command("DQ.RELEASE", "q", "failed", taken["failed"], "REASON", "rain") == 1
    assert r.execute_command("DQ.BURY", "q", "ended", taken["ended"]) == 1
    add("ensured", "EVERY", HOUR_MS, "ENSURE")
    add("ensured", "CRON", "0 0 1 1 *", "TZ", "Africa/Cairo", "ENSURE")


def shown(server: Server) -> dict[str, object]:
    with server.client() as r:
        ids = sorted(r.execute_command("DQ.SCAN", "q", 0, "COUNT", 100)[1])
        return {id: job(r, "q", id) for id in ids}


def test_a_replica_without_time_zones_holds_the_same_schedules(fresh_server: StartServer) -> None:
    primary = fresh_server("appendonly yes")
    replica = fresh_server("appendonly yes", environment=NO_ZONES)
    replica.replicate(primary)
    with primary.client() as r:
        make_schedules(r)
    replica.catch_up(primary)
    assert queues_of(replica) == queues_of(primary)
    assert shown(replica) == shown(primary)
    with replica.client() as there:
        assert there.info("dq")["dq_diverged"] == 0


def test_the_log_has_the_cron_times_that_were_asked_for_and_no_others(
    fresh_server: StartServer,
) -> None:
    server = fresh_server("appendonly yes")
    with server.client() as r:
        r.execute_command("DQ.ADD", "q", "every", "x", "EVERY", HOUR_MS, "DELAY", 0)
        r.execute_command("DQ.ADD", "q", "cron", "x", "CRON", "0 0 1 1 *", "TZ", "Europe/Paris")
        due = job(r, "q", "cron")["due"]
        r.execute_command("DQ.POP", "q", "COUNT", 5)
        r.execute_command("DQ.KICKJOB", "q", "cron")
        r.execute_command("DQ.POP", "q")
        # The one behind it was decided when it was kicked.
        r.execute_command("DQ.FINISH", "q", "cron", "*")
    server.stop()
    (file,) = (server.directory / "appendonlydir").glob("*.incr.aof")
    told = [words for words in commands_in(file.read_bytes()) if b",next=" in b" ".join(words)]
    assert len(told) == 1
    assert told[0][3].endswith(b",next=%d" % due)


def test_runs_that_are_passed_over_are_so_on_a_replica_and_in_the_aof(
    fresh_server: StartServer,
) -> None:
    """A POP that finds nothing but runs that are too old has changed the queue: also one that then
    waits.
    """
    primary = fresh_server("appendonly yes", "appendfsync always")
    replica = fresh_server(environment=NO_ZONES)
    replica.replicate(primary)
    with primary.client() as r:
        for n in range(40):
            words = ["EVERY", 1_000] if n % 2 else ["CRON", "* * * * * *", "TZ", "Europe/Paris"]
            r.execute_command(
                "DQ.ADD", "q", n, "x", *words, "LATE", 1, "MISFIRE", ("ONE", "ALL")[n // 2 % 2]
            )
        r.execute_command("DQ.PAUSE", "q")
        eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "ready") == 40)
        start = now_ms()
        eventually(lambda: now_ms() > start + 5)
        r.execute_command("DQ.RESUME", "q")
        popped = [
            r.execute_command("DQ.POP", "q", "COUNT", 50),
            r.execute_command("DQ.MPOP", 2, "p", "q"),
        ]
        # Or it is the next second already, for some.
        assert popped == [None, None] or now_ms() > start + 500
        assert sum(job(r, "q", n)["missed"] for n in range(40)) >= 40
        r.execute_command("DQ.POP", "q", "BLOCK", 1)
        r.execute_command("DQ.PAUSE", "q")
        replica.catch_up(primary)
        assert queues_of(replica) == queues_of(primary)
        with replica.client() as there:
            assert there.info("dq")["dq_diverged"] == 0
            assert all(job(there, "q", n)["missed"] >= 1 for n in range(40))
    before = queues_of(primary)
    primary.kill9()
    primary.start()
    assert queues_of(primary) == before
    with primary.client() as r:
        assert r.info("dq")["dq_diverged"] == 0


def test_a_waiting_consumer_is_served_past_more_late_runs_than_one_pop_passes_over(
    fresh_server: StartServer,
) -> None:
    server, replica = fresh_server("appendonly yes"), fresh_server()
    replica.replicate(server)
    with server.client() as r, server.client() as waiter:
        add = r.pipeline(transaction=False)
        for n in range(2_500):
            add.execute_command("DQ.ADD", "q", n, "x", "EVERY", HOUR_MS, "DELAY", 0, "LATE", 1)
        r.execute_command("DQ.PAUSE", "q")
        add.execute()
        r.execute_command("DQ.ADD", "q", "last", "x")
        start = now_ms()
        eventually(lambda: now_ms() > start + 5)
        r.execute_command("DQ.RESUME", "q")
        # One call passes over so many, and says nothing; whoever waits gets what is behind all of
        # them.
        assert r.execute_command("DQ.POP", "q") is None
        assert r.execute_command("DQ.LEN", "q", "STATE", "ready") == 1_501
        taken = waiter.execute_command("DQ.POP", "q", "BLOCK", 20_000)
        assert taken[0][0] == "last"
        assert r.execute_command("DQ.LEN", "q", "STATE", "delayed") == 2_500
        replica.catch_up(server)
        assert queues_of(replica) == queues_of(server)


def test_the_log_of_each_cron_delivery_tells_when_the_job_comes_next(
    fresh_server: StartServer,
) -> None:
    primary, replica = fresh_server("appendonly yes"), fresh_server(environment=NO_ZONES)
    replica.replicate(primary)
    with primary.client() as r:
        for n in range(20):
            r.execute_command(
                "DQ.ADD", "q", n, "x", "CRON", "* * * * * *", "MISFIRE", ("ONE", "ALL")[n % 2]
            )
        for _ in range(2):
            eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "ready") == 20)
            for id, _, lease, _ in r.execute_command("DQ.POP", "q", "COUNT", 20):
                assert r.execute_command("DQ.FINISH", "q", id, lease) == 1
        replica.catch_up(primary)
        assert queues_of(replica) == queues_of(primary)
        r.execute_command("DQ.PAUSE", "q")
        replica.catch_up(primary)
        digest = queues_of(primary)
    with replica.client() as there:
        assert there.info("dq")["dq_diverged"] == 0
    primary.restart()
    assert queues_of(primary) == digest


def test_schedules_survive_restart_rewrite_dump_and_copy(fresh_server: StartServer) -> None:
    for config in FILES:
        server = fresh_server(*config, environment=NO_ZONES)
        with server.client() as r:
            make_schedules(r)
        check_files_hold(server, config, shown)
        check_copies_hold(server, "q")


def test_a_new_primary_goes_on_with_schedules_where_the_old_one_was(
    fresh_server: StartServer,
) -> None:
    primary, replica = fresh_server(), fresh_server(environment=NO_ZONES)
    replica.replicate(primary)
    with primary.client() as r:
        r.execute_command("DQ.ADD", "q", "each", "x", "EVERY", 200, "DELAY", 0)
        r.execute_command("DQ.ADD", "q", "cron", "x", "CRON", "* * * * * *", "TZ", "Asia/Kathmandu")
        (each,) = r.execute_command("DQ.POP", "q", "WITHDUE")
        decided = job(r, "q", "each")["next"]
        comes = job(r, "q", "cron")["due"]
    replica.catch_up(primary)
    primary.kill9()
    with replica.client() as r:
        r.replicaof("NO", "ONE")
        assert r.execute_command("DQ.FINISH", "q", "each", each[2]) == 1
        dues = {}
        while len(dues) < 2:
            ((id, _, lease, _, due),) = r.execute_command("DQ.POP", "q", "BLOCK", 20_000, "WITHDUE")
            dues.setdefault(id, due)
            r.execute_command("DQ.FINISH", "q", id, lease)
        assert dues == {"each": decided, "cron": comes}
        # And by its own calendar.
        assert job(r, "q", "cron")["due"] == comes + 1_000 or job(r, "q", "cron")["due"] > comes
