//! Dead jobs as a file: one line of JSON for each, sent as they are read.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::RawQuery;
use axum::http::{header, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::Extension;
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::choice::Choice;
use super::selection::Tick;
use super::{fields, job, layout, selection, App, Shared};
use crate::bytes::Fields;
use crate::server::job::Job;
use crate::server::jobs::reach;
use crate::server::node::Node;
use crate::server::queue::{Info, State as JobState};
use crate::server::walk::{Mark, Order, Walk};
use crate::server::{Result, Trouble};

/// Each keeps a batch of jobs in memory, 16 MB at most.
pub const DOWNLOADS_MAX: usize = 8;
/// Lines are made for so many bytes, or for one job: JSON takes six for a byte that can't be seen.
const AT_ONCE: usize = 256 << 10;

/// All that fit.
pub async fn all(Extension(app): Shared, query: RawQuery) -> Response {
    serve(app, fields(query), Which::All).await
}

/// Those that were ticked.
pub async fn ticked(Extension(app): Shared, body: Bytes) -> Response {
    serve(app, Fields::parse(&body), Which::Ticked).await
}

#[derive(PartialEq, Eq)]
enum Which {
    All,
    Ticked,
}

async fn serve(app: Arc<App>, fields: Fields, which: Which) -> Response {
    let Some(queue) = fields.bytes("queue") else {
        return (StatusCode::BAD_REQUEST, "queue is needed\n").into_response();
    };
    let Ok(permit) = app.board.downloads.clone().try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many downloads at once: try again\n")
            .into_response();
    };
    let name = format!("attachment; filename=\"dead-{}.ndjson\"", job::plain(&queue));
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson".into()),
        (header::CONTENT_DISPOSITION, name),
    ];
    let rest = match which {
        Which::All => Ok(Rest::of_all(&fields)),
        Which::Ticked => Rest::of_ticked(&fields),
    };
    let Ok(rest) = rest else {
        let why = format!("job must name jobs of the page, {} at most\n", selection::TICKED_MAX);
        return (StatusCode::BAD_REQUEST, why).into_response();
    };
    match body(app, queue, rest, permit).await {
        Ok(body) => (headers, body).into_response(),
        Err(trouble) => {
            (layout::status_of_trouble(&trouble), format!("{trouble}\n")).into_response()
        }
    }
}

/// A file under way.
struct Sending {
    app: Arc<App>,
    queue: Vec<u8>,
    info: Info,
    node: Arc<Node>,
    /// Jobs that die while it is sent are not in it, or it might never end.
    until: u64,
    rest: Rest,
    /// Jobs that were read.
    batch: VecDeque<Job>,
    /// Given back at the end.
    _permit: OwnedSemaphorePermit,
}

/// What is still to be sent.
enum Rest {
    All { choice: Choice, mark: Option<Mark> },
    Ticked(VecDeque<Tick>),
}

impl Rest {
    fn of_all(fields: &Fields) -> Rest {
        let choice = Choice { order: Order::Oldest, ..Choice::of(JobState::Dead, fields) };
        Rest::All { choice, mark: Some(Mark::first(JobState::Dead)) }
    }

    fn of_ticked(fields: &Fields) -> std::result::Result<Rest, ()> {
        let ticked = selection::ticked(fields).filter(|all| all.len() <= selection::TICKED_MAX);
        ticked.map(|ticked| Rest::Ticked(ticked.into())).ok_or(())
    }

    fn is_over(&self) -> bool {
        match self {
            Rest::All { mark, .. } => mark.is_none(),
            Rest::Ticked(ticked) => ticked.is_empty(),
        }
    }
}

