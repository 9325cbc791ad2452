use super::*;
use crate::queue::kernel::log_state::Circumstances;
use crate::queue::memory::defrag::Everything;
use crate::queue::operation::consume::Pop;
use crate::queue::operation::manage::{Removal, Remove};
use crate::queue::operation::produce::Add;
use crate::queue::operation::work::Bury;
use crate::queue::value::due::Due;
use crate::queue::value::ids::{Claim, Id, Ids};
use crate::queue::value::recurrence::{Misfire, NewSchedule, Recurrence, Starts, Timing};
use crate::queue::value::time::{Millis, Time};

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
        let mut defragmenter = Everything::in_calls_of(a_call);
        walk = queue.defrag(Walk::from_number(at.number()), &mut defragmenter);
        assert_ne!(walk, Some(at), "it stands still");
        (calls, moved) = (calls + 1, moved + defragmenter.moved);
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
        let mut defragmenter = Everything::in_calls_of(usize::MAX);
        assert_eq!(queue.defrag(Walk::default(), &mut defragmenter), None);
        // The queue itself is its owner's to move.
        assert_eq!(defragmenter.bytes, queue.memory() - size_of::<Queue>(), "of {jobs} jobs");
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
    // Of each its name, its list of lines, and of one line its head and its entries; of the long
    // one, of each bucket its entries; places and runs, some of each.
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
    while let Some(next) = queue.defrag(walk, &mut Everything::in_calls_of(0)) {
        assert!(
            (walk.part + 1..=walk.part + STEP_PARTS).contains(&next.part),
            "{walk:?}, {next:?}"
        );
        (walk, calls) = (next, calls + 1);
    }
    let parts = queue.groups.as_ref().unwrap().part_count();
    assert_eq!(calls, parts / STEP_PARTS, "of {parts} parts");
}

#[test]
fn a_queue_works_on_between_two_parts_of_a_defrag_walk() {
    let (mut queue, mut other) = (queue_of(3_000), queue_of(3_000));
    let (mut walk, mut now) = (Some(Walk::default()), 10_000);
    while let Some(at) = walk {
        walk = queue.defrag(at, &mut Everything::in_calls_of(50));
        now += 1;
        for queue in [&mut queue, &mut other] {
            let gone: Vec<_> = queue.jobs().take(20).map(|job| job.id.bytes().to_vec()).collect();
            let ids: Vec<_> = gone.iter().map(|id| Id::new(id).unwrap()).collect();
            queue.apply(
                &told(now),
                &Remove { ids: Ids::from_slice(&ids), counted_as: Removal::Deleted },
            );
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
        queue_of(100).defrag(walk, &mut Everything::in_calls_of(usize::MAX));
    }
}
