"""An error of one of many jobs is what it is of one job alone, and names its job."""

from collections.abc import Callable
from typing import Any

import pytest

from runner.program import Program, Refused

Raw = dict[str, Any]
JOBS = [{"id": "a", "body": "x"}, {"id": "b", "body": "y"}]


@pytest.mark.parametrize(
    ("type_", "place", "jobs", "options"),
    [
        ("Exists", 2, [JOBS[0], {"id": "taken", "body": "y"}], {}),
        ("Full", 2, JOBS, {}),
        ("NoJob", 1, JOBS, {"after": ["nobody"]}),
        ("NotHeld", 1, JOBS, {"before": ["taken"]}),
        ("Invalid", 2, [JOBS[0], {"id": "", "body": "y"}], {}),
    ],
)
def test_an_error_of_one_of_many_jobs_has_the_type_that_it_has_alone(
    connect: Callable[[int], Program], type_: str, place: int, jobs: list[Raw], options: Raw
) -> None:
    program = connect(2)

    def ask(command: str, **arguments: Any) -> Any:
        return program.ask("call", command=command, key="q", arguments=arguments)

    def refused(command: str, **arguments: Any) -> Raw:
        with pytest.raises(Refused) as refused:
            ask(command, **arguments)
        error: Raw = refused.value.error
        return error

    ask("add", id="taken", body="x")
    if type_ == "Full":
        ask("alter", maxjobs=2)
    of_many = refused("madd", job=jobs, **options)
    if type_ == "Full":
        ask("alter", maxjobs=1)
    alone = refused("add", **jobs[place - 1], **options)
    assert alone["type"] == type_
    assert of_many == alone | {"message": f"job {place}: {alone['message']}"}
    assert ask("len") == 1


def test_an_id_that_is_given_twice_is_a_mistake(connect: Callable[[int], Program]) -> None:
    arguments = {"job": [JOBS[0], JOBS[0]], "nx": True}
    with pytest.raises(Refused) as refused:
        connect(2).ask("call", command="madd", key="q", arguments=arguments)
    error = {"type": "Invalid", "code": "ERR", "message": "job 2: the id 'a' is given twice"}
    assert refused.value.error == error
