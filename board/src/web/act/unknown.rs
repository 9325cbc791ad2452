//! What became of an action to which the server gave no answer: a server that stands still may do it
//! when it goes on. As soon as the server answers again it is asked, and the page, the log and the
//! page of actions say what was found. The answer is a second one, not in place of the first.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{pause, Act, Deed, Ending};
use crate::args::Verb;
use crate::bytes::{Fields, Shown};
use crate::server::groups;
use crate::server::job::Job;
use crate::server::queue::{Info, Totals};
use crate::server::{Result, Trouble};
use crate::web::{limits, words, App};

/// After that an operator has to look.
const WITHIN: Duration = Duration::from_secs(1_800);
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Actions that are looked after at a time.
pub const AT_ONCE: usize = 100;

/// What was found, as a sentence.
struct Found {
    ending: Ending,
    words: String,
}

impl Found {
    /// `is_so`: whether all is as the action meant it to be.
    fn of(is_so: bool, words: String) -> Found {
        Found { ending: if is_so { Ending::Done } else { Ending::NotDone }, words }
    }

    fn unknown(words: String) -> Found {
        Found { ending: Ending::Unknown, words }
    }
}

/// `before` is the queue as it was before the action, and `number` that of the outcome on the page.
pub async fn find_out(
    app: Arc<App>,
    verb: Verb,
    queue: Vec<u8>,
    fields: Fields,
    before: Option<Info>,
    number: u64,
) {
    let Ok(_place) = app.board.unknown.clone().try_acquire_owned() else { return };
    let act = Act { app: &app, queue: &queue, fields: &fields };
    let began = Instant::now();
    let found = loop {
        sleep(ASK_EVERY).await;
        if app.watch.read_one(&queue).await.is_ok() {
            // What was sent before the outage may be read after this: it is there a moment later.
            sleep(ASK_EVERY).await;
            if let Ok(found) = act.find(verb, before.as_ref()).await {
                break found;
            }
        }
        if began.elapsed() > WITHIN {
            return;
        }
    };
    let words = format!("The server answers again: {}", found.words);
    let id = fields.bytes("id").filter(|id| !id.is_empty());
    let group = pause::group_named(&fields).ok().flatten();
    let (id, group, ending) = (id.as_deref(), group.as_deref(), found.ending);
    app.board.actions.note(&app, &Deed { verb, queue: &queue, id, group, ending, words: &words });
    app.forms.find_out(number, ending, &words);
}

impl Act<'_> {
    async fn find(&self, verb: Verb, before: Option<&Info>) -> Result<Found> {
        let now = self.app.watch.read_one(self.queue).await?.map(|(info, _)| info);
        let job = match self.fields.bytes("id").filter(|id| !id.is_empty()) {
            Some(id) => Job::read(self.ask(Job::command(self.queue, &id)).await?)?,
            None => None,
        };
        match verb {
            Verb::Pause => self.find_pause(now.as_ref(), job.as_ref()).await,
            Verb::Alter => Ok(self.find_settings(now.as_ref())),
            Verb::Del if !self.is_of_many() => Ok(match job {
                None => Found::of(true, "the job is gone.".into()),
                Some(job) => {
                    Found::of(false, format!("the job is still there, {}.", job.state.name()))
                }
            }),
            _ => Ok(self.find_by_totals(verb, before, now.as_ref(), job.as_ref())),
        }
    }

    async fn find_pause(&self, now: Option<&Info>, job: Option<&Job>) -> Result<Found> {
        let is_resumed = self.fields.text("resume");
        if is_resumed == "job" {
            let is_on_hold = job.is_some_and(|job| job.edges.is_on_hold);
            let words =
                if is_on_hold { "the job is still on hold." } else { "the job isn't on hold." };
            return Ok(Found::of(!is_on_hold, words.into()));
        }
        let (what, is_paused) = match pause::group_named(self.fields).ok().flatten() {
            None => ("the queue".to_string(), now.is_some_and(|info| info.is_paused)),
            Some(group) => {
                let what = format!("the group “{}”", Shown(&group));
                if now.is_some_and(|info| info.groups > groups::ALL_MAX) {
                    return Ok(Found::unknown(format!("look whether {what} is paused.")));
                }
                let node = self.app.watch.node_of(self.queue);
                let paused = groups::paused(&self.app.watch.deployment, node, self.queue).await?;
                (what, paused.contains(&group))
            }
        };
        let is = if is_paused { "is" } else { "isn't" };
        // One with an end may have come, and be over.
        if !is_paused && is_resumed != "1" && !self.fields.text("for").is_empty() {
            return Ok(Found::unknown(format!("{what} isn't paused. The pause may be over.")));
        }
        Ok(Found::of(is_paused != (is_resumed == "1"), format!("{what} {is} paused.")))
    }

    fn find_settings(&self, now: Option<&Info>) -> Found {
        let (Ok(change), Some(info)) = (limits::read(self.fields), now) else {
            return Found::of(false, "there is no such queue.".into());
        };
        let left = change.unlike(info);
        match left.is_empty() {
            true => Found::of(true, "all of it is set.".into()),
            false => Found::of(false, format!("this isn't set: {}.", limits::in_words(&left))),
        }
    }

    /// A total that hasn't grown says that nothing was done. One that has grown is no proof: others
    /// work with the queue, too.
    fn find_by_totals(
        &self,
        verb: Verb,
        before: Option<&Info>,
        now: Option<&Info>,
        job: Option<&Job>,
    ) -> Found {
        let is_purge = verb == Verb::Purge;
        let (total, what): (fn(&Totals) -> u64, &str) = match verb {
            Verb::Add | Verb::Schedule => (|totals| totals.added + totals.replaced, "added"),
            Verb::Kick => (|totals| totals.kicked, "kicked"),
            Verb::Del => (|totals| totals.deleted, "deleted"),
            Verb::Release => (|totals| totals.released, "given back"),
            _ => (|totals| totals.purged, "purged"),
        };
        let of = |info: Option<&Info>| info.map_or(0, |info| total(&info.totals));
        let many = of(now).saturating_sub(of(before));
        let is_change = verb == Verb::Schedule && self.fields.text("change") == "1";
        let there = match job {
            Some(job) => format!(" The job is {} now.", job.state.name()),
            None if self.fields.bytes("id").is_some_and(|id| !id.is_empty()) => {
                " The job isn't there now.".to_string()
            }
            None if is_purge || self.is_of_many() => {
                let left = now.map_or(0, |info| info.counts.dead);
                format!(" {} dead now.", words::are(left))
            }
            None => String::new(),
        };
        match many {
            _ if is_change => {
                Found::unknown(format!("look whether the schedule is as saved.{there}"))
            }
            0 => Found::of(false, format!("no job was {what} since.{there}")),
            1 if job.is_some() => Found::of(true, format!("a job was {what} since.{there}")),
            many => {
                let was = if many == 1 { "was" } else { "were" };
                let others = "Others may have done that.";
                Found::unknown(format!("{} {was} {what} since. {others}{there}", words::jobs(many)))
            }
        }
    }
}

/// What ended an action on many jobs: it says how many it was done to before.
pub fn rest(done: u64, words: String, trouble: Trouble) -> super::No {
    match done {
        0 => super::No::Server(trouble),
        _ => super::No::Rest(words, trouble),
    }
}
