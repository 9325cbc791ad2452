use super::*;
use crate::queue::memory::defrag::Everything;

/// Values that are their own hash.
struct Plain(Vec<(u32, Slot)>);

impl Chained for Plain {
    fn hash(&self, slot: Slot) -> u32 {
        self.0[slot as usize].0
    }
    fn next(&self, slot: Slot) -> Slot {
        self.0[slot as usize].1
    }
    fn set_next(&mut self, slot: Slot, next: Slot) {
        self.0[slot as usize].1 = next;
    }
}

fn mixed(n: u64) -> u32 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31) as u32
}

#[test]
fn every_value_is_found_while_it_grows_and_shrinks() {
    const VALUES: u64 = 5_000;
    let mut values = Plain((0..VALUES).map(|n| (mixed(n), NO_SLOT)).collect());
    let mut index = Index::default();
    for n in 0..VALUES {
        index.insert(mixed(n), n as Slot, &mut values);
        assert_eq!(
            index.find(mixed(n / 2), &values, |s| s == (n / 2) as Slot),
            Some((n / 2) as Slot)
        );
    }
    for n in 0..VALUES {
        assert!(index.find(mixed(n), &values, |s| s == n as Slot).is_some());
        index.remove(mixed(n), n as Slot, &mut values);
        assert!(index.find(mixed(n), &values, |s| s == n as Slot).is_none());
        let last = VALUES - 1;
        assert_eq!(index.find(mixed(last), &values, |s| s == last as Slot).is_some(), n < last);
    }
    assert_eq!((index.len, index.chains), (0, 0));
}

#[test]
fn values_that_share_a_hash_share_a_chain() {
    let mut values = Plain(vec![(7, NO_SLOT); 10]);
    let mut index = Index::default();
    for slot in 0..10 {
        index.insert(7, slot, &mut values);
    }
    index.remove(7, 4, &mut values);
    index.remove(7, 9, &mut values);
    index.remove(7, 4, &mut values);
    let mut seen = Vec::new();
    index.find(7, &values, |slot| {
        seen.push(slot);
        false
    });
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 5, 6, 7, 8]);
}

#[test]
fn chains_stay_between_four_fifths_and_two_a_value() {
    let mut values = Plain((0..3_000).map(|n| (mixed(n), NO_SLOT)).collect());
    let mut index = Index::default();
    for n in 0..3_000u64 {
        index.insert(mixed(n), n as Slot, &mut values);
        assert!(index.chains == chains_for(index.len) || index.chains == chains_for(index.len) + 1);
    }
    for n in 0..2_900u64 {
        index.remove(mixed(n), n as Slot, &mut values);
        assert!(index.chains <= 2 * index.len);
    }
}

#[test]
fn a_walk_over_its_memory_ends_behind_each_chunk_when_the_time_is_over() {
    let mut values = Plain((0..3_000).map(|n| (mixed(n), NO_SLOT)).collect());
    let mut index = Index::default();
    (0..3_000).for_each(|n| index.insert(mixed(n), n as Slot, &mut values));
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
    let mut values = Plain((0..3_000).map(|n| (mixed(n), NO_SLOT)).collect());
    let mut index = Index::default();
    (0..3_000).for_each(|n| index.insert(mixed(n), n as Slot, &mut values));
    assert_eq!(index.chains, 2_401, "four for five that were there");
    let len_of = |chain| {
        let next = |slot: &Slot| Some(values.next(*slot)).filter(|next| *next != NO_SLOT);
        std::iter::successors(Some(index.head(chain)).filter(|head| *head != NO_SLOT), next).count()
    };
    let longest = (0..index.chains).map(len_of).max().unwrap();
    assert!((2..=12).contains(&longest), "{longest}");
}

#[test]
fn chains_are_merged_until_there_are_two_a_value() {
    let mut values = Plain((0..10).map(|n| (mixed(n), NO_SLOT)).collect());
    let mut index = Index::default();
    (0..10).for_each(|n| index.insert(mixed(n), n as Slot, &mut values));
    assert_eq!(index.chains, 9);
    let chains: Vec<usize> = (0..10)
        .map(|n| {
            index.remove(mixed(n), n as Slot, &mut values);
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
    let mut values = Plain((0..2).map(|n| (mixed(n), NO_SLOT)).collect());
    (0..2).for_each(|n| index.insert(mixed(n), n as Slot, &mut values));
    index.reserve(10_000);
    assert_eq!(index.chains, 800, "values that are there would have to move");
    let mut boundless = Index::default();
    boundless.reserve(usize::MAX);
    assert_eq!(boundless.chains, chains_for(RESERVED_MAX));
}

#[test]
fn memory_is_that_of_the_heads_and_of_their_chunks() {
    let mut values = Plain((0..10).map(|n| (mixed(n), NO_SLOT)).collect());
    let mut index = Index::default();
    assert_eq!(index.memory(), 0);
    (0..10).for_each(|n| index.insert(mixed(n), n as Slot, &mut values));
    let heads = index.heads[0].capacity();
    assert!(heads >= 9);
    assert_eq!(index.memory(), 4 * heads + 24 * index.heads.capacity());
}
