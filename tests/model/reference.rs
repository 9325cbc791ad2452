//! The reference: a queue as DESIGN.md tells it, in a `Vec`, with everything worked out anew whenever it
//! is asked. It knows none of the core's types but the words in which a queue answers.

use dq::queue::{Counts, State, Totals};

use crate::job::{Job, Stage};
use crate::told::{Due, Settings, Told, LAST};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    New(u64),
    Replaced(u64),
    Taken,
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    No,
    Gone,
    Kept,
}

/// What a pop hands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    pub id: Vec<u8>,
    pub body: Vec<u8>,
    pub lease: u64,
    pub attempt: u32,
    pub end: u64,
    pub due: u64,
}

/// A delivery, with the job as it was before.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub lease: u64,
    pub before: Job,
}

#[derive(Clone, Debug, Default)]
pub struct Reference {
    pub jobs: Vec<Job>,
    pub now: u64,
    pub last_lease: u64,
    pub totals: Totals,
    pub paused_until: u64,
    pub settings: Settings,
    /// Every delivery there ever was.
    pub deliveries: Vec<Delivery>,
    /// The last id that the queue made: its time and number.
    last_made: Option<(u64, u64)>,
    events: i64,
}

impl Reference {
    pub fn advance(&mut self, now: u64) {
        let to = self.now.max(now);
        let is_passed = |time: Option<u64>| time.is_some_and(|time| self.now < time && time <= to);
        let timed_out = self.jobs.iter().filter(|job| is_passed(job.end_of_lease())).count();
        let is_alive = |job: &&Job| matches!(job.stage, Stage::Waiting | Stage::Leased);
        let died = self.jobs.iter().filter(is_alive).filter(|job| is_passed(job.death())).count();
        self.totals.timed_out += timed_out as u64;
        self.totals.died += died as u64;
        self.now = to;
    }

    pub fn add(&mut self, now: u64, told: &Told, replaces: bool) -> Added {
        self.advance(now);
        let now = self.now;
        let is_gone = self.get(&told.id).is_some_and(|job| job.is_over(now));
        let is_taken = !is_gone && self.get(&told.id).is_some();
        if is_taken && !replaces {
            return Added::Taken;
        }
        let is_full = self.settings.max_jobs != 0 && self.jobs.len() as u64 >= self.settings.max_jobs;
        if is_full && !is_taken && !is_gone {
            return Added::Full;
        }
        self.jobs.retain(|job| job.id != told.id);
        self.totals.replaced += u64::from(is_taken);
        self.totals.added += u64::from(!is_taken);
        self.totals.purged += u64::from(is_gone);
        let time = match told.due {
            Due::In(delay) => (now + delay).min(LAST),
            Due::At(time) => time.max(now),
        };
        let order = self.next_event();
        self.jobs.push(Job {
            id: told.id.clone(),
            body: told.body.clone(),
            created: now,
            policy: told.policy,
            stage: Stage::Waiting,
            attempt: 0,
            lease: None,
            time,
            dies: told.policy.dies(now),
            reason: None,
            order,
        });
        if is_taken {
            Added::Replaced(time)
        } else {
            Added::New(time)
        }
    }

    pub fn pop(&mut self, now: u64, ttr: Option<u64>, floor: u64) -> Option<Handed> {
        self.advance(now);
        let (now, order) = (self.now, self.next_event());
        if self.paused_until > now {
            return None;
        }
        let ready = self.jobs.iter_mut().filter(|job| job.state(now) == State::Ready);
        let job = ready.min_by_key(|job| job.rank())?;
        self.totals.popped += 1;
        self.last_lease = floor.max(self.last_lease + 1);
        self.deliveries.push(Delivery { lease: self.last_lease, before: job.clone() });
        let due = job.due();
        job.stage = Stage::Leased;
        job.attempt += 1;
        job.lease = Some(self.last_lease);
        job.time = (now + ttr.unwrap_or(job.policy.ttr)).min(LAST);
        job.order = order;
        Some(Handed {
            id: job.id.clone(),
            body: job.body.clone(),
            lease: self.last_lease,
            attempt: job.attempt,
            end: job.time,
            due,
        })
    }

    /// With no lease given: whichever the job has.
    pub fn finish(&mut self, now: u64, id: &[u8], lease: Option<u64>) -> Finished {
        let Some(place) = self.held(id, lease) else {
            return Finished::No;
        };
        self.totals.finished += 1;
        if self.jobs[place].policy.keep == 0 {
            self.jobs.remove(place);
            return Finished::Gone;
        }
        self.advance(now);
        let until = (self.now + self.jobs[place].policy.keep).min(LAST);
        self.end(place, Stage::Done, until);
        Finished::Kept
    }

