"""Messages as jobs, and deliveries as messages: no server needed."""

from typing import Any

import pytest
from kombu.utils.json import dumps

from kombu_dq.job import due_ms, is_in_chord, job_of, payload_of, supersedes
from kombu_dq.wire import Delivery

NOW_MS = 1_795_255_200_000


def message(body: object = "x", **headers: Any) -> dict[str, Any]:
    return {
        "body": dumps(body),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": headers,
        "properties": {
            "delivery_tag": "tag-1",
            "delivery_info": {"exchange": "", "routing_key": "q"},
        },
    }


@pytest.mark.parametrize(
    ("eta", "expected"),
    [
        (None, None),
        ("2026-11-21T10:00:00+00:00", 1_795_255_200_000),
        ("2026-11-21T10:00:00Z", 1_795_255_200_000),
        ("2026-11-21T11:00:00+01:00", 1_795_255_200_000),
        ("2026-11-21T10:00:00", 1_795_255_200_000),  # no zone: UTC
        ("2026-11-21T10:00:00.000001+00:00", 1_795_255_200_001),  # never early
        ("2026-11-21T10:00:00.001000+00:00", 1_795_255_200_001),
        ("1960-01-01T00:00:00+00:00", 0),
        ("9999-12-31T23:59:59.999999+00:00", 253_402_300_800_000),
        ("tomorrow", None),
        ("", None),
        (17, None),
    ],
)
def test_an_eta_is_a_due_time_and_never_earlier(eta: object, expected: int | None) -> None:
    assert due_ms(eta) == expected


def test_a_task_is_a_job_under_its_own_id() -> None:
    job = job_of(message(task="t", id="task-1", eta="2026-11-21T10:00:00Z"), 3)
    assert (job.id, job.options()) == ("task-1", ["AT", 1_795_255_200_000, "PRIORITY", 3])


@pytest.mark.parametrize(
    "headers", [{}, {"id": "not a task's"}, {"task": "t", "id": "x" * 513}, {"task": "t"}]
)
def test_a_message_that_is_no_task_is_a_job_under_its_delivery_tag(headers: dict[str, str]) -> None:
    assert job_of(message(**headers), 0).id == "tag-1"


def test_a_second_id_for_a_task_is_never_too_long() -> None:
    job = job_of(message(task="t", id="x" * 500), 0)
    assert job.under_another_id("tag-1").id == "x" * 500 + "~tag-1"
    assert job.under_another_id("tag-123456789").id == "tag-123456789"


def delivery(attempt: int = 1, **headers: Any) -> Delivery:
    return Delivery(b"a", dumps(message(**headers)).encode(), 17, attempt)


def test_a_delivery_is_the_message_under_a_tag_of_its_own() -> None:
    payload = payload_of(delivery(task="t", id="task-1"), "q:a:17", NOW_MS)
    assert payload["properties"]["delivery_tag"] == "q:a:17"
    assert payload["headers"] == {"task": "t", "id": "task-1"}
    assert "redelivered" not in payload["properties"]["delivery_info"]


def test_a_second_attempt_is_redelivered() -> None:
    payload = payload_of(delivery(attempt=2, task="t"), "q:a:18", NOW_MS)
    assert payload["headers"]["redelivered"]
    assert payload["properties"]["delivery_info"]["redelivered"]


@pytest.mark.parametrize(
    ("eta", "seen"),
    [
        ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z"),
        ("2026-11-21T10:01:00Z", "2026-11-21T10:01:00Z"),  # the server's clock is a minute ahead
        ("2026-11-21T10:01:01Z", None),  # kicked
        ("tomorrow", "tomorrow"),
    ],
)
def test_the_eta_header_stays_unless_the_job_was_kicked(eta: str, seen: str | None) -> None:
    assert payload_of(delivery(eta=eta), "t", NOW_MS)["headers"] == {"eta": seen}


@pytest.mark.parametrize(
    "body", [b"", b"hello", b"[]", b"17", b"{}", b'{"headers": 1, "properties": {}}', b"\xff"]
)
def test_a_body_that_is_no_message_is_an_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"no message|Expecting|codec"):
        payload_of(Delivery(b"a", body, 17, 1), "t", NOW_MS)


@pytest.mark.parametrize(
    ("later", "earlier", "expected"),
    [
        ({"retries": 1}, {"retries": 0}, True),
        ({"retries": 1}, {}, True),
        ({"retries": 0}, {"retries": 0}, False),
        ({"retries": 0}, {"retries": 1}, False),
        (
            {"replaced_task_nesting": 1, "retries": 0},
            {"replaced_task_nesting": 0, "retries": 2},
            True,
        ),
        ({"retries": "x"}, {"retries": 0}, False),
    ],
)
def test_a_retry_supersedes_the_task_it_retries(later: Any, earlier: Any, expected: bool) -> None:
    assert supersedes(message(**later), dumps(message(**earlier)).encode()) is expected


def test_a_retry_supersedes_no_job_that_is_no_message() -> None:
    assert not supersedes(message(retries=1), b"hello")


def test_a_task_in_the_header_of_a_chord_is_known_by_it() -> None:
    chord, no_chord = [[], {}, {"chord": {"task": "sum"}}], [[], {}, {"chord": None}]
    assert is_in_chord(dumps(message(chord, group="g")).encode())
    assert not is_in_chord(dumps(message(no_chord, group="g")).encode())
    assert not is_in_chord(dumps(message(no_chord)).encode())
    # What can't be read may be in one.
    assert is_in_chord(
        dumps(message("?", group="g") | {"content-type": "application/x-pickle"}).encode()
    )
