//! Finishing a job with a result, and going on with others, in one step.

use crate::queue::memory::impossible::impossible;
use std::collections::{BTreeMap, BTreeSet};

use super::new_edges::{Other, OtherKind};
use super::produce::{Add, Added, IfTaken};
use super::work::Finishing;
use crate::queue::edges::table::EdgeSight;
use crate::queue::kernel::operation::{Changed, Operation};
use crate::queue::kernel::queue::Queue;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::{Claim, Id};
use crate::queue::value::recurrence::Calendar;
use crate::queue::value::time::{Millis, Time};

/// An operation that adds more jobs would hold up the others. Part of what is logged: it must stay
/// as it is.
pub const DONE_ADDS_MAX: usize = 1_000;

/// Finishes a job, and adds others. All of it or nothing. O(log n) for each job.
#[derive(Clone, Debug)]
pub struct Done<'a> {
    pub claim: Claim<'a>,
    /// Kept with the job, if the job is kept.
    pub result: Option<&'a [u8]>,
    /// How long the job is kept; without it, as its ADD says.
    pub keep: Option<Millis>,
    /// At most [`DONE_ADDS_MAX`].
    pub adds: Vec<Add<'a>>,
}

/// What became of a [`Done`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoneOutcome {
    /// The lease isn't the job's. Nothing has happened.
    No,
    /// The job is finished. The id of each ADD; `None` where it left things as they were.
    Yes { ids: Vec<Option<Box<[u8]>>> },
    /// An ADD would have come to this, which is an error. Nothing has happened.
    Refused(Added),
}

impl Changed for DoneOutcome {
    fn has_changed(&self) -> bool {
        matches!(self, DoneOutcome::Yes { .. })
    }
}

impl Operation for Done<'_> {
    type Outcome = DoneOutcome;

    fn run(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> DoneOutcome {
        let Some(slot) = queue.finishable(now, &self.claim) else {
            return DoneOutcome::No;
        };
        if !self.adds.is_empty() {
            if let Err(refused) = self.check_adds(queue, slot, now, calendar) {
                return DoneOutcome::Refused(refused);
            }
        }
        let finishing = Finishing { result: self.result, keep: self.keep };
        if let Some(job) = queue.finish_claimed(now, slot, &finishing) {
            queue.store.removed_mut().add(job);
        }
        let given: BTreeSet<&[u8]> =
            self.adds.iter().filter_map(|add| add.id).map(|id| id.bytes()).collect();
        let is_given = |id: Id| given.contains(id.bytes());
        let add = |add| queue.add_checked(add, now, calendar, &is_given);
        DoneOutcome::Yes { ids: self.adds.iter().map(add).collect() }
    }
}

/// What will be in the queue when the ADDs before this one have been carried out.
struct Predicted<'a> {
    /// The id of the finished job, where that is free then.
    freed: Option<Id<'a>>,
    added: BTreeMap<&'a [u8], Other>,
    /// The id of the finished job, where it is kept.
    kept: Option<Id<'a>>,
    /// By how many the open edges from a job will be more, or fewer, than in the queue; and how many
    /// edges to it come with BEFORE.
    edges: BTreeMap<&'a [u8], (isize, usize)>,
    /// From which jobs the ADDs make open edges to a job.
    incoming: BTreeMap<&'a [u8], Vec<&'a [u8]>>,
    jobs: u64,
}

impl<'a> Predicted<'a> {
    /// A job that an ADD names.
    fn other(&self, queue: &Queue, id: Id<'a>, now: Time) -> Option<Other> {
        let other = self.without_new_edges(queue, id, now)?;
        let (from, to) = self.edges.get(id.bytes()).copied().unwrap_or_default();
        let Other { dependents, predecessors, .. } = other;
        let dependents = dependents.saturating_add_signed(from);
        Some(Other { dependents, predecessors: predecessors + to, ..other })
    }

