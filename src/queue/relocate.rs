//! Putting a queue's memory elsewhere, allocation by allocation: for a server that wants to give pages back of which others
//! have left only parts.
//!
//! A queue can't tell which of its allocations lie badly, nor move one without the allocator. So it hands each to a
//! [`Mover`], which gives it back with the same content. No value holds a pointer to another, but as the owner of it: so
//! nothing else has to be told.

use super::mover::Mover;
use super::slab::Slot;
use super::Queue;

/// How far a walk over a queue's memory has got. It may go on after any change of the queue: what has come meanwhile where
/// the walk has been is left for the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    part: u32,
    from: Slot,
}

impl Walk {
    pub fn number(self) -> u64 {
        u64::from(self.part) << Slot::BITS | u64::from(self.from)
    }

    pub fn from_number(number: u64) -> Walk {
        Walk { part: (number >> Slot::BITS) as u32, from: number as Slot }
    }
}

/// The parts before the lines of sorted buckets.
const FIRST_LINE: u32 = 5;
/// Behind those lines, of which there are fewer, the parts of the groups.
const FIRST_OF_GROUPS: u32 = 1_024;
/// So many parts may hold nothing between two looks at the clock.
const STEP_PARTS: u32 = 1_024;

impl Queue {
    /// Hands all memory from there on to the mover; where to go on, when the time is over. Each call gets on.
    pub fn relocate(&mut self, walk: Walk, mover: &mut impl Mover) -> Option<Walk> {
        let Walk { mut part, mut from } = walk;
        while part < FIRST_LINE + self.schedule.line_count() {
            if let Some(from) = self.relocate_part(part, from, mover) {
                return Some(Walk { part, from });
            }
            (part, from) = (part + 1, 0);
        }
        let groups = self.groups.as_mut()?;
        if part < FIRST_OF_GROUPS {
            mover.boxed(groups);
            (part, from) = (FIRST_OF_GROUPS, 0);
        }
        let begin = part;
        while part - FIRST_OF_GROUPS < groups.part_count() {
            if part > begin && part % STEP_PARTS == 0 && mover.is_over() {
                return Some(Walk { part, from });
            }
            if let Some(from) = groups.relocate(part - FIRST_OF_GROUPS, from, mover) {
                return Some(Walk { part, from });
            }
            (part, from) = (part.checked_add(1)?, 0);
        }
        None
    }