    pub fn release(
        &mut self,
        now: u64,
        (id, lease): (&[u8], Option<u64>),
        delay: Option<u64>,
        reason: Option<&[u8]>,
    ) -> bool {
        self.advance(now);
        let Some(place) = self.held_alive(id, lease) else {
            return false;
        };
        self.totals.released += 1;
        let job = &self.jobs[place];
        if job.policy.attempts != 0 && job.attempt >= job.policy.attempts {
            self.lay_dead(place, reason);
            return true;
        }
        let wait = delay.unwrap_or_else(|| job.backoff(job.lease.unwrap()));
        let time = (self.now + wait).min(LAST);
        let order = self.next_event();
        let job = &mut self.jobs[place];
        (job.stage, job.lease, job.time, job.order) = (Stage::Waiting, None, time, order);
        if let Some(reason) = reason {
            job.reason = Some(reason.to_vec());
        }
        true
    }

    pub fn release_unbegun(
        &mut self,
        now: u64,
        id: &[u8],
        lease: Option<u64>,
        reason: Option<&[u8]>,
    ) -> bool {
        self.advance(now);
        let Some(place) = self.held_alive(id, lease) else {
            return false;
        };
        self.totals.released += 1;
        let (now, order) = (self.now, self.next_event());
        let job = &mut self.jobs[place];
        job.attempt -= 1;
        (job.stage, job.lease, job.time, job.order) = (Stage::Waiting, None, now, order);
        if let Some(reason) = reason {
            job.reason = Some(reason.to_vec());
        }
        true
    }

    pub fn touch(&mut self, now: u64, id: &[u8], lease: Option<u64>, ttr: Option<u64>) -> bool {
        self.advance(now);
        let Some(place) = self.held_alive(id, lease) else {
            return false;
        };
        let (now, order) = (self.now, self.next_event());
        let job = &mut self.jobs[place];
        job.time = (now + ttr.unwrap_or(job.policy.ttr)).min(LAST);
        job.order = order;
        true
    }

    pub fn bury(&mut self, now: u64, id: &[u8], lease: Option<u64>, reason: Option<&[u8]>) -> bool {
        self.advance(now);
        let place = self.held_alive(id, lease);
        if let Some(place) = place {
            self.totals.buried += 1;
            let had_reason = self.jobs[place].reason.is_some();
            self.lay_dead(place, reason.or((!had_reason).then_some(b"buried")));
        }
        place.is_some()
    }

    /// Puts a job back to where it was before this delivery.
    pub fn give_back(&mut self, id: &[u8], lease: u64) -> bool {
        let Some(place) = self.held(id, Some(lease)) else {
            return false;
        };
        let order = -self.next_event();
        let delivery = self.deliveries.iter().rfind(|delivery| delivery.lease == lease).unwrap();
        self.jobs[place] = Job { order, ..delivery.before.clone() };
        self.totals.popped -= 1;
        true
    }

    pub fn kick(&mut self, now: u64, ids: &[Vec<u8>]) {
        self.advance(now);
        for id in ids {
            self.kick_job(now, id);
        }
    }

    pub fn kick_job(&mut self, now: u64, id: &[u8]) -> bool {
        self.advance(now);
        let (now, order) = (self.now, self.next_event());
        let Some(job) = self.jobs.iter_mut().find(|job| job.id == id) else {
            return false;
        };
        match job.state(now) {
            State::Dead => (job.attempt, job.dies) = (0, job.policy.dies(now)),
            State::Delayed => {}
            State::Ready | State::Reserved | State::Done => return false,
        }
        (job.stage, job.lease, job.time, job.order) = (Stage::Waiting, None, now, order);
        self.totals.kicked += 1;
        true
    }

    pub fn delete(&mut self, id: &[u8]) -> bool {
        let removed = self.remove(&[id.to_vec()]);
        self.totals.deleted += removed;
        removed > 0
    }

    pub fn purge(&mut self, ids: &[Vec<u8>]) {
        self.totals.purged += self.remove(ids);
    }

    fn remove(&mut self, ids: &[Vec<u8>]) -> u64 {
        let before = self.jobs.len();
        self.jobs.retain(|job| !ids.contains(&job.id));
        (before - self.jobs.len()) as u64
    }

    fn lay_dead(&mut self, place: usize, reason: Option<&[u8]>) {
        let was_dead = self.jobs[place].state(self.now) == State::Dead;
        let since = if was_dead { self.jobs[place].since(self.now) } else { self.now };
        self.totals.died += u64::from(!was_dead);
        self.end(place, Stage::Dead, since);
        if let Some(reason) = reason {
            self.jobs[place].reason = Some(reason.to_vec());
        }
    }

    fn end(&mut self, place: usize, stage: Stage, time: u64) {
        let order = self.next_event();
        let job = &mut self.jobs[place];
        (job.stage, job.time, job.lease, job.dies, job.order) = (stage, time, None, None, order);
    }

    fn held(&self, id: &[u8], lease: Option<u64>) -> Option<usize> {
        let is_held = |job: &Job| job.stage == Stage::Leased && (lease.is_none() || lease == job.lease);
        self.jobs.iter().position(|job| job.id == id && is_held(job))
    }

    /// Nobody prolongs a life.
    fn held_alive(&self, id: &[u8], lease: Option<u64>) -> Option<usize> {
        let is_alive = |place: &usize| self.jobs[*place].dies.is_none_or(|dies| dies > self.now);
        self.held(id, lease).filter(is_alive)
    }

    pub fn get(&self, id: &[u8]) -> Option<&Job> {
        self.jobs.iter().find(|job| job.id == id)
    }

