"""docs/settings.md has all settings with their defaults, and all fields of INFO."""

import re

from harness.marks import on_one_kind
from harness.paths import ROOT
from harness.server import Server

PAGE = (ROOT / "docs" / "settings.md").read_text()


@on_one_kind
def test_the_table_of_configs_states_the_defaults(server: Server) -> None:
    stated = dict(re.findall(r"^\| `(dq\.[a-z-]+)` \| (\d+(?: \d+)?) \|", PAGE, re.MULTILINE))
    assert stated == server.client().config_get("dq.*")


@on_one_kind
def test_the_table_of_info_has_all_fields(server: Server) -> None:
    rows = re.findall(r"^\| (`dq_.*?) \|", PAGE, re.MULTILINE)
    told = server.client().info("dq")
    assert sorted(re.findall(r"`(dq_\w+)`", " ".join(rows))) == sorted(told)
