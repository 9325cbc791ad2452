//! What consumers do: take jobs.

use smallvec::SmallVec;

use super::door::{Changed, Operation};
use super::ids::{Id, Lease};
use super::job::{Job, JobView, Progress, Stage};
use super::job_record::{Cause, JobRecord};
use super::policy::Policy;
use super::produce::Naming;
use super::queue_record::count as count_more;
use super::recurrence::{Calendar, NoCalendar, Scheduled};
use super::recurring::Before;
use super::schedule::FromLane;
use super::settings::Limit;
use super::slab::Slot;
use super::time::{Millis, Time};
use super::{Queue, Reason};

/// A pop that hands out more would hold up the others. Part of what is logged: it must stay as it is.
pub const POP_JOBS_MAX: usize = 10_000;
/// No further job is handed out once so many bytes of bodies are together. Likewise.
pub const POP_BYTES_MAX: usize = 16 << 20;

/// Room that is made for deliveries before it is known how many jobs are ready.
const EXPECTED_AT_MOST: usize = 128;

/// So many lease numbers begin with each millisecond: see [`Lease`].
const LEASES_PER_MILLISECOND_BITS: u32 = 11;

/// Hands out the first ready jobs by (priority, due time, order of scheduling). O(log n) each.
#[derive(Clone, Copy, Debug)]
pub struct Pop {
    /// At most so many; and at most [`POP_JOBS_MAX`].
    pub count: usize,
    /// How long the leases last, unless as the jobs themselves say.
    pub ttr: Option<Millis>,
    pub mode: Mode,
}

impl Pop {
    pub const ONE: Pop = Pop { count: 1, ttr: None, mode: Mode::Lease };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each job is leased until the consumer finishes it.
    Lease,
    /// Each job is finished by being handed out.
    NoAck,
}

/// Jobs handed out together, in their order.
#[derive(Debug)]
pub struct Deliveries {
    jobs: SmallVec<[Delivery; 1]>,
    mode: Mode,
    held_by: Option<Limit>,
}

/// A job handed out.
#[derive(Clone, Debug)]
pub struct Delivery {
    slot: Slot,
    pub attempt: u32,
    body_bytes: u32,
    pub lease: Lease,
    /// When the lease runs out.
    pub end: Time,
    /// Since when the job was ready.
    pub due: Time,
    before: Earlier,
    /// Most often there is nothing.
    apart: Option<Box<Apart>>,
}

/// What a job was before it was handed out. Its attempt was one less.
#[derive(Clone, Copy, Debug)]
struct Earlier {
    time: Time,
    stage: Stage,
    /// None: that of no lease.
    lease: Lease,
    expires_at: Option<Time>,
}

impl Earlier {
    fn of(time: Time, progress: &Progress) -> Earlier {
        let Progress { stage, lease, expires_at, .. } = *progress;
        Earlier { time, stage, lease: lease.unwrap_or_default(), expires_at }
    }
}

/// What is no longer in the queue of a job that was handed out.
#[derive(Clone, Debug, Default)]
struct Apart {
    /// All: it was finished by that, and isn't kept; or it comes back, perhaps more than once in the same pop.
    gone: Option<Gone>,
    /// Where its schedule stood.
    run: Option<Run>,
}

#[derive(Clone, Debug)]
struct Run {
    progress: Progress,
    occurrence: Time,
    schedule: Before,
}

#[derive(Clone)]
struct Gone {
    job: Job,
    policy: Policy,
    group: Option<Box<[u8]>>,
    reason: Option<Box<[u8]>>,
}

impl std::fmt::Debug for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gone({:?})", self.job.id_and_body().0)
    }
}

impl Changed for Deliveries {
    fn has_changed(&self) -> bool {
        !self.is_empty()
    }
}

impl Deliveries {
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// What held back another one that was ready and wanted.
    pub fn held_by(&self) -> Option<Limit> {
        self.held_by
    }

