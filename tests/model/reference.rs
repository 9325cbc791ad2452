//! The reference: a queue as DESIGN.md tells it, in a `Vec`, with everything worked out anew
//! whenever it is asked. What is done to it is here, how jobs are taken in
//! `reference/consume.rs`, what workers say of their jobs in `claims.rs`; how jobs wait for others, in `edges.rs`; what one sees of it, in `sight.rs`.

// The fuzzer takes this file by its path, too.
#[path = "reference/consume.rs"]
mod consume;

use dq::queue::{State, Totals};

use crate::edges::{Pending, Waits, BUDGET};
use crate::groups::{self, Groups};
use crate::job::{Job, Stage, Tally};
use crate::limits::Departures;
use crate::told::{
    Add, Alteration, Backoff, Bytes, Checkpoint, Circumstances, Claim, Command, Defaults,
    Finishing, Outcome, Policy, Settings, LAST,
};

#[derive(Clone, Debug)]
pub struct Delivery {
    pub id: Bytes,
    pub lease: u64,
}

#[derive(Clone, Debug)]
pub struct Reference {
    pub jobs: Vec<Job>,
    /// The time of those who look.
    pub horizon: u64,
    /// Up to here, what time did is in the totals.
    counted: u64,
    /// The time of the last change, and the defaults then.
    pub clock: u64,
    pub defaults: Defaults,
    pub last_lease: u64,
    pub totals: Totals,
    pub paused_until: u64,
    pub settings: Settings,
    pub sink: Option<(u8, u64)>,
    /// By the rate.
    pub departures: Departures,
    pub groups: Groups,
    /// Every delivery there ever was.
    pub deliveries: Vec<Delivery>,
    /// The last id that the queue made: its time and number.
    last_made: Option<(u64, u64)>,
    events: i64,
    /// During a change: those that have stopped waiting.
    pub released: Vec<Bytes>,
    /// What follows for those that wait, and is still to be carried out.
    pub pending: Vec<Pending>,
    /// The time of the change.
    now: u64,
}

impl Default for Reference {
    fn default() -> Reference {
        Reference {
            jobs: Vec::new(),
            horizon: 0,
            counted: 0,
            clock: 0,
            defaults: Defaults { ttr: 0, attempts: 0, backoff: Backoff::default() },
            last_lease: 0,
            totals: Totals::default(),
            paused_until: 0,
            settings: Settings::default(),
            sink: None,
            departures: Departures::default(),
            groups: Groups::default(),
            deliveries: Vec::new(),
            last_made: None,
            events: 0,
            released: Vec::new(),
            pending: Vec::new(),
            now: 0,
        }
    }
}

impl Reference {
    /// Time passes, or goes back, for those who look.
    pub fn advance(&mut self, to: u64) {
        let from = self.horizon.max(self.counted);
        let is_passed = |time: Option<u64>| time.is_some_and(|time| from < time && time <= to);
        let timed_out = self.jobs.iter().filter(|job| is_passed(job.end_of_lease())).count();
        let is_alive = |job: &&Job| !matches!(job.stage, Stage::Dead | Stage::Done);
        let died = self.jobs.iter().filter(is_alive).filter(|job| is_passed(job.death())).count();
        self.totals.timed_out += timed_out as u64;
        self.totals.died += died as u64;
        self.horizon = to;
        self.counted = self.counted.max(to);
    }