    /// A job that others wait for, or that waits for others, is replaced: those that it waited for
    /// have a dependent less.
    fn drop_edges_to(&mut self, queue: &'a Queue, id: Id<'a>) {
        let mut froms = self.incoming.remove(id.bytes()).unwrap_or_default();
        let finished = self.freed.or(self.kept);
        if !self.added.contains_key(id.bytes()) && Some(id) != finished {
            // Those from the finished job are settled by then.
            let open = queue.open_edges_to(id).filter(|from| Some(*from) != finished);
            froms.extend(open.map(|from| from.bytes()));
        }
        for from in froms {
            self.edges.entry(from).or_default().0 -= 1;
        }
        if let Some((_, to)) = self.edges.get_mut(id.bytes()) {
            *to = 0;
        }
    }

    fn add_edge(&mut self, from: Id<'a>, to: Id<'a>) {
        self.incoming.entry(to.bytes()).or_default().push(from.bytes());
    }

    fn without_new_edges(&self, queue: &Queue, id: Id<'a>, now: Time) -> Option<Other> {
        match self.added.get(id.bytes()) {
            None if Some(id) == self.freed => None,
            None if Some(id) == self.kept => {
                let other = queue.other(id, now)?;
                let has_schedule = other.kind == OtherKind::Scheduled;
                let kind = if has_schedule { other.kind } else { OtherKind::Done };
                Some(Other { kind, dependents: 0, ..other })
            }
            None => queue.other(id, now),
            Some(added) => Some(*added),
        }
    }
}

impl<'a> Done<'a> {
    /// Whether an ADD would be an error. It mustn't, once the job is finished.
    fn check_adds(
        &'a self,
        queue: &'a Queue,
        slot: Slot,
        now: Time,
        calendar: &mut dyn Calendar,
    ) -> Result<(), Added> {
        let kept_for = queue.kept_for_when_finished(slot, self.keep);
        let is_removed = kept_for.is_some_and(Millis::is_zero);
        // At the last moment there is, nothing is kept any longer.
        let is_freed = kept_for.is_some_and(|keep| now.saturating_add(keep) <= now);
        let mut expected = Predicted {
            freed: is_freed.then_some(self.claim.id),
            added: BTreeMap::new(),
            kept: (!is_freed).then_some(self.claim.id),
            edges: BTreeMap::new(),
            incoming: BTreeMap::new(),
            jobs: queue.len() as u64 - u64::from(is_removed),
        };
        // A held job that is finished waits for nothing any more.
        for from in queue.open_edges_to(self.claim.id) {
            expected.edges.entry(from.bytes()).or_default().0 -= 1;
        }
        self.adds.iter().try_for_each(|add| add.check(queue, now, calendar, &mut expected))
    }
}

impl<'a> Add<'a> {
    fn check(
        &'a self,
        queue: &'a Queue,
        now: Time,
        calendar: &mut dyn Calendar,
        expected: &mut Predicted<'a>,
    ) -> Result<(), Added> {
        let slot =
            self.id.filter(|id| Some(*id) != expected.freed).and_then(|id| queue.store.find(id));
        let is_kept_no_longer = slot.is_some_and(|slot| queue.store.was_kept_until(slot, now));
        let is_added = self.id.is_some_and(|id| expected.added.contains_key(id.bytes()));
        let is_taken = is_added || (slot.is_some() && !is_kept_no_longer);
        match self.if_taken {
            IfTaken::Refuse if is_taken => return Err(Added::Taken),
            IfTaken::Leave if is_taken => return Ok(()),
            IfTaken::Refuse | IfTaken::Leave | IfTaken::Replace | IfTaken::Ensure => (),
        }
        if slot.is_none() && !is_added {
            let max = queue.limits.settings().max_jobs;
            if max.is_some_and(|max| expected.jobs >= max.get()) {
                return Err(Added::Full);
            }
            expected.jobs += 1;
        }
        let is_held = self.check_edges(queue, now, expected)?;
        let is_any_time = self.schedule.as_ref().is_none_or(|new| {
            self.if_taken == IfTaken::Ensure || new.rule.first(now, new.starts, calendar).is_some()
        });
        if !is_any_time {
            return Err(Added::Never);
        }
        self.predict(queue, now, is_held, expected);
        Ok(())
    }