    /// Whether they were finished by being handed out.
    pub fn are_finished(&self) -> bool {
        self.mode == Mode::NoAck
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Delivery> {
        self.jobs.iter()
    }
}

impl Delivery {
    /// As long as the queue hasn't changed since.
    pub fn id_and_body<'a>(&'a self, queue: &'a Queue) -> (Id<'a>, &'a [u8]) {
        match self.gone().map(|gone| &gone.job).or_else(|| queue.pool.get(self.slot)) {
            Some(job) => job.id_and_body(),
            None => {
                debug_assert!(false, "a job that was delivered is there, or on its way");
                (Id::NONE, &[])
            }
        }
    }

    fn gone(&self) -> Option<&Gone> {
        self.apart.as_ref()?.gone.as_ref()
    }

    fn run(&self) -> Option<&Run> {
        self.apart.as_ref()?.run.as_ref()
    }

    /// The time by which this run is called: of a job that comes back, its occurrence, for each attempt the same;
    /// otherwise when it was due.
    pub fn occurrence(&self) -> Time {
        self.run().map_or(self.due, |run| run.occurrence)
    }

    /// Until when a job that was finished by this stays in the queue all the same, unless somebody removes it: as done, or
    /// since it comes back. As long as the queue hasn't changed since.
    pub fn stays_until(&self, queue: &Queue) -> Option<Time> {
        let job = queue.get(self.id_and_body(queue).0)?;
        match job.progress.stage {
            Stage::Done => Some(job.time),
            Stage::Waiting => Some(Time::MAX),
            Stage::Leased | Stage::Dead => None,
        }
    }

    /// The job as it was before, for a [`super::Return`]. As long as the queue hasn't changed since.
    pub fn before(&self, queue: &Queue) -> Option<JobRecord> {
        let (id, body) = self.id_and_body(queue);
        let (created, policy, group, reason) = match self.gone() {
            Some(gone) => {
                let group = gone.group.as_deref().map(Id::of);
                (gone.job.created(), gone.policy, group, gone.reason.as_deref())
            }
            None => {
                let reason = queue.details_of(self.slot).and_then(|details| details.reason());
                let group = queue.group_of(self.slot);
                (queue.pool.get(self.slot)?.created(), *queue.policy_of(self.slot)?, group, reason)
            }
        };
        let Earlier { time, stage, lease, expires_at } = self.before;
        let (progress, reason, schedule) = match self.run() {
            Some(Run { progress, schedule: Before { rule, round, reason }, .. }) => {
                (*progress, reason.as_deref(), Some(Scheduled { rule, round: *round }))
            }
            None => {
                let lease = Some(lease).filter(|lease| *lease != Lease::default());
                let attempt = self.attempt.saturating_sub(1);
                (Progress { stage, attempt, lease, expires_at }, reason, None)
            }
        };
        let job = JobView { id, body, time, created, policy, progress, reason, group, schedule };
        Some(JobRecord::of(&job, Naming::Given))
    }
}

impl Operation for Pop {
    type Outcome = Deliveries;

    fn run(&self, queue: &mut Queue, now: Time) -> Deliveries {
        self.run_by(queue, now, &mut NoCalendar)
    }

