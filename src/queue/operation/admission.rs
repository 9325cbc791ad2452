//! Whether jobs that are added together can all be added. Nothing can be undone, so each is checked
//! before the first one is added, as if those before it were there.

use std::collections::BTreeMap;

use super::new_edges::{Other, OtherKind};
use super::produce::{Add, Added, IfTaken};
use crate::queue::edges::table::EdgeSight;
use crate::queue::kernel::queue::Queue;
use crate::queue::memory::impossible::impossible;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Id;
use crate::queue::value::recurrence::Calendar;
use crate::queue::value::time::{Millis, Time};

/// What will be in the queue when the jobs so far have been added. O(log n) for each, and for each
/// edge.
pub(super) struct Admission<'a> {
    queue: &'a Queue,
    now: Time,
    /// The id of the finished job, where that is free then.
    freed: Option<Id<'a>>,
    /// The id of the finished job, where it is kept.
    kept: Option<Id<'a>>,
    added: BTreeMap<&'a [u8], Other>,
    /// By how many the open edges from a job will be more, or fewer, than in the queue; and how many
    /// edges to it come with BEFORE.
    edges: BTreeMap<&'a [u8], (isize, usize)>,
    /// From which jobs the new ones make open edges to a job.
    incoming: BTreeMap<&'a [u8], Vec<&'a [u8]>>,
    /// How many more jobs the queue may hold.
    room: u64,
}

