"""OpenTelemetry, for those who have it (`pip install dq-client[opentelemetry]`).

    tracing = Tracing()
    mail = Queue(redis.Redis(), "mail", tracing=tracing)

A job carries the context in which it was made, in its envelope. The span of its handler is a child
of the span that made it. Names and attributes are those of the semantic conventions for messaging.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from dq_client.replies import Delivery
from dq_client.words import text_of


class Tracing:
    def __init__(self, provider: trace.TracerProvider | None = None):
        self._tracer = trace.get_tracer("dq_client", tracer_provider=provider)

    def headers(self, queue: str) -> dict[str, str]:
        """The context of a span for the making of a job."""
        headers: dict[str, str] = {}
        with self._tracer.start_as_current_span(
            f"create {queue}", kind=SpanKind.PRODUCER, attributes=_attributes(queue, "create")
        ):
            propagate.inject(headers)
        return headers

    @contextmanager
    def processing(self, job: Delivery) -> Generator[None, None, None]:
        """The span of a handler. What it raises is the span's error."""
        attributes = _attributes(job.key, "process") | {"messaging.message.id": job.id}
        with self._tracer.start_as_current_span(
            f"process {job.key}",
            context=propagate.extract(dict(job.headers)),
            kind=SpanKind.CONSUMER,
            attributes=attributes | {"dq.attempt": job.attempt},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except BaseException as error:
                span.set_attribute("error.type", type(error).__qualname__)
                span.set_status(Status(StatusCode.ERROR, text_of(error)))
                raise


def _attributes(queue: str, operation: str) -> dict[str, Any]:
    return {
        "messaging.system": "dq",
        "messaging.destination.name": queue,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }
