//! Jobs that an operation removed and that are still to be freed. To free a large body takes a
//! tenth of a millisecond, so the caller may take such jobs and free them on another thread.

use super::job::Job;

/// Smaller jobs are freed at once: that costs no more than to keep them.
const LARGE_JOB_BYTES: usize = 16 << 10;

/// Large jobs that are gone from their queue, and are to be freed.
#[derive(Default)]
pub struct Removed {
    jobs: Vec<Job>,
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

    pub(in crate::queue) fn free(&mut self) {
        if self.bytes > 0 {
            *self = Removed::default();
        }
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