    /// `seen` is what came of it in the queue, which is free to make any id that will do.
    pub fn apply(
        &mut self,
        circumstances: &Circumstances,
        command: &Command,
        seen: &Outcome,
    ) -> Outcome {
        let Circumstances { now, defaults, lease_floor } = *circumstances;
        let last_lease = self.last_lease;
        let budget = match command {
            Command::Settle { .. } => BUDGET.of_slice,
            _ if self.pending.is_empty() => BUDGET.of_operation,
            _ => 0,
        };
        self.now = now;
        self.last_lease = last_lease.max(lease_floor);
        let outcome = match command {
            Command::Add(add) => self.add(now, defaults, add, seen),
            Command::Alike { adds, .. } => self.add_alike(now, defaults, adds, seen),
            Command::Pop { count, ttr, no_ack } => self.pop_all(now, *count, *ttr, *no_ack),
            Command::FinishAndPop { claims, count, ttr, no_ack } => {
                let finish = |queue: &mut Self, claim: &Claim| {
                    queue.finish(now, claim, &Finishing::default())
                };
                let finished = jobs_of(&self.each(claims, finish)) as usize;
                if finished > 0 {
                    self.end_change(now, budget);
                    self.tidy_groups(self.clock, now);
                }
                let taken = self.pop_all(now, *count, *ttr, *no_ack);
                Outcome::FinishedAndTaken(finished, Box::new(self.or_set_back(now, taken)))
            }
            Command::Finish { claims } => {
                self.each(claims, |queue, claim| queue.finish(now, claim, &Finishing::default()))
            }
            Command::Done { claim, finishing, adds } => {
                self.done(now, defaults, (claim, finishing), adds, seen)
            }
            Command::PopById { ids, ttr, no_ack } => {
                // Each once, also where it comes back at once.
                let ids = ids.iter().enumerate().filter(|(n, id)| !ids[..*n].contains(id));
                let pops =
                    ids.filter_map(|(_, id)| self.pop_by_id(now, id, *ttr, *no_ack)).collect();
                self.check_rate();
                Outcome::HandedOut(pops, 0)
            }
            Command::Release { claim, when, priority, reason, checkpoint } => {
                self.release(now, claim, *when, *priority, reason.as_ref(), checkpoint)
            }
            Command::Touch { claim, ttr, checkpoint } => self.touch(now, claim, *ttr, checkpoint),
            Command::Renew { claims, ttr } => {
                let is_void =
                    |claim| self.touch(now, claim, *ttr, &Checkpoint::default()) == Outcome::No;
                let void: Vec<bool> = claims.iter().map(is_void).collect();
                let places = (0..void.len()).filter(|place| void[*place]).collect();
                Outcome::Renewed(places, void.iter().filter(|is_void| !**is_void).count())
            }
            Command::Bury { claim, reason } => self.bury(now, claim, reason.as_ref()),
            Command::Delete { ids } => {
                let outcome = self.each(ids, |queue, id| queue.remove(now, id));
                self.totals.deleted += jobs_of(&outcome);
                outcome
            }
            Command::ForgetGroups => Outcome::Jobs(self.forget_groups(now)),
            Command::Forget { ids } => {
                let outcome = self.each(ids, |queue, id| queue.remove(now, id));
                self.totals.purged += jobs_of(&outcome);
                outcome
            }
            Command::KickJob { ids } => self.each(ids, |queue, id| queue.kick_job(now, id, now)),
            Command::KickSpread { ids, span } => {
                let behind =
                    |place: usize| (*span as u128 * place as u128 / ids.len() as u128) as u64;
                let mut dues = (0..ids.len()).map(|place| (now + behind(place)).min(LAST));
                self.each(ids, |queue, id| queue.kick_job(now, id, dues.next().unwrap()))
            }
            Command::Pause { group: Some(group), span } => {
                self.pause_group(*group, groups::until(now, *span));
                Outcome::Yes
            }
            Command::Resume { group: Some(group) } => Outcome::yes_if(self.resume_group(*group)),
            Command::Pause { group: None, span } => {
                self.paused_until = groups::until(now, *span);
                Outcome::Yes
            }
            Command::Resume { group: None } => {
                // Also a pause that is over: the clock may be set back.
                Outcome::yes_if(std::mem::take(&mut self.paused_until) > 0)
            }
            Command::ResumeJobs { ids } => self.each(ids, |queue, id| queue.resume_job(now, id)),
            Command::Settle { ids } => self.settle_deaths(now, ids),
            Command::Alter(alteration) => {
                self.alter(now, alteration);
                Outcome::Yes
            }
        };
        let outcome = self.or_set_back(now, outcome);
        if outcome.has_changed() {
            self.end_change(now, budget);
            self.tidy_groups(self.clock, now);
            (self.clock, self.defaults) = (now, defaults);
        } else {
            self.last_lease = last_lease;
        }
        outcome
    }

