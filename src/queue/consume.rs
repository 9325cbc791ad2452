//! What consumers do: take jobs.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::door::{Changed, Operation};
use super::groups::Turn;
use super::ids::{Id, Lease};
use super::job::{Job, Progress, Stage, State};
use super::passed_over::Budget;
use super::queue_record::count as count_more;
use super::recurrence::{Calendar, NoCalendar};
use super::schedule::FromLane;
use super::settings::Limit;
use super::shift::Cause;
use super::slab::Slot;
use super::time::{Millis, Time};
use super::{Queue, Shift};

/// A pop that hands out more would hold up the others. Part of what is logged: it must stay as it is.
pub const POP_JOBS_MAX: usize = 10_000;
/// No further job is handed out once so many bytes of bodies are together. Likewise.
pub const POP_BYTES_MAX: usize = 16 << 20;

/// Room that is made for deliveries before it is known how many jobs are ready.
const EXPECTED_AT_MOST: usize = 128;

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

/// Hands out these jobs, in this order, whatever they wait for: one that is delayed or dead as if it had been kicked
/// before. Those that are reserved or done, and those that there aren't, are left out; and one that was handed out already, though
/// it has come back. O(log n) each.
#[derive(Clone, Copy, Debug)]
pub struct PopById<'a> {
    /// At most [`POP_JOBS_MAX`] of them.
    pub ids: &'a [Id<'a>],
    pub ttr: Option<Millis>,
    pub mode: Mode,
}

/// In which a job is handed out.
#[derive(Clone, Copy)]
struct Manner {
    ttr: Option<Millis>,
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each job is leased until the consumer finishes it.
    Lease,
    /// Each job is finished by being handed out.
    NoAck,
}

/// Jobs handed out together, in their order.
pub struct Deliveries {
    jobs: SmallVec<[Delivery; 1]>,
    /// Of all bodies.
    bytes: usize,
    mode: Mode,
    held_by: Option<Limit>,
    passed_over: usize,
    has_ended_early: bool,
    has_noticed_set_back: bool,
}

/// A job handed out.
pub struct Delivery {
    slot: Slot,
    pub attempt: u32,
    pub lease: Lease,
    /// When the lease runs out.
    pub end: Time,
    /// Since when the job was ready.
    pub due: Time,
    occurrence: Time,
    /// A job that was finished by being handed out and isn't kept; or that comes back, perhaps more than once in the same
    /// pop.
    gone: Option<Job>,
}

impl Changed for Deliveries {
    fn has_changed(&self) -> bool {
        !self.is_empty() || self.passed_over > 0 || self.has_noticed_set_back
    }

    fn notice_set_back(&mut self) {
        self.has_noticed_set_back = true;
    }
}

