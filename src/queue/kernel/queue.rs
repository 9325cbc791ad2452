//! The parts of a queue, and how a job gets its place.

use crate::queue::edges::pending::SettleBudget;
use crate::queue::edges::table::Edges;
use crate::queue::groups::group::Groups;
use crate::queue::lines::buckets::NewEntry;
use crate::queue::lines::entry::EntryKind;
use crate::queue::lines::lanes::{Lanes, SideLine};
use crate::queue::lines::placement::Placement;
use crate::queue::lines::window::Window;
use crate::queue::memory::impossible::{impossible, OrImpossible};
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Id;
use crate::queue::value::policy::Policy;
use crate::queue::value::state::{Progress, Stage, State};
use crate::queue::value::time::Time;

use super::change::{Cause, Change, Former, Standing};
use super::details::{Details, RareDetails};
use super::job::{Job, JobView};
use super::ledger::{Events, Ledger};
use super::limits::Limits;
use super::pool::Lookup;
use super::removed::Removed;
use super::store::Store;
use super::terms::Terms;
use super::watch::Watch;

/// A delay queue. Its parts keep their fields private; this room does what concerns several of
/// them.
#[derive(Clone)]
pub struct Queue {
    /// What is stored for each job.
    pub(in crate::queue) store: Store,
    /// When each job changes its state, and which job is first.
    pub(in crate::queue) lanes: Lanes,
    /// Which group has its turn. Most queues have no groups.
    pub(in crate::queue) groups: Option<Box<Groups>>,
    /// Which jobs wait for others. Most queues have no edges.
    pub(in crate::queue) edges: Option<Box<Edges>>,
    /// The settings, and how many jobs they let leave.
    pub(in crate::queue) limits: Limits,
    /// What the queue remembers of its history.
    pub(in crate::queue) ledger: Ledger,
    /// Which jobs clients want to hear of.
    pub(in crate::queue) watch: Watch,
    /// How much of what jobs wait for is carried out at once.
    pub(in crate::queue) settle_budget: SettleBudget,
    /// What was recorded of jobs: see `journal.rs`.
    #[cfg(test)]
    pub(in crate::queue) heard: Vec<(Slot, Option<(Time, Progress)>)>,
}

const _: () = assert!(align_of::<Queue>() <= 8, "some servers' allocators align to 8 bytes");

impl Queue {
    /// An empty queue. The seed keys the hash of the ids, and never shows in what a queue returns
    /// or does.
    pub fn new(seed: (u64, u64)) -> Queue {
        Queue {
            store: Store::new(seed),
            lanes: Lanes::default(),
            groups: None,
            edges: None,
            limits: Limits::default(),
            ledger: Ledger::default(),
            watch: Watch::default(),
            settle_budget: SettleBudget::DEFAULT,
            #[cfg(test)]
            heard: Vec::new(),
        }
    }

