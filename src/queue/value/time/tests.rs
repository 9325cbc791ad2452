use super::*;

#[test]
fn a_time_past_the_last_one_does_not_exist() {
    assert_eq!(Time::new(LIMIT), Some(Time::MAX));
    assert_eq!(Time::new(LIMIT + 1), None);
    assert_eq!(Millis::new(LIMIT + 1), None);
}

#[test]
fn a_span_of_32_bits_always_exists() {
    assert_eq!(Millis::of_ms(u32::MAX), Millis::new(u32::MAX.into()).unwrap());
    assert_eq!(Millis::of_secs(u32::MAX), Millis::new(u64::from(u32::MAX) * 1_000).unwrap());
}

#[test]
fn sums_stop_at_the_last_time() {
    let one = Millis::new(1).unwrap();
    assert_eq!(Time::MAX.checked_add(one), None);
    assert_eq!(Time::MAX.saturating_add(Millis::MAX), Time::MAX);
    assert_eq!(Time::ZERO.checked_add(Millis::MAX), Some(Time::MAX));
}

#[test]
fn a_span_into_the_past_is_nothing() {
    let (early, late) = (Time::new(10).unwrap(), Time::new(25).unwrap());
    assert_eq!(late.since(early), Millis::new(15).unwrap());
    assert_eq!(early.since(late), Millis::ZERO);
}
