//! The pages.
//!
//! | file | what it is |
//! | --- | --- |
//! | `guard.rs` | who is let in, and the headers that keep a page to itself |
//! | `live.rs` | one page, as HTML or as a stream of its newest states |
//! | `layout.rs` | what all pages have in common |
//! | `overview.rs`, `queue.rs`, `job.rs` | the pages; `list.rs` has a queue's jobs, `groups.rs` its groups, `facts.rs` what is beside them |
//! | `forms.rs`, `act.rs` | with --writable: forms, and what they do |
//! | `body.rs` | a job's body as text, JSON, hex, and as a download |
//! | `chart.rs`, `words.rs` | small charts; numbers, spans and times in words |
//! | `assets.rs` | style, script and icon, which are part of the program |

mod act;
mod assets;
mod body;
mod chart;
mod facts;
mod forms;
mod groups;
mod guard;
mod job;
mod layout;
mod list;
mod live;
mod overview;
mod queue;
mod words;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, RawQuery, State};
use axum::http::{header, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{middleware, Router};
use tokio::sync::Semaphore;
use tower_http::catch_panic::CatchPanicLayer;

pub use guard::Guard;

use crate::args::{Args, Verb};
use crate::bytes::Fields;
use crate::metrics;
use crate::watch::Watch;

/// Streams that are open at a time: each costs a reading of its page every turn.
const STREAMS_MAX: usize = 100;

/// The largest form: a body of a megabyte, each byte of which may take three.
const FORM_MAX: usize = 4 << 20;

/// What every request is answered from.
pub struct App {
    pub watch: Arc<Watch>,
    pub verbs: Vec<Verb>,
    guard: Guard,
    forms: forms::Forms,
    streams: Arc<Semaphore>,
    metrics: Arc<metrics::Choice>,
}

type Shared = State<Arc<App>>;

impl App {
    pub fn new(args: &Args, watch: Arc<Watch>) -> Result<Arc<App>, String> {
        Ok(Arc::new(App {
            watch,
            verbs: args.verbs(),
            guard: Guard::new(args),
            forms: forms::Forms::new()?,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            metrics: Arc::new(metrics::Choice::new(args)?),
        }))
    }

    pub fn may(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }
}

pub fn router(app: Arc<App>, metrics_only: bool) -> Router {
    let mut router =
        Router::new().route("/metrics", get(serve_metrics)).route("/healthz", get(|| async { "ok\n" }));
    if !metrics_only {
        router = router
            .route("/", get(overview::serve))
            .route("/queue", get(queue::serve))
            .route("/job", get(job::serve))
            .route("/body", get(job::download))
            .route("/purge", get(forms::preview_purge))
            .route("/act", post(act::serve).layer(DefaultBodyLimit::max(FORM_MAX)))
            .route("/board.css", get(assets::style))
            .route("/board.js", get(assets::script))
            .route("/icon.svg", get(assets::icon));
    }
    router
        .fallback(|| async { (StatusCode::NOT_FOUND, "there is no such page\n") })
        .layer(middleware::from_fn_with_state(app.clone(), guard::let_in))
        .layer(middleware::map_response(guard::seal))
        .layer(CatchPanicLayer::new())
        .with_state(app)
}

async fn serve_metrics(State(app): Shared) -> Response {
    match metrics::text(&app.watch, &app.metrics) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn fields(RawQuery(query): RawQuery) -> Fields {
    Fields::parse(query.unwrap_or_default().as_bytes())
}
