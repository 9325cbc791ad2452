"""A sink: what is due goes to a stream, as if a client with NOACK waited for ever."""

import itertools
import time
from collections.abc import Callable

import pytest
import redis

from harness.clock import DAY_MS, HOUR_MS, now_ms
from harness.pipelined import Pipelined
from harness.queues import info, job
from harness.server import Server, eventually
from harness.transcript import Session

StartServer = Callable[..., Server]
Entry = dict[str, str]


def alter(r: redis.Redis, *words: str | int, key: str = "q") -> None:
    assert r.execute_command("DQ.ALTER", key, *words)


def add(r: redis.Redis, *words: str | int | bytes, key: str = "q") -> None:
    assert r.execute_command("DQ.ADD", key, *words)


def entries(r: redis.Redis, stream: str = "s") -> list[Entry]:
    return [fields for _, fields in r.xrange(stream)]


def ids(r: redis.Redis, stream: str = "s") -> list[str]:
    return [entry["id"] for entry in entries(r, stream)]


def gets(r: redis.Redis, expected: list[str], stream: str = "s") -> None:
    """The stream gets these jobs, in this order, and no other."""
    __tracebackhide__ = True
    eventually(lambda: r.xlen(stream) >= len(expected))
    assert ids(r, stream) == expected


def settles(r: redis.Redis) -> None:
    """The timer has come for all that was ready: a job that was added later has left its queue."""
    alter(r, "SINK", "beside:stream", key="beside")
    for number in range(1, 3):
        add(r, "*", "x", key="beside")
        eventually(lambda number=number: r.xlen("beside:stream") == number)
    r.delete("beside", "beside:stream")


