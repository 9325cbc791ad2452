//! The pages.
//!
//! | file | what it is |
//! | --- | --- |
//! | `guard.rs` | who is let in, and the headers that keep a page to itself; `guesses.rs` wrong passwords |
//! | `users.rs` | --users: who may do what; `passwords.rs` their passwords |
//! | `origin.rs` | who asks, and whether a form is from here: also behind proxies |
//! | `live.rs` | one page, as HTML or as a stream of its newest states |
//! | `page.rs`, `layout.rs` | a page; what all pages have in common |
//! | `overview.rs`, `queue.rs`, `job.rs` | the pages; `list.rs` has a queue's jobs, `groups.rs` its groups, `group_jobs.rs` the jobs of one, `facts.rs` what is beside them; `deps.rs` what a job waits for, `graph.rs` as a picture; `history.rs` what became of it |
//! | `why.rs` | why nothing comes, in words |
//! | `choice.rs`, `filtered.rs` | which jobs of a state: their order, a search in them |
//! | `dead.rs`, `download.rs` | dead jobs: why they died; as a file |
//! | `selection.rs`, `preview.rs`, `purge.rs` | jobs of a state that are chosen, and what is done to these |
//! | `front.rs`, `switch.rs`, `server.rs` | all servers, where there are several; the way from one to another; one server |
//! | `forms.rs`, `act/` | with --writable: forms, and what they do; `actions.rs` what was done, and who did it |
//! | `working.rs`, `find.rs` | of all queues: what is being worked on; a job by its id |
//! | `schedules.rs` | the jobs of all queues that come back; `schedule.rs` the form of one, `planned.rs` what comes of it |
//! | `limits.rs`, `effects.rs` | limits and defaults: their form, and what a change does, in words |
//! | `spans.rs`, `clock.rs` | spans of time in forms; moments in a schedule's zone |
//! | `body.rs` | a job's body as text, JSON, hex, and as a download |
//! | `charts/` | charts with axes |
//! | `chart.rs`, `words.rs` | small charts; numbers, spans and times in words |
//! | `glossary.rs` | what DQ's words mean |
//! | `sending.rs` | answers of many megabytes |
//! | `assets.rs` | style, script and icon, which are part of the program |

