//! What a reader does to queues: with --writable, each verb a right of its own. An action comes by
//! POST, from a form of ours, is told in one line of the log, and its outcome on the page that
//! follows.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::Extension;
use redis::{Cmd, Value};

use super::actions::Deed;
use super::origin::is_own_form;
use super::{words, App, Reader, Shared};
use crate::args::Verb;
use crate::bytes::{bytes_of, link, title, Fields, Shown};
use crate::server::queue::State as JobState;
use crate::server::replies::{bytes, number};
use crate::server::{jobs, Result, Trouble};

/// What one DQ.KICK or DQ.PURGE does at most.
const AT_ONCE: u64 = 10_000;
/// A browser waits so long for what takes many of them; the rest is for another click.
const WITHIN: Duration = Duration::from_secs(20);

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
}

impl Done {
    fn to_queue(words: String) -> Done {
        Done { words, id: None }
    }
}

pub async fn serve(Extension(app): Shared, headers: HeaderMap, body: Bytes) -> Response {
    let fields = Fields::parse(&body);
    if !is_own_form(&headers, app.board.public_url.as_ref())
        || !app.forms.made(fields.text("token"), &app.reader)
    {
        return (StatusCode::FORBIDDEN, "this didn't come from a form of this page: reload it\n")
            .into_response();
    }
    let Some(verb) = fields.get("verb").and_then(Verb::named).filter(|verb| app.may(*verb)) else {
        let Reader { name, address } = &app.reader;
        tracing::warn!(from = %address, user = name, verb = %Shown(fields.get("verb").unwrap_or_default()), "refused: no right to do that");
        return (StatusCode::FORBIDDEN, "you may not do that here\n").into_response();
    };
    let Some(queue) = fields.bytes("queue") else {
        return (StatusCode::BAD_REQUEST, "a queue is needed\n").into_response();
    };
    let act = Act { app: &app, queue: &queue, fields: &fields };
    let done = act.carry_out(verb).await;
    let id = match &done {
        Ok(done) => done.id.clone(),
        Err(_) => fields.bytes("id").filter(|_| verb != Verb::Add),
    };
    let (is_good, words) = match done {
        Ok(done) => (true, done.words),
        Err(No::Form(why)) => (false, why.to_string()),
        Err(No::Server(trouble)) => (false, trouble.to_string()),
    };
    let group = group_named(&fields).ok().flatten();
    let (id_of, group) = (id.as_deref(), group.as_deref());
    let deed = Deed { verb, queue: &queue, id: id_of, group, is_good, words: &words };
    app.board.actions.note(&app, &deed);
    let outcome = app.forms.keep(is_good, words).to_string();
    let outcome = ("outcome", outcome.as_bytes());
    Redirect::to(&match &id {
        Some(id) => link("job", &[("queue", &queue), ("id", id), outcome]),
        None => {
            // To the part of the queue's page that the form was on.
            let parts = ["state", "tab", "cursor"].map(|name| Some((name, fields.get(name)?)));
            let mut to: Vec<(&str, &[u8])> = vec![("name", &queue)];
            to.extend(parts.into_iter().flatten());
            to.push(outcome);
            link("queue", &to)
        }
    })
    .into_response()
}

/// The group that a form is about: in hex from one that knows it, as the pages spell it from a
/// person. `None` is the whole queue, which a form that has the field never means, whatever is in
/// it.
fn group_named(fields: &Fields) -> std::result::Result<Option<Vec<u8>>, No> {
    if !fields.has_bytes("group") {
        return Ok(None);
    }
    let typed = fields.text("group");
    let name = match typed.is_empty() {
        true => fields.bytes("group"),
        false => Some(bytes_of(typed).unwrap_or_else(|| typed.into())),
    };
    name.filter(|name| !name.is_empty()).map(Some).ok_or(No::Form("Say which group."))
}

struct Act<'a> {
    app: &'a App,
    queue: &'a [u8],
    fields: &'a Fields,
}

