//! What was done to a queue, and who has to know: the one place where effects become replicated commands.
//!
//! Effects carry absolute times and the numbers that were given, so that a replica or an AOF that is
//! replayed never asks its own clock.

use std::ffi::CStr;

use crate::queue::{
    Cause, DropRecord, Handout, Id, JobRecord, LeaseRecord, Leave, Naming, Queue, Record, Slot,
};

use super::call::Arg;
use super::info;
use super::notify::notify;
use super::site::Site;

/// The kinds of `DQ.APPLY`.
pub const PUT: &CStr = c"PUT";
pub const LEASE: &CStr = c"LEASE";
pub const MOVE: &CStr = c"MOVE";
pub const DROP: &CStr = c"DROP";
pub const QUEUE: &CStr = c"QUEUE";

/// A body as it came with the command, or as the queue has it.
#[derive(Clone, Copy)]
pub enum Body<'e> {
    Arg(Arg<'e>),
    Kept,
}

pub enum Effect<'e> {
    /// A job was added, or put instead of another.
    Put {
        id: Id<'e>,
        body: Body<'e>,
        naming: Naming,
    },
    /// Jobs were handed out.
    Leased(&'e [Handout]),
    /// Jobs that are still there have got to where they are.
    Moved(Cause, &'e [Slot]),
    /// So many jobs were finished, and none of them is kept. The same ones everywhere: a claim doesn't depend
    /// on the time.
    Finished(usize),
    /// Jobs with these ids have left.
    Left(Leave, &'e [Box<[u8]>]),
    /// So many jobs were deleted.
    Deleted(usize),
    Paused,
    Resumed,
    /// Defaults or limits were set.
    Altered,
    /// Somebody else's effect was applied here.
    Applied,
}

/// Makes known to replicas and the AOF, and to those who watch the key, what has just become of the queue
/// there.
pub fn publish(site: &Site, queue: &mut Queue, effects: &[Effect]) {
    for effect in effects {
        replicate(site, queue, effect);
        count(effect);
    }
    site.signal_modified();
    notify(site, queue, effects);
}

fn replicate(site: &Site, queue: &Queue, effect: &Effect) {
    match effect {
        Effect::Put { id, body, naming } => {
            if let Some(job) = queue.get(*id) {
                let record = JobRecord::of(&job, *naming).encode();
                match body {
                    Body::Arg(body) => site.replicate_job(PUT, id.bytes(), *body, &record),
                    Body::Kept => site.replicate_job_bytes(PUT, id.bytes(), job.body, &record),
                }
            }
        }
        Effect::Leased(handouts) => {
            let record = |handout: &Handout| {
                let (id, _) = queue.id_and_body(handout.slot)?;
                Some(LeaseRecord::new(id, handout.lease, handout.end))
            };
            let leases: Vec<_> = handouts.iter().filter_map(record).collect();
            site.replicate(LEASE, &leases.encode());
        }
        Effect::Moved(cause, slots) => {
            let jobs = slots.iter().filter_map(|slot| queue.view(*slot));
            let moves: Vec<_> = jobs.map(|job| job.move_record(*cause)).collect();
            site.replicate(MOVE, &moves.encode());
        }
        Effect::Left(leave, ids) => {
            let ids = ids.iter().filter_map(|id| Id::new(id));
            site.replicate(DROP, &DropRecord::new(*leave, ids).encode());
        }
        Effect::Paused | Effect::Resumed | Effect::Altered => site.replicate(QUEUE, &queue.record().encode()),
        Effect::Finished(_) | Effect::Deleted(_) | Effect::Applied => site.replicate_verbatim(),
    }
}

fn count(effect: &Effect) {
    match effect {
        Effect::Put { .. } => info::ADDED.add(1),
        Effect::Leased(handouts) => info::POPPED.add(handouts.len()),
        Effect::Finished(jobs) => info::FINISHED.add(*jobs),
        Effect::Deleted(jobs) => info::DELETED.add(*jobs),
        Effect::Moved(Cause::Finished, slots) => info::FINISHED.add(slots.len()),
        Effect::Left(Leave::Finished, ids) => info::FINISHED.add(ids.len()),
        Effect::Left(Leave::Purged, ids) => info::DELETED.add(ids.len()),
        Effect::Moved(..) | Effect::Applied => (),
        Effect::Paused | Effect::Resumed | Effect::Altered => (),
    }
}