    /// Whether the job will be held.
    fn check_edges(
        &self,
        queue: &Queue,
        now: Time,
        expected: &Predicted<'a>,
    ) -> Result<bool, Added> {
        let unconnected = |fault| Added::Unconnected(Box::new(fault));
        let replaced = self.id.and_then(|id| Some((id, expected.other(queue, id, now)?)));
        if let Some((id, other)) = replaced {
            self.check_replaced(id, other.dependents).map_err(unconnected)?;
        }
        let Some(edges) = &self.edges else {
            return Ok(false);
        };
        edges.check(self.id, |named| expected.other(queue, named, now)).map_err(unconnected)
    }

    /// The job will be in the queue.
    fn predict(&'a self, queue: &'a Queue, now: Time, is_held: bool, expected: &mut Predicted<'a>) {
        let kind = match (&self.schedule, is_held) {
            (Some(_), _) => OtherKind::Scheduled,
            (None, true) => OtherKind::Held,
            (None, false) => OtherKind::Alive,
        };
        let (after, before) = match &self.edges {
            Some(edges) => (&edges.after[..], &edges.before[..]),
            None => (&[][..], &[][..]),
        };
        let waits_for = |id: Id<'a>, expected: &Predicted<'a>| {
            let other = expected.other(queue, id, now);
            self.edges.as_ref().zip(other).is_some_and(|(edges, other)| edges.waits_for(other.kind))
        };
        let open: Vec<Id> = after.iter().copied().filter(|id| waits_for(*id, expected)).collect();
        if let Some(id) = self.id {
            // Those of the job that it replaces wait for it.
            let replaced = expected.without_new_edges(queue, id, now);
            expected.drop_edges_to(queue, id);
            let dependents = replaced.map_or(0, |job| job.dependents) + before.len();
            let other = Other { kind, dependents, predecessors: after.len() };
            expected.added.insert(id.bytes(), other);
            open.iter().for_each(|from| expected.add_edge(*from, id));
            before.iter().for_each(|to| expected.add_edge(id, *to));
        }
        for id in open {
            expected.edges.entry(id.bytes()).or_default().0 += 1;
        }
        for id in before {
            expected.edges.entry(id.bytes()).or_default().1 += 1;
        }
    }
}

impl Queue {
    fn add_checked(
        &mut self,
        add: &Add,
        now: Time,
        calendar: &mut dyn Calendar,
        is_given: &dyn Fn(Id) -> bool,
    ) -> Option<Box<[u8]>> {
        let added = match add.id {
            Some(id) => add.run_under(self, now, id, calendar),
            None => add.run_under_made_id(self, now, calendar, is_given),
        };
        match added {
            Added::New { slot, .. } | Added::Replaced { slot, .. } | Added::Unchanged { slot } => {
                self.id_and_body(slot).map(|(id, _)| id.bytes().into())
            }
            Added::Left | Added::Over { .. } => None,
            Added::Taken | Added::Full | Added::Never | Added::Unconnected(_) => {
                impossible("an ADD was refused after it had been checked");
                None
            }
        }
    }

    /// Those that this job waits for.
    fn open_edges_to<'q>(&'q self, id: Id) -> impl Iterator<Item = Id<'q>> {
        let edges = self.edges.as_ref().zip(self.store.find(id));
        let of = edges.and_then(|(edges, slot)| Some((edges, edges.dependent(slot)?)));
        let all = of.into_iter().flat_map(|(edges, dependent)| edges.edges_of(dependent));
        all.filter_map(|edge| match edge {
            EdgeSight::Waits { from, .. } => self.id_and_body(from).map(|(id, _)| id),
            EdgeSight::Pending { .. } | EdgeSight::Settled(_) => None,
        })
    }

    /// How long a job that is handed out will be kept once it is finished. `None` if it comes back.
    fn kept_for_when_finished(&self, slot: Slot, keep: Option<Millis>) -> Option<Millis> {
        let (terms, details) = self.store.terms_and_details(slot)?;
        let comes_back = details
            .and_then(|details| details.schedule())
            .is_some_and(|schedule| schedule.run_state.armed().is_some());
        (!comes_back).then_some(keep.unwrap_or(terms.keep))
    }
}