impl Act<'_> {
    async fn carry_out(&self, verb: Verb) -> std::result::Result<Done, No> {
        match verb {
            Verb::Add => self.add().await,
            Verb::Kick => self.kick().await,
            Verb::Del => self.del().await,
            Verb::Release => self.release().await,
            Verb::Pause => self.pause().await,
            Verb::Purge => self.purge().await,
        }
    }

    async fn add(&self) -> std::result::Result<Done, No> {
        let id = self.fields.get("id").filter(|id| !id.is_empty()).unwrap_or(b"*");
        // A browser sends the ends of lines as CR LF, whatever they were.
        let body = self.fields.text("body").replace("\r\n", "\n");
        let mut command = self.command("DQ.ADD");
        command.arg(id).arg(body);
        if let Some(ms) = self.span("delay")? {
            command.arg("DELAY").arg(ms);
        }
        for (field, option) in [("priority", "PRIORITY"), ("attempts", "ATTEMPTS")] {
            if !self.fields.text(field).is_empty() {
                command.arg(option).arg(self.fields.text(field));
            }
        }
        let id = bytes(self.ask(command).await?)?;
        Ok(Done { words: format!("Added “{}”.", Shown(&id)), id: Some(id) })
    }

    async fn kick(&self) -> std::result::Result<Done, No> {
        if let Some(id) = self.fields.bytes("id") {
            return self
                .to_job(
                    "DQ.KICKJOB",
                    id,
                    &[],
                    "It is ready now.",
                    "It is neither dead, delayed nor held.",
                )
                .await;
        }
        let many = self.fields.number("count").filter(|many| *many > 0);
        let many = many.ok_or(No::Form("Say how many jobs to kick."))?;
        let kicked = self.in_parts(many, |part| {
            let mut command = self.command("DQ.KICK");
            command.arg("COUNT").arg(part);
            command
        });
        let kicked = kicked.await?;
        Ok(Done::to_queue(format!("Kicked {}: ready now.", words::jobs(kicked))))
    }

    async fn del(&self) -> std::result::Result<Done, No> {
        let id = self.fields.bytes("id").ok_or(No::Form("An id is needed."))?;
        self.to_job("DQ.DEL", id, &[], "Deleted.", "It was gone already.").await
    }

    /// The lease is the one that the page showed: had the worker given it back and another got it,
    /// nothing happens.
    async fn release(&self) -> std::result::Result<Done, No> {
        let id = self.fields.bytes("id").ok_or(No::Form("An id is needed."))?;
        let lease = self.fields.number("lease").ok_or(No::Form("A lease is needed."))?.to_string();
        let args = [lease.as_str(), "REASON", "released on dq-board"];
        self.to_job("DQ.RELEASE", id, &args, "Released.", "Its lease is another by now.").await
    }

    /// Of the queue, or, when a group is named, of that; or the end of a job's hold.
    async fn pause(&self) -> std::result::Result<Done, No> {
        if self.fields.text("resume") == "job" {
            return self.end_hold().await;
        }
        let group = group_named(self.fields)?;
        let of_group = |mut command: Cmd| {
            group.iter().for_each(|group| {
                command.arg("GROUP").arg(group);
            });
            command
        };
        let (whose, its) = match &group {
            Some(group) => (format!(" the group “{}”", Shown(group)), "its jobs are handed out"),
            None => (String::new(), "jobs are handed out"),
        };
        // A form on a job's page is about its group.
        let done = |words| Done { words, id: self.fields.bytes("id") };
        if self.fields.text("resume") == "1" {
            self.ask(of_group(self.command("DQ.RESUME"))).await?;
            return Ok(done(format!("Resumed{whose}: {its}.")));
        }
        let mut command = of_group(self.command("DQ.PAUSE"));
        let span = self.span("for")?.filter(|ms| *ms > 0);
        if let Some(ms) = span {
            command.arg("FOR").arg(ms);
        }
        self.ask(command).await?;
        let until =
            span.map_or("until it is resumed".into(), |ms| format!("for {}", words::span(ms)));
        let nothing =
            if group.is_some() { "nothing of it is handed out" } else { "nothing is handed out" };
        Ok(done(format!("Paused{whose} {until}: {nothing}.")))
    }

    async fn end_hold(&self) -> std::result::Result<Done, No> {
        let id = self.fields.bytes("id").ok_or(No::Form("An id is needed."))?;
        let mut command = self.command("DQ.RESUME");
        command.arg("ID").arg(&id);
        match number(self.ask(command).await?)? {
            0 => Err(No::Form("It isn't on hold.")),
            _ => Ok(Done {
                words: "Resumed: it is due when it waits for no other job.".into(),
                id: Some(id),
            }),
        }
    }

    async fn purge(&self) -> std::result::Result<Done, No> {
        if self.fields.text("confirm") != title(self.queue) {
            return Err(No::Form("Nothing was purged: what was typed isn't the queue's name."));
        }
        let state = self
            .fields
            .get("state")
            .and_then(JobState::named)
            .ok_or(No::Form("A state is needed."))?;
        let many = self.fields.number("count").ok_or(No::Form("A count is needed."))?;
        let older = self.fields.number("older").filter(|ms| *ms > 0);
        let purged = self.in_parts(many, |part| {
            let mut command = self.command("DQ.PURGE");
            command.arg("STATE").arg(state.name()).arg("COUNT").arg(part);
            if let Some(ms) = older {
                command.arg("OLDER").arg(ms);
            }
            command
        });
        let purged = purged.await?;
        Ok(Done::to_queue(format!("Purged {} in state {}.", words::jobs(purged), state.name())))
    }

    /// A command that does something to one job, and replies with 1 or 0.
    async fn to_job(
        &self,
        command: &str,
        id: Vec<u8>,
        args: &[&str],
        good: &str,
        bad: &'static str,
    ) -> std::result::Result<Done, No> {
        let mut command = self.command(command);
        command.arg(&id).arg(args);
        match number(self.ask(command).await?)? {
            0 => Err(No::Form(bad)),
            _ => Ok(Done { words: good.into(), id: Some(id) }),
        }
    }

    /// As often as it takes for so many, or as there is time.
    async fn in_parts(&self, many: u64, command: impl Fn(u64) -> Cmd) -> Result<u64> {
        let (mut done, began) = (0, Instant::now());
        while done < many && began.elapsed() < WITHIN {
            let part = (many - done).min(AT_ONCE);
            match number(self.ask(command(part)).await?)? {
                0 => break,
                more => done += more,
            }
        }
        Ok(done)
    }

    /// A number with its unit beside it, in milliseconds; `None` when the field is empty.
    fn span(&self, name: &str) -> std::result::Result<Option<u64>, No> {
        let text = self.fields.text(name);
        if text.is_empty() {
            return Ok(None);
        }
        let unit = match self.fields.text(&format!("{name}-unit")) {
            "ms" => 1,
            "s" => 1_000,
            "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(No::Form("That is no unit of time.")),
        };
        let span = text.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        span.map(Some).ok_or(No::Form("A span of time must be a whole number."))
    }

    fn command(&self, name: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(self.queue);
        command
    }

    async fn ask(&self, command: Cmd) -> Result<Value> {
        jobs::ask_one(&self.app.watch.deployment, self.app.watch.node_of(self.queue), command).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_names_a_group_in_hex_or_as_it_is_spelled() {
        let named =
            |form: &str| group_named(&Fields::parse(form.as_bytes())).map_err(|_| "refused");
        assert_eq!(named("verb=pause"), Ok(None));
        for (form, name) in [
            ("group=ann", &b"ann"[..]),
            ("group.hex=ff3c623e00", b"\xff<b>\0"),
            ("group=%5Cxff%3Cb%3E%5C%5C", b"\xff<b>\\"),
            // What isn't spelled so is what it is.
            ("group=C%3A%5Cdir", b"C:\\dir"),
            ("group=%FF", b"\xff"),
            ("group=+ann+", b" ann "),
        ] {
            assert_eq!(named(form), Ok(Some(name.to_vec())), "{form}");
        }
        for form in ["group=", "group", "group.hex=", "group.hex=abc", "group.hex=zz", "group.hex"]
        {
            assert_eq!(named(form), Err("refused"), "{form}");
        }
    }
}