    /// Moves the horizon to `now`, for readers and counts; back if the clock was set back.
    /// Operations don't depend on it. O(1) if no job changes its state between the two.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        // Most calls come within the same millisecond.
        if now != self.lanes.horizon() {
            self.move_on(now);
        }
    }

    fn move_on(&mut self, now: Time) {
        if now < self.lanes.horizon() {
            // What had already happened will happen again.
            self.ledger.wake_now();
        }
        self.reindex_if_clock_went_back(now);
        let passed = self.lanes.advance(now, self.ledger.counted());
        self.ledger.count_passed(now, &passed);
    }

    /// The time of the last [`Queue::advance`].
    pub fn horizon(&self) -> Time {
        self.lanes.horizon()
    }

    /// What happened since the last call.
    pub fn take_events(&mut self) -> Events {
        self.ledger.take_events()
    }

    /// Inserts this job, as it was added or loaded, and replaces the one with its id. `None` if there
    /// is no slot left.
    pub(in crate::queue) fn put_job(
        &mut self,
        job: &JobView,
        found: Lookup,
        mut cause: Cause,
    ) -> Option<Slot> {
        let mut before = Former::default();
        if let Some(former) = found.slot {
            before = self.former(former, job.time, &job.progress);
            if self.store.was_kept_until(former, job.created) {
                self.discard(former, Cause::Purged);
            } else {
                self.discard(former, Cause::Displaced);
                cause = if cause == Cause::Added { Cause::Replaced } else { cause };
            }
        }
        let Some(slot) = self.insert(job, found) else {
            if found.slot.is_some() {
                impossible("there is no slot for a job that replaces another");
            }
            return None;
        };
        let extras = self.store.extras_of(job);
        if let (Some(former), Some(edges)) = (found.slot, &mut self.edges) {
            edges.move_predecessor(former, slot);
        }
        self.place(slot, (cause, before), job.time, &job.progress, extras);
        Some(slot)
    }

    /// The same for a job that is created now, under a given id that is free, without a group and a
    /// schedule, that can neither expire nor be late. Most jobs are like that.
    pub(in crate::queue) fn put_plain(
        &mut self,
        id: Id,
        body: &[u8],
        due: Time,
        policy: Policy,
        found: Lookup,
    ) -> Option<Slot> {
        let terms = Terms { policy, group: None };
        let slot = self.store.insert(id, body, self.ledger.clock(), &terms, found)?;
        let (progress, placement) = (&Progress::default(), &Placement::waiting(&policy, due));
        let Placement { main_line, time, kind, window, .. } = *placement;
        self.lanes.insert(main_line, &NewEntry { time, slot, kind, window }, &mut self.store);
        let after = Standing { time: due, progress, placement };
        self.record_change(&Change {
            slot,
            cause: Cause::Added,
            before: Former::default(),
            after: Some(after),
        });
        Some(slot)
    }

    /// The same for many jobs that are alike but for their due times, in their order: all of them,
    /// under given ids. `None`, with nothing done, if an id is taken or comes twice.
    pub(in crate::queue) fn put_all_plain<'j>(
        &mut self,
        jobs: impl ExactSizeIterator<Item = (Id<'j>, &'j [u8])>,
        due: impl Fn(usize) -> Time,
        policy: Policy,
    ) -> Option<Vec<Slot>> {
        let terms = Terms { policy, group: None };
        let slots = self.store.insert_all(jobs, self.ledger.clock(), &terms)?;
        let placed = || slots.iter().enumerate().map(|(position, slot)| (due(position), *slot));
        self.lanes.insert_waiting(policy.priority, placed(), &mut self.store);
        for (time, slot) in placed() {
            let (progress, placement) = (&Progress::default(), &Placement::waiting(&policy, time));
            let after = Some(Standing { time, progress, placement });
            let (cause, before) = (Cause::Added, Former::default());
            self.record_change(&Change { slot, cause, before, after });
        }
        Some(slots)
    }

    /// Adds a job that is in no line yet. `None`, with nothing done, if there is no slot left.
    fn insert(&mut self, job: &JobView, found: Lookup) -> Option<Slot> {
        let group = match job.group {
            Some(name) => Some(self.groups_or_new().0.join(name)?),
            None => None,
        };
        let terms = Terms { policy: job.policy, group };
        let slot = self.store.insert(job.id, job.body, job.created, &terms, found);
        match slot {
            None => self.leave_group(group),
            Some(slot) if job.note.is_some() || job.result.is_some() => {
                self.store.set_note(slot, job.note);
                self.store.set_result(slot, job.result);
            }
            Some(_) => (),
        }
        slot
    }

    /// Removes a job from the queue.
    pub(in crate::queue) fn remove(&mut self, slot: Slot, cause: Cause) -> Option<Job> {
        let mut before = Former::default();
        if let Some(details) = self.unplace(slot) {
            before.lease = details.progress().lease;
            self.store.drop_rule(&details);
        }
        if self.edges.is_some() {
            self.forget_edges(slot);
        }
        self.record_change(&Change { slot, cause, before, after: None });
        let removed = self.store.remove(slot).or_impossible("a job to remove has its policy");
        let (job, group) = removed?;
        self.leave_group(group);
        Some(job)
    }

    /// Removes a job from the queue and frees it: see [`Queue::take_removed`].
    pub(in crate::queue) fn discard(&mut self, slot: Slot, cause: Cause) -> Option<()> {
        let job = self.remove(slot, cause)?;
        self.store.removed_mut().add(job);
        Some(())
    }

    /// Puts a job without details into its lines, and records that, with its cause and what the job
    /// was before.
    pub(in crate::queue) fn place(
        &mut self,
        slot: Slot,
        (cause, before): (Cause, Former),
        time: Time,
        progress: &Progress,
        extras: Option<Box<RareDetails>>,
    ) {
        let Some((placement, group)) = self.store.attach(slot, time, progress, extras) else {
            return impossible("a job to put into its lines was not found");
        };
        self.enter_lines(slot, &placement);
        if let Some(group) = group {
            self.enter_group_lines(group, slot, &placement);
        }
        let after = Standing { time, progress, placement: &placement };
        self.record_change(&Change { slot, cause, before, after: Some(after) });
    }

    /// What a job is that is about to get another place.
    pub(in crate::queue) fn former(&self, slot: Slot, time: Time, progress: &Progress) -> Former {
        let horizon = self.lanes.horizon();
        let may_be_dead = progress.stage == Stage::Dead
            || time <= horizon
            || progress.expires_at.is_some_and(|expires_at| expires_at <= horizon);
        let has_details = || self.store.details_of(slot).is_some();
        let is_dead = || self.view(slot).is_some_and(|job| job.state(horizon) == State::Dead);
        let was_dead = may_be_dead && has_details() && is_dead();
        Former { lease: self.store.progress(slot).lease, was_dead }
    }

    #[inline]
    pub(in crate::queue) fn enter_lines(&mut self, slot: Slot, placement: &Placement) {
        let Placement { main_line, time, kind, window, expiry, lease_end } = *placement;
        let new_entry = NewEntry { time, slot, kind, window };
        self.lanes.insert(main_line, &new_entry, &mut self.store);
        let aside =
            |time| NewEntry { time, slot, kind: EntryKind::Waiting, window: Window::ALWAYS };
        if let Some(time) = expiry {
            let line = main_line.line_of_expiring();
            self.lanes.insert_in_side_line(line, &aside(time), &mut self.store.residents_of(line));
        }
        if let Some(time) = lease_end {
            let line = SideLine::Leases;
            self.lanes.insert_in_side_line(line, &aside(time), &mut self.store.residents_of(line));
        }
    }

    /// Takes a job out of its lines, and takes its details.
    pub(in crate::queue) fn unplace(&mut self, slot: Slot) -> Option<Details> {
        self.leave_lines(slot);
        self.store.detach(slot)
    }

    pub(in crate::queue) fn leave_lines(&mut self, slot: Slot) {
        if self.edges.is_some() {
            self.record_death_by(self.ledger.clock(), slot);
        }
        let Some(places) = self.store.line_locations(slot) else {
            return impossible("a job to take out of its lines was not found");
        };
        let mut was_there =
            self.lanes.remove(places.former.main_line, slot, places.bucket, &mut self.store);
        if let Some(bucket) = places.expiry_bucket {
            let line = places.former.main_line.line_of_expiring();
            let expiring = &mut self.store.residents_of(line);
            was_there &= self.lanes.remove_from_side_line(line, slot, bucket, expiring);
        }
        if let Some(bucket) = places.lease_bucket {
            let leased = &mut self.store.residents_of(SideLine::Leases);
            was_there &= self.lanes.remove_from_side_line(SideLine::Leases, slot, bucket, leased);
        }
        if let (Some(groups), Some(group)) = (&mut self.groups, places.group) {
            was_there &= groups.unplace(group, slot, &places.former);
        }
        if !was_there {
            impossible("a job was not in the lines that its details name");
        }
    }

    /// Whether [`Queue::take_removed`] returns any job.
    pub fn has_removed(&self) -> bool {
        self.store.removed().bytes() > 0
    }

    /// The large jobs that the last operation removed. If the caller doesn't take them, the next
    /// operation frees them.
    pub fn take_removed(&mut self) -> Removed {
        std::mem::take(self.store.removed_mut())
    }
}
