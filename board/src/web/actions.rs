//! What was done here, and who did it: a line of the log for each action, the last ones in memory,
//! and all of them in --actions-log. What a reader tried without a right is in the log and the file.
//!
//! Each value in a line of the log is in quotes, with its own quotes escaped, and the text of the
//! line is always the same. So no name of a queue, no id and no reason can forge a field.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderMap;
use axum::response::Response;
use axum::Extension;
use chrono::{DateTime, SecondsFormat, Utc};
use maud::{html, Markup};
use serde_json::json;

use super::live;
use super::page::Page;
use super::{layout, words, App, Shared};
use crate::args::{Args, Verb};
use crate::bytes::{excerpt, title, Fields, Shown};
use crate::watch::now_ms;

/// Actions in memory: those of one busy hand in an incident.
const KEPT: usize = 500;
/// What of a name the log has that a reader tried without a right: a form can be large.
const REFUSED_MAX: usize = 200;

pub struct Actions {
    recent: Mutex<VecDeque<Action>>,
    file: Option<PathBuf>,
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Done,
    NotDone,
    /// The server gave no answer: it may have been done or not.
    Unknown,
}

impl Ending {
    /// `ok` in --actions-log.
    fn is_done(self) -> Option<bool> {
        match self {
            Ending::Done => Some(true),
            Ending::NotDone => Some(false),
            Ending::Unknown => None,
        }
    }
}

/// What was done, or tried, to a queue.
pub struct Deed<'d> {
    pub verb: Verb,
    pub queue: &'d [u8],
    pub id: Option<&'d [u8]>,
    pub group: Option<&'d [u8]>,
    pub ending: Ending,
    /// What became of it.
    pub words: &'d str,
}

struct Action {
    at_ms: u64,
    /// The server's name.
    redis: String,
    user: String,
    address: IpAddr,
    verb: String,
    queue: Vec<u8>,
    id: Option<Vec<u8>>,
    group: Option<Vec<u8>>,
    ending: Ending,
    words: String,
}

impl Actions {
    pub fn new(args: &Args) -> Result<Actions, String> {
        if let Some(path) = &args.actions_log {
            open(path).map_err(|error| format!("--actions-log {}: {error}", path.display()))?;
        }
        Ok(Actions { recent: Mutex::default(), file: args.actions_log.clone() })
    }

    /// Takes down an action of the reader of a page.
    pub fn note(&self, app: &App, deed: &Deed) {
        let action = Action {
            at_ms: now_ms(),
            redis: app.watch.name.clone(),
            user: app.reader.name.clone(),
            address: app.reader.address,
            verb: deed.verb.name().into(),
            queue: deed.queue.into(),
            id: deed.id.map(<[u8]>::to_vec),
            group: deed.group.map(<[u8]>::to_vec),
            ending: deed.ending,
            words: deed.words.into(),
        };
        action.tell();
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        self.append(&action);
        recent.push_back(action);
        if recent.len() > KEPT {
            recent.pop_front();
        }
    }

    /// Takes down what a reader tried and may not do. It isn't on the page of actions: a reader could
    /// push what was done off that.
    pub fn refuse(&self, app: &App, verb: &[u8], fields: &Fields, why: &str) {
        let short = |name: &str| {
            fields.spelled(name).map(|mut value| {
                value.truncate(REFUSED_MAX);
                value
            })
        };
        let action = Action {
            at_ms: now_ms(),
            redis: app.watch.name.clone(),
            user: app.reader.name.clone(),
            address: app.reader.address,
            verb: excerpt(verb, 20),
            queue: short("queue").unwrap_or_default(),
            id: short("id").filter(|id| !id.is_empty()),
            group: short("group"),
            ending: Ending::NotDone,
            words: format!("refused: {why}"),
        };
        action.warn();
        let _in_turn = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        self.append(&action);
    }