async fn body(
    app: Arc<App>,
    queue: Vec<u8>,
    rest: Rest,
    permit: OwnedSemaphorePermit,
) -> Result<Body> {
    let (info, node) = selection::queue_of(&app, &queue).await?;
    let place = selection::place(&app, &queue, &info, node.clone());
    let until = selection::last(&app, &place, JobState::Dead).await?;
    let batch = VecDeque::new();
    let sending = Sending { app, queue, info, node, until, rest, batch, _permit: permit };
    Ok(Body::from_stream(stream::try_unfold(sending, |mut sending| async move {
        // An error cuts the connection: the reader's program sees that the file isn't whole.
        match sending.batch.is_empty() && sending.rest.is_over() {
            true => Ok::<_, Trouble>(None),
            false => Ok(Some((sending.lines().await?, sending))),
        }
    })))
}

impl Sending {
    /// The next jobs as lines, or none where none of those that were read fit.
    async fn lines(&mut self) -> Result<Vec<u8>> {
        if self.batch.is_empty() {
            self.batch = self.read().await?.into();
        }
        let mut lines = Vec::new();
        while let Some(job) = self.batch.pop_front() {
            write_line(&mut lines, &job);
            if lines.len() >= AT_ONCE {
                break;
            }
        }
        Ok(lines)
    }

    async fn read(&mut self) -> Result<Vec<Job>> {
        let place = selection::place(&self.app, &self.queue, &self.info, self.node.clone());
        match &mut self.rest {
            Rest::All { choice, mark } => {
                let from = mark.take().unwrap_or(Mark::first(JobState::Dead));
                let size = reach(&self.info);
                let mut walk = Walk::new(&place, JobState::Dead, Order::Oldest, from, size);
                let mut batch = walk.batch().await?;
                let many = batch.len();
                batch.retain(|job| job.since <= Some(self.until));
                *mark = walk.mark.filter(|_| batch.len() == many);
                batch.retain(|job| choice.filter.fits(job));
                Ok(batch)
            }
            Rest::Ticked(ticked) => {
                let many = ticked.len().min(selection::TOGETHER);
                let few: Vec<Tick> = ticked.drain(..many).collect();
                selection::still_there_whole(&place, JobState::Dead, &few).await
            }
        }
    }
}

fn write_line(lines: &mut Vec<u8>, job: &Job) {
    let bytes =
        |name: &'static str, bytes: Option<&Vec<u8>>| match bytes.map(|b| std::str::from_utf8(b)) {
            None => (name.to_string(), Value::Null),
            Some(Ok(text)) => (name.to_string(), text.into()),
            // What isn't text says so by its name.
            Some(Err(_)) => {
                (format!("{name}_base64"), bytes.map(|bytes| STANDARD.encode(bytes)).into())
            }
        };
    let fields = [
        bytes("id", Some(&job.id)),
        ("state".into(), job.state.name().into()),
        ("died".into(), job.since.into()),
        bytes("reason", job.reason.as_ref()),
        ("attempt".into(), job.attempt.into()),
        ("attempts".into(), job.attempts.into()),
        ("created".into(), job.created.into()),
        ("priority".into(), job.priority.into()),
        bytes("group", job.group.as_ref()),
        bytes("note", job.note.as_ref()),
        bytes("body", Some(&job.body)),
    ];
    // In this order, which a map of serde_json would not keep.
    let fields = fields.map(|(name, value)| format!("{}:{value}", Value::from(name)));
    lines.extend_from_slice(format!("{{{}}}\n", fields.join(",")).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_all_bytes_of_a_job() {
        let every: Vec<u8> = (0..=255).collect();
        let job = Job {
            id: b"a\"\n\0b".into(),
            body: every.clone(),
            reason: Some("Größe\u{2028}\u{202e}".into()),
            since: Some(17),
            ..Job::new()
        };
        let mut line = Vec::new();
        write_line(&mut line, &job);
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let read: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(read["id"], "a\"\n\0b");
        assert_eq!(read["reason"], "Größe\u{2028}\u{202e}");
        assert_eq!(
            (&read["died"], &read["note"], &read["body"]),
            (&17.into(), &Value::Null, &Value::Null)
        );
        assert_eq!(STANDARD.decode(read["body_base64"].as_str().unwrap()).unwrap(), every);
    }
}
