"""Spans: that of a handler is a child of the one that made the job, across the queue."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from dq_client import Queue
from dq_client.tracing import Tracing
from dq_client.worker import Bury, RunningJob, Worker


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: InMemorySpanExporter) -> Tracing:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Tracing(provider)


def test_the_trace_goes_on_in_the_handler(
    queue: Callable[..., Queue], tracing: Tracing, exporter: InMemorySpanExporter
) -> None:
    q = queue(tracing=tracing)
    q.add("a", {"n": 1})
    q.add("b", {"n": 2}, delay=timedelta(milliseconds=1))
    seen = []

    def handle(job: RunningJob) -> None:
        seen.append(job.body)
        if len(seen) == 2:
            worker.stop()
            raise Bury("no such address")

    worker = Worker(q, handle, concurrency=1)
    worker.run()
    assert seen == [{"n": 1}, {"n": 2}]
    a_made, b_made, a_done, b_done = exporter.get_finished_spans()
    assert [a_made.name, a_made.kind] == ["create q", SpanKind.PRODUCER]
    assert [a_done.name, a_done.kind] == ["process q", SpanKind.CONSUMER]
    for made, done in ((a_made, a_done), (b_made, b_done)):
        assert done.parent is not None
        assert done.parent.span_id == made.context.span_id
        assert done.context.trace_id == made.context.trace_id
    assert a_done.attributes is not None
    assert (
        a_done.attributes.items()
        >= {
            "messaging.system": "dq",
            "messaging.destination.name": "q",
            "messaging.operation.type": "process",
            "messaging.message.id": "a",
        }.items()
    )
    assert a_done.status.status_code == StatusCode.UNSET
    assert b_done.status.status_code == StatusCode.ERROR


def test_a_program_without_tracing_reads_the_same_body(
    queue: Callable[..., Queue], tracing: Tracing
) -> None:
    queue(tracing=tracing).add("a", {"n": 1})
    shown = queue().get("a")
    assert shown is not None
    assert shown.body == {"n": 1}
    (job,) = queue().pop()
    assert job.body == {"n": 1}
    assert "traceparent" in job.headers
