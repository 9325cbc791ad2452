"""Methods have the parameters that the module's grammar says (clients/contract/commands.json), and
replies the fields. So a change of the grammar makes one of these tests fail.
"""

import inspect
import json
from pathlib import Path

import pytest

from dq_client import AsyncQueue, Edges, Group, Info, Job, Queue, Schedule, commands
from dq_client.replies import wire_names

CONTRACT = json.loads(
    (Path(__file__).resolve().parents[2] / "contract" / "commands.json").read_text()
)
METHODS = {"del": "delete", "madd": "add_many"}
OPTIONS: dict[str, type] = {"add": commands.AddOptions, "madd": commands.JobOptions}
OF_OTHER_METHODS = {"pop": {"finish"}, "mpop": {"finish"}}
PARAMETERS = {"from": "from_", "for": "for_", "job": "jobs"}


@pytest.mark.parametrize("name", CONTRACT["commands"])
def test_a_method_takes_what_its_command_takes(name: str) -> None:
    method = METHODS.get(name, name)
    build = getattr(Queue, method).build
    assert getattr(AsyncQueue, method).build is build
    taken = set(inspect.signature(build).parameters) - {"key"}
    if name in OPTIONS:
        taken = (taken - {"options"}) | set(OPTIONS[name].__annotations__)
    call = CONTRACT["commands"][name]["call"]
    wanted = {PARAMETERS.get(one["name"], one["name"]) for one in call} - {"key"}
    # It may know more: that of a newer server. Grammars grow, and never shrink.
    assert wanted - OF_OTHER_METHODS.get(name, set()) <= taken


@pytest.mark.parametrize("name", ["pop", "mpop"])
def test_a_method_that_finishes_first_takes_the_other_options(name: str) -> None:
    build = getattr(Queue, f"finish_and_{name}").build
    assert getattr(AsyncQueue, f"finish_and_{name}").build is build
    wanted = {one["name"] for one in CONTRACT["commands"][name]["call"] if "token" in one}
    assert wanted - {"finish", "id"} == set(commands.PopOptions.__annotations__)


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("job", Job),
        ("edges", Edges),
        ("schedule", Schedule),
        ("info", Info),
        ("group", Group),
    ],
)
def test_a_reply_has_the_fields_that_the_server_shows(what: str, kind: type) -> None:
    assert set(CONTRACT["fields"][what]) <= set(wire_names(kind).values())
