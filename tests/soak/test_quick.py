"""A minute of soaking on each server: short sessions with most of the faults. `make soak` is the long one."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from .borrowed import KINDS, Kind
from .history import read
from .oracle import judge
from .plant import FAULTS, planted
from .report import tell
from .runner.clock import NoCompiler
from .runner.profiles import PROFILES, quick
from .runner.session import Outcome, play

# Another one finds other things: DQ_SOAK_SEED=17 make test-blackbox ARGS=tests/soak
SEED = os.environ.get("DQ_SOAK_SEED", "quick")
SESSIONS = ("clients", "crash-everysec", "crash-rdb", "keys", "failover", "replicas", "limits", "clock")


def played(kind: Kind, profile: str, directory: Path) -> Outcome:
    session = replace(quick(PROFILES[profile]), seconds=4.5)
    try:
        return asyncio.run(play(kind, session, f"{SEED}/{profile}", directory / "session"))
    except NoCompiler as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("profile", SESSIONS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_short_session(kind: Kind, profile: str, tmp_path: Path) -> None:
    outcome = played(kind, profile, tmp_path)
    verdict = judge(read(outcome.history))
    assert [*outcome.broken, *tell(outcome.history, verdict, with_evidence=True)] == []
    # A session in which little happens shows little.
    assert verdict.counts["operations"] > 500
    assert verdict.counts["deliveries"] > 100


def test_faults_are_found_in_a_session_of_today(tmp_path: Path) -> None:
    """As in test_oracle.py, in a history of the servers and the module as they are now."""
    outcome = played(KINDS[0], "crash-everysec", tmp_path)
    history = list(read(outcome.history))
    before = {str(violation) for violation in judge(history).violations}
    missed, found = [], 0
    for one in FAULTS:
        with_fault = planted(history, one)
        if with_fault is None:
            continue
        kinds = {violation.kind for violation in judge(with_fault).violations if str(violation) not in before}
        if kinds & one.kinds:
            found += 1
        else:
            missed.append(one.name)
    assert missed == []
    assert found >= len(FAULTS) * 2 // 3
