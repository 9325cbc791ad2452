"""Where and when a test runs, said at a test or, as `pytestmark`, for a whole file."""

import pytest

from harness.server import KNOWN

# On one kind of server: for what no server has a part in, as the wording of errors and the pages of
# docs/.
on_one_kind = pytest.mark.parametrize("kind", [KNOWN["redis-8.2"]], ids=str, indirect=True)

# Last, and with no other test beside it (conftest.py): for what measures times or loads the
# machine.
alone = pytest.mark.alone
