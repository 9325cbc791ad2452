use super::*;

fn millis(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

#[test]
fn attempts_end_with_the_last_one_and_never_without_a_limit() {
    assert!(!Attempts::new(2).end_with(1));
    assert!(Attempts::new(2).end_with(2));
    assert!(Attempts::new(2).end_with(3));
    assert!(!Attempts::new(0).end_with(u32::MAX));
}

#[test]
fn waits_double_up_to_the_longest_less_a_quarter_at_most() {
    let backoff = Backoff { base: millis(1_000), max: millis(60_000) };
    for (attempt, whole) in [(1, 1_000), (2, 2_000), (6, 32_000), (7, 60_000), (u32::MAX, 60_000)] {
        for lease in 0..1_000 {
            let wait = backoff.after(attempt, Lease::new(lease)).as_u64();
            assert!(wait > whole - whole / 4 && wait <= whole, "{wait} after {attempt}");
        }
    }
}

#[test]
fn waits_spread_and_are_the_same_each_time_they_are_asked_for() {
    let backoff = Backoff { base: millis(1_000), max: millis(1_000) };
    let waits: Vec<u64> = (0..100).map(|n| backoff.after(1, Lease::new(n)).as_u64()).collect();
    assert_eq!(
        waits,
        (0..100).map(|n| backoff.after(1, Lease::new(n)).as_u64()).collect::<Vec<_>>()
    );
    let distinct: std::collections::BTreeSet<_> = waits.iter().collect();
    assert!(distinct.len() > 70, "{waits:?}");
}

#[test]
fn the_longest_backoff_does_not_overflow_and_none_is_none() {
    let backoff = Backoff { base: Millis::MAX, max: Millis::MAX };
    assert!(backoff.after(u32::MAX, Lease::MAX) <= Millis::MAX);
    assert_eq!(Backoff::NONE.after(9, Lease::new(1)), Millis::ZERO);
}
