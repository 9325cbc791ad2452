//! When the timer must retry at which queue. No server in here, so that it can be tested.
//!
//! A hint is a (time, database, key), at most one per queue. The timer opens the key at that time
//! and checks whether the queue is there. So if the server removes a key without a call to us
//! (expiry, eviction, a failed load), the hint costs a lookup, not a crash.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::queue::Time;
use crate::services::key_ref::{Database, KeyRef};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    pub time: Time,
    pub database: Database,
    pub key: Box<[u8]>,
}

/// The hints of one database, by time, each with a number of queues: while RESTORE or COPY replaces
/// a queue by one with the same hint, two queues have it.
type Timeline = BTreeMap<(Time, Box<[u8]>), u32>;

/// Every operation is O(log n) in the number of hints. One map per database, so that SWAPDB and
/// FLUSHDB don't walk them.
#[derive(Default)]
pub struct Hints {
    databases: BTreeMap<Database, Timeline>,
    deferred: Deferred,
}

/// When to retry again: at this time, or at once in a later generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Retry {
    generation: u64,
    at: Time,
}

/// Hints of keys that belong to another node.
#[derive(Default)]
struct Deferred {
    /// When to retry at each key again.
    retries: BTreeMap<(KeyRef, Time), Retry>,
    /// The content of `retries`, sorted by that time.
    by_retry: BTreeSet<(Retry, KeyRef, Time)>,
    generation: u64,
}

impl Deferred {
    const NONE: Deferred =
        Deferred { retries: BTreeMap::new(), by_retry: BTreeSet::new(), generation: 0 };

    fn add(&mut self, key_ref: KeyRef, time: Time, again: Time) {
        self.remove(&key_ref, time);
        let retry = Retry { generation: self.generation, at: again };
        self.retries.insert((key_ref.clone(), time), retry);
        self.by_retry.insert((retry, key_ref, time));
    }

    /// Returns whether it was there.
    fn remove(&mut self, key_ref: &KeyRef, time: Time) -> bool {
        let retry = self.retries.remove(&(key_ref.clone(), time));
        retry.is_some_and(|retry| self.by_retry.remove(&(retry, key_ref.clone(), time)))
    }

    fn earliest(&self) -> Option<Time> {
        let (retry, ..) = self.by_retry.first()?;
        Some(if retry.generation < self.generation { Time::ZERO } else { retry.at })
    }

    fn take_due(&mut self, now: Time) -> Option<Hint> {
        let (retry, key_ref, time) = self.by_retry.first()?.clone();
        (retry.generation < self.generation || retry.at <= now).then(|| {
            self.remove(&key_ref, time);
            Hint { time, database: key_ref.0, key: key_ref.1 }
        })
    }
}

/// The last hint that a walk over all hints has visited.
pub type Reached = (Database, Time, Box<[u8]>);

/// A walk over all hints.
pub struct Walk {
    pub is_under_way: bool,
    pub reached: Option<Reached>,
}

impl Hints {
    pub const NONE: Hints = Hints { databases: BTreeMap::new(), deferred: Deferred::NONE };

    pub fn len(&self) -> usize {
        self.databases.values().map(BTreeMap::len).sum::<usize>() + self.deferred.retries.len()
    }

    pub fn add(&mut self, time: Time, database: Database, key: &[u8]) {
        *self.databases.entry(database).or_default().entry((time, key.into())).or_default() += 1;
    }

    pub fn remove(&mut self, time: Time, database: Database, key: &[u8]) {
        // Another queue with the same hint keeps its own.
        if !self.deferred.retries.is_empty() && self.deferred.remove(&(database, key.into()), time)
        {
            return;
        }
        let Some(hints) = self.databases.get_mut(&database) else {
            return;
        };
        if let Entry::Occupied(mut queues) = hints.entry((time, key.into())) {
            *queues.get_mut() -= 1;
            if *queues.get() == 0 {
                queues.remove();
            }
        }
    }

    /// The time of the first hint.
    pub fn earliest(&self) -> Option<Time> {
        let firsts = self.databases.values().filter_map(|hints| hints.first_key_value());
        firsts.map(|((time, _), _)| *time).chain(self.deferred.earliest()).min()
    }

    /// The key of this hint belongs to another node: the hint comes again at `again`, or when deferred
    /// hints are resumed.
    pub fn defer(&mut self, hint: Hint, again: Time) {
        self.deferred.add((hint.database, hint.key), hint.time, again);
    }

    /// All deferred hints come now.
    pub fn resume_deferred(&mut self) {
        self.deferred.generation += 1;
    }

    /// At most `len` hints after `reached`, without deferred ones.
    pub fn behind(&self, reached: Option<&Reached>, len: usize) -> Vec<Hint> {
        let first = reached.map_or(Database::MIN, |(database, ..)| *database);
        let databases = self.databases.range(first..);
        let hints = databases.flat_map(|(database, hints)| {
            let from = match reached {
                Some((of, time, key)) if of == database => Bound::Excluded((*time, key.clone())),
                Some(_) | None => Bound::Unbounded,
            };
            let hints = hints.range((from, Bound::Unbounded));
            hints.map(|((time, key), _)| Hint {
                time: *time,
                database: *database,
                key: key.clone(),
            })
        });
        hints.take(len).collect()
    }

    /// Removes and returns the first hint, if its time has come.
    pub fn take_due(&mut self, now: Time) -> Option<Hint> {
        if let Some(hint) = self.deferred.take_due(now) {
            return Some(hint);
        }
        let firsts = self
            .databases
            .iter()
            .filter_map(|(database, hints)| Some((hints.first_key_value()?.0 .0, *database)));
        let (_, database) = firsts.filter(|(time, _)| *time <= now).min()?;
        let ((time, key), _) = self.databases.get_mut(&database)?.pop_first()?;
        Some(Hint { time, database, key })
    }

