//! Jobs and results that an operation removed and that aren't freed yet. Freeing a large body takes
//! a tenth of a millisecond, so the caller may free these on another thread.

use super::job::Job;
use crate::queue::edges::edge::Dependent;

/// Smaller jobs are freed at once: that costs no more than keeping them.
const LARGE_JOB_BYTES: usize = 16 << 10;

/// Large jobs and results that were removed from their queue and aren't freed yet.
#[derive(Default)]
pub struct Removed {
    jobs: Vec<Job>,
    results: Vec<Box<[u8]>>,
    dependents: Vec<Dependent>,
    bytes: usize,
}

/// A copy of a queue has no removed jobs of its own.
impl Clone for Removed {
    fn clone(&self) -> Removed {
        Removed::default()
    }
}

impl Removed {
    pub(in crate::queue) fn add(&mut self, job: Job) {
        if job.size() >= LARGE_JOB_BYTES {
            self.bytes += job.size();
            self.jobs.push(job);
        }
    }

    pub(in crate::queue) fn add_result(&mut self, result: Box<[u8]>) {
        if result.len() >= LARGE_JOB_BYTES {
            self.bytes += result.len();
            self.results.push(result);
        }
    }

    /// What a job knew of its edges, and how many bytes that is.
    pub(in crate::queue) fn add_dependent(&mut self, job: Dependent, bytes: usize) {
        if bytes >= LARGE_JOB_BYTES {
            self.bytes += bytes;
            self.dependents.push(job);
        }
    }

    pub(in crate::queue) fn free(&mut self) {
        if self.bytes > 0 {
            *self = Removed::default();
        }
    }

    /// Bytes of these.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
