use super::*;

fn at(ms: u64) -> Time {
    Time::new(ms).unwrap()
}

fn ms(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

fn rule(period: u64) -> Recurrence {
    let timing = Timing::Every(ms(period));
    Recurrence {
        timing,
        misfire: Misfire::One,
        jitter: Millis::ZERO,
        runs: 0,
        until: None,
        late: Millis::ZERO,
    }
}

#[test]
fn every_is_what_adding_the_period_comes_to() {
    for anchor in [0, 7, 100] {
        for period in [1, 3, 10] {
            for from in 0..130 {
                for after in from..150 {
                    let times = || (0..).map(|n| anchor + n * period);
                    let missed = times()
                        .take_while(|time| *time <= after)
                        .filter(|time| *time > from)
                        .count();
                    let next = times().find(|time| *time > after).map(at);
                    let found = every(at(anchor), ms(period), at(from), at(after));
                    assert_eq!(found, Following { next, missed: missed as u32 });
                }
            }
        }
    }
}

#[test]
fn every_ends_with_time() {
    let last = Time::MAX.unix_ms();
    assert_eq!(every(at(0), Millis::MAX, at(0), at(1)).next, Some(Time::MAX));
    assert_eq!(every(at(1), Millis::MAX, at(1), at(1)).next, None);
    assert_eq!(every(at(0), ms(10), at(0), at(last)).next, None);
    let week = ms(604_800_000);
    assert_eq!(every(at(0), ms(1), at(0), at(last - 1)).missed, u32::MAX);
    assert_eq!(every(at(5), week, at(5), at(5 + 10 * 604_800_000)).missed, 10);
    // What has got to the end of time doesn't come back.
    let round = rule(1).begun(RunState::new(at(0), at(0)), at(last - 1), &mut Answers::default());
    assert_eq!(round.next(), None);
}

/// The jitter is part of the format.
#[test]
fn a_jitter_follows_from_id_and_occurrence() {
    let rule = Recurrence { jitter: ms(60_000), ..rule(86_400_000) };
    let ready = |id: &str, occurrence| {
        let id = Id::new(id.as_bytes()).unwrap();
        rule.ready_at(id, at(occurrence)).since(at(occurrence)).as_u64()
    };
    let spread: std::collections::BTreeSet<u64> =
        (0..1_000).map(|n| ready(&n.to_string(), 5_000)).collect();
    assert!(spread.len() > 980 && *spread.last().unwrap() <= 60_000, "{}", spread.len());
    assert!(*spread.first().unwrap() < 600 && *spread.last().unwrap() > 59_400);
    assert_ne!(ready("report", 0), ready("report", 1));
    assert_ne!(ready("12345678", 0), ready("12345678\0", 0).wrapping_add(1));
    assert_eq!([ready("a", 1), ready("report", 1_763_725_200_000)], [22_033, 1_274]);
}

/// A calendar of the multiples of ten.
struct Tens;

impl Calendar for Tens {
    fn following(&mut self, _: &Cron, from: Time, after: Time) -> Following {
        every(at(0), ms(10), from, after)
    }
}

#[test]
fn cron_begins_with_the_first_occurrence_from_its_start_on_or_after_now() {
    let timing = Timing::Cron(Cron { expression: "tens".into(), zone: "".into() });
    let rule = Recurrence { timing, ..rule(1) };
    let first = |starts| rule.first(at(20), starts, &mut Tens).unwrap().occurrence;
    assert_eq!(first(Starts::ByItself), at(30));
    assert_eq!(first(Starts::At(at(20))), at(30));
    assert_eq!(first(Starts::At(at(40))), at(40));
    assert_eq!(first(Starts::In(ms(21))), at(50));
}

#[test]
fn a_schedule_that_takes_the_place_of_another_ends_as_it_says() {
    let ends_at = |until| Recurrence { until: Some(at(until)), ..rule(1_000) };
    let first_after = |rule: Recurrence| {
        rule.first_after(at(100), Starts::At(at(0)), &mut Answers::default())
            .map(|round| round.occurrence)
    };
    assert_eq!(first_after(ends_at(1_000)), Some(at(1_000)));
    assert_eq!(first_after(ends_at(999)), None);
    assert!(rule(1).allows(at(Time::MAX.unix_ms() - 1)) && !rule(1).allows(Time::MAX));
}

#[test]
fn the_longest_jitter_is_the_whole_of_it() {
    let rule = Recurrence { jitter: ms(1), ..rule(1_000) };
    let ready = |n: u64| rule.ready_at(Id::new(n.to_string().as_bytes()).unwrap(), at(5)).unix_ms();
    let spread: std::collections::BTreeSet<u64> = (0..100).map(ready).collect();
    assert_eq!(spread.into_iter().collect::<Vec<_>>(), [5, 6]);
}

#[test]
fn a_period_of_nothing_is_in_step_with_everything() {
    assert!(rule(0).is_as(&rule(0), &RunState::new(at(0), at(0)), Starts::At(at(5))));
}
