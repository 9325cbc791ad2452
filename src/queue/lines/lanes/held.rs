//! The lines of held jobs, which wait for other jobs or for a command. Most queues have none.

use crate::queue::lines::buckets::Buckets;

#[derive(Clone, Default)]
pub struct HeldLines {
    /// By the time of their ADD.
    pub jobs: Buckets,
    /// Those that expire, by that time.
    pub expiring: Buckets,
}

impl HeldLines {
    pub fn iter(&self) -> impl Iterator<Item = &Buckets> {
        [&self.jobs, &self.expiring].into_iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Buckets> {
        [&mut self.jobs, &mut self.expiring].into_iter()
    }

    /// How many are held, and how many have expired.
    pub fn counts(&self) -> (usize, usize) {
        let (all, expired) = (self.jobs.job_counts().0.jobs, self.expiring.job_counts().1.jobs);
        (all - expired, expired)
    }
}