    fn relocate_part(&mut self, part: u32, from: Slot, mover: &mut impl Mover) -> Option<Slot> {
        if (part, from) == (0, 0) {
            self.recent.relocate(mover);
        }
        match part {
            0 => self.pool.relocate_jobs(from, mover),
            1 => self.pool.relocate_ids(from, mover),
            2 => self.details.relocate(from, mover, |details, mover| details.relocate(mover)),
            3 => self.policies.relocate(from, mover),
            4 => self.rules.relocate(from, mover),
            line => self.schedule.relocate(line - FIRST_LINE, from, mover),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::mover::Everything;
    use super::super::{
        Add, Bury, Circumstances, Claim, Delete, Due, Id, Millis, Misfire, NewSchedule, Pop, Recurrence,
        Starts, Time, Timing,
    };
    use super::*;

    fn told(now: u64) -> Circumstances {
        Circumstances { now: Time::new(now).unwrap(), ..Circumstances::default() }
    }

    /// Of each kind, so that no part is empty.
    fn queue_of(jobs: u64) -> Queue {
        let mut queue = Queue::new((1, 2));
        let timing = Timing::Every(Millis::new(60_000).unwrap());
        let rule = Recurrence {
            timing,
            misfire: Misfire::One,
            jitter: Millis::ZERO,
            runs: 0,
            until: None,
            late: Millis::ZERO,
        };
        for n in 0..jobs {
            let name = format!("job-{n}");
            let id = Id::new(name.as_bytes()).unwrap();
            let due = Due::In(Millis::new(n % 977).unwrap());
            let (ttr, ttl) = (Millis::new(1_000 + n % 5), Millis::new(n % 3 * 10_000).unwrap());
            let every = NewSchedule { rule: rule.clone(), starts: Starts::ByItself };
            // One group with many jobs, some with few.
            let group = format!("group-{}", if n % 2 == 0 { 0 } else { n % 301 });
            let group = Id::new(group.as_bytes()).filter(|_| n % 5 > 1);
            let priority = Some((n % 7) as u8);
            let plain = Add { due, ttr, priority, group, ..Add::plain(id, name.as_bytes()) };
            let add = match n % 11 {
                0 => Add { schedule: Some(Box::new(every)), ..plain },
                _ => Add { ttl: Some(ttl), ..plain },
            };
            queue.apply(&told(n), &add);
        }
        let popped = queue.apply(&told(jobs + 500), &Pop { count: jobs as usize / 3, ..Pop::ONE });
        let held: Vec<_> =
            popped.iter().map(|one| (one.id_and_body(&queue).0.bytes().to_vec(), one.lease)).collect();
        for (id, lease) in held.iter().step_by(2) {
            let claim = Claim { id: Id::new(id).unwrap(), lease: Some(*lease) };
            queue.apply(&told(jobs + 501), &Bury { claim, reason: Some(b"a reason of its own") });
        }
        queue
    }

    fn walk_through(queue: &mut Queue, a_call: usize) -> (usize, usize) {
        let (mut calls, mut moved, mut walk) = (0, 0, Some(Walk::default()));
        while let Some(at) = walk {
            let mut mover = Everything::in_calls_of(a_call);
            walk = queue.relocate(Walk::from_number(at.number()), &mut mover);
            assert_ne!(walk, Some(at), "it stands still");
            (calls, moved) = (calls + 1, moved + mover.moved);
        }
        (calls, moved)
    }

    fn same(one: &Queue, other: &Queue) {
        assert!(one.jobs().eq(other.jobs()));
        assert_eq!(one.record(), other.record());
        assert_eq!(one.group_records(), other.group_records());
    }

    #[test]
    fn a_queue_whose_memory_has_moved_is_the_same() {
        let mut queue = queue_of(5_000);
        let (before, memory) = (queue.clone(), queue.memory());
        let (calls, moved) = walk_through(&mut queue, usize::MAX);
        assert_eq!(calls, 1);
        assert!(moved > 5_000, "of {moved} allocations each job has one");
        assert_eq!(queue.groups_len(), 301, "one has many jobs, the others have few");
        same(&queue, &before);
        let (calls, in_parts) = walk_through(&mut queue, 100);
        assert!((moved / 200..=moved / 50).contains(&calls), "{calls} calls for {moved} allocations");
        assert_eq!(in_parts, moved, "each once");
        same(&queue, &before);
        assert_eq!(queue.memory(), memory);
    }

    #[test]
    fn no_memory_is_left_where_it_was() {
        for jobs in [0, 1, 100, 5_000, 20_000] {
            let mut queue = queue_of(jobs);
            queue.advance(Time::new(1_000_000).unwrap());
            assert!(queue.recent.memory() > 0);
            let mut mover = Everything::in_calls_of(usize::MAX);
            assert_eq!(queue.relocate(Walk::default(), &mut mover), None);
            // The queue itself is its owner's to move.
            assert_eq!(mover.bytes, queue.memory() - size_of::<Queue>(), "of {jobs} jobs");
        }
    }

    #[test]
    fn what_groups_own_is_moved_too() {
        let moved = |with_groups: bool| {
            let mut queue = Queue::new((1, 2));
            for n in 0..40_000 {
                let (name, group) = (n.to_string(), if n % 4 == 0 { 0 } else { n / 10 }.to_string());
                let group = Id::new(group.as_bytes()).filter(|_| with_groups);
                let id = Id::new(name.as_bytes()).unwrap();
                queue.apply(&told(n), &Add { group, ..Add::plain(id, b"x") });
            }
            (walk_through(&mut queue, usize::MAX).1, walk_through(&mut queue, 100).1)
        };
        let ((with, in_parts), (without, _)) = (moved(true), moved(false));
        // Of each its name, its list of lines, and of one line its head and its entries; of the long one, of each bucket
        // its entries; places and runs, some of each.
        let owned = 4 * 4_000 + 10_000 / 256 + 40 + 30;
        assert!(with > without + owned, "{with} with groups, {without} without");
        assert_eq!(in_parts, with, "each once");
    }

    /// Between two looks at the clock it passes by so many parts at most, most of which hold nothing.
    #[test]
    fn a_walk_past_parts_that_hold_nothing_ends_in_time() {
        let mut queue = Queue::new((1, 2));
        for n in 0..6_000 {
            let name = n.to_string();
            let id = Id::new(name.as_bytes()).unwrap();
            queue.apply(&told(0), &Add { group: Some(id), ..Add::plain(id, b"x") });
        }
        let (mut walk, mut calls) = (Walk { part: FIRST_OF_GROUPS + 300, from: 0 }, 0);
        while let Some(next) = queue.relocate(walk, &mut Everything::in_calls_of(0)) {
            assert!((walk.part + 1..=walk.part + STEP_PARTS).contains(&next.part), "{walk:?}, {next:?}");
            (walk, calls) = (next, calls + 1);
        }
        let parts = queue.groups.as_ref().unwrap().part_count();
        assert_eq!(calls, parts / STEP_PARTS, "of {parts} parts");
    }

    #[test]
    fn it_works_on_as_if_nothing_had_happened_also_between_two_parts_of_the_walk() {
        let (mut queue, mut other) = (queue_of(3_000), queue_of(3_000));
        let (mut walk, mut now) = (Some(Walk::default()), 10_000);
        while let Some(at) = walk {
            walk = queue.relocate(at, &mut Everything::in_calls_of(50));
            now += 1;
            for queue in [&mut queue, &mut other] {
                let gone: Vec<_> = queue.jobs().take(20).map(|job| job.id.bytes().to_vec()).collect();
                let ids: Vec<_> = gone.iter().map(|id| Id::new(id).unwrap()).collect();
                queue.apply(&told(now), &Delete { ids: &ids });
                let name = format!("new-{now}");
                let id = Id::new(name.as_bytes()).unwrap();
                queue.apply(&told(now), &Add::plain(id, b"x"));
                queue.apply(&told(now), &Pop::ONE);
            }
            same(&queue, &other);
        }
        assert!(now > 10_010);
    }

    #[test]
    fn a_walk_is_a_number_and_ends_wherever_it_begins() {
        for number in [0, 7, 3 << 32 | 9, u64::MAX, 1_000 << 32, u64::from(u32::MAX)] {
            let walk = Walk::from_number(number);
            assert_eq!(walk.number(), number);
            queue_of(100).relocate(walk, &mut Everything::in_calls_of(usize::MAX));
        }
    }
}
