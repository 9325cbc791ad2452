//! What consumers do: take jobs.

use std::collections::BTreeSet;

use super::passed_over::PopBudget;
use super::work::{Finish, Finishing};
use crate::queue::groups::turns::NextJob;
use crate::queue::kernel::change::Cause;
use crate::queue::kernel::delivery::{Deliveries, Delivery, Mode};
use crate::queue::kernel::job::Job;
use crate::queue::kernel::operation::{Affected, CarriesOut, Changed, Operation};
use crate::queue::kernel::queue::Queue;
use crate::queue::kernel::transition::Transition;
use crate::queue::lines::lanes::LaneCursor;
use crate::queue::memory::impossible::OrImpossible;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::{Id, Lease};
use crate::queue::value::recurrence::Calendar;
use crate::queue::value::state::{Progress, Stage, State};
use crate::queue::value::time::{Millis, Time};

/// A pop that delivers more would hold up the others. Part of what is logged: it must stay as it
/// is.
pub const POP_JOBS_MAX: usize = 10_000;

/// Room that is made for deliveries before it is known how many jobs are ready.
const EXPECTED_AT_MOST: usize = 128;

/// Delivers the first ready jobs by (priority, due time, order of scheduling). O(log n) each.
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

/// Delivers the jobs with these ids, in this order. A job that is delayed or dead is kicked first.
/// Left out are ids without a job, jobs that are reserved or done, and a job that this call has
/// delivered already and that has come back since. O(log n) each.
#[derive(Clone, Copy, Debug)]
pub struct PopById<'a> {
    /// At most [`POP_JOBS_MAX`] of them.
    pub ids: &'a [Id<'a>],
    pub ttr: Option<Millis>,
    pub mode: Mode,
}

/// A [`Finish`], what follows from it, and then a [`Pop`], all at one time: what the finish makes
/// ready may be taken. O(log n) for each job.
#[derive(Clone, Debug)]
pub struct FinishAndPop<'a> {
    pub finish: Finish<'a>,
    pub pop: Pop,
}

/// The outcome of a [`FinishAndPop`].
pub struct FinishedAndTaken {
    pub finished: Affected,
    pub taken: Deliveries,
}

/// How jobs are delivered: for how long, and whether they are leased at all.
#[derive(Clone, Copy)]
struct DeliveryOptions {
    ttr: Option<Millis>,
    mode: Mode,
}

impl Changed for Deliveries {
    fn has_changed(&self) -> bool {
        self.have_done_anything() || self.has_noticed_set_back
    }

    fn deliveries(&self) -> Option<&Deliveries> {
        Some(self)
    }
}

impl Operation for Pop {
    type Outcome = Deliveries;

    const GIVES_LEASES: bool = true;

    fn run(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> Deliveries {
        self.deliver(queue, now, calendar).or_set_back(queue)
    }
}

impl Operation for PopById<'_> {
    type Outcome = Deliveries;

    const GIVES_LEASES: bool = true;

    fn run(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> Deliveries {
        self.deliver(queue, now, calendar).or_set_back(queue)
    }
}

impl Changed for FinishedAndTaken {
    fn has_changed(&self) -> bool {
        self.finished.has_changed() || self.taken.has_changed()
    }

    fn deliveries(&self) -> Option<&Deliveries> {
        Some(&self.taken)
    }
}

impl Operation for FinishAndPop<'_> {
    type Outcome = FinishedAndTaken;

    const GIVES_LEASES: bool = true;

    fn run(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> FinishedAndTaken {
        let had_pending = queue.has_pending();
        let finished = self.finish.run(queue, now, calendar);
        if finished.has_changed() {
            queue.follow_up(now, CarriesOut::All, had_pending);
        }
        FinishedAndTaken { finished, taken: self.pop.run(queue, now, calendar) }
    }
}

impl Pop {
    #[inline]
    fn deliver(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> Deliveries {
        let mut deliveries = Deliveries::default();
        if queue.limits.is_paused(now) {
            return deliveries;
        }
        let mut lane = LaneCursor::default();
        let wanted = self.count.min(POP_JOBS_MAX);
        let allowance = queue.limits.allowance(now, self.mode == Mode::Lease, &queue.lanes);
        let count = allowance.map_or(wanted, |allowance| allowance.jobs.min(wanted));
        if count > 1 {
            deliveries.jobs.reserve_exact(count.min(queue.len()).min(EXPECTED_AT_MOST));
        }
        let options = DeliveryOptions { ttr: self.ttr, mode: self.mode };
        let mut budget = PopBudget::of(calendar);
        while deliveries.have_room(count)
            && queue.deliver_first(now, options, &mut lane, &mut budget, &mut deliveries).is_some()
        {
        }
        deliveries.passed_over = budget.passed_over;
        deliveries.has_ended_early = budget.is_used_up();
        if let Some(allowance) = allowance {
            queue.use_up(now, deliveries.len());
            deliveries.lack_places = deliveries.len() < wanted
                && allowance.lacks_places(deliveries.len())
                && queue.lanes.ready_at(now) > 0;
        }
        deliveries
    }
}

impl PopById<'_> {
    fn deliver(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> Deliveries {
        let mut deliveries = Deliveries::default();
        if queue.limits.is_paused(now) {
            return deliveries;
        }
        let allowance = queue.limits.allowance(now, self.mode == Mode::Lease, &queue.lanes);
        let allowed = allowance.map_or(POP_JOBS_MAX, |allowance| allowance.jobs.min(POP_JOBS_MAX));
        let options = DeliveryOptions { ttr: self.ttr, mode: self.mode };
        let mut budget = PopBudget::of(calendar);
        let mut seen = BTreeSet::new();
        let mut ids = self.ids.iter();
        while deliveries.have_room(allowed) && !budget.is_used_up() {
            let Some(id) = ids.next() else {
                break;
            };
            if options.mode == Mode::NoAck && queue.comes_again(*id, &mut seen) {
                continue;
            }
            queue.deliver_by_id(now, options, *id, &mut budget, &mut deliveries);
        }
        deliveries.has_ended_early = budget.is_used_up();
        if allowance.is_some() {
            queue.use_up(now, deliveries.len());
        }
        deliveries
    }
}

impl Queue {
    #[inline]
    fn deliver_first(
        &mut self,
        now: Time,
        options: DeliveryOptions,
        lane: &mut LaneCursor,
        budget: &mut PopBudget,
        deliveries: &mut Deliveries,
    ) -> Option<()> {
        let next = if self.store.schedules() == 0 {
            self.first_to_leave(now, lane)?
        } else {
            self.first_in_time(now, lane, budget)?
        };
        self.deliver(now, options, &next, budget, deliveries)
    }