    fn run_by(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> Deliveries {
        #[cfg(feature = "planted-faults")]
        let now = now.saturating_add(Millis::new(crate::planted::ahead_ms()).unwrap_or_default());
        let mut deliveries = Deliveries { jobs: SmallVec::new(), mode: self.mode, held_by: None };
        if queue.paused_until > now {
            return deliveries;
        }
        let (mut lane, mut bytes) = (FromLane::default(), 0);
        let wanted = self.count.min(POP_JOBS_MAX);
        let allowance = queue.allowance(now, self.mode);
        let count = allowance.map_or(wanted, |allowance| allowance.jobs.min(wanted));
        if count > 1 {
            deliveries.jobs.reserve_exact(count.min(queue.len()).min(EXPECTED_AT_MOST));
        }
        while deliveries.len() < count && bytes < POP_BYTES_MAX {
            let Some(delivery) = queue.deliver(now, self, &mut lane, calendar) else {
                break;
            };
            bytes += delivery.body_bytes as usize;
            deliveries.jobs.push(delivery);
        }
        count_more(&mut queue.totals.popped, deliveries.len());
        if let Some(allowance) = allowance {
            let taken = (&deliveries, wanted);
            deliveries.held_by = queue.use_allowance(now, &allowance, taken, &mut lane);
        }
        deliveries
    }
}

impl Queue {
    fn deliver(
        &mut self,
        now: Time,
        pop: &Pop,
        lane: &mut FromLane,
        calendar: &mut dyn Calendar,
    ) -> Option<Delivery> {
        let turn = self.first_to_leave(now, lane)?;
        let (due, slot) = (turn.due, turn.slot);
        let lease = self.next_lease(now)?;
        self.take_turn(&turn, now);
        let simply = match pop.mode {
            // Faults are planted in the longer way.
            Mode::Lease if cfg!(feature = "planted-faults") => None,
            Mode::Lease => self.lease_simply(slot, lease, now, pop.ttr),
            Mode::NoAck => None,
        };
        if let Some((end, body_bytes)) = simply {
            let before = Earlier::of(due, &Progress::default());
            return Some(Delivery { slot, attempt: 1, body_bytes, lease, end, due, before, apart: None });
        }
        let policy = self.policy_of(slot)?;
        let end = now.saturating_add(pop.ttr.unwrap_or(policy.ttr));
        #[cfg(feature = "planted-faults")]
        let end = now.saturating_add(
            Millis::new(crate::planted::lease_ms(end.since(now).as_u64())).unwrap_or_default(),
        );
        let details = self.details_of(slot);
        let (time, progress) =
            details.map_or((due, Progress::default()), |details| (details.time, details.progress()));
        let body_bytes = self.pool.get(slot)?.body_bytes();
        let mut attempt = progress.attempt.saturating_add(1);
        let before = Earlier::of(time, &progress);
        let mut apart = None;
        if details.is_some_and(|details| details.schedule().is_some()) {
            let (schedule, occurrence) = self.begin_run(now, slot, calendar)?;
            attempt = self.progress(slot)?.attempt.saturating_add(1);
            apart = Some(Box::new(Apart { gone: None, run: Some(Run { progress, occurrence, schedule }) }));
        }
        #[cfg(feature = "planted-faults")]
        let attempt = crate::planted::attempt(attempt, now.unix_ms());
        let leased = Progress { stage: Stage::Leased, attempt, lease: Some(lease), ..progress };
        match pop.mode {
            Mode::Lease => self.shift(slot, Cause::Popped, end, &leased, Reason::Keep),
            Mode::NoAck => {
                if let Some(gone) = self.deliver_and_finish(now, slot, end, &leased)? {
                    apart.get_or_insert_default().gone = Some(gone);
                }
            }
        }
        Some(Delivery { slot, attempt, body_bytes, lease, end, due, before, apart })
    }

    /// What the queue no longer has of it then.
    fn deliver_and_finish(
        &mut self,
        now: Time,
        slot: Slot,
        end: Time,
        leased: &Progress,
    ) -> Option<Option<Gone>> {
        let policy = *self.policy_of(slot)?;
        let group = self.group_of(slot).map(|group| group.bytes().into());
        let reason = self.details_of(slot).and_then(|details| details.reason().map(Box::from));
        self.shift(slot, Cause::Popped, end, leased, Reason::Keep);
        let returning = self.schedule_of(slot).is_some().then(|| self.pool.get(slot).cloned()).flatten();
        let job = self.finish_held(now, slot).or(returning);
        Some(job.map(|job| Gone { job, policy, group, reason }))
    }

    /// A number greater than all before. At least that with which the millisecond begins: so a queue that is made
    /// anew under a key goes on above the one that was there. `None` at the end of numbers, the year 2109.
    fn next_lease(&self, now: Time) -> Option<Lease> {
        #[cfg(feature = "planted-faults")]
        if crate::planted::strikes_at(crate::planted::Fault::LeaseTwice, now.unix_ms(), 16) {
            return self.last_lease().or(Some(Queue::lease_at(now)));
        }
        let by_time = now.unix_ms() << LEASES_PER_MILLISECOND_BITS;
        let number = by_time.max(self.last_lease.number().saturating_add(1));
        (number < Lease::MAX.number()).then(|| Lease::new(number))
    }

    /// The lease that a pop at this time would give, at least.
    pub fn lease_at(now: Time) -> Lease {
        Lease::new((now.unix_ms() << LEASES_PER_MILLISECOND_BITS).min(Lease::MAX.number()))
    }
}
