use super::*;

/// From one look at the clock to the next.
#[test]
fn each_value_of_a_list_is_moved_once_however_many_calls_it_takes() {
    let (step, len) = (STEP_ALLOCATIONS, 3 * STEP_ALLOCATIONS + 5);
    let calls = |a_call: usize| {
        let (mut list, mut from, mut ends) = (vec![0; len], 0, Vec::new());
        let mut defragmenter = Everything::in_calls_of(a_call);
        while let Some(next) =
            defrag_each(&mut list, from, &mut defragmenter, |value, _| *value += 1)
        {
            assert_eq!(defragmenter.moved, 0, "the list itself comes last");
            assert!(next > from, "it stands still");
            from = next;
            ends.push(next as usize);
        }
        assert_eq!((list, defragmenter.moved), (vec![1; len], 1));
        ends
    };
    assert_eq!(calls(0), [step, 2 * step, 3 * step], "no time is left");
    assert_eq!(calls(usize::MAX), [], "there is time");
}