    /// Delivers a job that is ready, as whose turn it is.
    #[inline(always)]
    fn deliver(
        &mut self,
        now: Time,
        options: DeliveryOptions,
        next: &NextJob,
        calendar: &mut dyn Calendar,
        deliveries: &mut Deliveries,
    ) -> Option<()> {
        let NextJob { due, slot, .. } = *next;
        let lease = self.ledger.next_lease(now)?;
        self.take_turn(next, now);
        let plain_lease = match options.mode {
            Mode::Lease => self.lease_plain(slot, lease, now, options.ttr),
            Mode::NoAck => None,
        };
        if let Some((end, body_bytes)) = plain_lease {
            let delivery =
                Delivery { slot, attempt: 1, lease, end, due, occurrence: due, gone: None };
            deliveries.add(delivery, body_bytes);
            return Some(());
        }
        let delivered = self.deliver_fully(now, options, (due, slot, lease), calendar);
        let (delivery, body_bytes) = delivered.or_impossible("a job that has its turn is there")?;
        deliveries.add(delivery, body_bytes);
        Some(())
    }

    /// The same for any job.
    #[inline(never)]
    fn deliver_fully(
        &mut self,
        now: Time,
        options: DeliveryOptions,
        (due, slot, lease): (Time, Slot, Lease),
        calendar: &mut dyn Calendar,
    ) -> Option<(Delivery, u32)> {
        let (terms, details) = self.store.terms_and_details(slot)?;
        let end = now.saturating_add(options.ttr.unwrap_or(terms.ttr));
        let progress = details.map_or(Progress::default(), |details| details.progress());
        let body_bytes = self.store.get(slot)?.body_bytes();
        let mut attempt = progress.attempt.saturating_add(1);
        let (mut occurrence, mut gone) = (due, None);
        if details.is_some_and(|details| details.schedule().is_some()) {
            occurrence = self.begin_run(now, slot, calendar)?;
            attempt = self.store.progress(slot).attempt.saturating_add(1);
        }
        let leased = Progress { stage: Stage::Leased, attempt, lease: Some(lease), ..progress };
        match options.mode {
            Mode::Lease => {
                self.transition(slot, &Transition::new(Cause::Delivered, now, end, &leased))
            }
            Mode::NoAck => gone = self.deliver_and_finish(now, slot, end, &leased),
        }
        Some((Delivery { slot, attempt, lease, end, due, occurrence, gone }, body_bytes))
    }

    /// Whether it has a schedule and was seen before: finished by being delivered, it may be ready
    /// again.
    fn comes_again(&self, id: Id, seen: &mut BTreeSet<Slot>) -> bool {
        let slot = if self.store.schedules() == 0 { None } else { self.store.find(id) };
        slot.is_some_and(|slot| self.store.schedule_of(slot).is_some() && !seen.insert(slot))
    }

    fn deliver_by_id(
        &mut self,
        now: Time,
        options: DeliveryOptions,
        id: Id,
        calendar: &mut dyn Calendar,
        deliveries: &mut Deliveries,
    ) -> Option<()> {
        let slot = self.store.find(id)?;
        // Nobody is kicked in vain.
        self.ledger.next_lease(now)?;
        if !self.may_leave_its_group(slot, now) {
            return None;
        }
        match self.view(slot)?.state(now) {
            State::Ready => (),
            State::Delayed | State::Dead => self
                .kick_job(now, slot, now, Cause::ById)
                .or_impossible("a delayed or dead job can be kicked")?,
            State::Reserved | State::Done | State::Held => return None,
        }
        let due = self.view(slot).or_impossible("a kicked job is there")?.due();
        let next = self.out_of_turn(due, slot);
        self.deliver(now, options, &next, calendar, deliveries)
    }

    /// What the queue may no longer have then.
    fn deliver_and_finish(
        &mut self,
        now: Time,
        slot: Slot,
        end: Time,
        leased: &Progress,
    ) -> Option<Job> {
        self.transition(slot, &Transition::new(Cause::Delivered, now, end, leased));
        let returning =
            self.store.schedule_of(slot).is_some().then(|| self.store.get(slot).cloned()).flatten();
        self.finish_claimed(now, slot, &Finishing::default()).or(returning)
    }
}
