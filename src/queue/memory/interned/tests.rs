use super::*;

#[test]
fn values_are_told_by_their_hash_and_memory_is_that_of_shelf_and_index() {
    let mut numbers = Interned::<u64>::new((1, 2));
    let hashes: std::collections::BTreeSet<u32> = (0..1_000).map(|n| numbers.hash_of(&n)).collect();
    assert!(hashes.len() > 990);
    (0..1_000).for_each(|n| assert!(numbers.take(&n).is_some()));
    let (table, index) = (numbers.shared.memory(), numbers.index.memory());
    assert!(table > 16_000 && index > 3_000, "{table} and {index}");
    assert_eq!(numbers.memory(), table + index);
}
