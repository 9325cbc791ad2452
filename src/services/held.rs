//! How often a limit of a queue held something back: counted by this server, as lateness is, and not part of the queue.

use crate::queue::{Deliveries, Limit};

/// Whoever asks again and again for what is held back counts once, until the next job leaves: so this is how many jobs
/// had to wait for a limit while somebody wanted them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    by_concurrency: u64,
    by_rate: u64,
    by_group: u64,
    is_on: bool,
}

impl Held {
    /// Somebody has asked. Whether a limit holds something back that it didn't before.
    #[inline]
    pub fn saw(&mut self, deliveries: &Deliveries) -> bool {
        match deliveries.held_by() {
            None if self.is_on => {
                self.is_on = deliveries.is_empty();
                false
            }
            None => false,
            Some(limit) => self.count(limit, deliveries),
        }
    }

    #[cold]
    fn count(&mut self, limit: Limit, deliveries: &Deliveries) -> bool {
        let is_new = !self.is_on || !deliveries.is_empty();
        self.is_on = true;
        let count = match limit {
            Limit::Concurrency => &mut self.by_concurrency,
            Limit::Rate => &mut self.by_rate,
            Limit::Group => &mut self.by_group,
        };
        *count += u64::from(is_new);
        is_new
    }

    pub fn by(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Concurrency => self.by_concurrency,
            Limit::Rate => self.by_rate,
            Limit::Group => self.by_group,
        }
    }
}
