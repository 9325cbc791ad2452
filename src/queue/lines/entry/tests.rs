use proptest::prelude::*;

use super::*;

fn entry(time: u64, kind: EntryKind, opens: u64, closes: u64) -> Entry {
    let [time, opens, closes] = [time, opens, closes].map(|ms| Time::new(ms).unwrap());
    Entry::new(time, 7, kind, Window { opens, closes })
}

proptest! {
    #[test]
    fn a_span_is_rounded_up_by_less_than_one_part_in_128(length in prop_oneof![0..1_000u64, 0..=Millis::MAX.as_u64()]) {
        let span = Span::at_least(Millis::new(length).unwrap());
        prop_assert!(span.0 < 1 << Span::BITS);
        let rounded = span.length().as_u64();
        prop_assert!(length <= rounded && (rounded - length) * 128 <= length, "{length} as {rounded}");
    }

    #[test]
    fn an_entry_says_of_its_window_what_is_wide_enough(
        time in 0..=Time::MAX.unix_ms(), opens in 0..=Time::MAX.unix_ms(),
        kind in prop::sample::select(vec![EntryKind::Waiting, EntryKind::Leased, EntryKind::LeasedThenWaiting]),
        closes in prop_oneof![Just(Time::MAX.unix_ms()), 0..=Time::MAX.unix_ms()],
    ) {
        let opens = if kind == EntryKind::Leased { time } else { opens };
        let entry = entry(time, kind, opens, closes);
        prop_assert_eq!((entry.time().unix_ms(), entry.kind()), (time, kind));
        prop_assert_eq!(entry.expires(), closes < Time::MAX.unix_ms());
        prop_assert!(entry.opens_from().unix_ms() <= opens);
        prop_assert!(entry.closes_by().unix_ms() >= closes);
    }
}

#[test]
fn what_an_entry_can_say_exactly_it_does() {
    let max = Time::MAX.unix_ms();
    let said = |entry: Entry| (entry.opens_from().unix_ms(), entry.closes_by().unix_ms());
    assert_eq!(said(entry(5_000, EntryKind::Waiting, 0, max)), (0, max));
    assert_eq!(said(entry(5_000, EntryKind::Leased, 5_000, max)), (5_000, max));
    assert_eq!(said(entry(5_000, EntryKind::Leased, 5_000, 5_100)), (5_000, 5_100));
    assert_eq!(said(entry(5_000, EntryKind::Waiting, 4_900, max)), (4_900, max));
    assert_eq!(said(entry(5_000, EntryKind::LeasedThenWaiting, 4_872, max)), (4_872, max));
    assert_eq!(
        said(entry(5_000, EntryKind::LeasedThenWaiting, 4_872, 6_000)),
        (4_872, max),
        "one span is all there is room for"
    );
}
