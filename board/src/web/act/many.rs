//! What is done to many jobs of a state at once: to those that were ticked, or to all that fit a filter.

use std::time::{Duration, Instant};

use super::unknown::rest;
use super::{Act, Done, No};
use crate::args::Verb;
use crate::bytes::link;
use crate::server::job::Job;
use crate::server::jobs::{reach, Place};
use crate::server::queue::State as JobState;
use crate::server::replies::number;
use crate::server::walk::{Mark, Order, Walk};
use crate::server::{Result, Trouble};
use crate::web::choice::Choice;
use crate::web::selection::{
    offer, place, queue_of, still_there, ticked, Extent, Offer, TICKED_MAX,
};
use crate::web::words;

/// A browser waits so long; then a page says how many are left.
const WITHIN: Duration = Duration::from_secs(10);

impl Act<'_> {
    /// Whether the form is about a selection, not about one job or a count.
    pub(super) fn is_of_many(&self) -> bool {
        self.fields.get("selected").is_some()
    }

    pub(super) async fn to_many(&self, verb: Verb) -> std::result::Result<Done, No> {
        let choice = Choice::acted_on(self.fields);
        let offer = offer(choice.state, Some(verb));
        let offer = offer.ok_or(No::Form("That can't be done to a selection."))?;
        let (info, node) = queue_of(self.app, self.queue).await?;
        let place = place(self.app, self.queue, &info, node);
        match self.fields.text("selected") {
            "all" => self.to_all(&place, offer, &choice).await,
            _ => self.to_ticked(&place, offer, choice.state).await,
        }
    }

    async fn to_ticked(
        &self,
        place: &Place<'_>,
        offer: &Offer,
        state: JobState,
    ) -> std::result::Result<Done, No> {
        let ticked = ticked(self.fields).filter(|ticked| ticked.len() <= TICKED_MAX);
        let ticked = ticked.ok_or(No::Form("Those are no jobs."))?;
        let jobs = still_there(place, state, &ticked).await?;
        let done = to_jobs(place, offer, &jobs).await?;
        let left = (ticked.len() as u64).saturating_sub(done);
        let mut words = offer.told(done, state, "");
        if left > 0 {
            let state = state.name();
            words.push_str(&format!(
                " {} left alone: not {state} any more, or {state} again since.",
                words::jobs(left)
            ));
        }
        Ok(Done::to_queue(words))
    }

    async fn to_all(
        &self,
        place: &Place<'_>,
        offer: &Offer,
        choice: &Choice,
    ) -> std::result::Result<Done, No> {
        let until = self.fields.number("until").ok_or(No::Form("Up to when?"))?;
        let most = self.fields.number("most").unwrap_or(u64::MAX);
        let did = to_all(place, offer, choice, Extent { until, most }).await;
        let mut words = offer.told(did.done, choice.state, &choice.filter_words());
        if let Some(trouble) = did.trouble {
            return Err(rest(did.done, words, trouble));
        }
        if did.is_whole {
            let to = Choice::all(choice.state).link(self.queue);
            return Ok(Done { to: Some(to), ..Done::to_queue(words) });
        }
        words.push_str(" There was no time for all: the others are counted here.");
        let left = most.saturating_sub(did.done).to_string();
        let mut fields: Vec<(&str, &[u8])> =
            vec![("queue", self.queue), ("do", offer.verb.name().as_bytes())];
        fields.extend(choice.fields());
        if most < u64::MAX {
            fields.push(("most", left.as_bytes()));
        }
        Ok(Done { to: Some(link("selected", &fields)), ..Done::to_queue(words) })
    }
}

impl Offer {
    /// “Kicked 3 dead jobs whose reason is “gone”: ready now.”
    fn told(&self, many: u64, state: JobState, which: &str) -> String {
        let (jobs, state) = (if many == 1 { "job" } else { "jobs" }, state.name());
        format!("{} {} {state} {jobs}{which}{}.", self.done, words::number(many), self.then)
    }
}

async fn to_jobs(place: &Place<'_>, offer: &Offer, jobs: &[Job]) -> Result<u64> {
    if jobs.is_empty() {
        return Ok(0);
    }
    let mut command = redis::cmd(offer.command);
    command.arg(place.queue);
    jobs.iter().for_each(|job| {
        command.arg(&job.id);
    });
    number(place.ask(command).await?)
}

/// What was done to all that fit, as far as it went.
struct Did {
    done: u64,
    /// Whether there was time for all.
    is_whole: bool,
    trouble: Option<Trouble>,
}

/// To all that fit, were there before a time and are among the first so many.
async fn to_all(place: &Place<'_>, offer: &Offer, choice: &Choice, extent: Extent) -> Did {
    let first = Mark::first(choice.state);
    let mut walk = Walk::new(place, choice.state, Order::Oldest, first, reach(place.info));
    let mut did = Did { done: 0, is_whole: true, trouble: None };
    // A job may be passed over that has left meanwhile: it counts among the first so many.
    let (mut taken, began) = (0, Instant::now());
    while walk.mark.is_some() && taken < extent.most {
        if began.elapsed() > WITHIN {
            did.is_whole = false;
            break;
        }
        let acted = match walk.batch().await {
            Ok(mut batch) => {
                if extent.cut(choice.state, &mut batch) {
                    walk.mark = None;
                }
                batch.retain(|job| choice.filter.fits(job));
                batch.truncate(usize::try_from(extent.most - taken).unwrap_or(usize::MAX));
                taken += batch.len() as u64;
                to_jobs(place, offer, &batch).await
            }
            Err(trouble) => Err(trouble),
        };
        match acted {
            Ok(done) => did.done += done,
            Err(trouble) => {
                did.trouble = Some(trouble);
                break;
            }
        }
    }
    did
}
