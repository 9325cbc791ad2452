//! The world's own account of a queue: a list of jobs, in which everything is worked out anew
//! whenever it is asked. It shares no code with the queue.

use super::edges::Edge;
use super::groups::{Counted, Groups};
use super::operation::{Bytes, Handed, Left, NewJob, Operation, Outcome, Terms};

/// So many lease numbers begin with each millisecond.
const LEASES_PER_MILLISECOND: u64 = 2_048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Waiting,
    Leased,
    Dead,
    Done,
    Held,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Delayed,
    Ready,
    Reserved,
    Dead,
    Done,
    Held,
}

#[derive(Clone, Debug)]
pub struct Job {
    pub new: NewJob,
    pub created: u64,
    pub stage: Stage,
    pub time: u64,
    pub attempt: u32,
    pub lease: Option<u64>,
    pub expires_at: Option<u64>,
    pub note: Option<Bytes>,
    pub result: Option<Bytes>,
    /// What it waits for, or has waited for.
    pub edges: Vec<Edge>,
    pub is_on_hold: bool,
    /// When the last of what it waited for has ended so far.
    pub due_from: u64,
    /// In the log: where others wait for it.
    pub is_known_dead: bool,
    /// Among those of the same priority and time.
    pub order: i64,
}

impl Job {
    /// Among those of the same priority and group.
    pub fn place(&self) -> (u64, i64) {
        (self.time, self.order)
    }

    pub fn wait_from(&mut self, time: u64, order: i64) {
        (self.stage, self.time, self.order, self.lease) = (Stage::Waiting, time, order, None);
    }

    pub fn leave(&mut self, left: &Left) {
        if let Some(body) = &left.body {
            self.new.body.clone_from(body);
        }
        if let Some(note) = &left.note {
            self.note = (!note.is_empty()).then(|| note.clone());
        }
    }

    pub fn is_at_its_last_attempt(&self) -> bool {
        self.new.attempts > 0 && self.attempt >= self.new.attempts
    }

    pub fn death(&self) -> Option<u64> {
        match self.stage {
            Stage::Done => None,
            Stage::Held => self.expires_at,
            Stage::Dead => Some(self.time),
            Stage::Leased if self.is_at_its_last_attempt() => {
                Some(self.expires_at.map_or(self.time, |expiry| expiry.min(self.time)))
            }
            Stage::Waiting | Stage::Leased => {
                let late_at = (self.new.late > 0).then(|| self.time + self.new.late);
                late_at.into_iter().chain(self.expires_at).min()
            }
        }
    }

    pub fn state(&self, now: u64) -> State {
        match self.stage {
            Stage::Done => State::Done,
            Stage::Dead => State::Dead,
            Stage::Waiting | Stage::Leased | Stage::Held
                if self.death().is_some_and(|death| death <= now) =>
            {
                State::Dead
            }
            Stage::Held => State::Held,
            Stage::Leased if self.time > now => State::Reserved,
            Stage::Waiting if self.time > now => State::Delayed,
            Stage::Waiting | Stage::Leased => State::Ready,
        }
    }
}

/// A queue, as whoever has followed all that was said of it knows it.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// The same wherever the queue goes; a copy has its own.
    pub number: u64,
    pub jobs: Vec<Job>,
    pub groups: Groups,
    pub clock: u64,
    last_lease: u64,
    paused_until: u64,
    keep_dead: u64,
    /// The number of the stream to which jobs go.
    pub sink: Option<u8>,
    events: i64,
    /// The jobs that the last operation finished, with their results.
    pub finished: Vec<(Bytes, Option<Bytes>)>,
    /// Up to this event, it is known who is dead.
    pub noted: i64,
    /// During a change: those that have stopped waiting, and whether they wait to run now or are dead.
    pub freed: Vec<(Bytes, Stage)>,
    /// During a DONE: others wait for these, or have waited.
    pub once_waited_for: Vec<Bytes>,
}

fn expiry(new: &NewJob, now: u64) -> Option<u64> {
    (new.ttl > 0).then(|| now + new.ttl)
}

