"""The `dq` section of INFO, and the warning about eviction."""

import re
from collections.abc import Callable

import pytest

from harness.consumers import in_one_go
from harness.paths import ROOT
from harness.pipelined import Pipelined
from harness.resp import fields
from harness.server import Server, eventually
from harness.states import make_all_states
from harness.transcript import Session
from harness.workload import STATES, Workload

CARGO_TOML = ROOT / "Cargo.toml"

ALL_STATES = [*STATES, "held"]
SUMS = [f"dq_jobs_{state}" for state in ALL_STATES]
FIELDS = [
    "dq_version",
    "dq_tzdb_version",
    "dq_queues",
    *SUMS,
    "dq_waiting_consumers",
    "dq_queues_waiting",
    "dq_timer_runs",
    "dq_timer_budget_exceeded",
    "dq_timer_last_us",
    "dq_timer_max_us",
    "dq_jobs_added",
    "dq_jobs_popped",
    "dq_jobs_finished",
    "dq_jobs_deleted",
    "dq_jobs_sunk",
    "dq_diverged",
    "dq_bugs",
    "dq_watchers",
    "dq_eviction_risk",
]
WARNING = "<dq> maxmemory-policy is allkeys-"


def section(session: Session, *what: str) -> dict[str, str]:
    """The lines below `# dq` in what INFO answers."""
    text = session.call("INFO", *what).decode()
    assert text.count("# dq\r\n") == 1, text
    lines = text.split("# dq\r\n")[1].split("\r\n\r\n")[0].split("\r\n")
    return dict(line.split(":") for line in lines if line)


@pytest.mark.parametrize("what", ["dq", "DQ", "everything", "modules", "server dq"])
def test_info_has_the_dq_section(session: Session, what: str) -> None:
    assert list(section(session, *what.split())) == FIELDS


@pytest.mark.parametrize("what", ["", "all", "server"])
def test_info_has_no_dq_section_unasked(session: Session, what: str) -> None:
    assert b"# dq" not in session.call("INFO", *what.split())


def test_info_tells_the_version_of_the_package(session: Session) -> None:
    (version,) = re.findall(r'^version = "(.+)"$', CARGO_TOML.read_text(), re.MULTILINE)
    assert section(session, "dq")["dq_version"] == version


def test_module_list_tells_the_version_as_a_number(session: Session) -> None:
    (version,) = re.findall(r'^version = "(.+)"$', CARGO_TOML.read_text(), re.MULTILINE)
    major, minor, patch = (int(number) for number in version.split("."))
    (dq,) = [
        fields(told) for told in session.call("MODULE", "LIST") if fields(told)["name"] == b"dq"
    ]
    assert dq["ver"] == 10_000 * major + 100 * minor + patch


def test_counters_of_info_count_jobs(fresh_server: Callable[..., Server]) -> None:
    session = fresh_server().session()
    fresh = section(session, "dq")
    counts = [name for name in FIELDS if "version" not in name]
    assert {name: fresh[name] for name in counts} == dict.fromkeys(counts, "0")
    session.check("""
        > DQ.ADD q a x
        "a"
        > DQ.ADD q b x
        "b"
        > DQ.ADD other c x
        "c"
        > DQ.ADD q a x NX
        (nil)
        > DQ.ADD q a x
        (error) EXISTS id is taken in this queue
        > DQ.ADD q b y REPLACE
        "b"
        > DQ.POP q COUNT 9
        [["a", "x", <*>, 1], ["b", "y", <*>, 1]]
        > DQ.POP q
        (nil)
        > DQ.FINISH q a * b 1
        (integer) 1
        > DQ.DEL q a b nobody
        (integer) 1
        > DQ.DEL other c
        (integer) 1
    """)
    now = section(session, "dq")
    # A REPLACE adds a job.
    assert [now[f"dq_jobs_{what}"] for what in ("added", "popped", "finished", "deleted")] == [
        "4",
        "2",
        "1",
        "2",
    ]


def sums(session: Session) -> dict[str, int]:
    told = section(session, "dq")
    return {name: int(told[name]) for name in ("dq_queues", *SUMS)}