impl<'a> Admission<'a> {
    pub fn new(queue: &'a Queue, now: Time) -> Admission<'a> {
        Admission {
            queue,
            now,
            freed: None,
            kept: None,
            added: BTreeMap::new(),
            edges: BTreeMap::new(),
            incoming: BTreeMap::new(),
            room: queue.room_beside(0),
        }
    }

    /// As if this job were finished, and kept for so long; without it, as its policy says.
    pub fn behind(
        queue: &'a Queue,
        now: Time,
        (id, slot): (Id<'a>, Slot),
        keep: Option<Millis>,
    ) -> Admission<'a> {
        let mut admission = Admission::new(queue, now);
        let kept_for = queue.kept_for_when_finished(slot, keep);
        let is_removed = kept_for.is_some_and(Millis::is_zero);
        // At the last moment there is, nothing is kept any longer.
        let is_freed = kept_for.is_some_and(|keep| now.saturating_add(keep) <= now);
        admission.freed = is_freed.then_some(id);
        admission.kept = (!is_freed).then_some(id);
        // More than MAXJOBS, set lower since, still have no room.
        admission.room = queue.room_beside(usize::from(is_removed));
        // A held job that is finished waits for nothing any more.
        for from in queue.open_edges_to(id) {
            admission.edges.entry(from.bytes()).or_default().0 -= 1;
        }
        admission
    }

    /// Whether this job, under this id, can be added behind those before it; it counts among them
    /// then. `Err` is what it would come to.
    pub fn admit(
        &mut self,
        id: Option<Id<'a>>,
        add: &'a Add<'a>,
        calendar: &mut dyn Calendar,
    ) -> Result<(), Added> {
        match self.admit_id(id, add) {
            None => (),
            Some(Added::Left) => return Ok(()),
            Some(stopped) => return Err(stopped),
        }
        let is_held = self.check_edges(id, add)?;
        let is_any_time = add.schedule.as_ref().is_none_or(|new| {
            add.if_taken == IfTaken::Ensure
                || new.rule.first(self.now, new.starts, calendar).is_some()
        });
        if !is_any_time {
            return Err(Added::Never);
        }
        self.count(id, add, is_held);
        Ok(())
    }

    /// The first part of it, which doesn't depend on edges. What the job comes to, if it isn't
    /// added.
    pub fn admit_id(&mut self, id: Option<Id<'a>>, add: &Add) -> Option<Added> {
        let (queue, now) = (self.queue, self.now);
        let slot = id.filter(|id| Some(*id) != self.freed).and_then(|id| queue.store.find(id));
        let is_kept_no_longer = slot.is_some_and(|slot| queue.store.was_kept_until(slot, now));
        let is_added = id.is_some_and(|id| self.added.contains_key(id.bytes()));
        let (is_there, is_taken) =
            (is_added || slot.is_some(), is_added || slot.is_some() && !is_kept_no_longer);
        let stopped = add.stopped(is_taken, is_there || self.room > 0);
        if stopped.is_none() && !is_there {
            self.room -= 1;
        }
        stopped
    }

    /// Whether the job will be held.
    fn check_edges(&self, id: Option<Id<'a>>, add: &Add<'a>) -> Result<bool, Added> {
        let unconnected = |fault| Added::Unconnected(Box::new(fault));
        let replaced = id.and_then(|id| Some((id, self.other(id)?)));
        if let Some((id, other)) = replaced {
            add.check_replaced(id, other.dependents).map_err(unconnected)?;
        }
        let Some(edges) = &add.edges else {
            return Ok(false);
        };
        edges.check(id, |named| self.other(named)).map_err(unconnected)
    }

    /// The job will be in the queue.
    fn count(&mut self, id: Option<Id<'a>>, add: &'a Add<'a>, is_held: bool) {
        let kind = match (&add.schedule, is_held) {
            (Some(_), _) => OtherKind::Scheduled,
            (None, true) => OtherKind::Held,
            (None, false) => OtherKind::Alive,
        };
        let (after, before) = match &add.edges {
            Some(edges) => (&edges.after[..], &edges.before[..]),
            None => (&[][..], &[][..]),
        };
        let waits_for = |id: Id<'a>, admission: &Admission<'a>| {
            let other = admission.other(id);
            add.edges.as_ref().zip(other).is_some_and(|(edges, other)| edges.waits_for(other.kind))
        };
        let open: Vec<Id> = after.iter().copied().filter(|id| waits_for(*id, self)).collect();
        if let Some(id) = id {
            // Those of the job that it replaces wait for it.
            let replaced = self.without_new_edges(id);
            self.drop_edges_to(id);
            let dependents = replaced.map_or(0, |job| job.dependents) + before.len();
            let other = Other { kind, dependents, predecessors: after.len() };
            self.added.insert(id.bytes(), other);
            open.iter().for_each(|from| self.add_edge(*from, id));
            before.iter().for_each(|to| self.add_edge(id, *to));
        }
        for id in open {
            self.edges.entry(id.bytes()).or_default().0 += 1;
        }
        for id in before {
            self.edges.entry(id.bytes()).or_default().1 += 1;
        }
    }

    /// A job that one of the new ones names.
    fn other(&self, id: Id<'a>) -> Option<Other> {
        let other = self.without_new_edges(id)?;
        let (from, to) = self.edges.get(id.bytes()).copied().unwrap_or_default();
        let Other { dependents, predecessors, .. } = other;
        let dependents = dependents.saturating_add_signed(from);
        Some(Other { dependents, predecessors: predecessors + to, ..other })
    }

    fn without_new_edges(&self, id: Id<'a>) -> Option<Other> {
        match self.added.get(id.bytes()) {
            None if Some(id) == self.freed => None,
            None if Some(id) == self.kept => {
                let other = self.queue.other(id, self.now)?;
                let has_schedule = other.kind == OtherKind::Scheduled;
                let kind = if has_schedule { other.kind } else { OtherKind::Done };
                Some(Other { kind, dependents: 0, ..other })
            }
            None => self.queue.other(id, self.now),
            Some(added) => Some(*added),
        }
    }

    /// A job that others wait for, or that waits for others, is replaced: those that it waited for
    /// have a dependent less.
    fn drop_edges_to(&mut self, id: Id<'a>) {
        let mut froms = self.incoming.remove(id.bytes()).unwrap_or_default();
        let finished = self.freed.or(self.kept);
        if !self.added.contains_key(id.bytes()) && Some(id) != finished {
            // Those from the finished job are settled by then.
            let open = self.queue.open_edges_to(id).filter(|from| Some(*from) != finished);
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
}

impl Queue {
    /// Adds a job that was admitted. An id that is made is none for which `is_given`. `None`: it
    /// leaves things as they were.
    pub(super) fn add_admitted(
        &mut self,
        add: &Add,
        now: Time,
        calendar: &mut dyn Calendar,
        is_given: &dyn Fn(Id) -> bool,
    ) -> Option<Slot> {
        let added = match add.id {
            Some(id) => add.run_under(self, now, id, calendar),
            None => add.run_under_made_id(self, now, calendar, is_given),
        };
        match added {
            Added::New { slot, .. } | Added::Replaced { slot, .. } | Added::Unchanged { slot } => {
                Some(slot)
            }
            Added::Left | Added::Over { .. } => None,
            Added::Taken | Added::Full | Added::Never | Added::Unconnected(_) => {
                impossible("a job was refused after it had been admitted");
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

    /// How long a job that is delivered will be kept once it is finished. `None` if it comes back.
    fn kept_for_when_finished(&self, slot: Slot, keep: Option<Millis>) -> Option<Millis> {
        let (terms, details) = self.store.terms_and_details(slot)?;
        let comes_back = details
            .and_then(|details| details.schedule())
            .is_some_and(|schedule| schedule.run_state.armed().is_some());
        (!comes_back).then_some(keep.unwrap_or(terms.keep))
    }
}