    fn append(&self, action: &Action) {
        if let Some(Err(error)) = self.file.as_ref().map(|path| action.append(path)) {
            tracing::error!(error = error.to_string(), "--actions-log can't be written");
        }
    }
}

/// Each time anew: so it may be moved away by what rotates logs.
fn open(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn shown(bytes: Option<&Vec<u8>>) -> Option<String> {
    bytes.map(|bytes| Shown(bytes).to_string())
}

impl Action {
    fn tell(&self) {
        let Action { address: from, user, verb, words: outcome, .. } = self;
        let (redis, queue, id, group) = self.about();
        tracing::info!(%from, user, redis, verb, queue, id, group, outcome, "action");
    }

    fn warn(&self) {
        let Action { address: from, user, verb, words: outcome, .. } = self;
        let (redis, queue, id, group) = self.about();
        tracing::warn!(%from, user, redis, verb, queue, id, group, outcome, "refused");
    }

    /// The server's name, the queue, the job and the group, as a line of the log has them.
    fn about(&self) -> (Option<&str>, String, Option<String>, Option<String>) {
        let redis = Some(self.redis.as_str()).filter(|name| !name.is_empty());
        let queue = Shown(&self.queue).to_string();
        (redis, queue, shown(self.id.as_ref()), shown(self.group.as_ref()))
    }

    fn append(&self, path: &PathBuf) -> io::Result<()> {
        let at = i64::try_from(self.at_ms).ok().and_then(DateTime::<Utc>::from_timestamp_millis);
        let line = json!({
            "time": at.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Millis, true),
            "user": self.user,
            "from": self.address.to_string(),
            "redis": self.redis,
            "verb": self.verb,
            "queue": Shown(&self.queue).to_string(),
            "id": shown(self.id.as_ref()),
            "group": shown(self.group.as_ref()),
            "ok": self.ending.is_done(),
            "outcome": self.words,
        });
        open(path)?.write_all(format!("{line}\n").as_bytes())
    }
}

pub async fn serve(Extension(app): Shared, headers: HeaderMap) -> Response {
    live::serve(app, headers, None, |app| async move { render(&app) }).await
}

fn render(app: &Arc<App>) -> Page {
    let recent = app.board.actions.recent.lock().unwrap_or_else(PoisonError::into_inner);
    let here: Vec<&Action> =
        recent.iter().rev().filter(|action| action.redis == app.watch.name).collect();
    let main = html! {
        nav.path aria-label="Path" { a rel="up" href="./" { "queues" } }
        div.head { h1 { "Actions" } }
        p.note {
            "What readers did on this dq-board since it started, the last first: at most "
            (words::number(KEPT as u64)) ". What others do with DQ's commands isn't here."
        }
        @if here.is_empty() { p.empty { "Nothing was done." } } @else { (table(&here)) }
    };
    Page::new("Actions".into(), main)
}

fn table(actions: &[&Action]) -> Markup {
    let now = now_ms();
    html! {
        table.list.done {
            thead { tr {
                th scope="col" { "when" }
                th scope="col" { "user" }
                th scope="col" { "from" }
                th scope="col" { "verb" }
                th scope="col" { "queue" }
                th.text scope="col" { "what became of it" }
            } }
            tbody { @for action in actions { tr {
                td data-label="when" { (words::brief(action.at_ms, now)) }
                td data-label="user" { @if action.user.is_empty() { "–" } @else { (action.user) } }
                td data-label="from" { (action.address) }
                td data-label="verb" { (action.verb) }
                td data-label="queue" { a href=(layout::queue_link(&action.queue)) { (title(&action.queue)) } }
                td.text {
                    @if let Some(id) = &action.id { a href=(layout::job_link(&action.queue, id)) { (excerpt(id, 60)) } " " }
                    @if let Some(group) = &action.group { "group " (excerpt(group, 60)) " " }
                    @if action.ending == Ending::Unknown { span.mark.unknown { "unknown" } " " }
                    span.reason[action.ending == Ending::NotDone] { (action.words) }
                }
            } } }
        }
    }
}
