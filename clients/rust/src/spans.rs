//! OpenTelemetry. Names and attributes are those of the semantic conventions for messaging.

use std::collections::HashMap;
use std::fmt::Display;
use std::future::Future;

use opentelemetry::global;
use opentelemetry::trace::{FutureExt, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};

use crate::envelope::Headers;
use crate::replies::Delivery;
use crate::words::Text;

/// The context of a span for the making of a job.
pub(crate) fn create(queue: &Text) -> Headers {
    let tracer = global::tracer("dq_client");
    let span = tracer
        .span_builder(format!("create {queue}"))
        .with_kind(SpanKind::Producer)
        .with_attributes(attributes(queue, "create"))
        .start(&tracer);
    let context = Context::current_with_span(span);
    let mut headers = HashMap::<String, String>::new();
    global::get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut headers));
    let mut headers: Headers = headers.into_iter().collect();
    headers.sort();
    headers
}

/// Runs a handler in its span. What it fails with is the span's error.
pub(crate) async fn process<Done, Failure>(
    job: &Delivery,
    work: impl Future<Output = Result<Done, Failure>>,
) -> Result<Done, Failure>
where
    Failure: Display,
{
    let headers: HashMap<String, String> = job.headers.iter().cloned().collect();
    let parent = global::get_text_map_propagator(|propagator| propagator.extract(&headers));
    let tracer = global::tracer("dq_client");
    let mut told = attributes(&job.key, "process");
    told.push(KeyValue::new("messaging.message.id", job.id.to_string()));
    told.push(KeyValue::new("dq.attempt", job.attempt));
    let span = tracer
        .span_builder(format!("process {}", job.key))
        .with_kind(SpanKind::Consumer)
        .with_attributes(told)
        .start_with_context(&tracer, &parent);
    let context = parent.with_span(span);
    let ended = work.with_context(context.clone()).await;
    if let Err(failure) = &ended {
        context.span().set_status(Status::error(failure.to_string()));
    }
    context.span().end();
    ended
}

fn attributes(queue: &Text, operation: &'static str) -> Vec<KeyValue> {
    vec![
        KeyValue::new("messaging.system", "dq"),
        KeyValue::new("messaging.destination.name", queue.to_string()),
        KeyValue::new("messaging.operation.name", operation),
        KeyValue::new("messaging.operation.type", operation),
    ]
}
