//! What a reader does to queues: with --writable, each verb a right of its own. An action comes by
//! POST, from a form of ours, is told in one line of the log, and its outcome on the page that
//! follows.
//!
//! | file | what it does |
//! | --- | --- |
//! | `alter.rs` | sets limits and defaults |
//! | `jobs.rs` | adds, kicks, deletes, releases, purges |
//! | `many.rs` | kicks and deletes dead jobs that were chosen |
//! | `pause.rs` | pauses and resumes |
//! | `schedule.rs` | adds and changes schedules |

mod alter;
mod jobs;
mod many;
mod pause;
mod schedule;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::Extension;
use redis::{Cmd, Value};

use super::actions::Deed;
use super::origin::posted;
use super::{schedules, spans, App, Shared};
use crate::args::Verb;
use crate::bytes::{link, Fields};
use crate::server::jobs::ask_one;
use crate::server::{Result, Trouble};

/// Of a queue, a job, a group: longer ones are in no link, and in no log. A form spells each byte as
/// four characters at most.
const NAME_MAX: usize = 4 * 4_096;

/// A form that can't be what was meant.
enum No {
    Form(&'static str),
    Server(Trouble),
}

impl From<Trouble> for No {
    fn from(trouble: Trouble) -> No {
        No::Server(trouble)
    }
}

/// What was done, in a sentence, and the job that it is about.
struct Done {
    words: String,
    id: Option<Vec<u8>>,
    /// Another page than that job's, or the one that the form was on.
    to: Option<String>,
}

impl Done {
    fn to_job(words: String, id: Option<Vec<u8>>) -> Done {
        Done { words, id, to: None }
    }

    fn to_queue(words: String) -> Done {
        Done { words, id: None, to: None }
    }
}

pub async fn serve(Extension(app): Shared, headers: HeaderMap, body: Bytes) -> Response {
    let fields = Fields::parse(&body);
    let verb = match posted(&app, &headers, &fields, fields.get("verb").unwrap_or_default()) {
        Ok(verb) => verb,
        Err(refusal) => return *refusal,
    };
    let Some(queue) = fields.bytes("queue") else {
        return (StatusCode::BAD_REQUEST, "a queue is needed\n").into_response();
    };
    let is_long = |name| fields.bytes(name).is_some_and(|name| name.len() > NAME_MAX);
    if ["queue", "id", "group"].into_iter().any(is_long) {
        return (StatusCode::BAD_REQUEST, "a name is too long\n").into_response();
    }
    let act = Act { app: &app, queue: &queue, fields: &fields };
    let done = act.carry_out(verb).await;
    app.watch.deaths.forget(&queue);
    let to = done.as_ref().ok().and_then(|done| done.to.clone());
    let id = match &done {
        Ok(done) => done.id.clone(),
        Err(_) => fields.bytes("id").filter(|_| {
            verb != Verb::Add && (verb != Verb::Schedule || fields.text("change") == "1")
        }),
    };
    let (is_good, words) = match done {
        Ok(done) => (true, done.words),
        Err(No::Form(why)) => (false, why.to_string()),
        Err(No::Server(trouble)) => (false, trouble.to_string()),
    };
    let group = pause::group_named(&fields).ok().flatten();
    let (id_of, group) = (id.as_deref(), group.as_deref());
    let deed = Deed { verb, queue: &queue, id: id_of, group, is_good, words: &words };
    app.board.actions.note(&app, &deed);
    let outcome = app.forms.keep(is_good, words).to_string();
    if let Some(to) = to {
        return Redirect::to(&format!("{to}&outcome={outcome}")).into_response();
    }
    let outcome = ("outcome", outcome.as_bytes());
    Redirect::to(&after(&fields, &queue, id.as_deref(), outcome)).into_response()
}

/// The page that follows: the one that the form was on, or the job's.
fn after(fields: &Fields, queue: &[u8], id: Option<&[u8]>, outcome: (&str, &[u8])) -> String {
    match id {
        _ if fields.text("back") == "schedules" => schedules::back(fields, outcome),
        Some(id) => link("job", &[("queue", queue), ("id", id), outcome]),
        None if fields.text("back") == "group" => {
            let group = fields.spelled("group").unwrap_or_default();
            link("queue", &[("name", queue), ("group", &group), outcome])
        }
        None => {
            // To the part of the queue's page that the form was on.
            let parts = ["state", "tab", "cursor", "why", "why.hex", "find", "find.hex", "order"];
            let parts = parts.map(|name| Some((name, fields.get(name)?)));
            let mut to: Vec<(&str, &[u8])> = vec![("name", queue)];
            to.extend(parts.into_iter().flatten());
            to.push(outcome);
            link("queue", &to)
        }
    }
}

struct Act<'a> {
    app: &'a App,
    queue: &'a [u8],
    fields: &'a Fields,
}

impl Act<'_> {
    async fn carry_out(&self, verb: Verb) -> std::result::Result<Done, No> {
        match verb {
            verb if self.is_of_many() => self.to_many(verb).await,
            Verb::Add => self.add().await,
            Verb::Kick => self.kick().await,
            Verb::Del => self.del().await,
            Verb::Release => self.release().await,
            Verb::Pause => self.pause().await,
            Verb::Purge => self.purge().await,
            Verb::Alter => self.alter().await,
            Verb::Schedule => self.schedule().await,
        }
    }

    /// A number with its unit beside it, in milliseconds; `None` when the field is empty.
    fn span(&self, name: &str) -> std::result::Result<Option<u64>, No> {
        spans::read(self.fields, name).map_err(No::Form)
    }

    fn command(&self, name: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(self.queue);
        command
    }

    async fn ask(&self, command: Cmd) -> Result<Value> {
        ask_one(&self.app.watch.deployment, self.app.watch.node_of(self.queue), command).await
    }
}
