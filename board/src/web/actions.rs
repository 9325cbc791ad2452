//! What was done here, and who did it: a line of the log for each action, the last ones in memory,
//! and all of them in --actions-log.

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
use crate::bytes::{excerpt, title, Shown};
use crate::watch::now_ms;

/// Actions in memory: those of one busy hand in an incident.
const KEPT: usize = 500;

pub struct Actions {
    recent: Mutex<VecDeque<Action>>,
    file: Option<PathBuf>,
}

/// What was done, or tried, to a queue.
pub struct Deed<'d> {
    pub verb: Verb,
    pub queue: &'d [u8],
    pub id: Option<&'d [u8]>,
    pub group: Option<&'d [u8]>,
    pub is_good: bool,
    /// What became of it.
    pub words: &'d str,
}

struct Action {
    at_ms: u64,
    /// The server's name.
    redis: String,
    user: String,
    address: IpAddr,
    verb: Verb,
    queue: Vec<u8>,
    id: Option<Vec<u8>>,
    group: Option<Vec<u8>>,
    is_good: bool,
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
            verb: deed.verb,
            queue: deed.queue.into(),
            id: deed.id.map(<[u8]>::to_vec),
            group: deed.group.map(<[u8]>::to_vec),
            is_good: deed.is_good,
            words: deed.words.into(),
        };
        action.tell();
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = self.file.as_ref().map(|path| action.append(path)) {
            tracing::error!("--actions-log: {error}");
        }
        recent.push_back(action);
        if recent.len() > KEPT {
            recent.pop_front();
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
        let Action { address: from, user, verb, queue, words, .. } = self;
        let redis = Some(self.redis.as_str()).filter(|name| !name.is_empty());
        let (id, group) = (shown(self.id.as_ref()).unwrap_or_default(), shown(self.group.as_ref()));
        let verb = verb.name();
        tracing::info!(%from, user, redis, verb, queue = %Shown(queue), id, group, "{words}");
    }

    fn append(&self, path: &PathBuf) -> io::Result<()> {
        let at = i64::try_from(self.at_ms).ok().and_then(DateTime::<Utc>::from_timestamp_millis);
        let line = json!({
            "time": at.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Millis, true),
            "user": self.user,
            "from": self.address.to_string(),
            "redis": self.redis,
            "verb": self.verb.name(),
            "queue": Shown(&self.queue).to_string(),
            "id": shown(self.id.as_ref()),
            "group": shown(self.group.as_ref()),
            "ok": self.is_good,
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
                td data-label="verb" { (action.verb.name()) }
                td data-label="queue" { a href=(layout::queue_link(&action.queue)) { (title(&action.queue)) } }
                td.text {
                    @if let Some(id) = &action.id { a href=(layout::job_link(&action.queue, id)) { (excerpt(id, 60)) } " " }
                    @if let Some(group) = &action.group { "group " (excerpt(group, 60)) " " }
                    span.reason[!action.is_good] { (action.words) }
                }
            } } }
        }
    }
}
