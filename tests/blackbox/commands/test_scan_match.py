"""DQ.SCAN … MATCH: patterns of ids, as the server's own SCAN and KEYS have them."""

import random

import pytest

from harness.pipelined import Pipelined
from harness.server import Server
from harness.states import IN_STATE, make_all_states
from harness.transcript import Session


def matching(session: Session, pattern: bytes | str, *options: str | int) -> set[bytes]:
    cursor, seen = b"0", []
    while True:
        cursor, ids = session.call("DQ.SCAN", "q", cursor, "MATCH", pattern, *options)
        seen += ids
        if cursor == b"0":
            assert len(seen) == len(set(seen))
            return set(seen)


def test_scan_match_shows_jobs_whose_id_matches(session: Session) -> None:
    make_all_states(session)
    for state, ids in IN_STATE.items():
        initial = ids[0][0]
        assert matching(session, f"{initial}*") == {job_id.encode() for job_id in ids}
        assert matching(session, f"{initial}?", "STATE", state) == {
            job_id.encode() for job_id in ids
        }
        assert matching(session, f"[^{initial}]*", "STATE", state) == set()
    assert len(matching(session, "*", "COUNT", 1)) == 15
    assert matching(session, "[d-f][12]") == {b"d1", b"d2", b"f1", b"f2"}
    session.check('> DQ.SCAN none 0 MATCH *\n["0", []]')


def test_scan_count_is_how_many_jobs_are_looked_at_not_how_many_match(session: Session) -> None:
    for n in range(100):
        session.call("DQ.ADD", "q", f"{n:02}", "x")
    sizes, cursor = [], b"0"
    while True:
        cursor, ids = session.call("DQ.SCAN", "q", cursor, "MATCH", "*7", "COUNT", 20)
        sizes.append(len(ids))
        if cursor == b"0":
            break
    assert sizes == [2] * 5


# What patterns are made of, so that brackets, ranges and stars meet; and bytes that are no text.
# Those aren't in the first one, since in a range the server takes them for negative numbers on some
# machines.
ALPHABETS = [b"aabbcc**??[]^-" + bytes([92]), b"aab\xff\xc3\x00\n**?"]


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("seed", range(3))
def test_a_scan_pattern_matches_what_it_matches_in_the_server(
    session: Session, server: Server, alphabet: bytes, seed: int
) -> None:
    chance = random.Random(seed)

    def text(shortest: int, longest: int) -> bytes:
        return bytes(chance.choices(alphabet, k=chance.randint(shortest, longest)))

    # Random ones seldom match: ids are short.
    # (A star is no id, but asks for one.)
    ids = sorted({text(1, 5) for _ in range(400)} - {b"*"})
    pipe = Pipelined(server.port)
    pipe.call_all([("SADD", "ids", *ids), *(("DQ.ADD", "q", job_id, "x") for job_id in ids)])
    pipe.close()
    matched = 0
    for _ in range(400):
        pattern = text(0, 9)
        expected, cursor = set(), b"0"
        while True:
            cursor, part = session.call("SSCAN", "ids", cursor, "MATCH", pattern, "COUNT", 1_000)
            expected |= set(part)
            if cursor == b"0":
                break
        assert matching(session, pattern, "COUNT", 1_000) == expected, pattern
        matched += bool(expected)
    assert matched > 40, "or this proves little"


def test_a_hostile_scan_pattern_does_not_hold_up_the_server(session: Session) -> None:
    """As in CVE-2022-36021; and one that is compared with all of each id at each of its places."""
    for n in range(2_000):
        session.call("DQ.ADD", "q", f"{n:a>512}", "x")
    for pattern in [
        "a*" * 1_000 + "b",
        "*" + "a" * 254 + "b",
        "*[a-z]" * 200 + "*b",
        "?" * 100_000,
    ]:
        cursor, calls = b"0", 0
        while True:
            cursor, ids = session.call("DQ.SCAN", "q", cursor, "MATCH", pattern, "COUNT", 10_000)
            assert ids == []
            calls += 1
            if cursor == b"0":
                break
        assert calls < 2_000
    told = session.call("INFO", "commandstats").decode()
    (line,) = [line for line in told.splitlines() if line.startswith("cmdstat_dq.scan:")]
    per_call = float(line.split("usec_per_call=")[1].split(",")[0])
    # A few milliseconds each; an unbounded part of these would take a second, an exponential one
    # for ever.
    assert per_call < 200_000