    pub fn swap(&mut self, a: Database, b: Database) {
        // Hints are only deferred in a cluster, which has no SWAPDB.
        for (_, (database, key), time) in std::mem::take(&mut self.deferred).by_retry {
            self.add(time, database, &key);
        }
        let (of_a, of_b) = (self.databases.remove(&a), self.databases.remove(&b));
        self.databases.extend(of_b.map(|hints| (a, hints)));
        self.databases.extend(of_a.map(|hints| (b, hints)));
    }

    /// Removes and returns the hints of a database, or of all.
    #[must_use = "a million of them take long to be freed"]
    pub fn take(&mut self, database: Option<Database>) -> Hints {
        let Some(database) = database else {
            return std::mem::take(self);
        };
        let is_its = |(key_ref, _): &&(KeyRef, Time)| key_ref.0 == database;
        let deferred: Vec<(KeyRef, Time)> =
            self.deferred.retries.keys().filter(is_its).cloned().collect();
        for (key_ref, time) in &deferred {
            self.deferred.remove(key_ref, *time);
        }
        let hints = self.databases.remove(&database);
        Hints {
            databases: hints.map(|hints| (database, hints)).into_iter().collect(),
            ..Hints::NONE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(unix_ms: u64) -> Time {
        Time::new(unix_ms).unwrap()
    }

    fn keys(hints: &mut Hints, now: u64) -> Vec<(Database, Box<[u8]>)> {
        std::iter::from_fn(|| hints.take_due(at(now)))
            .map(|hint| (hint.database, hint.key))
            .collect()
    }

    #[test]
    fn hints_come_by_time_over_all_databases_and_not_before_it() {
        let mut hints = Hints::NONE;
        hints.add(at(30), 0, b"c");
        hints.add(at(20), 3, b"b");
        hints.add(at(10), 0, b"a");
        assert_eq!(hints.earliest(), Some(at(10)));
        assert_eq!(keys(&mut hints, 29), [(0, b"a"[..].into()), (3, b"b"[..].into())]);
        assert_eq!((hints.len(), hints.earliest()), (1, Some(at(30))));
    }

    #[test]
    fn a_queue_that_replaces_another_keeps_the_hint_that_both_had() {
        let mut hints = Hints::NONE;
        hints.add(at(1), 0, b"a");
        hints.add(at(1), 0, b"a");
        hints.remove(at(1), 0, b"a");
        assert_eq!(keys(&mut hints, 1), [(0, b"a"[..].into())]);
        hints.add(at(1), 0, b"a");
        hints.remove(at(1), 0, b"a");
        assert_eq!(hints.earliest(), None);
        // The hint of the first one is deferred.
        hints.defer(Hint { time: at(1), database: 0, key: b"a"[..].into() }, at(5));
        hints.add(at(1), 0, b"a");
        hints.remove(at(1), 0, b"a");
        assert_eq!(keys(&mut hints, 1), [(0, b"a"[..].into())]);
    }

    #[test]
    fn a_deferred_hint_comes_later_with_its_own_time() {
        let mut hints = Hints::NONE;
        hints.add(at(1), 0, b"a");
        let hint = hints.take_due(at(1)).unwrap();
        hints.defer(hint.clone(), at(1_000));
        assert_eq!((hints.len(), hints.earliest()), (1, Some(at(1_000))));
        assert_eq!(hints.take_due(at(999)), None);
        assert_eq!(hints.take_due(at(1_000)), Some(hint.clone()));
        // When slots have moved, it comes at once.
        hints.defer(hint.clone(), at(2_000));
        hints.resume_deferred();
        assert_eq!(
            (hints.earliest(), hints.take_due(at(1_000))),
            (Some(Time::ZERO), Some(hint.clone()))
        );
        assert_eq!(hints.len(), 0);
        // It goes with its queue.
        hints.defer(hint.clone(), at(2_000));
        hints.remove(hint.time, hint.database, &hint.key);
        assert_eq!((hints.len(), hints.take_due(at(9_000))), (0, None));
    }

    #[test]
    fn a_walk_comes_to_each_hint_once() {
        let mut hints = Hints::NONE;
        for (time, database, key) in
            [(3, 0, b"a"), (1, 0, b"b"), (3, 0, b"c"), (2, 5, b"d"), (1, 5, b"e")]
        {
            hints.add(at(time), database, key);
        }
        let (mut reached, mut seen) = (None, Vec::new());
        loop {
            let some = hints.behind(reached.as_ref(), 2);
            let Some(last) = some.last() else {
                break;
            };
            reached = Some((last.database, last.time, last.key.clone()));
            seen.extend(some.into_iter().map(|hint| hint.key));
        }
        assert_eq!(seen.concat(), b"baced");
    }

    #[test]
    fn swapped_databases_swap_their_hints() {
        let mut hints = Hints::NONE;
        hints.add(at(1), 0, b"a");
        hints.swap(0, 9);
        assert_eq!(keys(&mut hints, 1), [(9, b"a"[..].into())]);
    }

    #[test]
    fn a_removed_or_flushed_hint_does_not_come() {
        let mut hints = Hints::NONE;
        hints.add(at(1), 0, b"a");
        hints.add(at(1), 0, b"b");
        hints.add(at(1), 1, b"c");
        hints.remove(at(1), 0, b"a");
        drop(hints.take(Some(1)));
        assert_eq!(keys(&mut hints, 1), [(0, b"b"[..].into())]);
        hints.add(at(1), 5, b"d");
        drop(hints.take(None));
        assert_eq!(hints.earliest(), None);
    }
}
