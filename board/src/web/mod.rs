//! The pages.
//!
//! | file | what it is |
//! | --- | --- |
//! | `guard.rs` | who is let in, and the headers that keep a page to itself; `guesses.rs` wrong passwords |
//! | `origin.rs` | who asks, and whether a form is from here: also behind proxies |
//! | `live.rs` | one page, as HTML or as a stream of its newest states |
//! | `layout.rs` | what all pages have in common |
//! | `overview.rs`, `queue.rs`, `job.rs` | the pages; `list.rs` has a queue's jobs, `groups.rs` its groups, `facts.rs` what is beside them; `deps.rs` what a job waits for, `graph.rs` as a picture; `history.rs` what became of it |
//! | `why.rs` | why nothing comes, in words |
//! | `forms.rs`, `act.rs` | with --writable: forms, and what they do |
//! | `body.rs` | a job's body as text, JSON, hex, and as a download |
//! | `chart.rs`, `words.rs` | small charts; numbers, spans and times in words |
//! | `glossary.rs` | what DQ's words mean |
//! | `assets.rs` | style, script and icon, which are part of the program |

mod act;
mod assets;
mod body;
mod chart;
mod deps;
mod facts;
mod forms;
mod glossary;
mod graph;
mod groups;
mod guard;
mod guesses;
mod history;
mod job;
mod layout;
mod list;
mod live;
mod origin;
mod overview;
mod queue;
mod why;
mod words;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, RawQuery};
use axum::http::{header, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{middleware, Extension, Router};
use tokio::sync::Semaphore;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::{RequestBodyTimeoutLayer, TimeoutLayer};

use guard::Guard;
pub use guard::Reader;

use crate::address::PublicUrl;
use crate::args::{Args, Verb};
use crate::bytes::Fields;
use crate::metrics;
use crate::watch::Watch;

/// Streams that are open at a time: each costs a reading of its page every turn.
const STREAMS_MAX: usize = 100;

/// The largest form: a body of a megabyte, each byte of which may take three.
const FORM_MAX: usize = 4 << 20;

/// Between two parts of a form.
const FORM_PART_WITHIN: Duration = Duration::from_secs(10);

/// From the head of a request to the head of the answer: longer than any action takes, with the
/// time that a form needs to come. A stream goes on behind that.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// What is the same for all requests.
pub struct Board {
    watch: Arc<Watch>,
    guard: Guard,
    proxies: origin::Proxies,
    public_url: Option<PublicUrl>,
    forms: Arc<forms::Forms>,
    streams: Arc<Semaphore>,
    metrics: Arc<metrics::Choice>,
}

/// What one request is answered from: it is made for the reader who asks, with the reader's rights.
pub struct App {
    pub watch: Arc<Watch>,
    /// What this reader may do.
    pub verbs: Vec<Verb>,
    pub reader: Reader,
    pub forms: Arc<forms::Forms>,
    board: Arc<Board>,
}

/// `guard::let_in` puts it into each request.
type Shared = Extension<Arc<App>>;

impl Board {
    pub fn new(args: &Args, watch: Arc<Watch>) -> Result<Arc<Board>, String> {
        Ok(Arc::new(Board {
            watch,
            guard: Guard::new(args),
            proxies: origin::Proxies::new(args),
            public_url: args.public_url.clone(),
            forms: Arc::new(forms::Forms::new()?),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            metrics: Arc::new(metrics::Choice::new(args)?),
        }))
    }
}

impl App {
    fn new(board: Arc<Board>, reader: Reader, verbs: Vec<Verb>) -> App {
        App { watch: board.watch.clone(), verbs, reader, forms: board.forms.clone(), board }
    }

    pub fn may(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    /// What each form of this reader has in it, and no other reader knows.
    pub fn token(&self) -> String {
        self.forms.token_of(&self.reader)
    }
}

/// The pages, under `/` and under the path of --public-url: a proxy may leave that out or not. No
/// page names another one by a path that begins at the root.
pub fn router(board: Arc<Board>, args: &Args) -> Router {
    let router = pages(board, args.metrics_only);
    match args.public_url.as_ref().map(|url| url.path.as_str()) {
        None | Some("/") => router,
        Some(path) => {
            let redirect = path.to_string();
            Router::new()
                .route(
                    path.trim_end_matches('/'),
                    get(move || async move { Redirect::permanent(&redirect) }),
                )
                .nest(path, router.clone())
                .fallback_service(router)
        }
    }
}

fn pages(board: Arc<Board>, metrics_only: bool) -> Router {
    let mut router = Router::new().route("/metrics", get(serve_metrics));
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
        .layer(middleware::from_fn_with_state(board, guard::let_in))
        // That it lives is no secret: what asks that has no password.
        .route("/healthz", get(|| async { "ok\n" }))
        .layer(RequestBodyTimeoutLayer::new(FORM_PART_WITHIN))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, ANSWER_WITHIN))
        .layer(middleware::map_response(guard::seal))
        .layer(CatchPanicLayer::new())
}

async fn serve_metrics(Extension(app): Shared, headers: HeaderMap) -> Response {
    let accept =
        headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let format = metrics::Format::accepted(accept);
    match metrics::text(&app.watch, &app.board.metrics) {
        Ok(text) => {
            ([(header::CONTENT_TYPE, format.content_type())], format.of(text)).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn fields(RawQuery(query): RawQuery) -> Fields {
    Fields::parse(query.unwrap_or_default().as_bytes())
}
