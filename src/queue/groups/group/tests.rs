//! How names are spread, and what groups take.

use super::*;
use crate::queue::kernel::delivery::Mode;
use crate::queue::kernel::log_state::Circumstances;
use crate::queue::kernel::queue::Queue;
use crate::queue::operation::consume::PopById;
use crate::queue::operation::manage::{Removal, Remove};
use crate::queue::operation::produce::Add;
use crate::queue::value::due::Due;
use crate::queue::value::ids::Ids;
use crate::queue::value::time::Millis;

fn groups() -> Groups {
    Groups::new(RandomState::with_seeds(1, 2, 3, 4))
}

#[test]
fn names_are_spread_over_the_chains() {
    let groups = groups();
    let hashes: BTreeSet<u32> =
        (0..1_000).map(|n: u32| groups.table.hash_of(n.to_string().as_bytes())).collect();
    assert!(hashes.len() > 990, "{}", hashes.len());
}

#[test]
fn a_group_without_jobs_takes_a_place_more() {
    let mut groups = groups();
    let names = [b"a", b"b", b"c"].map(|name| Id::new(name).unwrap());
    names.iter().for_each(|name| assert!(groups.find_or_make(*name).is_some()));
    let (without_jobs, a_place) = (groups.memory(), size_of::<(u64, GroupNumber)>());
    for (at, name) in names.into_iter().enumerate() {
        groups.join(name);
        assert_eq!(groups.memory() + (at + 1) * a_place, without_jobs);
    }
    groups.join(names[0]);
    let with_jobs = groups.memory();
    groups.leave(groups.find(names[1]).unwrap());
    assert_eq!(groups.memory(), with_jobs + a_place);
    groups.pause(names[1], Time::MAX, &Settings::default());
    assert_eq!(
        groups.memory(),
        with_jobs + 2 * a_place,
        "it has one among those that are paused, too"
    );
}

/// What groups own elsewhere, by going through all of them.
fn owned(groups: &Groups) -> usize {
    let (slots, _) = groups.table.slab.scan(0, usize::MAX, usize::MAX);
    let each = slots.into_iter().filter_map(|slot| groups.table.slab.get(slot));
    let of_each = each.map(|group| {
        let members = group.members.iter().filter_map(|slot| groups.members.get(*slot));
        let lines = members.map(|member| &member.line);
        let lines = lines.chain([&group.dying, &group.leases, &group.expiring]);
        let list = group.members.capacity() * size_of::<Slot>();
        group.name.len() + list + lines.map(GroupLine::memory).sum::<usize>()
    });
    of_each.sum()
}

#[test]
fn memory_of_groups_is_counted_to_the_byte_also_when_one_is_forgotten() {
    let told = |now| Circumstances { now: Time::new(now).unwrap(), ..Circumstances::default() };
    let (id, span) = (|name: &'static [u8]| Id::new(name).unwrap(), |ms| Millis::new(ms).unwrap());
    let mut queue = Queue::new((1, 2));
    let check = |queue: &Queue| {
        let groups = queue.groups.as_ref().unwrap();
        assert_eq!(groups.bytes, owned(groups));
        groups.len()
    };
    let jobs: [(&[u8], &[u8], u64, u64); 8] = [
        (b"kept", b"other", 0, 0),
        (b"a", b"group", 0, 0),
        (b"b", b"group", 0, 0),
        (b"c", b"group", 0, 50),
        (b"d", b"group", 0, 60),
        (b"e", b"group", 0, 70),
        (b"f", b"group", 300, 300),
        (b"g", b"group", 300, 300),
    ];
    for (name, group, due, ttl) in jobs {
        let (due, ttl, ttr) = (Due::In(span(due)), span(ttl), span(1_000));
        queue.apply(
            &told(0),
            &Add {
                group: Some(id(group)),
                due,
                ttl: Some(ttl),
                ttr: Some(ttr),
                ..Add::plain(id(name), b"x")
            },
        );
        check(&queue);
    }
    let ids = jobs.map(|(name, ..)| id(name));
    // By their ids: a turn would be remembered.
    let pop = PopById { ids: &ids[1..3], ttr: None, mode: Mode::Lease };
    assert_eq!(queue.apply(&told(0), &pop).len(), 2);
    check(&queue);
    let group = queue.groups.as_ref().unwrap().find(id(b"group")).unwrap();
    let lines =
        |group: &Group| [&group.dying, &group.leases, &group.expiring].map(GroupLine::memory);
    let lines = lines(queue.groups.as_ref().unwrap().table.slab.get(group).unwrap());
    assert!(lines.iter().all(|memory| *memory > 0), "each has several jobs");
    for id in &ids[1..] {
        queue.apply(
            &told(1),
            &Remove { ids: Ids::from_slice(&[*id]), counted_as: Removal::Deleted },
        );
        check(&queue);
    }
    assert_eq!(check(&queue), 1, "one is forgotten");
}
