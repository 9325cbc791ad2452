//! A change of a job, as the journal hears of it.

use crate::queue::lines::placement::Placement;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Lease;
use crate::queue::value::state::Progress;
use crate::queue::value::tally::Tally;
use crate::queue::value::time::Time;

/// Why a job has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::queue) enum Cause<'c> {
    Added,
    /// Added in the place of another.
    Replaced,
    /// A record of it was read.
    Loaded,
    /// Removed, as another takes its place.
    Displaced,
    Delivered,
    /// Made ready, to be delivered by its id right away.
    ById,
    Finished {
        result: Option<&'c [u8]>,
    },
    /// By its worker.
    Released,
    /// The same, before the worker began.
    Unbegun,
    Touched,
    Buried,
    Kicked,
    /// It is held no more.
    Resumed,
    /// A job that it waits for was removed.
    Orphaned,
    /// Nobody took its run in time.
    PassedOver,
    Deleted,
    /// Kept for long enough, or chosen by a purge.
    Purged,
}

/// One change of one job.
pub(in crate::queue) struct Change<'c> {
    pub slot: Slot,
    pub cause: Cause<'c>,
    /// What it was, or the job in whose place it comes.
    pub before: Former,
    /// `None`: it is about to leave the store.
    pub after: Option<Standing<'c>>,
}

/// What a job was before a change.
#[derive(Clone, Copy, Default)]
pub(in crate::queue) struct Former {
    pub lease: Option<Lease>,
    /// As of the horizon; known only if the job may be dead after the change.
    pub was_dead: bool,
}

/// What a job is after a change.
#[derive(Clone, Copy)]
pub(in crate::queue) struct Standing<'c> {
    pub time: Time,
    pub progress: &'c Progress,
    pub placement: &'c Placement,
}

impl Cause<'_> {
    pub fn counted_in(self, tally: Tally) -> Tally {
        let plus = |count: u16, is_counted: bool| count.saturating_add(is_counted.into());
        Tally {
            released: plus(tally.released, matches!(self, Cause::Released)),
            buried: plus(tally.buried, matches!(self, Cause::Buried)),
            kicked: plus(tally.kicked, matches!(self, Cause::Kicked)),
            ..tally
        }
    }
}
