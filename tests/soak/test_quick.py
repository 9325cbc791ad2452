"""A short session on each server, with three sorts of faults. `make soak` plays long ones, with all faults."""

import asyncio
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .borrowed import KINDS, ROOT, Kind, WallClock
from .faults_in_module import FAULTS
from .history import read
from .oracle import judge
from .report import tell
from .runner import node
from .runner.profiles import PROFILES, quick
from .runner.session import Outcome, play

# Another one finds other things: DQ_SOAK_SEED=17 make test-blackbox ARGS=tests/soak
SEED = os.environ.get("DQ_SOAK_SEED", "quick")
PROFILES_PLAYED = ("crash-always", "failover", "keys")
SESSIONS = [(kind, PROFILES_PLAYED[at % 3]) for at, kind in enumerate(KINDS)]
SECONDS = 3.5


def played(kind: Kind, profile: str, directory: Path) -> Outcome:
    session = replace(quick(PROFILES[profile]), seconds=SECONDS)
    return asyncio.run(play(kind, session, f"{SEED}/{profile}", directory / "session"))


@pytest.mark.parametrize(("kind", "profile"), SESSIONS, ids=str)
def test_a_short_soak_session_is_sound(kind: Kind, profile: str, tmp_path: Path) -> None:
    outcome = played(kind, profile, tmp_path)
    verdict = judge(read(outcome.history))
    assert [*outcome.broken, *tell(outcome.history, verdict, with_evidence=True)] == []
    # A session in which little happens shows little.
    assert verdict.counts["operations"] > 200
    assert verdict.counts["deliveries"] > 30


class DeafClock(WallClock):
    """A clock that no server uses."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.environment = {}


def test_a_soak_session_whose_servers_do_not_hear_their_clocks_is_not_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clocks of the session's replicas differ from the beginning."""
    monkeypatch.setattr(node, "WallClock", DeafClock)
    (broken,) = played(KINDS[0], "replica-clock", tmp_path).broken
    assert "b doesn't hear its clock: what it shows is wrong by -300." in broken


PATCHES = sorted((ROOT / "tests" / "faults").glob("*.patch"))


def test_each_fault_patch_is_in_the_list_of_faults_to_find() -> None:
    assert {one.fault for one in FAULTS} == {patch.stem for patch in PATCHES}


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_each_fault_patch_applies_to_the_sources(patch: Path) -> None:
    subprocess.run(["git", "apply", "--check", patch], cwd=ROOT, check=True)
