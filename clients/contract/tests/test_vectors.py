"""Tables of what must come out the same in every language (vectors/*.json)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.paths import ROOT
from runner.program import Program

VECTORS = Path(__file__).resolve().parents[1] / "vectors"


def rows(name: str) -> list[Any]:
    rows: list[Any] = json.loads((VECTORS / f"{name}.json").read_text())
    return rows


@pytest.mark.parametrize("row", rows("topic"), ids=lambda row: f"{row['name']}-{row['shards']}")
def test_a_topic_has_these_queues_and_an_id_is_in_this_one(row: Any, program: Program) -> None:
    ids = list(row["queue_of"])
    told = program.ask("topic", name=row["name"], shards=row["shards"], ids=ids)
    assert told == {"queues": row["queues"], "queue_of": row["queue_of"]}


@pytest.mark.parametrize("row", rows("topic"), ids=lambda row: f"{row['name']}-{row['shards']}")
def test_the_topics_are_those_of_the_page_on_scaling(row: Any) -> None:
    page = (ROOT / "docs" / "scaling.md").read_text()
    block = re.search(r"<!-- topic:.*?-->\n```python\n(.*?)```", page, re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(block[1], names)
    topic = names["Topic"](row["name"], row["shards"])
    assert topic.queues == row["queues"]
    assert {id: topic.queue_of(id) for id in row["queue_of"]} == row["queue_of"]


@pytest.mark.parametrize("row", rows("codec"), ids=lambda row: f"{row['codec']}-{row['value']}")
def test_a_value_has_these_bytes(row: Any, program: Program) -> None:
    encoded = program.ask("encode", codec=row["codec"], value=row["value"])
    assert encoded == row["bytes"]
    decoded = program.ask("decode", codec=row["codec"], bytes=row["bytes"])
    assert decoded == row["value"]


@pytest.mark.parametrize("row", rows("envelope"), ids=lambda row: str(row["payload"]))
def test_headers_travel_in_an_envelope(row: Any, program: Program) -> None:
    if not row.get("read_only"):
        payload = program.ask("wrap", body=row["body"], headers=row["headers"])
        assert payload == row["payload"]
    told = program.ask("unwrap", payload=row["payload"])
    assert told == {"body": row["body"], "headers": row["headers"]}


@pytest.mark.parametrize("row", rows("flow"), ids=lambda row: json.dumps(row["flow"]))
def test_a_flow_is_these_jobs(row: Any, program: Program) -> None:
    told = program.ask("flow", flow=row["flow"])
    assert told == {"adds": row["adds"], "last": row["last"]}
