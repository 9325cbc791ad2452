"""A payload that no module wrote is refused as a whole, with a reason in the log, and harms neither
server nor queues.

The payloads have valid checksums, made here (harness/payloads.py), so that the server passes them
on to the module.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from harness.marks import long, on_one_kind
from harness.payloads import (
    FOOTER_BYTES,
    Edges,
    Extra,
    Job,
    JobRecord,
    Payload,
    QueueRecord,
    Settings,
    edges_of,
    module_header,
    msgpack,
    payload_of,
    rdb_string,
    rdb_unsigned,
    sealed,
    unsealed,
)
from harness.queues import binary_client, digests, info, job
from harness.server import Server
from harness.zoo import make_zoo, pop_all

BAD_DATA = "Bad data format"
LAST_TIME = 2**48 - 1
LAST_LEASE = 2**53 - 1


def restore(r: redis.Redis, payload: bytes, key: str = "q", **options: bool) -> str | None:
    """The error that RESTORE answered with, if it did."""
    try:
        r.restore(key, 0, payload, **options)
    except redis.ResponseError as error:
        return str(error)
    return None


def test_healthy_payloads_made_here_are_loaded(server: Server, r: redis.Redis) -> None:
    """Or the refusals below would prove nothing."""
    assert restore(r, payload_of().sealed()) is None
    server.session().check("""
        > DQ.GET q b
        ["id", "b", "body", "hello", "state", "ready", "due", 1763725200500, <...>, "priority", 128,
         "ttr", 60000, "attempts", 25, "attempt", 2, <...>, "lease", 3612109209600001,
         "created", 1763725200000, <...>]
        > DQ.LEN q
        (integer) 2
        > DQ.FINISH q a 3612109209600001
        (integer) 1
        > DQ.POP q
        [["b", "hello", <*>, 3]]
    """)
    assert restore(r, payload_of([]).sealed(), "empty") is None
    server.session().check("> DQ.LEN empty\n(integer) 0")
    with binary_client(server) as b:
        assert b.dump("q")[:10] == module_header(2)


def record(**fields: int | Extra) -> Payload:
    return payload_of([Job(record=JobRecord(**fields).encoded())])


def extra(**fields: Any) -> Payload:
    return record(extra=Extra(**fields))


def queue(**fields: Any) -> Payload:
    return payload_of(queue=QueueRecord(**fields).encoded())


def settings(**fields: Any) -> Payload:
    return payload_of(queue=QueueRecord(settings=Settings(**fields)).encoded())


TWO_RECORDS = JobRecord().encoded() * 2
FIELDS = [*vars(JobRecord()).values()]
SHORT_RECORD, LONG_RECORD = msgpack(FIELDS[:-2]), msgpack([*FIELDS, None])

WAITING = JobRecord(stage=0, lease=0, attempt=0).encoded()
HELD = JobRecord(stage=4, lease=0, attempt=0).encoded()
DONE = JobRecord(stage=3, lease=0).encoded()
DEAD = JobRecord(stage=2, lease=0).encoded()
SCHEDULED = msgpack(
    [
        *[*vars(JobRecord(stage=0, lease=0)).values()][:-1],
        [None] * 8 + [[[[1_000, None], 0, 0, 0, None, 0], [0, 0, 0, 0, 0, 0]]],
    ]
)


def flow(*edges: Edges, count: int = 1, first: bytes = WAITING, other: bytes = WAITING) -> Payload:
    """A job `h` that is held, `a`, which it may wait for, and `b`."""
    jobs = [Job(b"h", record=HELD), Job(b"a", record=first), Job(b"b", record=other)]
    return payload_of(jobs, edges=edges, edges_count=count)


H_AFTER_A = Edges(b"h", ((b"a", 0),))
UNREADABLE = "a record is not what this version can read"
CUT_SHORT = "it ends before its end"
IMPOSSIBLE = "a record says what can't be"

REFUSED = [
    pytest.param(payload, reason, id=name)
    for name, payload, reason in [
        ("newer version", Payload((), 3), "it has version 3, this module reads up to 2"),
        ("version 1023", Payload((), 1023), "it has version 1023, this module reads up to 2"),
        ("version 0", Payload((), 0), "it has version 0"),
        ("nothing in it", Payload(()), CUT_SHORT),
        ("no end", Payload((), end=b""), CUT_SHORT),
        ("more jobs than there are", payload_of(count=3), CUT_SHORT),
        ("2^64 - 1 jobs", payload_of(count=2**64 - 1), CUT_SHORT),
        ("2^32 jobs", payload_of([], count=2**32), CUT_SHORT),
        ("string for the number of jobs", payload_of().with_part(0, rdb_string(b"2")), CUT_SHORT),
        ("version 1", Payload((), 1), "it has version 1"),
        ("number for a block", payload_of().with_part(2, rdb_unsigned(1)), CUT_SHORT),
        ("block of 2^62 bytes", payload_of().with_part(2, rdb_string(b"a", 2**62)), CUT_SHORT),
        ("block of 2^40 bytes", payload_of().with_part(2, rdb_string(b"a", 2**40)), CUT_SHORT),
        ("block without jobs", payload_of().with_part(2, rdb_string(b"")), "a block has no jobs"),
        (
            "id of 2^32 - 1 bytes",
            payload_of().with_part(2, rdb_string(b"\x93\xc6" + b"\xff" * 4)),
            UNREADABLE,
        ),
        ("text for an id", payload_of().with_part(2, rdb_string(b"\x93\xa1a\xa1x")), UNREADABLE),
        ("an id twice", payload_of([Job(b"a"), Job(b"a")]), "an id occurs twice"),
        ("empty id", payload_of([Job(b"")]), "an id is not 1 to 512 bytes long"),
        ("id of 513 bytes", payload_of([Job(b"i" * 513)]), "an id is not 1 to 512 bytes long"),
        ("empty record", payload_of([Job(record=b"")]), UNREADABLE),
        ("text for a record", payload_of([Job(record=b"garbage")]), UNREADABLE),
        ("a map of 2^32 for a record", payload_of([Job(record=b"\xdf" + b"\xff" * 4)]), UNREADABLE),
        ("deep nesting", payload_of([Job(record=b"\x91" * 100_000)]), UNREADABLE),
        ("record with a field less", payload_of([Job(record=SHORT_RECORD)]), UNREADABLE),
        ("record with a field more", payload_of([Job(record=LONG_RECORD)]), UNREADABLE),
        ("two records for one", payload_of([Job(record=TWO_RECORDS)]), UNREADABLE),
        ("priority 256", record(priority=256), UNREADABLE),
        ("attempts 2^32", record(attempts=2**32), UNREADABLE),
        ("time past the last", record(time=LAST_TIME + 1), UNREADABLE),
        ("time 2^64 - 1", record(time=2**64 - 1), UNREADABLE),
        ("created past the last", record(created=LAST_TIME + 1), UNREADABLE),
        ("TTR 0", record(ttr=0), IMPOSSIBLE),
        ("TTR 2^64 - 1", record(ttr=2**64 - 1), UNREADABLE),
        ("stage 5", record(stage=5), UNREADABLE),
        ("waiting with a lease", record(stage=0), IMPOSSIBLE),
        ("dead with a lease", record(stage=2), IMPOSSIBLE),
        ("done with a lease", record(stage=3), IMPOSSIBLE),
        ("held with a lease", record(stage=4), IMPOSSIBLE),
        ("held without edges", flow(count=0), IMPOSSIBLE),
        ("edges of none", flow(Edges(b"h")), IMPOSSIBLE),
        ("edges to done jobs only", flow(Edges(b"h", ((b"x", 2),))), IMPOSSIBLE),
        ("edges of a job twice", flow(H_AFTER_A, H_AFTER_A, count=2), IMPOSSIBLE),
        ("edges of a job that isn't there", flow(Edges(b"c", ((b"a", 0),))), IMPOSSIBLE),
        (
            "edges of a job that waits",
            flow(H_AFTER_A, Edges(b"b", ((b"a", 0),)), count=2),
            IMPOSSIBLE,
        ),
        (
            "a hold of a job that waits",
            flow(H_AFTER_A, Edges(b"b", is_on_hold=True), count=2),
            IMPOSSIBLE,
        ),
        ("edges of another held job alone", flow(Edges(b"b", ((b"a", 2),))), IMPOSSIBLE),
        ("an edge to itself", flow(Edges(b"h", ((b"h", 0),))), IMPOSSIBLE),
        ("an edge from a done job", flow(H_AFTER_A, first=DONE), IMPOSSIBLE),
        ("an edge from a schedule", flow(H_AFTER_A, first=SCHEDULED), IMPOSSIBLE),
        ("an edge from a dead job, not known", flow(H_AFTER_A, first=DEAD), IMPOSSIBLE),
        (
            "edges that go on with another job's",
            flow(Edges(b"h", continues=True), Edges(b"b", ((b"a", 2),))),
            IMPOSSIBLE,
        ),
        (
            "edges that go on with their beginning",
            flow(Edges(b"h", continues=True), H_AFTER_A),
            IMPOSSIBLE,
        ),
        ("edges that didn't begin", flow(Edges(b"h", ((b"a", 0),), is_first=False)), IMPOSSIBLE),
        ("edges that go on", flow(Edges(b"h", ((b"a", 0),), continues=True)), CUT_SHORT),
        ("BACKOFF base", extra(backoff=(LAST_TIME + 1, 0)), UNREADABLE),
        ("BACKOFF max", extra(backoff=(0, 2**64 - 1)), UNREADABLE),
        ("TTL", extra(ttl=LAST_TIME + 1), UNREADABLE),
        ("KEEP", extra(keep=LAST_TIME + 1), UNREADABLE),
        ("end of life", extra(dies=LAST_TIME + 1), UNREADABLE),
        ("lease without attempt", record(attempt=0), IMPOSSIBLE),
        ("attempt without lease", record(lease=0), IMPOSSIBLE),
        ("leased, never handed out", record(lease=0, attempt=0), IMPOSSIBLE),
        ("lease 2^53 - 1", record(lease=LAST_LEASE), UNREADABLE),
        ("lease 2^64 - 1", record(lease=2**64 - 1), UNREADABLE),
        ("empty queue record", payload_of(queue=b""), UNREADABLE),
        ("job's record for the queue's", payload_of(queue=JobRecord().encoded()), UNREADABLE),
        ("last lease 2^53 - 1", queue(last_lease=LAST_LEASE), UNREADABLE),
        ("serial past the last", queue(serial=(2**64 - 1, 0)), UNREADABLE),
        ("counted past the last", queue(counted=LAST_TIME + 1), UNREADABLE),
        ("paused past the last", queue(paused_until=LAST_TIME + 1), UNREADABLE),
        ("default TTR 0", settings(ttr=0), IMPOSSIBLE),
        ("default TTR", settings(ttr=LAST_TIME + 1), UNREADABLE),
        ("default ATTEMPTS", settings(attempts=2**32), UNREADABLE),
        ("default BACKOFF base", settings(backoff=(LAST_TIME + 1, 0)), UNREADABLE),
        ("default BACKOFF max", settings(backoff=(0, LAST_TIME + 1)), UNREADABLE),
        ("default KEEP", settings(keep=LAST_TIME + 1), UNREADABLE),
        ("DEADKEEP", settings(dead_keep=2**64 - 1), UNREADABLE),
        ("CONCURRENCY 0", settings(concurrency=0), UNREADABLE),
        ("RATE without a time", settings(rate=(1, 0, 1)), UNREADABLE),
        ("GROUPRATE of no jobs", settings(group_rate=(0, 1, 1)), UNREADABLE),
        ("arrival without a rate", queue(arrival=(1, 0)), IMPOSSIBLE),
        ("a sink without a name", queue(sink=(b"", 0)), IMPOSSIBLE),
        ("a sink with a name of 513 bytes", queue(sink=(b"s" * 513, 0)), IMPOSSIBLE),
        ("MAXLEN 2^63", queue(sink=(b"s", 2**63)), IMPOSSIBLE),
    ]
]


@on_one_kind
@pytest.mark.parametrize("payload, reason", REFUSED)
def test_a_hostile_payload_is_refused_and_the_log_says_why(
    server: Server, r: redis.Redis, payload: Payload, reason: str
) -> None:
    log = len(server.log())
    assert BAD_DATA in restore(r, payload.sealed())
    assert f"<dq> a queue can't be loaded: {reason}" in server.log(log)
    assert r.ping() and not r.exists("q")


def test_a_refused_payload_leaves_the_old_queue(server: Server, r: redis.Redis) -> None:
    with binary_client(server) as b:
        zoo = make_zoo(b, "q")
        before = zoo.snapshot(b, "q")
        assert BAD_DATA in restore(r, record(stage=9).sealed(), replace=True)
        assert zoo.snapshot(b, "q") == before


def test_every_truncation_of_a_payload_is_refused(server: Server) -> None:
    with binary_client(server) as b:
        value = unsealed(payload_of([Job(b"a"), Job(b"*", b"body " * 20)]).sealed())
        assert restore(b, sealed(value)) is None
        b.delete("q")
        for length in range(len(value)):
            error = restore(b, sealed(value[:length]))
            assert error is not None and BAD_DATA in error, f"cut to {length} bytes: {error}"
            wrong_checksum = sealed(value)[: length + FOOTER_BYTES]
            assert "checksum are wrong" in restore(b, wrong_checksum)
        assert b.ping() and not b.exists("q")


@long
def test_flipped_bits_are_refused_or_make_a_queue_that_works(server: Server) -> None:
    """Each bit but those of the value's type, which is the server's. A body has no wrong bits."""
    value = unsealed(
        payload_of([Job(b"a"), Job(b"b", b"x", JobRecord(lease=7, attempt=1).encoded())]).sealed()
    )
    refused = 0
    with binary_client(server) as b:
        for bit in range(8, 8 * len(value)):
            flipped = bytearray(value)
            flipped[bit // 8] ^= 1 << bit % 8
            if restore(b, sealed(bytes(flipped)), replace=True) is not None:
                refused += 1
                continue
            check_that_it_works(b, "q")
            b.execute_command("DQ.RESUME", "q")
            b.execute_command("DQ.ALTER", "q", "MAXJOBS", 0)
            assert b.execute_command("DQ.ADD", "q", "*", "x", "PRIORITY", 0)
            assert b.execute_command("DQ.POP", "q", "TTR", 1)
        assert b.ping()
    assert refused > 2 * len(value)


def check_that_it_works(r: redis.Redis, key: str) -> None:
    fields = info(r, key)
    states = sum(fields[state] for state in ("delayed", "ready", "reserved", "dead", "done"))
    assert fields["jobs"] == states == r.execute_command("DQ.LEN", key)
    r.restore("again", 0, r.dump(key), replace=True)
    assert digests(r, key) == digests(r, "again")


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(queue(last_lease=LAST_LEASE - 2), id="the queue's last lease"),
        pytest.param(record(lease=LAST_LEASE - 2), id="a job's lease"),
    ],
)
def test_a_queue_near_the_last_lease_does_not_stop_the_others(
    fresh_server: Callable[..., Server], payload: Payload
) -> None:
    server = fresh_server()
    with server.client() as r:
        restore(r, payload.sealed(), "hostile")
        pop_all(r, "hostile")
        for n in range(3):
            r.execute_command("DQ.ADD", "innocent", n, "x")
        assert len(pop_all(r, "innocent")) == 3


@pytest.mark.parametrize("serial_number", [2**64 - 1, 2**64 - 2, 2**63])
def test_made_ids_after_the_last_serial_are_still_new_ones(
    server: Server, r: redis.Redis, serial_number: int
) -> None:
    hostile = queue(serial=(LAST_TIME, serial_number)).sealed()
    assert restore(r, hostile) is None
    made = [r.execute_command("DQ.ADD", "q", "*", "x") for _ in range(5)]
    assert len(set(made)) == 5
    assert r.execute_command("DQ.LEN", "q") == 2 + 5


def test_a_payload_with_times_at_the_end_of_time_works(server: Server, r: redis.Redis) -> None:
    assert restore(r, record(time=LAST_TIME, created=LAST_TIME, ttr=LAST_TIME).sealed()) is None
    server.session().check("""
        > DQ.POP q
        (nil)
        > DQ.LEN q STATE reserved
        (integer) 1
        > DQ.DEL q a
        (integer) 1
    """)


RECORD = JobRecord().encoded()


def jobs(**fields: bytes) -> bytes:
    """Two, of which the second is made of these."""
    return Job(b"new").encoded() + Job(**fields).encoded()


ARITY = "wrong number of arguments for 'dq.apply' command"


@on_one_kind
@pytest.mark.parametrize(
    "words, error",
    [
        pytest.param(words, error, id=name)
        for name, words, error in [
            ("nothing", ["JOBS"], ARITY),
            ("unknown effect", ["STEAL", "a"], "unknown command 'STEAL'"),
            ("lower case", ["jobs", jobs()], "unknown command 'jobs'"),
            ("JOBS, too long", ["JOBS", jobs(), "x"], ARITY),
            ("JOBS, empty id", ["JOBS", jobs(id=b"")], "an id is not 1 to 512 bytes long"),
            ("JOBS, long id", ["JOBS", jobs(id=b"i" * 513)], "an id is not 1 to 512 bytes long"),
            ("JOBS, no record", ["JOBS", jobs(record=b"")], UNREADABLE),
            ("JOBS, garbage", ["JOBS", "\xff\xfe"], UNREADABLE),
            ("JOBS, two records", ["JOBS", jobs(record=RECORD * 2)], UNREADABLE),
            ("JOBS, stage 9", ["JOBS", jobs(record=JobRecord(stage=9).encoded())], UNREADABLE),
            ("JOBS, TTR 0", ["JOBS", jobs(record=JobRecord(ttr=0).encoded())], IMPOSSIBLE),
            ("JOBS, time", ["JOBS", jobs(record=JobRecord(time=2**48).encoded())], UNREADABLE),
            ("GROUPS, too long", ["GROUPS", msgpack([]), "x"], ARITY),
            ("GROUPS, no list", ["GROUPS", "a"], UNREADABLE),
            ("GROUPS, 2^32 of them", ["GROUPS", b"\xdd" + b"\xff" * 4], UNREADABLE),
            ("QUEUE, too long", ["QUEUE", QueueRecord().encoded(), "x"], ARITY),
            ("QUEUE, a job's", ["QUEUE", RECORD], UNREADABLE),
            ("QUEUE, lease", ["QUEUE", QueueRecord(last_lease=2**53).encoded()], UNREADABLE),
            ("QUEUE, serial", ["QUEUE", QueueRecord(serial=(2**48, 0)).encoded()], UNREADABLE),
        ]
    ],
)
def test_garbage_effects_change_nothing(
    server: Server, r: redis.Redis, words: list[str | bytes], error: str
) -> None:
    r.execute_command("DQ.ADD", "q", "a", "x", "PRIORITY", 3)
    before = digests(r, "q")
    for key in "q", "none":
        with pytest.raises(redis.ResponseError, match=error):
            r.execute_command("DQ.APPLY", key, *words)
    assert digests(r, "q") == before
    assert not r.exists("none")


def test_effects_on_a_key_of_another_type_are_refused(r: redis.Redis) -> None:
    r.set("text", "x")
    for words in (
        ["JOBS", jobs()],
        ["QUEUE", QueueRecord().encoded()],
    ):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            r.execute_command("DQ.APPLY", "text", *words)
    assert r.get("text") == "x"


def test_effects_that_are_well_formed_are_taken(server: Server, r: redis.Redis) -> None:
    """Or the refusals above would prove nothing."""
    r.execute_command("DQ.APPLY", "q", "JOBS", jobs(id=b"a", body=b"b"))
    settings = Settings(ttr=5, attempts=6, dead_keep=7)
    r.execute_command("DQ.APPLY", "q", "QUEUE", QueueRecord(settings=settings).encoded())
    assert [job(r, "q", name)["body"] for name in ("new", "a")] == ["hello", "b"]
    told = info(r, "q")
    assert [told[name] for name in ("default-ttr", "default-attempts", "dead-keep")] == [5, 6, 7]


TAKEN_EFFECTS = {
    "a held job without edges": [("JOBS", Job(b"h", record=HELD).encoded())],
    "edges that go on, and don't": [
        ("JOBS", Job(b"h", record=HELD).encoded()),
        ("EDGES", edges_of(Edges(b"h", ((b"x", 2),), continues=True))),
    ],
    "a held job instead of one that others wait for": [
        ("JOBS", Job(b"h", record=HELD).encoded() + Job(b"a", record=WAITING).encoded()),
        ("EDGES", edges_of(H_AFTER_A)),
        ("JOBS", Job(b"a", record=HELD).encoded()),
    ],
    "a dead job instead of one that others wait for": [
        ("JOBS", Job(b"h", record=HELD).encoded() + Job(b"a", record=WAITING).encoded()),
        ("EDGES", edges_of(H_AFTER_A)),
        ("JOBS", Job(b"a", record=DEAD).encoded()),
    ],
    "a dead job that others don't wait for longer": [
        ("JOBS", Job(b"h", record=HELD).encoded() + Job(b"a", record=WAITING).encoded()),
        ("EDGES", edges_of(Edges(b"h", ((b"a", 0),), on_dead=1))),
        ("JOBS", Job(b"a", record=DEAD).encoded()),
    ],
    "a circle": [
        ("JOBS", Job(b"h", record=HELD).encoded() + Job(b"a", record=HELD).encoded()),
        ("EDGES", edges_of(H_AFTER_A, Edges(b"a", ((b"h", 0),)))),
    ],
}


@pytest.mark.parametrize("effects", TAKEN_EFFECTS.values(), ids=TAKEN_EFFECTS)
def test_what_is_taken_can_be_dumped_saved_and_replicated(
    fresh_server: Callable[..., Server], effects: list[tuple[str, bytes]]
) -> None:
    server, replica = fresh_server(), fresh_server()
    with binary_client(server) as b:
        for kind, record in effects:
            b.execute_command("DQ.APPLY", "q", kind, record)
        if b.execute_command("DQ.LEN", "q", "STATE", "held") > 0:
            b.execute_command("DQ.ADD", "q", "new", "x", "BEFORE", 1, "h")
        b.restore("copy", 0, b.dump("q"))
        before, copy = digests(b, "q", "copy")
        assert before == copy
        b.execute_command("DEBUG", "RELOAD")
        assert digests(b, "q") == [before]
    replica.replicate(server)
    replica.catch_up(server)
    with binary_client(replica) as there:
        assert digests(there, "q") == [before]
    for one in server, replica:
        with one.client() as r:
            assert r.info("dq")["dq_bugs"] == 0


@pytest.mark.parametrize("record", [DONE, SCHEDULED], ids=["done", "a schedule"])
def test_a_job_that_others_wait_for_is_replaced_by_one_that_ends(
    r: redis.Redis, record: bytes
) -> None:
    r.execute_command("DQ.ADD", "q", "a", "x")
    r.execute_command("DQ.ADD", "q", "h", "x", "AFTER", 1, "a")
    before = digests(r, "q")
    block = Job(b"new").encoded() + Job(b"a", record=record).encoded()
    with pytest.raises(redis.ResponseError, match=IMPOSSIBLE):
        r.execute_command("DQ.APPLY", "q", "JOBS", block)
    assert digests(r, "q") == before


def test_edges_of_jobs_that_are_not_there_make_no_key(r: redis.Redis) -> None:
    with pytest.raises(redis.ResponseError, match=IMPOSSIBLE):
        r.execute_command("DQ.APPLY", "none", "EDGES", edges_of(H_AFTER_A))
    assert not r.exists("none")


def test_a_broken_file_is_not_loaded_and_the_log_says_why(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = fresh_server("rdbchecksum no")
    with binary_client(server) as b:
        b.execute_command("DQ.ADD", "q", b"the id", b"x")
        b.save()
    file = server.directory / "dump.rdb"
    server.stop()
    good = file.read_bytes()
    # The id's length, as MessagePack has it.
    assert good.count(b"\xc4\x06the id") == 1
    file.write_bytes(good.replace(b"\xc4\x06the id", b"\xc4\x05the id"))
    with pytest.raises(RuntimeError, match="a queue can't be loaded: "):
        server.start()
    file.write_bytes(good)
    server.start()
    with server.client() as r:
        assert len(pop_all(r, "q")) == 1
