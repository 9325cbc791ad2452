//! The one way to change a queue. An operation is carried out under its circumstances: the time, and whatever else
//! what comes of it depends on that isn't in the queue. A log of both makes the same queue anywhere: that is what
//! replicas and the AOF get.

use super::ids::Lease;
use super::job::{Job, Progress, Stage};
use super::policy::Attempts;
use super::rate::TatParts;
use super::recurrence::{Calendar, NoCalendar, Round};
use super::time::{Millis, Time};
use super::Queue;

/// What one can do to a queue.
pub trait Operation {
    type Outcome: Changed;

    /// It takes over what came to be elsewhere, as it is.
    const IS_RECORD: bool = false;

    /// Reads no clock and no config: what comes of it follows from the queue, the operation and `now`.
    #[doc(hidden)]
    fn run(&self, queue: &mut Queue, now: Time) -> Self::Outcome;

    /// The same, for an operation that decides when a job comes back: where that is CRON, by what the calendar says,
    /// which is told with it.
    #[doc(hidden)]
    fn run_by(&self, queue: &mut Queue, now: Time, _calendar: &mut dyn Calendar) -> Self::Outcome {
        self.run(queue, now)
    }
}

/// One that is at hand elsewhere.
impl<O: Operation> Operation for &O {
    type Outcome = O::Outcome;

    const IS_RECORD: bool = O::IS_RECORD;

    fn run(&self, queue: &mut Queue, now: Time) -> O::Outcome {
        O::run(self, queue, now)
    }

    fn run_by(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> O::Outcome {
        O::run_by(self, queue, now, calendar)
    }
}

/// What came of an operation.
pub trait Changed {
    /// Whether the queue is another one now. Otherwise nobody has to be told.
    fn has_changed(&self) -> bool;

    /// It has changed nothing, but has noticed that the clock was set back, which counts for groups. Who asks for jobs and
    /// gets none makes a change of that, so that groups don't wait for the clock as it was.
    #[doc(hidden)]
    fn notice_set_back(&mut self) {}
}

/// What jobs get whose ADD doesn't say, nor the queue's own settings: the server's configs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    pub ttr: Millis,
    pub attempts: Attempts,
}

impl Default for Defaults {
    /// Nobody has told: a queue that is new.
    fn default() -> Defaults {
        Defaults { ttr: Millis::ZERO, attempts: Attempts::new(0) }
    }
}

/// The circumstances in which an operation is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    pub now: Time,
    pub defaults: Defaults,
    /// Leases up to this one belong to others, most often to a queue that was at this key before; zero is none.
    pub lease_floor: Lease,
}

/// Where a queue stands in its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heading {
    /// The time of its last logged change.
    pub clock: Time,
    pub defaults: Defaults,
    /// A running mix of what every operation came to. A replica that comes to another one has diverged.
    pub check: u64,
}

impl Heading {
    /// Whether an operation carried out under these circumstances needs no other words than its own: whoever has
    /// the queue with this heading knows them.
    pub fn tells(&self, circumstances: &Circumstances) -> bool {
        *circumstances
            == Circumstances { now: self.clock, defaults: self.defaults, lease_floor: Lease::default() }
    }

    pub(super) fn mix_place(&mut self, time: Time, progress: &Progress) {
        let stage = match progress.stage {
            Stage::Waiting => 1,
            Stage::Leased => 2,
            Stage::Dead => 3,
            Stage::Done => 4,
        };
        self.mix(time.unix_ms() | stage << 56);
        self.mix(progress.lease.unwrap_or_default().number() ^ u64::from(progress.attempt) << 32);
    }

    /// When it was created, too: ENSURE leaves that as it is where the job is there.
    pub(super) fn mix_round(&mut self, round: &Round, created: Time) {
        self.mix(created.unix_ms());
        self.mix(round.occurrence.unix_ms());
        self.mix(round.next().unwrap_or_default().unix_ms());
        self.mix(u64::from(round.runs) << 32 ^ u64::from(round.missed) << 16 ^ u64::from(round.failed));
    }

    pub(super) fn mix_departures(&mut self, (ms, parts): TatParts) {
        self.mix(ms);
        self.mix(parts.into());
    }

    /// A group has had its turn, and its rate has got there.
    pub(super) fn mix_turn(&mut self, serial: u64, departures: TatParts) {
        self.mix(serial);
        self.mix_departures(departures);
    }

    /// So many groups without jobs are gone.
    pub(super) fn mix_forgotten(&mut self, groups: usize) {
        self.mix(groups as u64);
    }

    /// An operation came to nothing but that.
    pub(super) fn mix_set_back(&mut self, now: Time) {
        self.mix(now.unix_ms());
    }

    pub(super) fn mix_removal(&mut self, job: &Job) {
        let (id, body) = job.id_and_body();
        self.mix(job.created().unix_ms() ^ ((id.bytes().len() + body.len()) as u64) << 48);
    }

    /// Each word stirs all bits (a round of wyhash: W. Yi, "wyhash", 2019).
    fn mix(&mut self, word: u64) {
        let product =
            u128::from(self.check ^ 0xa076_1d64_78bd_642f) * u128::from(word ^ 0xe703_7ed1_a0b4_28db);
        self.check = product as u64 ^ (product >> u64::BITS) as u64;
    }
}

impl Queue {
    /// Carries an operation out, where no CRON has to be asked for.
    pub fn apply<O: Operation>(&mut self, circumstances: &Circumstances, operation: &O) -> O::Outcome {
        self.apply_by(circumstances, operation, &mut NoCalendar)
    }

    /// Carries an operation out. When that changes nothing, the queue is as it was, circumstances and all.
    #[inline]
    pub fn apply_by<O: Operation>(
        &mut self,
        circumstances: &Circumstances,
        operation: &O,
        calendar: &mut dyn Calendar,
    ) -> O::Outcome {
        self.removed.free();
        let (Heading { clock, defaults, .. }, last_lease) = (self.heading, self.last_lease);
        self.heading.clock = circumstances.now;
        self.leave_shadows_if_set_back(circumstances.now);
        self.heading.defaults = circumstances.defaults;
        self.last_lease = last_lease.max(circumstances.lease_floor);
        let mut outcome = operation.run_by(self, circumstances.now, calendar);
        if outcome.has_changed() || self.notices_set_back(clock, &mut outcome) {
            if !O::IS_RECORD {
                self.look_after_groups(clock, circumstances.now);
            }
        } else {
            (self.heading.clock, self.heading.defaults, self.last_lease) = (clock, defaults, last_lease);
        }
        outcome
    }

    pub fn heading(&self) -> &Heading {
        &self.heading
    }

    /// The circumstances that the log told last, which are those of an entry that tells none.
    pub fn circumstances(&self) -> Circumstances {
        Circumstances {
            now: self.heading.clock,
            defaults: self.heading.defaults,
            lease_floor: Lease::default(),
        }
    }

    /// Somebody else came to this check at this point of the log. False when it is another one here: the queues
    /// have diverged. From here on, it is theirs.
    pub fn compare_check(&mut self, theirs: u64) -> bool {
        let is_same = self.heading.check == theirs;
        self.heading.check = theirs;
        is_same
    }
}
