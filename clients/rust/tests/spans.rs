//! The spans of a job that was made, and of its handler.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use dq_client::testing::Server;
use dq_client::worker::{Failure, RunningJob, Worker};
use dq_client::Queue;
use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{global, Context};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn the_span_of_a_handler_is_a_child_of_the_one_that_made_the_job() {
    use opentelemetry::trace::TraceContextExt;

    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    global::set_tracer_provider(provider);
    global::set_text_map_propagator(TraceContextPropagator::new());
    let server = Server::start().await.unwrap();
    let client = redis::Client::open(server.url()).unwrap();
    let connection = client.get_multiplexed_async_connection().await.unwrap();
    let mail = Queue::new(connection.clone(), "mail").traced();
    mail.add("a", "ann").attempts(1).await.unwrap();

    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let send = move |job: RunningJob| {
        let stopping = stopping.clone();
        async move {
            stopping.cancel();
            assert!(Context::current().span().span_context().is_valid());
            // Programs without spans read the same body.
            assert_eq!(job.body::<String>()?, "ann");
            Err::<(), _>(Failure::bury("no such address"))
        }
    };
    Worker::new(client, send).queue(&mail).serve(stop).await.unwrap();

    let dead = Queue::new(connection, "mail").get("a").await.unwrap().unwrap();
    assert_eq!(dead.body::<String>().unwrap(), "ann");
    let spans = exporter.get_finished_spans().unwrap();
    let [made, handled] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((made.name.as_ref(), &made.span_kind), ("create mail", &SpanKind::Producer));
    assert_eq!((handled.name.as_ref(), &handled.span_kind), ("process mail", &SpanKind::Consumer));
    assert_eq!(handled.parent_span_id, made.span_context.span_id());
    assert_eq!(handled.span_context.trace_id(), made.span_context.trace_id());
    assert_eq!(handled.status, Status::error("no such address"));
    let id = handled.attributes.iter().find(|told| told.key.as_str() == "messaging.message.id");
    assert_eq!(id.unwrap().value.as_str(), "a");
}
