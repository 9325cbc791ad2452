//! How much memory buckets take for those that may come.

use super::*;
use crate::queue::lines::buckets::tests::windows::FULL;

#[test]
fn the_halves_of_a_bucket_that_was_split_have_room_for_a_few_more() {
    // The last bucket isn't split: so there is one behind.
    let mut pair = Pair::of((0..=FULL).map(|time| 2 * time));
    assert_eq!(pair.bucket_lens(), [BUCKET_ENTRIES, 1]);
    let last = pair.buckets.capacity - BUCKET_ENTRIES;
    pair.insert(1, EntryKind::Waiting);
    assert_eq!(pair.bucket_lens(), [BUCKET_ENTRIES / 2 + 1, BUCKET_ENTRIES / 2, 1]);
    assert_eq!(pair.buckets.capacity - last, 2 * (BUCKET_ENTRIES / 2 + GROWTH));
    pair.check();
}

#[test]
fn a_bucket_that_took_in_its_neighbour_has_room_for_a_few_more() {
    let mut pair = Pair::of(0..2 * FULL);
    while pair.bucket_lens()[0] > MERGE_BELOW {
        pair.remove(0);
    }
    while pair.bucket_lens().len() > 1 {
        pair.remove(pair.plain.len() - 1);
    }
    assert_eq!(pair.bucket_lens(), [MERGED_AT_MOST]);
    assert_eq!(pair.buckets.capacity, MERGED_AT_MOST + GROWTH);
    pair.check();
}

#[test]
fn memory_is_that_of_entries_buckets_and_the_directory() {
    let pair = Pair::of(0..3 * FULL);
    let Buckets { capacity, buckets, directory, .. } = &pair.buckets;
    assert!(*capacity >= 3 * BUCKET_ENTRIES && directory.capacity() >= 3);
    let lines = directory.capacity() * size_of::<DirectoryEntry>();
    assert_eq!(pair.buckets.memory(), capacity * size_of::<Entry>() + buckets.memory() + lines);
}
