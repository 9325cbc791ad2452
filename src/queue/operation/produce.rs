//! What producers do: add jobs.

use std::num::NonZeroU64;

use super::new_edges::{EdgeFault, NewEdges};
use crate::queue::kernel::change::Cause;
use crate::queue::kernel::job::JobView;
use crate::queue::kernel::operation::{Changed, Operation};
use crate::queue::kernel::queue::Queue;
use crate::queue::memory::impossible::impossible;
use crate::queue::memory::slab::Slot;
use crate::queue::value::due::Due;
use crate::queue::value::ids::Id;
use crate::queue::value::policy::{Attempts, Backoff, Policy};
use crate::queue::value::recurrence::{Calendar, NewSchedule};
use crate::queue::value::serial::Serial;
use crate::queue::value::settings::Settings;
use crate::queue::value::state::Progress;
use crate::queue::value::time::{Millis, Time};

/// What a job leaves with that was told no priority.
const DEFAULT_PRIORITY: u8 = 128;

/// How long its leases last where nobody has told: an entry of a log can come to a queue that isn't
/// there any more. A job without a TTR could be written to a file, but not read from it.
const FALLBACK_TTR: Millis = Millis::of_secs(60);

/// Adds a job, to be delivered from its due time on. What it doesn't say is as the queue's
/// settings have it or, without that, as the server's defaults do, at this moment and for good.
#[derive(Clone, Debug)]
pub struct Add<'a> {
    /// `None`: the queue makes one, which is never made again.
    pub id: Option<Id<'a>>,
    pub body: &'a [u8],
    pub due: Due,
    pub ttr: Option<Millis>,
    pub priority: Option<u8>,
    pub attempts: Option<Attempts>,
    pub backoff: Option<Backoff>,
    pub ttl: Option<Millis>,
    pub keep: Option<Millis>,
    pub late: Option<Millis>,
    /// It takes turns with jobs of other groups.
    pub group: Option<Id<'a>>,
    /// It comes back. Then `due` counts for nothing, nor do TTL and KEEP: it has an id.
    pub schedule: Option<Box<NewSchedule>>,
    /// What it waits for. A job with a schedule waits for nothing.
    pub edges: Option<Box<NewEdges<'a>>>,
    pub if_taken: IfTaken,
}

/// What to do when the id is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfTaken {
    Refuse,
    /// As `Refuse`, and it is nobody's mistake.
    Leave,
    Replace,
    /// The job with this schedule is to be there: what it does, and how, is as this says. Its due
    /// time, and a lease, stay as long as the schedule is the same. Without a schedule, as
    /// `Replace`.
    Ensure,
}

impl IfTaken {
    /// What becomes of an add then, if it leaves the other job as it is.
    pub(super) fn leaves(self) -> Option<Added> {
        match self {
            IfTaken::Refuse => Some(Added::Taken),
            IfTaken::Leave => Some(Added::Left),
            IfTaken::Replace | IfTaken::Ensure => None,
        }
    }
}

/// What became of an add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    New {
        slot: Slot,
        due: Time,
    },
    Replaced {
        slot: Slot,
        due: Time,
    },
    /// The id belongs to another job, which is left as it was.
    Taken,
    /// The same, and that was asked for (`IfTaken::Leave`).
    Left,
    /// It was there, and is just as it was told to be.
    Unchanged {
        slot: Slot,
    },
    /// There are as many jobs as the queue may hold.
    Full,
    /// It would never run: there is no time for it, or none that its limits allow.
    Never,
    /// The same of one that is to be there (ENSURE). Where it was and waited for such a time, it
    /// isn't any more.
    Over {
        was_there: bool,
    },
    /// Its edges can't be as they are said to be.
    Unconnected(Box<EdgeFault>),
}

impl Changed for Added {
    fn has_changed(&self) -> bool {
        match self {
            Added::New { .. } | Added::Replaced { .. } | Added::Over { was_there: true } => true,
            Added::Taken
            | Added::Left
            | Added::Unchanged { .. }
            | Added::Full
            | Added::Never
            | Added::Unconnected(_)
            | Added::Over { was_there: false } => false,
        }
    }
}

impl<'a> Add<'a> {
    /// Due now, and nothing else said.
    pub fn plain(id: Id<'a>, body: &'a [u8]) -> Add<'a> {
        Add { id: Some(id), ..Add::nameless(body) }
    }

    /// The same, under an id that the queue makes.
    pub fn nameless(body: &'a [u8]) -> Add<'a> {
        Add {
            id: None,
            body,
            due: Due::In(Millis::ZERO),
            ttr: None,
            priority: None,
            attempts: None,
            backoff: None,
            ttl: None,
            keep: None,
            late: None,
            group: None,
            schedule: None,
            edges: None,
            if_taken: IfTaken::Refuse,
        }
    }

    pub(in crate::queue) fn policy(&self, queue: &Queue) -> Policy {
        let (settings, defaults): (&Settings, _) =
            (queue.limits.settings(), &queue.log_state().defaults);
        let ttr = self.ttr.or(settings.ttr).unwrap_or(defaults.ttr);
        Policy {
            ttr: if ttr.is_zero() { FALLBACK_TTR } else { ttr },
            attempts: self.attempts.or(settings.attempts).unwrap_or(defaults.attempts),
            priority: self.priority.unwrap_or(DEFAULT_PRIORITY),
            backoff: self.backoff.or(settings.backoff).unwrap_or(defaults.backoff),
            ttl: self.ttl.unwrap_or_default(),
            keep: self.keep.unwrap_or(settings.keep),
            late: self.late.unwrap_or(settings.late),
        }
    }
}

