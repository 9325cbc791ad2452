//! What a command did, and who has to know: the one place where effects become replicated commands.
//!
//! Effects carry absolute times and the numbers that were given, so that a replica or an AOF that is
//! replayed never asks its own clock.

use crate::queue::{Handout, Id, JobRecord, LeaseRecord, Naming, Queue, Record};
use crate::redis::call::{Arg, Call};
use crate::redis::info;
use crate::redis::key::OpenQueue;

/// The kinds of `DQ.APPLY`.
pub const PUT: &std::ffi::CStr = c"PUT";
pub const LEASE: &std::ffi::CStr = c"LEASE";
pub const QUEUE: &std::ffi::CStr = c"QUEUE";

pub enum Effect<'e> {
    /// A job was added, or put instead of another.
    Put { id: Id<'e>, body: Arg<'e>, naming: Naming },
    /// Jobs were handed out.
    Leased(&'e [Handout]),
    /// So many jobs were finished. The same ones everywhere: a claim doesn't depend on the time.
    Finished(usize),
    /// So many jobs were deleted.
    Deleted(usize),
    /// Somebody else's effect was applied here.
    Applied,
}

/// Makes an effect known that `queue`, at `key`, has just had.
pub fn publish(call: &Call, key: Arg, queue: &mut OpenQueue, effect: &Effect) {
    replicate(call, key, queue, effect);
    count(effect);
    queue.changed();
}

fn replicate(call: &Call, key: Arg, queue: &Queue, effect: &Effect) {
    match effect {
        Effect::Put { id, body, naming } => {
            if let Some(job) = queue.get(*id) {
                let record = JobRecord::of(&job, *naming).encode();
                call.replicate_job(key, PUT, id.bytes(), *body, &record);
            }
        }
        Effect::Leased(handouts) => {
            let record = |handout: &Handout| {
                let (id, _) = queue.id_and_body(handout.slot)?;
                Some(LeaseRecord::new(id, handout.lease, handout.end))
            };
            let leases: Vec<_> = handouts.iter().filter_map(record).collect();
            call.replicate_effect(key, LEASE, &leases.encode());
        }
        Effect::Finished(_) | Effect::Deleted(_) | Effect::Applied => call.replicate_verbatim(),
    }
}

fn count(effect: &Effect) {
    match effect {
        Effect::Put { .. } => info::ADDED.add(1),
        Effect::Leased(handouts) => info::POPPED.add(handouts.len()),
        Effect::Finished(jobs) => info::FINISHED.add(*jobs),
        Effect::Deleted(jobs) => info::DELETED.add(*jobs),
        Effect::Applied => (),
    }
}
