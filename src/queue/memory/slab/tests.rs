use super::*;
use crate::queue::memory::defrag::Everything;

#[test]
fn a_value_is_found_under_its_slot_until_it_is_removed() {
    let mut slab = Slab::default();
    let a = slab.insert("a").unwrap();
    let b = slab.insert("b").unwrap();
    assert_eq!((slab.get(a), slab.get(b)), (Some(&"a"), Some(&"b")));
    assert_eq!(slab.remove(a), Some("a"));
    assert_eq!(slab.remove(a), None);
    assert_eq!(slab.get(a), None);
    assert_eq!(slab.insert("c"), Some(a), "a free slot is taken again");
    assert_eq!(slab.len(), 2);
}

#[test]
fn a_slot_that_never_was_holds_nothing() {
    let mut slab: Slab<u8> = Slab::default();
    assert_eq!(slab.get(0), None);
    assert_eq!(slab.get(NO_SLOT), None);
    assert_eq!(slab.remove(12_345_678), None);
}

#[test]
fn pages_that_empty_give_their_memory_back_but_one() {
    let mut slab = Slab::default();
    let slots: Vec<_> = (0..10 * PAGE_SLOTS).map(|n| slab.insert(n).unwrap()).collect();
    let full = slab.memory();
    for slot in &slots {
        slab.remove(*slot);
    }
    assert_eq!(slab.len(), 0);
    assert_eq!(slab.allocated_slots, PAGE_SLOTS);
    let again: Vec<_> = (0..10 * PAGE_SLOTS).map(|n| slab.insert(n).unwrap()).collect();
    assert_eq!(slab.allocated_slots, 10 * PAGE_SLOTS);
    assert!(slab.memory() <= full + 64, "no page is counted twice");
    for (n, slot) in again.iter().enumerate() {
        assert_eq!(slab.get(*slot), Some(&n));
    }
}

#[test]
fn the_spare_page_is_the_one_that_was_emptied_last_but_not_used_since() {
    let mut slab = Slab::default();
    let slots: Vec<_> = (0..2 * PAGE_SLOTS).map(|n| slab.insert(n).unwrap()).collect();
    // The second page is kept, the first one gives its memory back.
    slots.iter().rev().for_each(|slot| assert!(slab.remove(*slot).is_some()));
    assert_eq!(slab.allocated_slots, PAGE_SLOTS);
    for _ in 0..2 {
        let slot = slab.insert(7).unwrap();
        assert_eq!(slot, 0, "into the first one");
        slab.remove(slot);
        assert_eq!(slab.allocated_slots, PAGE_SLOTS, "which isn't kept besides");
    }
    let mut slab = Slab::default();
    let slots: Vec<_> = (0..PAGE_SLOTS).map(|n| slab.insert(n).unwrap()).collect();
    slots.iter().for_each(|slot| assert!(slab.remove(*slot).is_some()));
    for _ in 0..2 {
        let slot = slab.insert(7).unwrap();
        slab.remove(slot);
        assert_eq!(slab.allocated_slots, PAGE_SLOTS, "it is kept again");
    }
}

#[test]
fn the_first_page_grows_and_the_others_do_not() {
    let mut slab = Slab::default();
    slab.insert(0);
    assert!(slab.pages[0].cells.capacity() < PAGE_SLOTS / 4);
    (0..PAGE_SLOTS).for_each(|n| assert!(slab.insert(n).is_some()));
    assert_eq!(slab.pages[1].cells.capacity(), PAGE_SLOTS);
}

#[test]
fn all_values_are_told_with_their_slots_and_empty_pages_are_stepped_over() {
    let mut slab = Slab::default();
    let slots: Vec<_> = (0..PAGE_SLOTS + 10).map(|n| slab.insert(n).unwrap()).collect();
    assert!(slab.iter_mut().map(|(slot, value)| (slot, *value)).eq(slots.iter().copied().zip(0..)));
    slots[..PAGE_SLOTS].iter().for_each(|slot| assert!(slab.remove(*slot).is_some()));
    let behind = slots[PAGE_SLOTS];
    assert_eq!(slab.scan(0, 1, 2), (vec![behind], Some(behind + 1)));
}

#[test]
fn a_walk_over_its_memory_ends_behind_some_values_when_the_time_is_over() {
    let mut slab = Slab::default();
    (0..PAGE_SLOTS + 1).for_each(|n| assert!(slab.insert(n).is_some()));
    let mut ends = Vec::new();
    while let Some(end) = slab.defrag(
        ends.last().copied().unwrap_or_default(),
        &mut Everything::in_calls_of(0),
        |_, _| (),
    ) {
        ends.push(end);
    }
    assert!(ends
        .iter()
        .copied()
        .eq((1..=PAGE_SLOTS / STEP_ALLOCATIONS).map(|n| (n * STEP_ALLOCATIONS) as Slot)));
}

#[test]
fn memory_is_that_of_cells_pages_and_of_the_list_of_open_ones() {
    let mut slab = Slab::default();
    assert_eq!(slab.memory(), 0);
    (0..PAGE_SLOTS as u64 + 10).for_each(|n| assert!(slab.insert(n).is_some()));
    let cells: usize = slab.pages.iter().map(|page| page.cells.capacity()).sum();
    assert!(cells > PAGE_SLOTS && slab.pages.capacity() > 1 && slab.open.capacity() > 1);
    let (pages, open) = (slab.pages.capacity(), slab.open.capacity());
    assert_eq!(
        slab.memory(),
        cells * size_of::<Cell<u64>>() + pages * size_of::<Page<u64>>() + open * size_of::<u32>()
    );
}
