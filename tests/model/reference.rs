//! The reference: a queue as DESIGN.md tells it, in a `Vec`, with everything worked out anew whenever it
//! is asked. It knows none of the core's types but the words in which a queue answers.

use dq::queue::{Counts, State, Totals};

/// The last moment there is.
pub const LAST: u64 = (1 << 48) - 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub id: Vec<u8>,
    pub body: Vec<u8>,
    pub created: u64,
    pub ttr: u64,
    /// 0 is no limit.
    pub attempts: u32,
    pub priority: u8,
    /// Deliveries so far.
    pub attempt: u32,
    pub lease: Option<u64>,
    /// Due time or, once handed out, the end of the lease.
    pub time: u64,
    /// When it was given that time, among all events of the queue.
    pub order: u64,
}

impl Job {
    pub fn state(&self, now: u64) -> State {
        let is_handed_out = self.lease.is_some();
        if self.time > now {
            return if is_handed_out { State::Reserved } else { State::Delayed };
        }
        if is_handed_out && self.is_at_its_last_attempt() {
            State::Dead
        } else {
            State::Ready
        }
    }

    fn is_at_its_last_attempt(&self) -> bool {
        self.attempts != 0 && self.attempt >= self.attempts
    }

    /// Ready jobs leave by (priority, due time, order of scheduling).
    fn rank(&self) -> (u8, u64, u64) {
        (self.priority, self.time, self.order)
    }
}

/// What one is told at ADD.
#[derive(Clone, Debug)]
pub struct Told {
    pub id: Vec<u8>,
    pub body: Vec<u8>,
    pub due: Due,
    pub ttr: u64,
    pub attempts: u32,
    pub priority: u8,
}

#[derive(Clone, Copy, Debug)]
pub enum Due {
    In(u64),
    At(u64),
}

/// What a pop hands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    pub id: Vec<u8>,
    pub body: Vec<u8>,
    pub lease: u64,
    pub attempt: u32,
    pub end: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Reference {
    pub jobs: Vec<Job>,
    pub now: u64,
    pub last_lease: u64,
    pub totals: Totals,
    /// Every delivery there ever was.
    pub deliveries: Vec<(Vec<u8>, u64)>,
    /// The last id that the queue made: its time and number.
    last_made: Option<(u64, u64)>,
    events: u64,
}

impl Reference {
    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// When the job is due; `None` when the id is taken and not to be replaced.
    pub fn add(&mut self, now: u64, told: &Told, replaces: bool) -> Option<u64> {
        self.advance(now);
        let before = self.jobs.len();
        if replaces {
            self.jobs.retain(|job| job.id != told.id);
        }
        if self.get(&told.id).is_some() {
            return None;
        }
        if self.jobs.len() < before {
            self.totals.replaced += 1;
        } else {
            self.totals.added += 1;
        }
        let time = match told.due {
            Due::In(delay) => (self.now + delay).min(LAST),
            Due::At(time) => time.max(self.now),
        };
        let order = self.next_event();
        self.jobs.push(Job {
            id: told.id.clone(),
            body: told.body.clone(),
            created: self.now,
            ttr: told.ttr,
            attempts: told.attempts,
            priority: told.priority,
            attempt: 0,
            lease: None,
            time,
            order,
        });
        Some(time)
    }

    pub fn pop(&mut self, now: u64, ttr: Option<u64>, floor: u64) -> Option<Handed> {
        self.advance(now);
        let (now, order) = (self.now, self.next_event());
        let ready = self.jobs.iter_mut().filter(|job| job.state(now) == State::Ready);
        let job = ready.min_by_key(|job| job.rank())?;
        if job.lease.is_some() {
            self.totals.timed_out += 1;
        }
        self.totals.popped += 1;
        self.last_lease = floor.max(self.last_lease + 1);
        job.attempt += 1;
        job.lease = Some(self.last_lease);
        job.time = (now + ttr.unwrap_or(job.ttr)).min(LAST);
        job.order = order;
        self.deliveries.push((job.id.clone(), self.last_lease));
        Some(Handed {
            id: job.id.clone(),
            body: job.body.clone(),
            lease: self.last_lease,
            attempt: job.attempt,
            end: job.time,
        })
    }

    /// With no lease given: whichever the job has.
    pub fn finish(&mut self, id: &[u8], lease: Option<u64>) -> bool {
        let before = self.jobs.len();
        self.jobs.retain(|job| {
            let is_good = job.lease.is_some() && (lease.is_none() || lease == job.lease);
            !(job.id == id && is_good)
        });
        self.totals.finished += (before - self.jobs.len()) as u64;
        self.jobs.len() < before
    }

    pub fn delete(&mut self, id: &[u8]) -> bool {
        let before = self.jobs.len();
        self.jobs.retain(|job| job.id != id);
        self.totals.deleted += (before - self.jobs.len()) as u64;
        self.jobs.len() < before
    }

    pub fn get(&self, id: &[u8]) -> Option<&Job> {
        self.jobs.iter().find(|job| job.id == id)
    }

    pub fn counts(&self) -> Counts {
        let count = |state| self.jobs.iter().filter(|job| job.state(self.now) == state).count();
        Counts {
            delayed: count(State::Delayed),
            ready: count(State::Ready),
            reserved: count(State::Reserved),
            dead: count(State::Dead),
        }
    }

    /// When a state next changes by itself: with each time that is to come, one does.
    pub fn next_change(&self) -> Option<u64> {
        self.jobs.iter().map(|job| job.time).filter(|time| *time > self.now).min()
    }

    /// Those that will be ready again, as they will leave; then those that will die, or have.
    pub fn in_order(&self) -> Vec<&Job> {
        let is_last = |job: &&Job| job.lease.is_some() && job.is_at_its_last_attempt();
        let (mut dying, mut others): (Vec<&Job>, Vec<&Job>) = self.jobs.iter().partition(is_last);
        others.sort_by_key(|job| job.rank());
        dying.sort_by_key(|job| (job.time, job.order));
        others.extend(dying);
        others
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

    fn next_event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }
}