impl Deliveries {
    fn none(mode: Mode) -> Deliveries {
        Deliveries {
            jobs: SmallVec::new(),
            bytes: 0,
            mode,
            held_by: None,
            passed_over: 0,
            has_ended_early: false,
            has_noticed_set_back: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether one more may join them, where so many may.
    pub(super) fn have_room(&self, at_most: usize) -> bool {
        self.len() < at_most && self.bytes < POP_BYTES_MAX
    }

    #[inline]
    fn add(&mut self, delivery: Delivery, body_bytes: u32) {
        self.bytes += body_bytes as usize;
        self.jobs.push(delivery);
    }

    /// What held back another one that was ready and wanted.
    pub fn held_by(&self) -> Option<Limit> {
        self.held_by
    }

    /// How many occurrences of schedules nobody took in time, so that it went on behind them.
    pub fn passed_over(&self) -> usize {
        self.passed_over
    }

    /// Whether there was more to do than one pop does: though it has handed out less than was wanted, or nothing, there may
    /// be more that is ready.
    pub fn have_ended_early(&self) -> bool {
        self.has_ended_early
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
        match self.gone.as_ref().or_else(|| queue.pool.get(self.slot)) {
            Some(job) => job.id_and_body(),
            None => {
                debug_assert!(false, "a job that was delivered is there, or on its way");
                (Id::NONE, &[])
            }
        }
    }

    /// The time by which this run is called: of a job that comes back, its occurrence, for each attempt the same;
    /// otherwise when it was due.
    pub fn occurrence(&self) -> Time {
        self.occurrence
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
        let mut deliveries = Deliveries::none(self.mode);
        if queue.paused_until > now {
            return deliveries;
        }
        let mut lane = FromLane::default();
        let wanted = self.count.min(POP_JOBS_MAX);
        let allowance = queue.allowance(now, self.mode);
        let count = allowance.map_or(wanted, |allowance| allowance.jobs.min(wanted));
        if count > 1 {
            deliveries.jobs.reserve_exact(count.min(queue.len()).min(EXPECTED_AT_MOST));
        }
        let manner = Manner { ttr: self.ttr, mode: self.mode };
        let mut budget = Budget::of(calendar);
        while deliveries.have_room(count)
            && queue.deliver_first(now, manner, &mut lane, &mut budget, &mut deliveries).is_some()
        {}
        deliveries.passed_over = budget.passed_over;
        deliveries.has_ended_early = budget.is_used_up();
        count_more(&mut queue.totals.popped, deliveries.len());
        if allowance.is_some() {
            queue.use_up(now, &deliveries);
        }
        if deliveries.len() < wanted && queue.may_hold_back() {
            deliveries.held_by = queue.holds_back(now, allowance, &deliveries);
        }
        deliveries
    }
}

impl Operation for PopById<'_> {
    type Outcome = Deliveries;

    fn run(&self, queue: &mut Queue, now: Time) -> Deliveries {
        self.run_by(queue, now, &mut NoCalendar)
    }

    fn run_by(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> Deliveries {
        let mut deliveries = Deliveries::none(self.mode);
        if queue.paused_until > now {
            return deliveries;
        }
        let allowance = queue.allowance(now, self.mode);
        let allowed = allowance.map_or(POP_JOBS_MAX, |allowance| allowance.jobs.min(POP_JOBS_MAX));
        let manner = Manner { ttr: self.ttr, mode: self.mode };
        let mut budget = Budget::of(calendar);
        let mut seen = BTreeSet::new();
        let mut ids = self.ids.iter();
        while deliveries.have_room(allowed) && !budget.is_used_up() {
            let Some(id) = ids.next() else {
                break;
            };
            if manner.mode == Mode::NoAck && queue.comes_again(*id, &mut seen) {
                continue;
            }
            queue.deliver_called(now, manner, *id, &mut budget, &mut deliveries);
        }
        deliveries.has_ended_early = budget.is_used_up();
        count_more(&mut queue.totals.popped, deliveries.len());
        if allowance.is_some() {
            queue.use_up(now, &deliveries);
        }
        if deliveries.len() < self.ids.len() && queue.may_hold_back() {
            let (asked_for, left) = self.ids.split_at(self.ids.len() - ids.len());
            deliveries.held_by = queue.holds_back_called(now, allowance, &deliveries, (asked_for, left));
        }
        deliveries
    }
}

impl Queue {
    #[inline]
    fn deliver_first(
        &mut self,
        now: Time,
        manner: Manner,
        lane: &mut FromLane,
        budget: &mut Budget,
        deliveries: &mut Deliveries,
    ) -> Option<()> {
        let turn = if self.rules.is_empty() {
            self.first_to_leave(now, lane)?
        } else {
            self.first_in_time(now, lane, budget)?
        };
        self.deliver(now, manner, &turn, budget, deliveries)
    }

    /// Hands out a job that is ready, as whose turn it is.
    #[inline(always)]
    fn deliver(
        &mut self,
        now: Time,
        manner: Manner,
        turn: &Turn,
        calendar: &mut dyn Calendar,
        deliveries: &mut Deliveries,
    ) -> Option<()> {
        let Turn { due, slot, .. } = *turn;
        let lease = self.next_lease(now)?;
        self.take_turn(turn, now);
        let simply = match manner.mode {
            // Faults are planted in the longer way.
            Mode::Lease if cfg!(feature = "planted-faults") => None,
            Mode::Lease => self.lease_simply(slot, lease, now, manner.ttr),
            Mode::NoAck => None,
        };
        if let Some((end, body_bytes)) = simply {
            let delivery = Delivery { slot, attempt: 1, lease, end, due, occurrence: due, gone: None };
            deliveries.add(delivery, body_bytes);
            return Some(());
        }
        let (delivery, body_bytes) = self.deliver_fully(now, manner, (due, slot, lease), calendar)?;
        deliveries.add(delivery, body_bytes);
        Some(())
    }

    /// The same for any job.
    #[inline(never)]
    fn deliver_fully(
        &mut self,
        now: Time,
        manner: Manner,
        (due, slot, lease): (Time, Slot, Lease),
        calendar: &mut dyn Calendar,
    ) -> Option<(Delivery, u32)> {
        let policy = self.policy_of(slot)?;
        let end = now.saturating_add(manner.ttr.unwrap_or(policy.ttr));
        #[cfg(feature = "planted-faults")]
        let end = now.saturating_add(
            Millis::new(crate::planted::lease_ms(end.since(now).as_u64())).unwrap_or_default(),
        );
        let details = self.details_of(slot);
        let progress = details.map_or(Progress::default(), |details| details.progress());
        let body_bytes = self.pool.get(slot)?.body_bytes();
        let mut attempt = progress.attempt.saturating_add(1);
        let (mut occurrence, mut gone) = (due, None);
        if details.is_some_and(|details| details.schedule().is_some()) {
            occurrence = self.begin_run(now, slot, calendar)?;
            attempt = self.progress(slot)?.attempt.saturating_add(1);
        }
        #[cfg(feature = "planted-faults")]
        let attempt = crate::planted::attempt(attempt, now.unix_ms());
        let leased = Progress { stage: Stage::Leased, attempt, lease: Some(lease), ..progress };
        match manner.mode {
            Mode::Lease => self.shift(slot, &Shift::new(Cause::Popped, now, end, &leased)),
            Mode::NoAck => gone = self.deliver_and_finish(now, slot, end, &leased),
        }
        Some((Delivery { slot, attempt, lease, end, due, occurrence, gone }, body_bytes))
    }

    /// Whether it has a schedule and was seen before: finished by being handed out, it may be ready again.
    fn comes_again(&self, id: Id, seen: &mut BTreeSet<Slot>) -> bool {
        let slot = Some(&self.pool).filter(|_| !self.rules.is_empty()).and_then(|pool| pool.find(id));
        slot.is_some_and(|slot| self.schedule_of(slot).is_some() && !seen.insert(slot))
    }

    fn deliver_called(
        &mut self,
        now: Time,
        manner: Manner,
        id: Id,
        calendar: &mut dyn Calendar,
        deliveries: &mut Deliveries,
    ) -> Option<()> {
        let slot = self.pool.find(id)?;
        // Nobody is kicked in vain.
        self.next_lease(now)?;
        if !self.may_leave_its_group(slot, now) {
            return None;
        }
        match self.view(slot)?.state(now) {
            State::Ready => (),
            State::Delayed | State::Dead => {
                let news = self.news;
                self.kick_job(now, slot, Cause::Popped)?;
                // It is ready for nobody else.
                self.news = news;
            }
            State::Reserved | State::Done => return None,
        }
        let due = self.view(slot)?.due();
        let turn = self.out_of_turn(due, slot);
        self.deliver(now, manner, &turn, calendar, deliveries)
    }

    /// What the queue may no longer have then.
    fn deliver_and_finish(&mut self, now: Time, slot: Slot, end: Time, leased: &Progress) -> Option<Job> {
        self.shift(slot, &Shift::new(Cause::Popped, now, end, leased));
        let returning = self.schedule_of(slot).is_some().then(|| self.pool.get(slot).cloned()).flatten();
        self.finish_held(now, slot).or(returning)
    }
}
