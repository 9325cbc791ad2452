//! What is done to many dead jobs at once: to those that were ticked, or to all that fit a filter.

use std::time::{Duration, Instant};

use super::{Act, Done, No};
use crate::args::Verb;
use crate::bytes::link;
use crate::server::job::Job;
use crate::server::jobs::{reach, Place};
use crate::server::queue::State as JobState;
use crate::server::replies::number;
use crate::server::walk::{Mark, Order, Walk};
use crate::server::Result;
use crate::web::choice::Choice;
use crate::web::selection::{offer, place, queue_of, still_dead, ticked, Offer, TICKED_MAX};
use crate::web::words;

/// A browser waits so long; then a page says how many are left.
const WITHIN: Duration = Duration::from_secs(10);

impl Act<'_> {
    /// Whether the form is about a selection, not about one job or a count.
    pub(super) fn is_of_many(&self) -> bool {
        self.fields.get("selected").is_some()
    }

    pub(super) async fn to_many(&self, verb: Verb) -> std::result::Result<Done, No> {
        let offer = offer(Some(verb)).ok_or(No::Form("That can't be done to a selection."))?;
        let (info, node) = queue_of(self.app, self.queue).await?;
        let place = place(self.app, self.queue, &info, node);
        match self.fields.text("selected") {
            "all" => self.to_all(&place, offer).await,
            _ => self.to_ticked(&place, offer).await,
        }
    }

    async fn to_ticked(&self, place: &Place<'_>, offer: &Offer) -> std::result::Result<Done, No> {
        let ticked = ticked(self.fields).filter(|ticked| ticked.len() <= TICKED_MAX);
        let ticked = ticked.ok_or(No::Form("Those are no jobs."))?;
        let jobs = still_dead(place, &ticked).await?;
        let done = to_jobs(place, offer, &jobs).await?;
        let left = (ticked.len() as u64).saturating_sub(done);
        let mut words = offer.told(done, "");
        if left > 0 {
            words.push_str(&format!(
                " {} left alone: not dead any more, or dead again since.",
                words::jobs(left)
            ));
        }
        Ok(Done::to_queue(words))
    }

    async fn to_all(&self, place: &Place<'_>, offer: &Offer) -> std::result::Result<Done, No> {
        let until = self.fields.number("until").ok_or(No::Form("Up to when?"))?;
        let choice = Choice::of_dead(self.fields);
        let (done, is_whole) = to_all(place, offer, &choice, until).await?;
        let mut words = offer.told(done, &choice.filter_words());
        if is_whole {
            let to = Choice::all(JobState::Dead).link(self.queue);
            return Ok(Done { to: Some(to), ..Done::to_queue(words) });
        }
        words.push_str(" There was no time for all: the others are counted here.");
        let mut fields: Vec<(&str, &[u8])> =
            vec![("queue", self.queue), ("do", offer.verb.name().as_bytes())];
        fields.extend(choice.fields());
        Ok(Done { to: Some(link("selected", &fields)), ..Done::to_queue(words) })
    }
}

impl Offer {
    /// “Kicked 3 dead jobs whose reason is “gone”: ready now.”
    fn told(&self, many: u64, which: &str) -> String {
        let jobs = if many == 1 { "job" } else { "jobs" };
        let now = if self.verb == Verb::Kick { ": ready now" } else { "" };
        format!("{} {} dead {jobs}{which}{now}.", self.done, words::number(many))
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

/// To all that fit and died up to a time, the oldest first; and whether there was time for all.
async fn to_all(
    place: &Place<'_>,
    offer: &Offer,
    choice: &Choice,
    until: u64,
) -> Result<(u64, bool)> {
    let first = Mark::first(JobState::Dead);
    let mut walk = Walk::new(place, JobState::Dead, Order::Oldest, first, reach(place.info));
    let (mut done, began) = (0, Instant::now());
    while walk.mark.is_some() {
        if began.elapsed() > WITHIN {
            return Ok((done, false));
        }
        let mut batch = walk.batch().await?;
        let many = batch.len();
        batch.retain(|job| job.since <= Some(until));
        if batch.len() < many {
            walk.mark = None;
        }
        batch.retain(|job| choice.filter.fits(job));
        done += to_jobs(place, offer, &batch).await?;
    }
    Ok((done, true))
}
