"""docs/servers.md says which servers are tested, and these are tested."""

import pytest

from harness.paths import ROOT
from harness.server import KNOWN, Kind


@pytest.mark.parametrize("kind", KNOWN.values(), ids=KNOWN)
def test_the_page_of_servers_names_each_server_that_is_fetched(kind: Kind) -> None:
    title = f"{kind.family.capitalize()} {kind.version}"
    assert title in (ROOT / "docs" / "servers.md").read_text()


def test_make_test_all_runs_on_all_known_servers() -> None:
    assert f"SERVERS:-{' '.join(KNOWN)}}}" in (ROOT / "scripts" / "test_all.sh").read_text()