def test_info_sums_up_the_jobs_of_all_queues_wherever_they_go(session: Session) -> None:
    def all_states(queues: int) -> dict[str, int]:
        return {"dq_queues": queues} | dict.fromkeys(SUMS, 3 * queues) | {"dq_jobs_held": 0}

    assert sums(session) == all_states(0)
    make_all_states(session)
    assert sums(session) == all_states(1)
    dump = session.call("DUMP", "q")
    for steps, queues in [
        ("COPY q copy", 2),
        ("COPY q copy REPLACE", 2),
        ("RENAME copy q", 1),
        ("COPY q there DB 5", 2),
        ("SWAPDB 0 5", 2),
        ("SWAPDB 0 5", 2),
        ("MOVE q 5", 2),
        ("DEBUG RELOAD", 2),
        ("FLUSHALL", 0),
    ]:
        session.call(*steps.split())
        eventually(lambda queues=queues: sums(session) == all_states(queues))
    for _ in range(2):
        session.call("RESTORE", "q", 0, dump, "REPLACE")
        # At once, what is due still counts as delayed; the next timer run takes it in.
        eventually(lambda: sums(session) == all_states(1))
    session.check("> DQ.PURGE q STATE delayed\n(integer) 3\n> DQ.KICK q COUNT 2\n(integer) 2")
    now = dict(zip(SUMS, [0, 5, 3, 1, 3, 0], strict=True))
    assert sums(session) == {"dq_queues": 1} | now
    session.call("UNLINK", "q")
    eventually(lambda: sums(session) == all_states(0))


def test_the_sums_of_info_are_those_of_the_queues_whatever_happened(
    server: Server, session: Session
) -> None:
    with server.client() as r:

        def told_by_queues() -> dict[str, int]:
            queues = [
                fields(r.execute_command("DQ.INFO", key)) for key in r.scan_iter(_type="delayq-dq")
            ]
            by_state = {
                f"dq_jobs_{state}": sum(queue[state] for queue in queues) for state in ALL_STATES
            }
            return {"dq_queues": len(queues)} | by_state

        workload = Workload(r, seed=31)
        for _ in range(5):
            workload.run(commands=200)
            # Also those that fall due now are summed up by themselves.
            eventually(lambda: told_by_queues() == sums(session))


def test_flushed_jobs_count_no_more_though_they_are_freed_later(
    server: Server, session: Session
) -> None:
    """Valkey frees on a thread of its own unless told otherwise: some milliseconds, for so many
    jobs.
    """
    Pipelined(server.port).call_all([("DQ.ADD", "q", n, "x") for n in range(50_000)])
    flushed, _, told = in_one_go(
        server.port, ("FLUSHALL", "ASYNC"), ("DQ.ADD", "q", "a", "x"), ("INFO", "dq")
    )
    assert flushed == "OK"
    assert b"dq_queues:1\r\n" in told and b"dq_jobs_ready:1\r\n" in told, told


def test_time_moves_the_sums_of_info_without_a_command(session: Session) -> None:
    session.check("""
        > DQ.ADD q mortal x TTL 30 DELAY 60000
        "mortal"
        > DQ.ADD q due x DELAY 30 PRIORITY 1
        "due"
    """)
    eventually(
        lambda: (
            [sums(session)[f"dq_jobs_{state}"] for state in ("delayed", "ready", "dead")]
            == [0, 1, 1]
        )
    )


def test_info_counts_the_queues_that_wait(session: Session) -> None:
    def waiting() -> int:
        return int(section(session, "dq")["dq_queues_waiting"])

    session.check("""
        > DQ.ADD ready a x
        "a"
        > DQ.ADD far a x DELAY 60000
        "a"
        > DQ.ADD far b x DELAY 70000
        "b"
        > DQ.ADD leased a x
        "a"
        > DQ.POP leased
        [["a", "x", <*>, 1]]
    """)
    assert waiting() == 2
    session.check("> DEL far\n(integer) 1")
    assert waiting() == 1
    session.check("> FLUSHALL\nOK")
    assert waiting() == 0


def test_the_eviction_risk_follows_the_policy(session: Session) -> None:
    try:
        for policy, risk in [
            ("allkeys-lru", "1"),
            ("allkeys-lfu", "1"),
            ("allkeys-random", "1"),
            ("volatile-lru", "0"),
            ("volatile-ttl", "0"),
            ("noeviction", "0"),
        ]:
            session.check(f"> CONFIG SET maxmemory-policy {policy}\nOK")
            assert section(session, "dq")["dq_eviction_risk"] == risk, policy
    finally:
        session.check("> CONFIG SET maxmemory-policy noeviction\nOK")


@pytest.mark.parametrize(
    ("policy", "warns"), [("allkeys-lru", True), ("volatile-lru", False), ("noeviction", False)]
)
def test_a_server_that_evicts_is_warned_of_at_load(
    fresh_server: Callable[..., Server], policy: str, warns: bool
) -> None:
    server = fresh_server(f"maxmemory-policy {policy}")
    assert (WARNING in server.log()) == warns
    assert section(server.session(), "dq")["dq_eviction_risk"] == str(int(warns))
