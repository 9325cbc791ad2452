//! One page, two ways: as HTML for whoever opens it, and under the same address as a stream of
//! server-sent events, each the main part of the page as it is now. board.js changes in the page
//! what differs, so nothing flickers, and there is one place that says how a page looks.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{header, HeaderMap, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use super::layout::{self, Frame};
use super::page::Page;
use crate::watch::TURN;

/// After that a browser opens the stream anew, and is asked again who its reader is.
const LASTS: Duration = Duration::from_secs(600);

pub async fn serve<A, R, F>(
    app: Arc<A>,
    headers: HeaderMap,
    outcome: Option<u64>,
    render: R,
) -> Response
where
    A: Frame,
    R: Fn(Arc<A>) -> F + Send + 'static,
    F: Future<Output = Page> + Send + 'static,
{
    let accept = headers.get(header::ACCEPT).map(|accept| accept.as_bytes()).unwrap_or_default();
    if !accept.starts_with(b"text/event-stream") {
        let page = render(app.clone()).await;
        return layout::answer(&*app, &page, outcome);
    }
    match app.visit().board.streams.clone().try_acquire_owned() {
        Ok(permit) => stream(app, outcome, render, permit).into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "too many pages are open\n").into_response(),
    }
}

struct Live<A, R> {
    app: Arc<A>,
    outcome: Option<u64>,
    render: R,
    last: String,
    began: Instant,
    /// Given back when the reader goes away.
    _permit: OwnedSemaphorePermit,
}

fn stream<A, R, F>(
    app: Arc<A>,
    outcome: Option<u64>,
    render: R,
    permit: OwnedSemaphorePermit,
) -> impl IntoResponse
where
    A: Frame,
    R: Fn(Arc<A>) -> F + Send + 'static,
    F: Future<Output = Page> + Send + 'static,
{
    let (last, began) = (String::new(), Instant::now());
    let live = Live { app, outcome, render, last, began, _permit: permit };
    Sse::new(stream::unfold(live, |mut live| async move {
        sleep(TURN).await;
        if live.began.elapsed() > LASTS || !live.app.visit().is_current() {
            return None;
        }
        let page = (live.render)(live.app.clone()).await;
        let main = layout::main(&*live.app, &page, live.outcome).into_string();
        // A turn in which nothing changed is told too: the reader sees that the board is there.
        let event = if main == live.last {
            Event::default().event("same").data("")
        } else {
            // As a JSON string: it has no line ends, which mean something in a stream.
            let data = serde_json::to_string(&[&page.title, &main]).unwrap_or_default();
            live.last = main;
            Event::default().event("page").data(data)
        };
        Some((Ok::<_, Infallible>(event), live))
    }))
}