    fn next_event(&mut self) -> i64 {
        self.events += 1;
        self.events
    }
}

/// What one sees.
impl Reference {
    pub fn counts(&self) -> Counts {
        let count = |state| self.in_state(state).count();
        Counts {
            delayed: count(State::Delayed),
            ready: count(State::Ready),
            reserved: count(State::Reserved),
            dead: count(State::Dead),
            done: count(State::Done),
        }
    }

    pub fn in_state(&self, state: State) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(move |job| job.state(self.now) == state)
    }

    /// When each job leaves this state that has been in it for so long, in order.
    pub fn leaving(&self, state: State, older: u64) -> Vec<u64> {
        let jobs = self.in_state(state).filter(|job| job.since(self.now) + older <= self.now);
        let mut times: Vec<u64> = jobs.map(|job| job.leaves(state)).collect();
        times.sort_unstable();
        times
    }

    /// Whether these are the first jobs of those that have been in this state for so long: as many as there
    /// are, but so many at most. Which of those that leave it at the same time is anyone's guess.
    pub fn are_the_first(&self, ids: &[Vec<u8>], state: State, older: u64, at_most: usize) -> bool {
        let jobs: Option<Vec<&Job>> = ids.iter().map(|id| self.get(id)).collect();
        let Some(jobs) = jobs.filter(|jobs| jobs.iter().all(|job| job.state(self.now) == state)) else {
            return false;
        };
        if state == State::Ready {
            let mut ready: Vec<&Job> = self.in_state(state).collect();
            ready.retain(|job| job.since(self.now) + older <= self.now);
            ready.sort_by_key(|job| job.rank());
            return jobs.iter().eq(ready.iter().take(at_most));
        }
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        let times = jobs.iter().map(|job| job.leaves(state));
        distinct.len() == ids.len()
            && jobs.iter().all(|job| job.since(self.now) + older <= self.now)
            && times.eq(self.leaving(state, older).into_iter().take(at_most))
    }

    /// When a state next changes by itself, or a job has been kept long enough.
    pub fn next_change(&self) -> Option<u64> {
        let changes = self.jobs.iter().flat_map(|job| {
            let moments = [Some(job.time), Some(job.due()), job.dies];
            let moments = moments.into_iter().flatten().filter(|time| *time > self.now);
            moments.filter(|time| job.stage == Stage::Done || job.state(time - 1) != job.state(*time))
        });
        changes.min()
    }

    /// Jobs that are to be forgotten.
    pub fn to_forget(&self) -> Vec<Vec<u8>> {
        let is_old =
            |job: &&Job| job.is_over(self.now) || self.dead_until(job).is_some_and(|until| until <= self.now);
        self.jobs.iter().filter(is_old).map(|job| job.id.clone()).collect()
    }

    /// Until when a dead job is kept, if there is such a time.
    fn dead_until(&self, job: &Job) -> Option<u64> {
        let dead_keep = Some(self.settings.dead_keep).filter(|_| job.state(self.now) == State::Dead);
        let dead_keep = dead_keep.filter(|dead_keep| *dead_keep != 0)?;
        Some((job.death()? + dead_keep).min(LAST))
    }

    /// When somebody has to come again, once everything is done that can be by now.
    pub fn next_upkeep(&self) -> Option<u64> {
        let pause = (self.paused_until > self.now).then_some(self.paused_until);
        let forget = self.jobs.iter().filter_map(|job| self.dead_until(job));
        forget.chain(self.next_change()).chain(pause).min()
    }

    /// Those alive and done: first who will be ready again, as they will leave; then who will die; then who
    /// is done. The dead stand in no order.
    pub fn in_order(&self) -> Vec<&Job> {
        let is_alive = |job: &&Job| !matches!(job.state(self.now), State::Dead | State::Done);
        let (mut dying, mut others): (Vec<&Job>, Vec<&Job>) =
            self.jobs.iter().filter(is_alive).partition(|job| job.is_dying());
        others.sort_by_key(|job| job.rank());
        dying.sort_by_key(|job| (job.death(), job.order));
        let mut done: Vec<&Job> = self.in_state(State::Done).collect();
        done.sort_by_key(|job| (job.time, job.order));
        others.into_iter().chain(dying).chain(done).collect()
    }

    /// An id that the queue makes: `<unix-ms>-<number>`, free, of now (or of the last one's time, when the
    /// clock was there already), and sorting behind all that it made before.
    pub fn check_made_id(&mut self, now: u64, id: &[u8]) {
        let text = std::str::from_utf8(id).unwrap();
        let (time, number) = text.split_once('-').unwrap();
        let made = (time.parse().unwrap(), number.parse().unwrap());
        assert_eq!(text, format!("{}-{}", made.0, made.1));
        assert!(self.get(id).is_none(), "{text} is taken");
        assert!(self.last_made < Some(made), "{text} doesn't sort behind {:?}", self.last_made);
        let latest = self.last_made.map_or(0, |(time, _)| time);
        assert_eq!(made.0, now.max(self.now).max(latest));
        self.last_made = Some(made);
    }
}