impl Account {
    /// The time that a command takes for its own where the wall clock shows this.
    pub fn time_at(&self, wall_ms: u64) -> u64 {
        if self.clock.saturating_sub(wall_ms) <= 60_000 {
            wall_ms.max(self.clock)
        } else {
            wall_ms
        }
    }

    pub fn apply(&mut self, now: u64, floor: u64, operation: &Operation) -> Outcome {
        let last_lease = self.last_lease;
        self.last_lease = last_lease.max(floor);
        let outcome = self.carry_out(now, operation);
        if outcome.has_changed() || self.notices_set_back(now, &outcome) {
            self.release_the_freed(now);
            self.groups.tidy(self.clock, now, &self.jobs);
            self.clock = now;
        } else {
            self.last_lease = last_lease;
        }
        outcome
    }

    /// Who asks for a job and gets none has changed something all the same, where the clock was set
    /// back and groups have a rate.
    pub fn notices_set_back(&self, now: u64, outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Handed(_)) && now < self.clock && self.groups.have_a_rate()
    }

    fn carry_out(&mut self, now: u64, operation: &Operation) -> Outcome {
        self.finished.clear();
        match operation {
            Operation::Add(job) => Outcome::Done(self.add(now, job)),
            Operation::AddMany(many) => self.add_many(now, many),
            Operation::Pop(terms) => {
                Outcome::Handed((0..terms.count).map_while(|_| self.pop(now, terms)).collect())
            }
            Operation::PopById(ids, terms) => Outcome::Handed(
                ids.iter().filter_map(|id| self.pop_by_id(now, id, terms)).collect(),
            ),
            Operation::Finish(claims) => self.each(now, claims, |account, (id, lease)| {
                account.finish(now, (id, *lease), (None, None))
            }),
            Operation::Release { id, lease, when, priority, left } => {
                Outcome::Done(self.release(now, (id, *lease), (*when, *priority), left))
            }
            Operation::Touch { id, lease, left } => {
                Outcome::Done(self.touch(now, id, *lease, left))
            }
            Operation::Renew { claims, ttr } => {
                let left = Left::default();
                let extended =
                    claims.iter().map(|(id, lease)| self.extend(now, id, *lease, *ttr, &left));
                let extended: Vec<bool> = extended.collect();
                let void = (0..extended.len()).filter(|at| !extended[*at]).collect();
                Outcome::Renewed(extended.into_iter().filter(|is_it| *is_it).count(), void)
            }
            Operation::Done { id, lease, result, keep, adds } => {
                let mut after = self.clone();
                // What the finished job waited for, it waits for no more.
                let others = || self.jobs.iter().filter(|job| job.new.id != *id);
                let is_waited_for = |name: &&Bytes| others().any(|job| job.waits_for(name));
                let names = others().map(|job| &job.new.id);
                after.once_waited_for = names.filter(is_waited_for).cloned().collect();
                if !after.finish(now, (id, *lease), (result.clone(), *keep)) {
                    return Outcome::Done(false);
                }
                for new in adds {
                    if !after.add(now, new) {
                        return Outcome::Refused;
                    }
                    // Not for one that is done, or dead where that is enough.
                    let open = new.edges.after.iter().filter(|id| after.is_waited_for(id));
                    let open: Vec<Bytes> = open.cloned().collect();
                    after.once_waited_for.extend(open);
                    let waits = !new.edges.before.is_empty();
                    after.once_waited_for.extend(waits.then(|| new.id.clone()));
                }
                *self = Account { once_waited_for: Vec::new(), ..after };
                Outcome::Followed(adds.iter().map(|new| Some(new.id.clone())).collect())
            }
            Operation::Bury { id, lease } => Outcome::Done(self.bury(now, id, *lease)),
            Operation::ForgetGroups => Outcome::Jobs(self.groups.forget_idle(now, &self.jobs)),
            // There are no schedules in these sessions.
            Operation::PassOver => Outcome::Jobs(0),
            Operation::Delete(ids) | Operation::Forget(ids) => {
                self.each(now, ids, |account, id| {
                    account.settle_as_gone(now, id);
                    account.remove(id).is_some()
                })
            }
            Operation::KickJob(ids) => {
                self.each(now, ids, |account, id| account.kick(now, id, now))
            }
            Operation::KickSpread(ids, span) => self.kick_spread(now, ids, *span),
            Operation::ResumeJobs(ids) => {
                self.each(now, ids, |account, id| account.end_hold(now, id))
            }
            Operation::Settle(ids) => {
                self.each(now, ids, |account, id| account.settle_death(now, id))
            }
            Operation::Pause(group, span) => {
                let until = span.map_or(u64::MAX, |span| now + span);
                match group {
                    Some(group) => self.groups.pause(group, until),
                    None => self.paused_until = until,
                }
                Outcome::Done(true)
            }
            Operation::Resume(Some(group)) => Outcome::Done(self.groups.resume(group)),
            Operation::Resume(None) => Outcome::Done(std::mem::take(&mut self.paused_until) > 0),
            Operation::LimitGroups(limits) => {
                self.groups.limit(now, *limits);
                Outcome::Done(true)
            }
            Operation::KeepDead(span) => {
                self.keep_dead = *span;
                Outcome::Done(true)
            }
            Operation::Sink(sink) => {
                self.sink = *sink;
                Outcome::Done(true)
            }
        }
    }

    pub fn each<T>(
        &mut self,
        now: u64,
        all: &[T],
        one: impl Fn(&mut Account, &T) -> bool,
    ) -> Outcome {
        let mut jobs = 0;
        for it in all {
            jobs += usize::from(one(self, it));
            self.record_lives(now);
        }
        Outcome::Jobs(jobs)
    }

    pub fn next_event(&mut self) -> i64 {
        self.events += 1;
        self.events
    }

    pub fn job(&self, id: &[u8]) -> Option<&Job> {
        self.jobs.iter().find(|job| job.new.id == id)
    }

    pub fn remove(&mut self, id: &[u8]) -> Option<Job> {
        let at = self.jobs.iter().position(|job| job.new.id == id)?;
        Some(self.jobs.remove(at))
    }

    pub fn is_taken(&self, now: u64, id: &[u8]) -> bool {
        self.job(id).is_some_and(|job| job.stage != Stage::Done || job.time > now)
    }

    pub fn add(&mut self, now: u64, new: &NewJob) -> bool {
        if !new.replaces && self.is_taken(now, &new.id) {
            return false;
        }
        let Some(edges) = self.edges_of(now, new) else {
            return false;
        };
        self.remove(&new.id);
        let (order, expires_at) = (self.next_event(), expiry(new, now));
        let is_on_hold = new.edges.is_on_hold;
        let (stage, time) = match is_on_hold || edges.iter().any(|edge| edge.end.is_none()) {
            true => (Stage::Held, now),
            false => (Stage::Waiting, new.due.counted_from(now)),
        };
        self.groups.join(new.group.as_ref(), &self.jobs);
        self.jobs.push(Job {
            new: new.clone(),
            created: now,
            stage,
            time,
            attempt: 0,
            lease: None,
            expires_at,
            note: None,
            result: None,
            edges,
            is_on_hold,
            due_from: 0,
            is_known_dead: false,
            order,
        });
        self.connect(now, new);
        true
    }

    pub fn is_paused(&self, now: u64) -> bool {
        self.paused_until > now
    }

    /// Whether somebody who asks gets something.
    pub fn has_something(&self, now: u64) -> bool {
        !self.is_paused(now) && self.groups.first(now, &self.jobs).is_some()
    }

    /// When somebody who waits gets something, if nobody says anything before.
    pub fn next_ready(&self, now: u64) -> Option<u64> {
        let comes = |job: &Job| {
            let at = job.time.max(self.groups.holds_until(job, &self.jobs));
            let lives = job.death().is_none_or(|death| death > at.max(now));
            let stands = matches!(job.stage, Stage::Waiting | Stage::Leased) && at < u64::MAX;
            (stands && lives).then_some(at)
        };
        let next = self.jobs.iter().filter_map(comes).min()?;
        (self.paused_until < u64::MAX).then(|| next.max(self.paused_until))
    }

    fn pop(&mut self, now: u64, terms: &Terms) -> Option<Handed> {
        if self.is_paused(now) {
            return None;
        }
        let turn = self.groups.first(now, &self.jobs)?;
        let (id, counted) = (turn.job.new.id.clone(), turn.counted());
        self.groups.count(now, &counted);
        self.hand_out(now, &id, terms)
    }

    /// As if it had been kicked, and were the first.
    fn pop_by_id(&mut self, now: u64, id: &[u8], terms: &Terms) -> Option<Handed> {
        if self.is_paused(now) {
            return None;
        }
        if self.groups.holds_until(self.job(id)?, &self.jobs) > now {
            return None;
        }
        let is_kicked = self.job(id)?.state(now) != State::Held && self.kick(now, id, now);
        let job = self.job(id)?;
        if !is_kicked && job.state(now) != State::Ready {
            return None;
        }
        let counted = Counted::by_id(job);
        self.groups.count(now, &counted);
        self.hand_out(now, id, terms)
    }

    fn hand_out(&mut self, now: u64, id: &[u8], terms: &Terms) -> Option<Handed> {
        let lease = (now * LEASES_PER_MILLISECOND).max(self.last_lease + 1);
        self.last_lease = lease;
        let order = self.next_event();
        let job = self.jobs.iter_mut().find(|job| job.new.id == id)?;
        job.stage = Stage::Leased;
        job.attempt += 1;
        job.lease = Some(lease);
        job.time = now + terms.ttr.unwrap_or(job.new.ttr);
        job.order = order;
        let handed =
            Handed { id: id.to_vec(), body: job.new.body.clone(), lease, attempt: job.attempt };
        if terms.no_ack {
            self.finish(now, (id, Some(lease)), (None, None));
        }
        Some(handed)
    }

    /// A dead job comes back at this due time.
    pub fn kick(&mut self, now: u64, id: &[u8], due: u64) -> bool {
        let order = self.next_event();
        let Some(job) = self.jobs.iter_mut().find(|job| job.new.id == id) else {
            return false;
        };
        let due = match job.state(now) {
            State::Dead => {
                (job.attempt, job.expires_at) = (0, expiry(&job.new, now));
                due
            }
            State::Delayed | State::Held => now,
            State::Ready | State::Reserved | State::Done => return false,
        };
        job.drop_open_edges();
        job.wait_from(due, order);
        true
    }

    /// Whether this is the job's latest delivery.
    pub fn has_lease(&self, id: &[u8], lease: u64) -> bool {
        self.job(id).is_some_and(|job| job.stage == Stage::Leased && job.lease == Some(lease))
    }

    /// The same, and the job lives.
    pub fn is_held(&self, now: u64, id: &[u8], lease: u64) -> bool {
        let lives = |job: &Job| job.expires_at.is_none_or(|expiry| expiry > now);
        self.has_lease(id, lease) && self.job(id).is_some_and(lives)
    }

    /// Since when this job isn't kept any more.
    pub fn is_to_be_forgotten_at(&self, job: &Job) -> Option<u64> {
        match job.stage {
            Stage::Done => Some(job.time),
            Stage::Dead | Stage::Waiting | Stage::Leased | Stage::Held if self.keep_dead > 0 => {
                job.death().map(|death| death + self.keep_dead)
            }
            Stage::Dead | Stage::Waiting | Stage::Leased | Stage::Held => None,
        }
    }

    /// That of a copy.
    pub fn copy(&self, number: u64) -> Account {
        Account { number, ..self.clone() }
    }
}

/// One that is dead already stays so since then.
pub fn mark_dead(job: &mut Job, now: u64, order: i64) {
    let since = job.death().filter(|death| *death <= now).unwrap_or(now);
    (job.stage, job.time, job.order) = (Stage::Dead, since, order);
    (job.lease, job.expires_at) = (None, None);
}