mod act;
mod actions;
mod assets;
mod body;
mod chart;
mod charts;
mod choice;
mod clock;
mod dead;
mod deps;
mod download;
mod effects;
mod facts;
mod filtered;
mod find;
mod forms;
mod front;
mod glossary;
mod graph;
mod group_jobs;
mod groups;
mod guard;
mod guesses;
mod history;
mod job;
mod layout;
mod limits;
mod list;
mod live;
mod origin;
mod overview;
mod page;
mod passwords;
mod planned;
mod preview;
mod purge;
mod queue;
mod schedule;
mod schedules;
mod selection;
mod sending;
mod server;
mod spans;
mod switch;
mod users;
mod why;
mod words;
mod working;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, RawQuery, Request, State};
use axum::http::{header, HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{middleware, Extension, Router};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::{RequestBodyTimeoutLayer, TimeoutLayer};

use actions::Actions;
use guard::Guard;
pub use guard::Reader;
pub use passwords::hash;

use crate::address::PublicUrl;
use crate::args::{Args, Verb};
use crate::bytes::Fields;
use crate::metrics;
use crate::serve::HEALTH;
use crate::watch::Watch;

/// Streams that are open at a time: each costs a reading of its page every turn.
const STREAMS_MAX: usize = 100;

/// The largest form: a body of a megabyte, each byte of which may take three.
const FORM_MAX: usize = 4 << 20;

/// Forms of more bytes than this are taken so many at a time: all connections could bring one, and
/// keep it unfinished. Others wait so long.
const FORM_SMALL: usize = 64 << 10;
const LARGE_FORMS_MAX: usize = 16;
const LARGE_FORM_WAITS: Duration = Duration::from_secs(10);

/// Between two parts of a form.
const FORM_PART_WITHIN: Duration = Duration::from_secs(10);

/// From the head of a request to the head of the answer: longer than any action takes, with the
/// time that a form needs to come. A stream goes on behind that.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Scrapes that are answered at a time: with --metrics-queues 5000 each is 11 MB. Others wait so long.
const SCRAPES_MAX: usize = 4;
const SCRAPE_WAITS: Duration = Duration::from_secs(10);
/// And is sent within this time.
const SCRAPE_TAKES: Duration = Duration::from_secs(60);

/// What is the same for all requests.
pub struct Board {
    /// What --redis names, in that order.
    servers: Arc<[Arc<Watch>]>,
    guard: Guard,
    actions: Actions,
    proxies: origin::Proxies,
    public_url: Option<PublicUrl>,
    forms: Arc<forms::Forms>,
    streams: Arc<Semaphore>,
    downloads: Arc<Semaphore>,
    /// Actions without an answer that are looked after.
    unknown: Arc<Semaphore>,
    metrics: Arc<metrics::Scrapes>,
    /// Scrapes that are answered at a time.
    scrapes: Arc<Semaphore>,
    charts: charts::Source,
}

/// A request of a reader who is let in, with the reader's rights. `guard::let_in` makes it.
pub struct Visit {
    /// What this reader may do.
    pub verbs: Vec<Verb>,
    pub reader: Reader,
    pub forms: Arc<forms::Forms>,
    board: Arc<Board>,
    /// Which reading of --users gave these rights.
    as_of: u64,
}

/// What the pages of one server are rendered from: that server, and the visit.
pub struct App {
    pub watch: Arc<Watch>,
    visit: Arc<Visit>,
}

/// So a page has the reader's rights at hand: `app.may(verb)`.
impl Deref for App {
    type Target = Visit;

    fn deref(&self) -> &Visit {
        &self.visit
    }
}

/// Each request to a server's pages has it.
type Shared = Extension<Arc<App>>;

impl Board {
    pub fn new(args: &Args, servers: Arc<[Arc<Watch>]>) -> Result<Arc<Board>, String> {
        Ok(Arc::new(Board {
            servers,
            guard: Guard::new(args)?,
            actions: Actions::new(args)?,
            proxies: origin::Proxies::new(args),
            public_url: args.public_url.clone(),
            forms: Arc::new(forms::Forms::new()?),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            downloads: Arc::new(Semaphore::new(download::DOWNLOADS_MAX)),
            unknown: Arc::new(Semaphore::new(act::UNKNOWN_MAX)),
            metrics: Arc::new(metrics::Scrapes::new(args)?),
            scrapes: Arc::new(Semaphore::new(SCRAPES_MAX)),
            charts: charts::Source::new(args)?,
        }))
    }
}

impl Board {
    /// Keeps up with --users, for ever.
    pub async fn follow_users(&self) {
        self.guard.follow_users().await;
    }
}

impl Visit {
    pub fn may(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    /// What each form of this reader has in it, and no other reader knows.
    pub fn token(&self) -> String {
        self.forms.token_of(&self.reader)
    }

    /// Whether the reader's rights are still those that --users gives.
    pub fn is_current(&self) -> bool {
        self.as_of == self.board.guard.as_of()
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
    match &*board.servers {
        _ if metrics_only => {}
        [only] => router = router.merge(pages_of(only)),
        several => {
            router = router.merge(with_assets(Router::new().route("/", get(front::serve))));
            for watch in several {
                let path = format!("/{}", switch::path_of(&watch.name));
                let redirect = format!("{}/", watch.name);
                let to_it = get(move || async move { Redirect::permanent(&redirect) });
                let without_slash = path.trim_end_matches('/');
                router = router.route(without_slash, to_it).nest(&path, pages_of(watch));
            }
        }
    }
    router
        .fallback(|| async { (StatusCode::NOT_FOUND, "there is no such page\n") })
        .layer(middleware::from_fn_with_state(Arc::new(Semaphore::new(LARGE_FORMS_MAX)), few_large))
        .layer(middleware::from_fn_with_state(board, guard::let_in))
        // That it lives is no secret: what asks that has no password.
        .route(HEALTH, get(|| async { "ok\n" }))
        .layer(RequestBodyTimeoutLayer::new(FORM_PART_WITHIN))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, ANSWER_WITHIN))
        .layer(middleware::map_response(guard::seal))
        .layer(CatchPanicLayer::new())
}

/// Lets a form in that says it is small, and few others.
async fn few_large(places: State<Arc<Semaphore>>, request: Request, next: Next) -> Response {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let is_in_chunks = request.headers().contains_key(header::TRANSFER_ENCODING);
    let is_small = !is_in_chunks && length.is_some_and(|length| length <= FORM_SMALL);
    if request.method() != Method::POST || is_small {
        return next.run(request).await;
    }
    let Ok(Ok(_place)) = timeout(LARGE_FORM_WAITS, places.0.acquire_owned()).await else {
        let why = "too many large forms at once: try again\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    next.run(request).await
}

/// The pages of one server.
fn pages_of(watch: &Arc<Watch>) -> Router {
    let watch = watch.clone();
    let with_app =
        move |Extension(visit): Extension<Arc<Visit>>, mut request: Request, next: Next| {
            request.extensions_mut().insert(Arc::new(App { watch: watch.clone(), visit }));
            next.run(request)
        };
    let router = Router::new()
        .route("/", get(overview::serve))
        .route("/queue", get(queue::serve))
        .route("/job", get(job::serve))
        .route("/body", get(job::download))
        .route("/figures", get(charts::serve))
        .route("/purge", get(purge::serve))
        .route("/schedules", get(schedules::serve))
        .route("/working", get(working::serve))
        .route("/find", get(find::serve))
        .route(
            "/schedule",
            get(schedule::serve).post(schedule::preview).layer(DefaultBodyLimit::max(FORM_MAX)),
        )
        .route(
            "/selected",
            get(preview::preview_all)
                .post(preview::preview_ticked)
                .layer(DefaultBodyLimit::max(FORM_MAX)),
        )
        .route(
            "/jobs.ndjson",
            get(download::all).post(download::ticked).layer(DefaultBodyLimit::max(FORM_MAX)),
        )
        .route("/limits", get(limits::serve))
        .route("/server", get(server::serve))
        .route("/actions", get(actions::serve))
        .route("/act", post(act::serve).layer(DefaultBodyLimit::max(FORM_MAX)));
    with_assets(router).route_layer(middleware::from_fn(with_app))
}

/// Beside each page that names them.
fn with_assets(router: Router) -> Router {
    router
        .route("/board.css", get(assets::style))
        .route("/board.js", get(assets::script))
        .route("/charts.css", get(assets::charts_style))
        .route("/charts.js", get(assets::charts_script))
        .route("/icon.svg", get(assets::icon))
}

async fn serve_metrics(Extension(visit): Extension<Arc<Visit>>, headers: HeaderMap) -> Response {
    let accept =
        headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let format = metrics::Format::accepted(accept);
    let board = &visit.board;
    let Ok(Ok(place)) = timeout(SCRAPE_WAITS, board.scrapes.clone().acquire_owned()).await else {
        let why = "too many scrapes at once: try again\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    match board.metrics.text(&board.servers, format) {
        Ok(text) => {
            let kind = HeaderValue::from_static(format.content_type());
            let mut answer = sending::whole(text, place, SCRAPE_TAKES);
            answer.headers_mut().insert(header::CONTENT_TYPE, kind);
            answer
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn fields(RawQuery(query): RawQuery) -> Fields {
    Fields::parse(query.unwrap_or_default().as_bytes())
}
