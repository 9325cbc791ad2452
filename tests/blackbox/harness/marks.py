"""Marks that say where and when a test runs: on a test or, as `pytestmark`, on a whole file."""

import pytest

from harness.server import KNOWN

# On one kind of server: for what does not depend on the server, such as the wording of errors and
# the pages of docs/.
on_one_kind = pytest.mark.parametrize("kind", [KNOWN["redis-8.2"]], ids=str, indirect=True)

# Last, and with no other test beside it (conftest.py): for what measures times or loads the
# machine.
alone = pytest.mark.alone

# Not in `make test`: for what takes many seconds and is covered in part by quicker tests.
# `make test-long` runs these tests alone, `make test-blackbox` and `make test-all` with all others.
long = pytest.mark.long
