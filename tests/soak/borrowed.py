"""What the judge uses of the black-box harness: the servers, the path of the module, and the protocol.

No other file of tests/soak imports that harness.
"""

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
# Its modules are top-level ones, as pytest imports them.
sys.path.append(str(_TESTS / "blackbox"))

from harness.paths import ROOT, TARGET  # noqa: E402
from harness.ports import free_port  # noqa: E402
from harness.resp import LINE, Failure, read_reply  # noqa: E402
from harness.server import CONFIG, KINDS, KNOWN, MODULE, Kind  # noqa: E402
from harness.wall_clock import WallClock  # noqa: E402

__all__ = [
    "CONFIG",
    "KINDS",
    "KNOWN",
    "LINE",
    "MODULE",
    "ROOT",
    "TARGET",
    "Failure",
    "Kind",
    "WallClock",
    "free_port",
    "read_reply",
]
