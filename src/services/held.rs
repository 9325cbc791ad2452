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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Add, Alter, Circumstances, Delete, Id, Millis, Pop, Queue, Rate};

    const LIMITS: [Limit; 3] = [Limit::Concurrency, Limit::Rate, Limit::Group];

    fn id(bytes: &[u8]) -> Id<'_> {
        Id::new(bytes).unwrap()
    }

    /// A queue with these limits and six jobs of a group, and what its limits hold back.
    fn queue_of(limits: Alter) -> (Queue, Held) {
        let mut queue = Queue::new((1, 2));
        queue.apply(&Circumstances::default(), &limits);
        for job in [b"a", b"b", b"c", b"d", b"e", b"f"] {
            let job = Add { group: Some(id(b"g")), ..Add::plain(id(job), b"x") };
            queue.apply(&Circumstances::default(), &job);
        }
        (queue, Held::default())
    }

    #[test]
    fn whoever_asks_again_and_again_counts_once_until_the_next_job_leaves() {
        let (mut queue, mut held) = queue_of(Alter { concurrency: Some(2), ..Alter::default() });
        let mut ask = |words: &[(&[u8], usize, bool)]| {
            for (finished, count, is_new) in words {
                queue.apply(&Circumstances::default(), &Delete { ids: &[id(finished)] });
                let asked = queue.apply(&Circumstances::default(), &Pop { count: *count, ..Pop::ONE });
                assert_eq!(held.saw(&asked), *is_new, "{}", finished.escape_ascii());
            }
            held.by(Limit::Concurrency)
        };
        // Two get one; the third is held back, as long as none of them is done.
        assert_eq!(ask(&[(b"-", 1, false), (b"-", 1, false), (b"-", 1, true), (b"-", 1, false)]), 1);
        // One gets the place; the next doesn't.
        assert_eq!(ask(&[(b"a", 1, false), (b"-", 1, true), (b"-", 1, false)]), 2);
        // One who asks for two gets one, and is held back for the other.
        assert_eq!(ask(&[(b"b", 2, true), (b"-", 2, false)]), 3);
    }

    #[test]
    fn who_finds_nothing_is_not_held_back() {
        let (mut queue, mut held) = queue_of(Alter { concurrency: Some(1), ..Alter::default() });
        let now = Circumstances::default();
        let names = [b"a", b"b", b"c", b"d", b"e", b"f"].map(|name| id(name));
        queue.apply(&now, &Delete { ids: &names });
        assert!(!held.saw(&queue.apply(&now, &Pop::ONE)));
        queue.apply(&now, &Add::plain(id(b"g"), b"x"));
        assert!(!held.saw(&queue.apply(&now, &Pop::ONE)));
        assert!(!held.saw(&queue.apply(&now, &Pop::ONE)), "again there is nothing");
        queue.apply(&now, &Add::plain(id(b"h"), b"x"));
        let asked = [(); 2].map(|()| held.saw(&queue.apply(&now, &Pop::ONE)));
        assert_eq!((asked, held.by(Limit::Concurrency)), ([true, false], 1));
    }

    #[test]
    fn each_limit_is_counted_by_itself() {
        let rate = Some(Some(Rate::new(1, Millis::new(60_000).unwrap(), 1).unwrap()));
        let limits = [
            Alter { concurrency: Some(1), ..Alter::default() },
            Alter { rate, ..Alter::default() },
            Alter { group_concurrency: Some(1), ..Alter::default() },
        ];
        for (limit, limits) in LIMITS.into_iter().zip(limits) {
            let (mut queue, mut held) = queue_of(limits);
            for _ in 0..2 {
                held.saw(&queue.apply(&Circumstances::default(), &Pop::ONE));
            }
            assert_eq!(LIMITS.map(|other| held.by(other)), LIMITS.map(|other| u64::from(other == limit)));
        }
    }
}
