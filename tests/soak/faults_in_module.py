"""Faults in the module itself. The judge must find each of them: `make soak-faults`.

Each fault is a patch of tests/faults, and a build of its own (scripts/faults.sh). This file isn't named like a test
file, since the other tests have no such builds.
"""

import asyncio
import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from .borrowed import KINDS, TARGET, Kind
from .history import read
from .oracle import Verdict, judge
from .report import tell
from .runner.profiles import PROFILES, quick
from .runner.session import play

MODULES = TARGET / "faults"
SEED = os.environ.get("DQ_SOAK_SEED", "planted")
# A fault shows when chance makes a place for it: within this many short sessions.
SESSIONS_MAX = 6


@dataclass(frozen=True)
class Planted:
    fault: str
    # The sessions that make a place for it.
    profile: str
    # What the oracle may call it: any one of these is right.
    kinds: frozenset[str]


def planted(fault: str, profile: str, *kinds: str) -> Planted:
    return Planted(fault, profile, frozenset(kinds))


FAULTS = [
    planted("shared-body", "plain", "body"),
    planted("lost-job", "plain", "lost", "withheld", "count"),
    planted("early", "plain", "early"),
    planted("short-lease", "plain", "double", "view"),
    planted("lease-twice", "plain", "lease-twice"),
    planted("no-lease-margin", "clock-rdb", "lease-twice"),
    planted("stale-lease", "plain", "stale"),
    planted("uncounted-attempt", "plain", "attempt"),
    planted("count-off-by-one", "plain", "count"),
    planted("wrong-order", "plain", "order"),
    planted("over-concurrency", "plain", "limit"),
    planted("over-rate", "plain", "limit"),
    planted("overfull-group", "plain", "limit"),
    planted("unfair-turns", "plain", "unfair"),
    planted("counted-twice", "plain", "withheld", "stuck"),
    planted("wrong-forecast", "plain", "count"),
    planted("page-from-itself", "plain", "view", "error"),
    planted("forgotten-consumer", "plain", "stuck", "unfair"),
    planted("forgotten-queue", "plain", "stuck", "sums", "leak"),
    planted("not-given-back", "ambush", "lost", "count", "withheld"),
    planted("unlogged-entry", "replicas", "digest"),
    planted("unlogged-entry", "crash-always", "ghost", "lost", "count", "digest", "durability"),
    planted("unreleased-dependent", "plain", "flows", "stuck"),
    planted("early-dependent", "plain", "flows"),
    planted("lost-result", "plain", "flows"),
    planted("kept-for-ever", "plain", "leak"),
    planted("leak", "plain", "memory"),
    planted("abort", "plain", "alarm"),
]
SOUND = [planted("none", "plain"), planted("none", "crash-always"), planted("none", "clock-rdb")]
# Sessions with little harm, in which faults of the module stand out; and ambushes, which are rare in the others.
OTHERS = {
    "plain": replace(
        PROFILES["clients"], steps={"quiet": 3, "client-unblock": 1, "client-kill": 1}, calm_s=0.3
    ),
    "ambush": replace(PROFILES["clients"], steps={"ambush": 1}, calm_s=0.3),
}


def played(one: Planted, kind: Kind, number: int, directory: Path) -> tuple[Verdict, list[str]]:
    profile = quick(OTHERS.get(one.profile) or PROFILES[one.profile])
    module = MODULES / f"{one.fault}.so"
    seed = f"{SEED}/{one.fault}/{number}"
    outcome = asyncio.run(play(kind, profile, seed, directory / str(number), module))
    verdict = judge(read(outcome.history))
    return verdict, [*outcome.broken, *tell(outcome.history, verdict, with_evidence=False)]


@pytest.fixture
def kind(one: Planted) -> Kind:
    """One kind of server for each fault."""
    return KINDS[FAULTS.index(one) % len(KINDS)] if one in FAULTS else KINDS[0]


@pytest.mark.parametrize("one", FAULTS, ids=lambda one: f"{one.fault}-{one.profile}")
@pytest.mark.timeout(400)
def test_the_soak_judge_finds_each_fault_in_the_module(
    one: Planted, kind: Kind, tmp_path: Path
) -> None:
    seen: list[str] = []
    for number in range(SESSIONS_MAX):
        verdict, told = played(one, kind, number, tmp_path)
        if {violation.kind for violation in verdict.violations} & one.kinds:
            return
        seen += told
    pytest.fail(f"not found in {SESSIONS_MAX} sessions; they came to:\n" + "\n".join(seen))


@pytest.mark.parametrize("one", SOUND, ids=lambda one: one.profile)
def test_the_soak_judge_finds_the_module_without_faults_sound(
    one: Planted, kind: Kind, tmp_path: Path
) -> None:
    """Otherwise a finding would say nothing about the fault."""
    _, told = played(one, kind, 0, tmp_path)
    assert told == []