def test_a_job_leaves_for_the_stream_when_it_is_due(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    begun = now_ms()
    add(r, "now", "hello")
    add(r, "later", "body", "DELAY", 50)
    add(r, "at", "", "AT", begun + 60)
    gets(r, ["now", "later", "at"])
    for entry_id, fields in r.xrange("s"):
        due = int(fields["due"])
        assert int(entry_id.split("-")[0]) >= due, "never early"
    first, second, third = entries(r)
    assert first == {"id": "now", "due": first["due"], "body": "hello"}
    assert begun <= int(first["due"]) <= now_ms()
    assert (second["body"], third["body"], int(third["due"])) == ("body", "", begun + 60)
    assert r.execute_command("DQ.LEN", "q") == 0
    told = info(r, "q")
    assert (told["total-popped"], told["total-finished"]) == (3, 3)


def test_names_and_bodies_are_any_bytes(server: Server) -> None:
    with server.client(decode_responses=False) as r:
        stream, id, body = b"\xff s\x00", b"\x00 i\xfe", bytes(range(256))
        r.execute_command("DQ.ALTER", b"q", "SINK", stream)
        r.execute_command("DQ.ADD", b"q", id, body, "GROUP", b"\x00g")
        ((_, fields),) = eventually(lambda: r.xrange(stream))
        due = fields.pop(b"due")
        assert due.isdigit()
        assert fields == {b"id": id, b"body": body, b"group": b"\x00g"}


def fill(r: redis.Redis, key: str) -> None:
    """Jobs of three priorities, of groups and of none, of which some are due at the same time."""
    due = now_ms() - 50
    for n in range(60):
        group = ("GROUP", f"g{n % 4}") if n % 5 else ()
        add(r, n, f"body {n}", "PRIORITY", n % 3, "AT", due + n // 10, *group, key=key)


def test_jobs_go_to_the_stream_in_the_order_of_a_pop(r: redis.Redis) -> None:
    r.execute_command("DQ.PAUSE", "q")
    fill(r, "q")
    assert r.copy("q", "other")
    alter(r, "SINK", "s")
    r.execute_command("DQ.RESUME", "other")
    expected = r.execute_command("DQ.POP", "other", "COUNT", 100, "NOACK")
    r.execute_command("DQ.RESUME", "q")
    gets(r, [id for id, *_ in expected])
    assert [entry["body"] for entry in entries(r)] == [body for _, body, *_ in expected]
    for entry in entries(r):
        n = int(entry["id"])
        assert entry.get("group") == (f"g{n % 4}" if n % 5 else None)


def test_a_paused_queue_and_a_paused_group_keep_their_jobs(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    r.execute_command("DQ.PAUSE", "q")
    add(r, "a", "x")
    add(r, "b", "x", "GROUP", "g")
    settles(r)
    assert r.xlen("s") == 0
    r.execute_command("DQ.PAUSE", "q", "GROUP", "g")
    r.execute_command("DQ.RESUME", "q")
    gets(r, ["a"])
    settles(r)
    assert job(r, "q", "b")["state"] == "ready"
    r.execute_command("DQ.RESUME", "q", "GROUP", "g")
    gets(r, ["a", "b"])
    r.execute_command("DQ.PAUSE", "q", "FOR", 60)
    paused_until = info(r, "q")["paused-until"]
    add(r, "c", "x")
    gets(r, ["a", "b", "c"])
    entry_id, _ = r.xrange("s")[-1]
    assert int(entry_id.split("-")[0]) >= paused_until


def test_rates_bound_what_goes_to_the_stream(r: redis.Redis) -> None:
    alter(r, "SINK", "s", "RATE", 2, DAY_MS, "BURST", 2)
    for n in range(5):
        add(r, n, "x")
    gets(r, ["0", "1"])
    settles(r)
    assert r.xlen("s") == 2
    assert info(r, "q")["rate-left"] == 0
    alter(r, "RATE", 0, 0)
    gets(r, ["0", "1", "2", "3", "4"])
    # It goes on by itself when the rate lets it.
    alter(r, "RATE", 1, 40)
    for n in "567":
        add(r, n, "x")
    gets(r, list("01234567"))


def test_a_rate_of_groups_bounds_each_of_them(r: redis.Redis) -> None:
    alter(r, "SINK", "s", "GROUPRATE", 1, DAY_MS)
    for n in range(6):
        add(r, n, "x", "GROUP", "even" if n % 2 == 0 else "odd")
    gets(r, ["0", "1"])
    settles(r)
    assert r.xlen("s") == 2


def test_concurrency_does_not_bound_a_sink(r: redis.Redis) -> None:
    alter(r, "CONCURRENCY", 1)
    add(r, "held", "x", "TTR", HOUR_MS)
    assert r.execute_command("DQ.POP", "q")
    alter(r, "SINK", "s")
    add(r, "free", "x")
    gets(r, ["free"])


def test_clients_that_wait_are_served_before_the_sink(server: Server, r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    client = Pipelined(server.port)
    client.send(("DQ.POP", "q", "BLOCK", 0, "COUNT", 2))
    eventually(lambda: info(r, "q")["waiting-consumers"] == 1)
    with r.pipeline() as transaction:
        for id in "abc":
            transaction.execute_command("DQ.ADD", "q", id, "x", "TTR", HOUR_MS)
        transaction.execute()
    assert [id for id, *_ in client.receive()] == [b"a", b"b"]
    gets(r, ["c"])
    client.close()
    # A lease that ends: the job comes again, and no client waits.
    assert r.execute_command("DQ.TOUCH", "q", "a", "*", "TTR", 1) == 1
    gets(r, ["c", "a"])


def test_kept_jobs_are_done_and_their_ids_taken(session: Session, r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    add(r, "a", "x", "KEEP", HOUR_MS)
    gets(r, ["a"])
    session.check("""
        > DQ.LEN q STATE done
        (integer) 1
        > DQ.ADD q a x
        (error) EXISTS id is taken in this queue
        > DQ.RESULT q a
        ["done", (nil)]
    """)


def test_each_run_of_a_schedule_goes_to_the_stream(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    add(r, "tick", "x", "EVERY", 30, "RUNS", 4)
    gets(r, ["tick"] * 4)
    due = [int(entry["due"]) for entry in entries(r)]
    # The time for which a run is called.
    assert all((later - earlier) % 30 == 0 for earlier, later in itertools.pairwise(due))
    assert due == sorted(set(due))
    eventually(lambda: r.execute_command("DQ.LEN", "q") == 0)


def test_runs_and_jobs_that_are_too_late_do_not_go_to_the_stream(r: redis.Redis) -> None:
    r.execute_command("DQ.PAUSE", "q")
    alter(r, "SINK", "s")
    add(r, "tick", "x", "EVERY", 200, "LATE", 20, "RUNS", 3)
    add(r, "late", "x", "LATE", 20)
    add(r, "dead", "x", "TTL", 20)
    eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "dead") == 2)
    first_run = job(r, "q", "tick")["due"]
    eventually(lambda: now_ms() > first_run + 20)
    r.execute_command("DQ.RESUME", "q")
    eventually(lambda: r.xlen("s") >= 1)
    eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "dead") == 2)
    assert set(ids(r)) == {"tick"}
    assert info(r, "q")["total-missed"] >= 1
    # A dead job that is kicked is due again.
    assert r.execute_command("DQ.KICKJOB", "q", "late") == 1
    eventually(lambda: "late" in ids(r))


def test_without_a_sink_jobs_wait_for_clients_again(r: redis.Redis) -> None:
    alter(r, "SINK", "s", "MAXLEN", 7)
    told = info(r, "q")
    assert (told["sink"], told["sink-maxlen"], told["sink-error"]) == ("s", 7, None)
    alter(r, "NOSINK")
    told = info(r, "q")
    assert (told["sink"], told["sink-maxlen"], told["sink-error"]) == (None, 0, None)
    add(r, "a", "x")
    settles(r)
    assert job(r, "q", "a")["state"] == "ready"
    # What is ready already goes to the stream that is named then.
    alter(r, "SINK", "t")
    gets(r, ["a"], "t")
    assert r.exists("s") == 0


def test_a_stream_is_trimmed_to_about_as_many_entries(r: redis.Redis) -> None:
    alter(r, "SINK", "s", "MAXLEN", 100)
    r.config_set("stream-node-max-entries", 10)
    try:
        for n in range(1_000):
            add(r, n, "x")
        eventually(lambda: ids(r)[-1] == "999")
        assert 100 <= r.xlen("s") <= 110
        alter(r, "SINK", "s", "MAXLEN", 0)
        for n in range(1_000, 1_500):
            add(r, n, "x")
        eventually(lambda: ids(r)[-1] == "1499")
        assert r.xlen("s") >= 600
    finally:
        r.config_set("stream-node-max-entries", 100)


def test_readers_of_the_stream_that_wait_are_woken(server: Server, r: redis.Redis) -> None:
    r.xgroup_create("s", "workers", mkstream=True)
    alter(r, "SINK", "s")
    group, plain = Pipelined(server.port), Pipelined(server.port)
    group.send(("XREADGROUP", "GROUP", "workers", "one", "BLOCK", 0, "STREAMS", "s", ">"))
    plain.send(("XREAD", "BLOCK", 0, "STREAMS", "s", "$"))
    eventually(lambda: r.info("clients")["blocked_clients"] == 2)
    add(r, "a", "hello", "DELAY", 20)
    for reader in group, plain:
        ((name, ((_, fields),)),) = reader.receive()
        assert (name, fields[0], fields[1], fields[4], fields[5]) == (
            b"s",
            b"id",
            b"a",
            b"body",
            b"hello",
        )
        reader.close()


def test_watchers_are_told_of_the_stream_and_of_the_queue(r: redis.Redis) -> None:
    r.config_set("notify-keyspace-events", "KEA")
    watcher = r.pubsub(ignore_subscribe_messages=True)
    watcher.psubscribe("__keyevent@0__:*")
    watcher.get_message(timeout=1)
    alter(r, "SINK", "s")
    add(r, "a", "x")
    gets(r, ["a"])
    told: list[str] = []

    def hears() -> bool:
        message = watcher.get_message(timeout=0.05)
        if message:
            told.append(message["channel"].split(":", 1)[1] + " " + message["data"])
        return "dq.finished q" in told

    eventually(hears)
    assert told.index("xadd s") < told.index("dq.finished q")
    watcher.close()
    r.config_set("notify-keyspace-events", "")


def test_jobs_that_left_for_a_sink_are_counted(r: redis.Redis) -> None:
    before = r.info("dq")
    alter(r, "SINK", "s")
    for n in range(5):
        add(r, n, "x")
    gets(r, list("01234"))
    after = r.info("dq")
    for counter in "sunk", "popped", "finished":
        assert after[f"dq_jobs_{counter}"] - before[f"dq_jobs_{counter}"] == 5, counter


def test_a_key_of_another_type_keeps_the_jobs_until_it_is_gone(
    server: Server, r: redis.Redis
) -> None:
    r.set("s", "a string")
    alter(r, "SINK", "s")
    length = len(server.log())
    for id in "abc":
        add(r, id, "x")
    error = eventually(lambda: info(r, "q")["sink-error"])
    assert error == "WRONGTYPE Operation against a key holding the wrong kind of value"
    assert r.execute_command("DQ.LEN", "q", "STATE", "ready") == 3
    assert info(r, "q")["total-popped"] == 0
    (line,) = [line for line in server.log(length).splitlines() if "WRONGTYPE" in line]
    assert "queue 'q'" in line
    assert "stream 's'" in line
    # Nothing is said to the queue: it goes on by itself.
    r.delete("s")
    gets(r, ["a", "b", "c"])
    assert info(r, "q")["sink-error"] is None


def test_a_client_takes_what_a_sink_can_not(r: redis.Redis) -> None:
    r.set("s", "a string")
    alter(r, "SINK", "s")
    add(r, "a", "x")
    eventually(lambda: info(r, "q")["sink-error"])
    assert [id for id, *_ in r.execute_command("DQ.POP", "q")] == ["a"]
    # Nothing stays that would leave. It stayed an error until the next job had left.
    assert info(r, "q")["sink-error"] is None
    r.delete("s")
    add(r, "b", "x")
    gets(r, ["b"])


@pytest.mark.parametrize("change", [("SINK", "t"), ("NOSINK",)], ids=["another", "none"])
def test_an_error_is_that_of_the_present_stream(r: redis.Redis, change: tuple[str, ...]) -> None:
    r.set("s", "a string")
    alter(r, "SINK", "s")
    add(r, "a", "x")
    eventually(lambda: info(r, "q")["sink-error"])
    # The other stream isn't tried while the queue is paused.
    r.execute_command("DQ.PAUSE", "q")
    assert info(r, "q")["sink-error"] is None
    alter(r, *change)
    assert info(r, "q")["sink-error"] is None


def test_no_entry_s_id_is_below_its_due_time(server: Server, r: redis.Redis) -> None:
    """XADD takes the time at which the turn began, on Redis 8 and Valkey. Here that is some
    milliseconds ago, as commands before the timer take that long.
    """
    alter(r, "SINK", "s")
    begun = now_ms() + 200
    for n in range(300):
        add(r, n, "x", "AT", begun + n)
    with server.client() as slow:
        while r.xlen("s") < 300:
            slow.execute_command("DEBUG", "SLEEP", "0.004")
    stamps = [(int(id.split("-")[0]), int(fields["due"])) for id, fields in r.xrange("s")]
    assert [(id, due) for id, due in stamps if id < due] == []
    assert stamps == sorted(stamps)


def test_a_stream_whose_last_id_is_ahead_goes_on_behind_it(r: redis.Redis) -> None:
    ahead = now_ms() + HOUR_MS
    r.xadd("s", {"f": "v"}, id=f"{ahead}-7")
    alter(r, "SINK", "s")
    for n in range(3):
        add(r, n, "x")
    eventually(lambda: r.xlen("s") == 4)
    assert [id for id, _ in r.xrange("s")] == [f"{ahead}-{n}" for n in range(7, 11)]
    assert info(r, "q")["sink-error"] is None


def test_without_memory_jobs_stay_until_there_is_some(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    add(r, "a", "x" * 1_000, "DELAY", 100)
    r.config_set("maxmemory", 1)
    try:
        error = eventually(lambda: info(r, "q")["sink-error"])
        assert error == "OOM command not allowed when used memory > 'maxmemory'."
        assert r.xlen("s") == 0
        assert job(r, "q", "a")["state"] == "ready"
    finally:
        r.config_set("maxmemory", 0)
    gets(r, ["a"])


def test_with_too_few_replicas_jobs_stay_until_there_are_enough(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    add(r, "a", "x", "DELAY", 50)
    r.config_set("min-replicas-to-write", 1)
    try:
        error = eventually(lambda: info(r, "q")["sink-error"])
        assert error == "NOREPLICAS Not enough good replicas to write."
        assert r.xlen("s") == 0
    finally:
        r.config_set("min-replicas-to-write", 0)
    gets(r, ["a"])


def test_a_stream_that_has_had_all_ids_there_are_keeps_the_jobs(r: redis.Redis) -> None:
    last = 2**64 - 1
    r.xadd("s", {"f": "v"}, id=f"{last}-{last - 1}")
    alter(r, "SINK", "s")
    add(r, "a", "x")
    add(r, "b", "x")
    error = eventually(lambda: info(r, "q")["sink-error"])
    assert error.startswith("ERR The stream has exhausted the last possible ID")
    assert [fields.get("id") for _, fields in r.xrange("s")] == [None, "a"]
    assert r.execute_command("DQ.LEN", "q") == 1
    r.delete("s")
    gets(r, ["b"])


def test_nothing_is_poured_inside_a_transaction_or_a_script(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    with r.pipeline() as transaction:
        transaction.execute_command("DQ.ADD", "q", "a", "x")
        transaction.xlen("s")
        transaction.execute_command("DQ.LEN", "q")
        assert transaction.execute()[1:] == [0, 1]
    gets(r, ["a"])
    script = """
        redis.call('DQ.ADD', KEYS[1], 'b', 'x')
        return redis.call('XLEN', KEYS[2])
    """
    assert r.eval(script, 2, "q", "s") == 1
    gets(r, ["a", "b"])


def test_a_transaction_that_watches_the_stream_is_not_carried_out(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    with r.pipeline() as transaction:
        transaction.watch("s")
        add(r, "a", "x")
        gets(r, ["a"])
        transaction.multi()
        transaction.ping()
        with pytest.raises(redis.WatchError):
            transaction.execute()


def test_a_renamed_queue_takes_its_sink_along(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    r.set("s", "in the way")
    add(r, "a", "x")
    add(r, "b", "x", "DELAY", 300)
    eventually(lambda: info(r, "q")["sink-error"])
    r.rename("q", "other")
    r.delete("s")
    # Nobody touches the queue at its new key.
    gets(r, ["a"])
    gets(r, ["a", "b"])


def test_a_renamed_stream_is_left_behind(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    add(r, "a", "x")
    gets(r, ["a"])
    r.rename("s", "old")
    add(r, "b", "x")
    gets(r, ["b"])
    assert ids(r, "old") == ["a"]
    r.delete("s")
    add(r, "c", "x")
    gets(r, ["c"])


def test_a_queue_that_is_renamed_to_its_own_stream_keeps_its_jobs(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    r.execute_command("DQ.PAUSE", "q")
    add(r, "a", "x")
    r.rename("q", "s")
    r.execute_command("DQ.RESUME", "s")
    assert eventually(lambda: info(r, "s")["sink-error"]).startswith("WRONGTYPE")
    r.rename("s", "q")
    gets(r, ["a"])


def test_copies_have_the_sink_too(server: Server, r: redis.Redis) -> None:
    alter(r, "SINK", "s", "MAXLEN", 500)
    r.execute_command("DQ.PAUSE", "q")
    add(r, "a", "x")
    with server.client(decode_responses=False) as binary:
        payload = binary.dump("q")
        assert binary.restore("restored", 0, payload) == b"OK"
    assert r.copy("q", "copied")
    for key in "copied", "restored":
        told = info(r, key)
        assert (told["sink"], told["sink-maxlen"]) == ("s", 500)
        r.execute_command("DQ.RESUME", key)
    gets(r, ["a", "a"])
    # A copy whose jobs are ready is poured though nobody touches it.
    r.execute_command("DQ.RESUME", "q")
    gets(r, ["a"] * 3)
    r.set("blocked", "x")
    alter(r, "SINK", "blocked")
    add(r, "b", "x")
    eventually(lambda: info(r, "q")["sink-error"])
    assert r.copy("q", "later")
    r.delete("blocked")
    gets(r, ["b", "b"], "blocked")


def test_the_stream_is_in_the_database_of_the_queue(server: Server, r: redis.Redis) -> None:
    with server.client(db=3) as other:
        alter(other, "SINK", "s")
        add(other, "a", "x")
        gets(other, ["a"])
        assert r.exists("s") == 0
        other.execute_command("DQ.PAUSE", "q")
        add(other, "b", "x")
        assert other.move("q", 0)
        r.execute_command("DQ.RESUME", "q")
        gets(r, ["b"])
        add(r, "c", "x", "DELAY", 100)
        r.swapdb(0, 3)
        gets(other, ["b", "c"])
        assert ids(r) == ["a"]


def test_a_sink_of_a_deleted_queue_is_gone(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    add(r, "a", "x", "DELAY", 50)
    r.delete("q")
    add(r, "a", "x")
    assert info(r, "q")["sink"] is None
    settles(r)
    assert r.xlen("s") == 0


def test_a_body_of_sixteen_mebibytes_goes_to_the_stream(r: redis.Redis) -> None:
    r.config_set("dq.max-body-bytes", 16 << 20)
    alter(r, "SINK", "s")
    body = "x" * (16 << 20)
    add(r, "large", body)
    add(r, "small", "x")
    eventually(lambda: r.xlen("s") == 2, within_s=20)
    assert entries(r)[0] == {"id": "large", "due": entries(r)[0]["due"], "body": body}


def test_a_client_that_pauses_writes_holds_the_sink_back(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    add(r, "a", "x", "DELAY", 30)
    r.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
    eventually(lambda: r.execute_command("DQ.LEN", "q", "STATE", "ready") == 1)
    time.sleep(0.05)
    assert r.xlen("s") == 0
    r.execute_command("CLIENT", "UNPAUSE")
    gets(r, ["a"])


def test_the_stream_is_a_key_of_the_command(r: redis.Redis) -> None:
    def keys(*words: str) -> list[str]:
        return r.execute_command("COMMAND GETKEYS", "DQ.ALTER", *words)

    assert keys("q", "TTR", "5", "SINK", "s", "MAXLEN", "9") == ["q", "s"]
    assert keys("q", "sink", "SINK", "KEEP", "5") == ["q", "SINK"]
    for words in ("q", "NOSINK"), ("q", "TTR", "5"), ("q", "SINK"):
        assert keys(*words) == ["q"], words
    flags = r.execute_command("COMMAND GETKEYSANDFLAGS", "DQ.ALTER", "q", "SINK", "s")
    assert [(key, set(of)) for key, of in flags] == [
        ("q", {"RW", "update"}),
        ("s", {"RW", "update"}),
    ]


def test_a_user_without_rights_on_the_stream_can_not_name_it(session: Session) -> None:
    session.check("""
        > ACL SETUSER operator reset on nopass ~q ~out:* +dq.alter
        OK
        > ACL DRYRUN operator DQ.ALTER q SINK out:1
        OK
        > ACL DRYRUN operator DQ.ALTER q TTR 5
        OK
        > ACL DRYRUN operator DQ.ALTER q NOSINK
        OK
        > AUTH operator any
        OK
        > DQ.ALTER q SINK out:1 MAXLEN 5
        OK
    """)
    for command in (
        "DQ.ALTER q SINK secret",
        "DQ.ALTER q TTR 5 sink secret MAXLEN 5",
        "DQ.ALTER other NOSINK",
        "DQ.ALTER other SINK out:1",
    ):
        assert str(session.call(*command.split())).startswith("NOPERM"), command
    session.check("> AUTH default any\nOK\n> ACL DELUSER operator\n(integer) 1")
    assert b"out:1" in session.call("DQ.INFO", "q")


def test_a_user_who_may_only_read_the_stream_can_not_name_it(session: Session) -> None:
    session.check("""
        > ACL SETUSER operator reset on nopass ~q %R~s +dq.alter
        OK
        > AUTH operator any
        OK
    """)
    assert str(session.call("DQ.ALTER", "q", "SINK", "s")).startswith("NOPERM")
    session.check("> AUTH default any\nOK\n> ACL DELUSER operator\n(integer) 1")


def test_jobs_of_a_sink_are_as_late_as_others(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    for n in range(50):
        add(r, n, "x", "DELAY", 20 + n)
    eventually(lambda: r.xlen("s") == 50)
    told = r.execute_command("DQ.INFO", "q")
    fields = dict(zip(told[::2], told[1::2], strict=True))
    assert fields["lateness-count"] == 50


def test_a_reload_goes_on_with_the_sink(r: redis.Redis) -> None:
    alter(r, "SINK", "s")
    r.set("s", "in the way")
    for id in "ab":
        add(r, id, "x")
    add(r, "c", "x", "DELAY", 200)
    eventually(lambda: info(r, "q")["sink-error"])
    r.execute_command("DEBUG", "RELOAD")
    assert eventually(lambda: info(r, "q")["sink-error"]).startswith("WRONGTYPE")
    r.delete("s")
    gets(r, ["a", "b"])
    gets(r, ["a", "b", "c"])


def test_a_job_that_left_for_the_stream_is_done_for_those_that_wait_for_it(
    server: Server, r: redis.Redis
) -> None:
    alter(r, "SINK", "s")
    add(r, "first", "x", "DELAY", 200)
    add(r, "second", "x", "AFTER", 1, "first")
    watcher = Pipelined(server.port)
    watcher.send(("DQ.RESULT", "q", "first", "BLOCK", 20_000))
    gets(r, ["first", "second"])
    assert watcher.receive() == [b"done", None]
    watcher.close()
