//! Extending many leases at once.

use super::work::{Checkpoint, Touch};
use crate::queue::kernel::operation::{Changed, Operation};
use crate::queue::kernel::queue::Queue;
use crate::queue::value::ids::{Claim, Claims};
use crate::queue::value::recurrence::Calendar;
use crate::queue::value::time::{Millis, Time};

/// An operation that extends more leases would hold up the others. Part of what is logged: it must
/// stay as it is.
pub const RENEWED_MAX: usize = 10_000;

/// Extends each lease as [`Touch`] does. O(log n) each.
#[derive(Clone, Debug)]
pub struct Renew<'a> {
    /// At most [`RENEWED_MAX`].
    pub claims: Claims<'a>,
    /// How long the leases last from now on; without it, as each job says itself.
    pub ttr: Option<Millis>,
}

/// What became of a [`Renew`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    /// The places of the claims that are void, among all claims.
    pub void: Vec<usize>,
    pub extended: usize,
}

impl Changed for Renewed {
    fn has_changed(&self) -> bool {
        self.extended > 0
    }
}

impl Operation for Renew<'_> {
    type Outcome = Renewed;

    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Renewed {
        let mut renewed = Renewed::default();
        for (position, claim) in self.claims.iter().enumerate() {
            let touch = Touch { claim: *claim, ttr: self.ttr, checkpoint: Checkpoint::NONE };
            match queue.touch(now, &touch) {
                Some(()) => renewed.extended += 1,
                None => renewed.void.push(position),
            }
        }
        renewed
    }
}

impl Queue {
    /// Whether a worker may still use this lease, though it may have run out.
    pub fn is_valid(&self, now: Time, claim: &Claim) -> bool {
        self.claimed_alive(now, claim).is_some()
    }

    /// These claims, with the lease that the job has now in place of `*`. O(1) each.
    pub fn with_leases<'c>(&self, claims: &[Claim<'c>]) -> Claims<'c> {
        let lease_of = |claim: &Claim| claim.lease.or_else(|| self.get(claim.id)?.progress.lease);
        claims.iter().map(|claim| Claim { lease: lease_of(claim), ..*claim }).collect()
    }
}