    fn each<T>(&mut self, all: &[T], mut one: impl FnMut(&mut Self, &T) -> bool) -> Outcome {
        Outcome::Jobs(all.iter().filter(|it| one(self, it)).count())
    }

    pub fn add(&mut self, now: u64, defaults: Defaults, add: &Add, seen: &Outcome) -> Outcome {
        if let Some((rule, starts)) = &add.schedule {
            return self.add_schedule(now, self.policy(defaults, add), add, rule, *starts);
        }
        let id = match (&add.id, seen) {
            (Some(id), _) => id.clone(),
            (None, Outcome::Added { id, .. }) => {
                self.check_made_id(now, id);
                id.clone()
            }
            // It made none: then nothing else may be the reason.
            (None, _) => Bytes::new(),
        };
        let is_gone = self.get(&id).is_some_and(|job| job.is_over(now));
        let is_taken = !is_gone && self.get(&id).is_some();
        if is_taken && add.if_taken.leaves() {
            return Outcome::No;
        }
        let is_full =
            self.settings.max_jobs != 0 && self.jobs.len() as u64 >= self.settings.max_jobs;
        if is_full && !is_taken && !is_gone {
            return Outcome::Full;
        }
        let waits = match self.waits_of_new(now, &id, add) {
            Ok(waits) => waits,
            Err(refused) => return refused,
        };
        self.record_death_by(now, &id);
        self.take(&id);
        self.totals.replaced += u64::from(is_taken);
        self.totals.added += u64::from(!is_taken);
        self.totals.purged += u64::from(is_gone);
        let is_held = waits.as_ref().is_some_and(Waits::are_for_any);
        let (stage, due) = match is_held {
            true => (Stage::Held, now),
            false => (Stage::Waiting, add.due.counted_from(now)),
        };
        let (policy, order) = (self.policy(defaults, add), self.next_event());
        self.join(add.options.group);
        self.jobs.push(Job {
            id: id.clone(),
            body: add.body.clone(),
            created: now,
            policy,
            stage,
            attempt: 0,
            lease: None,
            time: due,
            expires_at: policy.expiry(now),
            reason: None,
            tally: Tally::default(),
            order,
            group: add.options.group,
            round: None,
            note: None,
            result: None,
            waits,
            is_known_dead: false,
        });
        self.record_life(now, &id);
        if let Some(edges) = &add.edges {
            self.connect(now, &id, edges);
        }
        Outcome::Added { id, due, replaced: is_taken }
    }

    fn policy(&self, defaults: Defaults, add: &Add) -> Policy {
        let (options, settings) = (&add.options, &self.settings);
        Policy {
            ttr: options.ttr.or(settings.ttr).unwrap_or(defaults.ttr),
            attempts: options.attempts.or(settings.attempts).unwrap_or(defaults.attempts),
            priority: options.priority.unwrap_or(128),
            backoff: options.backoff.or(settings.backoff).unwrap_or(defaults.backoff),
            ttl: options.ttl.unwrap_or(0),
            keep: options.keep.unwrap_or(settings.keep),
            late: options.late.unwrap_or(settings.late),
        }
    }

    fn kick_job(&mut self, now: u64, id: &Bytes, due: u64) -> bool {
        let Some(place) = self.jobs.iter().position(|job| job.id == *id) else {
            return false;
        };
        if self.jobs[place].round.is_some() {
            return self.kick_schedule(now, place, due);
        }
        self.record_death_by(now, id);
        let job = &mut self.jobs[place];
        let tally = job.tally_at(now);
        match job.state(now) {
            State::Dead => {
                (job.attempt, job.expires_at, job.reason) = (0, job.policy.expiry(now), None)
            }
            State::Delayed | State::Held => {}
            State::Ready | State::Reserved | State::Done => return false,
        }
        self.jobs[place].tally = Tally { kicked: tally.kicked + 1, ..tally };
        self.jobs[place].drop_open_edges();
        self.wait(place, due);
        self.totals.kicked += 1;
        true
    }

