"""The oracle on a recorded session: the session passes as it is, and fails with each planted fault."""

from pathlib import Path

import pytest

from .history import Record, read
from .oracle import judge
from .plant import FAULTS, Fault, planted

HISTORY = Path(__file__).parent / "histories" / "sample.jsonl"


@pytest.fixture(scope="module")
def history() -> list[Record]:
    return list(read(HISTORY))


def test_the_soak_judge_passes_a_sound_history(history: list[Record]) -> None:
    verdict = judge(history)
    assert [str(violation) for violation in verdict.violations] == []
    assert verdict.counts["deliveries"] > 200
    assert verdict.counts["cuts"] > 1


@pytest.mark.parametrize("one", FAULTS, ids=lambda one: one.name)
def test_the_soak_judge_finds_each_planted_fault(history: list[Record], one: Fault) -> None:
    with_fault = planted(history, one)
    assert with_fault is not None, "the history has no place for it"
    assert {violation.kind for violation in judge(with_fault).violations} & one.kinds


def test_half_a_line_at_the_end_of_a_history_is_left_out(tmp_path: Path) -> None:
    """A program that was killed leaves such a line."""
    cut = tmp_path / "cut.jsonl"
    cut.write_text(HISTORY.read_text()[:-10])
    assert len(list(read(cut))) == len(list(read(HISTORY))) - 1
