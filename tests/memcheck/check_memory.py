"""`make memcheck`: what the module takes, it gives back, and it touches nothing else.

Its name isn't that of a test file: it takes minutes, and the second build of the module.
"""

import sys
from pathlib import Path

import pytest

from harness.paths import TARGET
from harness.server import MODULE, Kind

sys.path.append(str(Path(__file__).resolve().parents[1]))

from memcheck import tour
from memcheck.valgrind import SEEN, Watched

PLANTED = TARGET / "faults" / "leak.so"

# A tour under valgrind is that of a machine thirty times as slow.
pytestmark = pytest.mark.timeout(1_800)


@pytest.mark.parametrize("kind", SEEN, ids=str)
def test_a_tour_of_the_module_has_no_memory_errors(kind: Kind, tmp_path: Path):
    watched = Watched(kind, tmp_path, MODULE)
    tour.take(watched.server)
    faults = watched.faults()
    assert not faults, "\n".join(map(str, faults))


@pytest.mark.parametrize("kind", SEEN, ids=str)
def test_valgrind_finds_a_planted_leak(kind: Kind, tmp_path: Path):
    watched = Watched(kind, tmp_path, PLANTED)
    with watched.server.client() as r:
        for number in range(50):
            r.execute_command("DQ.ADD", "q", f"id-{number}", "body")
    faults = watched.faults()
    assert any("lose_memory" in "".join(fault.stack) for fault in faults), "\n".join(
        map(str, faults)
    )
