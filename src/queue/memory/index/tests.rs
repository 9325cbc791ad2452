use super::*;
use crate::queue::memory::defrag::Everything;

struct Plain {
    number: u64,
    link: Link,
}

impl Linked for Plain {
    fn link(&self) -> &Link {
        &self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// So many values, in the slots of their numbers, with these hashes.
fn values(count: u64, hash: fn(u64) -> u32) -> Slab<Plain> {
    let mut values = Slab::default();
    for number in 0..count {
        values.insert(Plain { number, link: Link::new(hash(number)) });
    }
    values
}

/// As many values, in an index.
fn indexed(count: u64) -> (Index, Slab<Plain>) {
    let (mut index, mut values) = (Index::default(), values(count, mixed));
    (0..count).for_each(|n| index.insert(n as Slot, &mut values));
    (index, values)
}

fn find(index: &Index, values: &Slab<Plain>, n: u64) -> Option<Slot> {
    index.find(mixed(n), values, |value| value.number == n)
}

fn mixed(n: u64) -> u32 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31) as u32
}

#[test]
fn every_value_is_found_while_it_grows_and_shrinks() {
    const VALUES: u64 = 5_000;
    let (mut index, mut values) = (Index::default(), values(VALUES, mixed));
    for n in 0..VALUES {
        index.insert(n as Slot, &mut values);
        assert_eq!(find(&index, &values, n / 2), Some((n / 2) as Slot));
    }
    for n in 0..VALUES {
        assert!(find(&index, &values, n).is_some());
        index.remove(n as Slot, &mut values);
        assert!(find(&index, &values, n).is_none());
        let last = VALUES - 1;
        assert_eq!(find(&index, &values, last).is_some(), n < last);
    }
    assert_eq!((index.len, index.chains), (0, 0));
}

#[test]
fn values_that_share_a_hash_share_a_chain() {
    let (mut index, mut values) = (Index::default(), values(10, |_| 7));
    for slot in 0..10 {
        index.insert(slot, &mut values);
    }
    index.remove(4, &mut values);
    index.remove(9, &mut values);
    let mut seen = Vec::new();
    index.find(7, &values, |value| {
        seen.push(value.number);
        false
    });
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 5, 6, 7, 8]);
}

#[test]
fn chains_stay_between_four_fifths_and_two_a_value() {
    let (mut index, mut values) = (Index::default(), values(3_000, mixed));
    for slot in 0..3_000 {
        index.insert(slot, &mut values);
        assert!(index.chains == chains_for(index.len) || index.chains == chains_for(index.len) + 1);
    }
    for slot in 0..2_900 {
        index.remove(slot, &mut values);
        assert!(index.chains <= 2 * index.len);
    }
}

#[test]
fn a_walk_over_its_memory_ends_behind_each_chunk_when_the_time_is_over() {
    let (mut index, _) = indexed(3_000);
    let mut defragmenter = Everything::in_calls_of(0);
    assert_eq!(index.heads.len(), 3);
    for at in 1..3 {
        assert_eq!(index.defrag(at - 1, &mut defragmenter), Some(at));
    }
    assert_eq!(
        (index.defrag(2, &mut defragmenter), defragmenter.moved),
        (None, 4),
        "each chunk, and the list of them"
    );
}

#[test]
fn values_are_spread_over_the_chains() {
    let (index, values) = indexed(3_000);
    assert_eq!(index.chains, 2_401, "four for five that were there");
    let len_of = |chain| {
        let next = |value: &&Plain| values.get(value.link.next);
        std::iter::successors(values.get(index.head(chain)), next).count()
    };
    let longest = (0..index.chains).map(len_of).max().unwrap();
    assert!((2..=12).contains(&longest), "{longest}");
}

#[test]
fn chains_are_merged_until_there_are_two_a_value() {
    let (mut index, mut values) = indexed(10);
    assert_eq!(index.chains, 9);
    let chains: Vec<usize> = (0..10)
        .map(|n| {
            index.remove(n, &mut values);
            index.chains
        })
        .collect();
    assert_eq!(chains, [9, 9, 9, 9, 9, 8, 6, 4, 2, 0]);
}

#[test]
fn a_reserved_index_has_its_chains_before_its_values() {
    let mut index = Index::default();
    index.reserve(1_000);
    assert_eq!(index.chains, 800);
    index.reserve(500);
    assert_eq!(index.chains, 800);
    let mut values = values(2, mixed);
    (0..2).for_each(|slot| index.insert(slot, &mut values));
    index.reserve(10_000);
    assert_eq!(index.chains, 800, "values that are there would have to move");
    let mut boundless = Index::default();
    boundless.reserve(usize::MAX);
    assert_eq!(boundless.chains, chains_for(RESERVED_MAX));
}

#[test]
fn memory_is_that_of_the_heads_and_of_their_chunks() {
    assert_eq!(Index::default().memory(), 0);
    let (index, _) = indexed(10);
    let heads = index.heads[0].capacity();
    assert!(heads >= 9);
    assert_eq!(index.memory(), 4 * heads + 24 * index.heads.capacity());
}