impl Operation for Add<'_> {
    type Outcome = Added;

    /// A finished job that has been kept long enough holds its id no longer. O(log n).
    fn run(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> Added {
        match self.id {
            Some(id) => self.run_under(queue, now, id, calendar),
            None => self.run_under_made_id(queue, now, calendar, &|_| false),
        }
    }
}

impl Add<'_> {
    /// Under an id that is free, and none for which `is_given`.
    pub(super) fn run_under_made_id(
        &self,
        queue: &mut Queue,
        now: Time,
        calendar: &mut dyn Calendar,
        is_given: &dyn Fn(Id) -> bool,
    ) -> Added {
        let made = queue.next_id_but(now, is_given);
        let Some(id) = Id::new(made.as_bytes()) else {
            impossible("an id that is made is a possible one");
            return Added::Taken;
        };
        let added = self.run_under(queue, now, id, calendar);
        if added.has_changed() {
            queue.ledger.raise_serial(Serial::of(id).unwrap_or_default());
        }
        added
    }

    /// What it comes to, if it isn't added: its id is taken, or it has no room.
    #[inline]
    pub(super) fn stopped(&self, is_taken: bool, has_room: bool) -> Option<Added> {
        let left = if is_taken { self.if_taken.leaves() } else { None };
        left.or(if has_room { None } else { Some(Added::Full) })
    }

    /// Whether its job has nothing but a time: no details, no group, one line. Most are like that.
    #[inline]
    pub(super) fn is_plain(&self, policy: &Policy) -> bool {
        let has_more = self.group.is_some() || self.edges.is_some() || self.schedule.is_some();
        policy.ttl.is_zero() && policy.late.is_zero() && !has_more
    }

    /// Under this id.
    #[inline]
    pub(super) fn run_under(
        &self,
        queue: &mut Queue,
        now: Time,
        id: Id,
        calendar: &mut dyn Calendar,
    ) -> Added {
        let found = queue.store.pool().look_up(id);
        if let Some(new) = &self.schedule {
            return self.schedule(queue, now, (id, found), new, calendar);
        }
        // A finished job whose KEEP is over is still stored until the timer removes it. Its id is free
        // from that time on, so that the outcome doesn't depend on the timer.
        let is_gone = found.slot.is_some_and(|slot| queue.store.was_kept_until(slot, now));
        let is_taken = found.slot.is_some() && !is_gone;
        // A job that replaces another takes its room.
        let has_room = found.slot.is_some() || !queue.is_full();
        if let Some(stopped) = self.stopped(is_taken, has_room) {
            return stopped;
        }
        if let Some(edges) = &self.edges {
            return self.add_with_edges(queue, now, (id, found), edges);
        }
        let due = self.due.counted_from(now);
        let policy = self.policy(queue);
        if self.is_plain(&policy) && found.slot.is_none() {
            let slot = queue.put_plain(id, self.body, due, policy, found);
            return slot.map_or(Added::Full, |slot| Added::New { slot, due });
        }
        let progress = Progress { expires_at: policy.expiry(now), ..Progress::default() };
        let job = JobView {
            progress,
            group: self.group,
            ..JobView::plain(id, self.body, due, now, policy)
        };
        match queue.put_job(&job, found, Cause::Added) {
            None => Added::Full,
            Some(slot) if is_taken => Added::Replaced { slot, due },
            Some(slot) => Added::New { slot, due },
        }
    }
}

impl Queue {
    /// An id that is not taken and sorts behind all that were made before: `<unix-ms>-<number>`.
    #[cfg(test)]
    pub(in crate::queue) fn next_id(&self, now: Time) -> String {
        self.next_id_but(now, &|_| false)
    }

    /// The same, and none for which `is_given`.
    fn next_id_but(&self, now: Time, is_given: &dyn Fn(Id) -> bool) -> String {
        let mut serial = Serial { time: now, number: 0 };
        let last = self.ledger.last_serial();
        if serial.time <= last.time {
            serial = Serial { number: last.number.wrapping_add(1), ..last };
        }
        // Somebody may have given such ids by hand: steps that double leave any block of them
        // quickly.
        let mut step: u64 = 1;
        loop {
            let id = format!("{}-{}", serial.time.unix_ms(), serial.number);
            let is_free = |id| self.store.find(id).is_none() && !is_given(id);
            if Id::new(id.as_bytes()).is_none_or(is_free) {
                return id;
            }
            serial.number = serial.number.wrapping_add(step);
            step = step.saturating_mul(2);
        }
    }

    pub(in crate::queue) fn is_full(&self) -> bool {
        self.room_beside(0) == 0
    }

    /// How many more jobs the queue may hold, once so many have left.
    pub(in crate::queue) fn room_beside(&self, leave: usize) -> u64 {
        let max = self.limits.settings().max_jobs.map_or(u64::MAX, NonZeroU64::get);
        max.saturating_sub((self.len() - leave) as u64)
    }
}
