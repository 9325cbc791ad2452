//! The contract: what every candidate can do, so that all are measured doing the same.

/// A queue's core, cut down to what the choice of its structures decides.
///
/// The order is total: (due time, order of adding). A candidate gives it exactly at every moment,
/// also between two slices of a promotion. No job is added that is due before one that is ready: a
/// wheel has no place for it.
pub trait Candidate {
    /// `start_ms`: no time before it will be named.
    fn new(start_ms: u64) -> Self;

    /// False, and nothing changed, when the id is taken.
    fn add(&mut self, id: &[u8], body: &[u8], due_ms: u64) -> bool;

    /// False when there is no such job.
    fn cancel(&mut self, id: &[u8]) -> bool;

    /// What the timer has to do so that [`Candidate::ready`] is right: it counts or moves the jobs
    /// due by `now_ms`, and stops after the step that brings it to `at_most` jobs. True when none
    /// is left.
    fn promote(&mut self, now_ms: u64, at_most: usize) -> bool;

    /// How many jobs have been promoted and are still here.
    fn ready(&self) -> usize;

    /// Shows the id of the first job due by `now_ms`, promoted or not, and lets go of the job.
    /// False when nothing is due.
    fn pop(&mut self, now_ms: u64, seen: &mut impl FnMut(&[u8])) -> bool;
}

/// What a job carries besides its id, body and times (TTR, attempts, …): the same in all
/// candidates.
pub type Policy = [u32; 3];