    fn alter(&mut self, now: u64, alteration: &Alteration) {
        let Alteration {
            ttr,
            attempts,
            backoff,
            keep,
            late,
            max_jobs,
            dead_keep,
            concurrency,
            rate,
            ..
        } = *alteration;
        let before = self.settings;
        self.settings = Settings {
            ttr: ttr.or(before.ttr),
            attempts: attempts.or(before.attempts),
            backoff: backoff.or(before.backoff),
            keep: keep.unwrap_or(before.keep),
            late: late.unwrap_or(before.late),
            max_jobs: max_jobs.unwrap_or(before.max_jobs),
            dead_keep: dead_keep.unwrap_or(before.dead_keep),
            concurrency: concurrency.unwrap_or(before.concurrency),
            rate: rate.unwrap_or(before.rate),
            group_concurrency: alteration.group_concurrency.unwrap_or(before.group_concurrency),
            group_rate: alteration.group_rate.unwrap_or(before.group_rate),
        };
        self.sink = alteration.sink.unwrap_or(self.sink);
        self.alter_group_rate(before.group_rate, now);
        self.departures = self.departures.altered(before.rate, self.settings.rate, now);
    }

    fn remove(&mut self, now: u64, id: &Bytes) -> bool {
        self.settle_as_gone(now, id);
        self.take(id)
    }

    /// Of those that wait for it, nobody hears.
    fn take(&mut self, id: &Bytes) -> bool {
        let before = self.jobs.len();
        self.jobs.retain(|job| job.id != *id);
        before > self.jobs.len()
    }

    /// It waits from here on, up to then.
    pub fn wait(&mut self, place: usize, time: u64) {
        let order = self.next_event();
        let job = &mut self.jobs[place];
        (job.stage, job.lease, job.time, job.order) = (Stage::Waiting, None, time, order);
        let id = job.id.clone();
        self.record_life(self.now, &id);
    }

    /// A job that is dead already stays so since then.
    pub fn mark_dead(&mut self, now: u64, place: usize, reason: Option<&Bytes>) {
        let job = &self.jobs[place];
        let since = job.death().filter(|death| *death <= now).unwrap_or(now);
        self.totals.died += u64::from(job.state(self.horizon) != State::Dead);
        self.end(place, Stage::Dead, since);
        self.give_reason(place, reason);
        self.record_life(now, &self.jobs[place].id.clone());
    }

    pub fn give_reason(&mut self, place: usize, reason: Option<&Bytes>) {
        if let Some(reason) = reason {
            self.jobs[place].reason = Some(reason.clone());
        }
    }

    pub fn end(&mut self, place: usize, stage: Stage, time: u64) {
        let order = self.next_event();
        let job = &mut self.jobs[place];
        (job.stage, job.time, job.lease, job.expires_at, job.order) =
            (stage, time, None, None, order);
    }

    pub fn get(&self, id: &[u8]) -> Option<&Job> {
        self.jobs.iter().find(|job| job.id == id)
    }

    pub fn next_event(&mut self) -> i64 {
        self.events += 1;
        self.events
    }

    /// An id that the queue makes: `<unix-ms>-<number>`, free, of now (or of the last one's time,
    /// when the clock was there already), and sorting behind all that it made before.
    fn check_made_id(&mut self, now: u64, id: &[u8]) {
        let text = std::str::from_utf8(id).unwrap();
        let (time, number) = text.split_once('-').unwrap();
        let made = (time.parse().unwrap(), number.parse().unwrap());
        assert_eq!(text, format!("{}-{}", made.0, made.1));
        assert!(self.get(id).is_none(), "{text} is taken");
        assert!(self.last_made < Some(made), "{text} doesn't sort behind {:?}", self.last_made);
        let latest = self.last_made.map_or(0, |(time, _)| time);
        assert_eq!(made.0, now.max(latest));
        self.last_made = Some(made);
    }
}

fn jobs_of(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Jobs(jobs) => *jobs as u64,
        _ => 0,
    }
}
