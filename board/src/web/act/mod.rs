//! What a reader does to queues: with --writable, each verb a right of its own. An action comes by
//! POST, from a form of ours, is told in one line of the log, and its outcome on the page that
//! follows. It is carried out and logged also when its reader goes away meanwhile.
//!
//! | file | what it does |
//! | --- | --- |
//! | `alter.rs` | sets limits and defaults |
//! | `jobs.rs` | adds, kicks, deletes, releases, purges |
//! | `many.rs` | kicks and deletes dead jobs that were chosen |
//! | `pause.rs` | pauses and resumes |
//! | `schedule.rs` | adds and changes schedules |
//! | `unknown.rs` | looks what became of an action to which the server gave no answer |

mod alter;
mod jobs;
mod many;
mod pause;
mod schedule;
mod unknown;

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::Extension;
use redis::{Cmd, Value};

use super::actions::{Deed, Ending};
use super::origin::posted;
use super::{schedules, spans, words, App, Shared};
use crate::args::Verb;
use crate::bytes::{link, Fields};
use crate::server::jobs::ask_one;
use crate::server::queue::Info;
use crate::server::{Result, Trouble};

pub use unknown::AT_ONCE as UNKNOWN_MAX;

/// Of a queue, a job, a group: longer ones are in no link, and in no log. A form spells each byte as
/// four characters at most.
const NAME_MAX: usize = 4 * 4_096;

/// Why nothing, or not all, was done.
enum No {
    /// A form that can't be what was meant.
    Form(&'static str),
    Server(Trouble),
    /// Some of it was done, in a sentence; then this happened.
    Rest(String, Trouble),
}

impl From<Trouble> for No {
    fn from(trouble: Trouble) -> No {
        No::Server(trouble)
    }
}

impl No {
    fn ending(&self) -> Ending {
        match self {
            No::Server(Trouble::Unanswered { .. }) | No::Rest(_, Trouble::Unanswered { .. }) => {
                Ending::Unknown
            }
            No::Form(_) | No::Server(_) | No::Rest(..) => Ending::NotDone,
        }
    }

    fn words(&self) -> String {
        let unknown = |trouble: &Trouble| {
            format!(
                "It isn't known whether this was done: {trouble}. dq-board looks when the server \
                 answers again, and says here and under Actions what it finds."
            )
        };
        match (self, self.ending()) {
            (No::Form(why), _) => (*why).to_string(),
            (No::Server(trouble), Ending::Unknown) => unknown(trouble),
            (No::Server(trouble), _) => trouble.to_string(),
            (No::Rest(done, trouble), Ending::Unknown) => {
                format!("{done} Of the rest: {}", words::uncapped(&unknown(trouble)))
            }
            (No::Rest(done, trouble), _) => format!("{done} Then it ended: {trouble}."),
        }
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
    // A task of its own: a reader that goes away ends the request, not what is under way.
    match tokio::spawn(act(app, verb, queue, fields)).await {
        Ok(to) => Redirect::to(&to).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Carries an action out, logs it, and says which page follows.
async fn act(app: Arc<App>, verb: Verb, queue: Vec<u8>, fields: Fields) -> String {
    let act = Act { app: &app, queue: &queue, fields: &fields };
    let (before, done) = match act.reach().await {
        Ok(before) => (before, act.carry_out(verb).await),
        Err(trouble) => (None, Err(No::Server(trouble))),
    };
    app.watch.deaths.forget(&queue);
    let to = done.as_ref().ok().and_then(|done| done.to.clone());
    let id = match &done {
        Ok(done) => done.id.clone(),
        Err(_) => act.id_meant(verb),
    };
    let (ending, words) = match done {
        Ok(done) => (Ending::Done, done.words),
        Err(no) => (no.ending(), no.words()),
    };
    let group = pause::group_named(&fields).ok().flatten();
    let (id_of, group) = (id.as_deref(), group.as_deref());
    let deed = Deed { verb, queue: &queue, id: id_of, group, ending, words: &words };
    app.board.actions.note(&app, &deed);
    let number = app.forms.keep(ending, words);
    let outcome = number.to_string();
    let to = to.map(|to| format!("{to}&outcome={outcome}"));
    let to = to
        .unwrap_or_else(|| after(&fields, &queue, id.as_deref(), ("outcome", outcome.as_bytes())));
    if ending == Ending::Unknown {
        tokio::spawn(unknown::find_out(app, verb, queue, fields, before, number));
    }
    to
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
    /// The queue as it was before. An old connection that is dead shows here, where nothing has been
    /// sent yet that could have been done: then it is made anew.
    async fn reach(&self) -> Result<Option<Info>> {
        let mut read = self.app.watch.read_one(self.queue).await;
        if matches!(read, Err(Trouble::Unanswered { .. })) {
            read = self.app.watch.read_one(self.queue).await;
        }
        match read {
            Ok(found) => Ok(found.map(|(info, _)| info)),
            // The server refuses to tell of it, and says itself what of the action it refuses.
            Err(Trouble::Refused(_) | Trouble::NoSuch(_) | Trouble::Strange(_)) => Ok(None),
            Err(trouble @ Trouble::NoModule { .. }) => Err(trouble),
            Err(Trouble::Unreachable { address, why } | Trouble::Unanswered { address, why }) => {
                Err(Trouble::Unreachable { address, why })
            }
        }
    }

    /// The job that a form is about; one that is to be added isn't there yet.
    fn id_meant(&self, verb: Verb) -> Option<Vec<u8>> {
        let is_new =
            verb == Verb::Add || (verb == Verb::Schedule && self.fields.text("change") != "1");
        self.fields.bytes("id").filter(|_| !is_new)
    }

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
