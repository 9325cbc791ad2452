//! What is done to jobs: one by its id, or many of a state.

use std::time::{Duration, Instant};

use redis::Cmd;

use super::unknown::rest;
use super::{Act, Done, No};
use crate::bytes::{title, Shown};
use crate::server::queue::State as JobState;
use crate::server::replies::{bytes, number};
use crate::server::Result;
use crate::watch::now_ms;
use crate::web::words;

/// What one DQ.KICK or DQ.PURGE does at most.
const AT_ONCE: u64 = 10_000;
/// A browser waits so long for what takes many of them; the rest is for another click.
const WITHIN: Duration = Duration::from_secs(20);

impl Act<'_> {
    pub(super) async fn add(&self) -> std::result::Result<Done, No> {
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
        Ok(Done::to_job(format!("Added “{}”.", Shown(&id)), Some(id)))
    }

    pub(super) async fn kick(&self) -> std::result::Result<Done, No> {
        if let Some(id) = self.fields.bytes("id") {
            return self
                .to_job(
                    "DQ.KICKJOB",
                    id,
                    &[],
                    match self.fields.text("back") {
                        // The next run of a dead one isn't where it was.
                        "schedules" => "It is ready now. When it will run next is in its row.",
                        _ => "It is ready now.",
                    },
                    "It is neither dead, delayed nor held.",
                )
                .await;
        }
        // Of many, a preview says which: then the form is about a selection.
        Err(No::Form("Say which jobs to kick."))
    }

    pub(super) async fn del(&self) -> std::result::Result<Done, No> {
        let id = self.fields.bytes("id").ok_or(No::Form("An id is needed."))?;
        self.to_job("DQ.DEL", id, &[], "Deleted.", "It was gone already.").await
    }

    /// The lease is the one that the page showed: had the worker given it back and another got it,
    /// nothing happens.
    pub(super) async fn release(&self) -> std::result::Result<Done, No> {
        let id = self.fields.bytes("id").ok_or(No::Form("An id is needed."))?;
        let lease = self.fields.number("lease").ok_or(No::Form("A lease is needed."))?.to_string();
        let args = [lease.as_str(), "REASON", "released on dq-board"];
        self.to_job("DQ.RELEASE", id, &args, "Released.", "Its lease is another by now.").await
    }

    pub(super) async fn purge(&self) -> std::result::Result<Done, No> {
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
        // What has come since the preview isn't old enough.
        let seen = self.fields.number("seen");
        let has_age = state.has_age();
        let purged = self.in_parts(many, |part| {
            let passed = seen.map_or(0, |seen| now_ms().saturating_sub(seen));
            let age = older.unwrap_or(0).saturating_add(passed);
            let mut command = self.command("DQ.PURGE");
            command.arg("STATE").arg(state.name()).arg("COUNT").arg(part);
            if has_age && age > 0 {
                command.arg("OLDER").arg(age);
            }
            command
        });
        let (purged, ended) = purged.await;
        let words = format!("Purged {} in state {}.", words::jobs(purged), state.name());
        match ended {
            Ok(()) => Ok(Done::to_queue(words)),
            Err(trouble) => Err(rest(purged, words, trouble)),
        }
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
            _ => Ok(Done::to_job(good.into(), Some(id))),
        }
    }

    /// As often as it takes for so many, or as there is time. How many it was done to, and what ended it
    /// before that.
    async fn in_parts(&self, many: u64, command: impl Fn(u64) -> Cmd) -> (u64, Result<()>) {
        let (mut done, began) = (0, Instant::now());
        while done < many && began.elapsed() < WITHIN {
            let part = (many - done).min(AT_ONCE);
            match self.ask(command(part)).await.and_then(number) {
                Ok(0) => break,
                Ok(more) => done += more,
                Err(trouble) => return (done, Err(trouble)),
            }
        }
        (done, Ok(()))
    }
}
