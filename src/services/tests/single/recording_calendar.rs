//! The calendar for one operation.

use crate::queue::{Calendar, Cron, Following, Time};
use crate::services::calendar::recording_calendar::RecordingCalendar;

use super::node;

fn cron(expression: &str, zone: &str) -> Cron {
    Cron { expression: expression.into(), zone: zone.into() }
}

const MINUTE: u64 = 60_000;
/// Noon, UTC.
const NOON: u64 = 1_800_014_400_000;

fn at(minutes: u64) -> Time {
    Time::new(NOON + minutes * MINUTE).unwrap()
}

#[test]
fn an_almanac_tells_the_next_time_and_how_many_were_missed_and_writes_it_down() {
    let (node, _) = node();
    let mut recording_calendar = RecordingCalendar::new(&node);
    assert_eq!(recording_calendar.answers(), &[]);
    let every_five = cron("*/5 * * * *", "");
    let said = [
        recording_calendar.following(&every_five, at(0), at(0)),
        recording_calendar.following(&every_five, at(0), at(3)),
        // The third time is the one of that moment: it is missed, too.
        recording_calendar.following(&every_five, at(0), at(15)),
        recording_calendar.following(&every_five, at(0), at(17)),
        recording_calendar.following(&every_five, at(2), at(17)),
        recording_calendar.following(&cron("*/7 * * * *", ""), at(2), at(17)),
        recording_calendar.following(&cron("nonsense", ""), at(2), at(17)),
    ];
    let told = |next, missed| Following { next: Some(at(next)), missed };
    let expected = [
        told(5, 0),
        told(5, 0),
        told(20, 3),
        told(20, 3),
        told(20, 3),
        told(21, 2),
        Following::default(),
    ];
    assert_eq!(said, expected);
    assert_eq!(recording_calendar.answers(), said);
}

#[test]
fn an_almanac_counts_a_thousand_times_for_one_operation() {
    let (node, _) = node();
    let mut recording_calendar = RecordingCalendar::new(&node);
    let every_minute = cron("* * * * *", "");
    let days = at(10_000);
    let told = |missed| Following { next: Some(at(10_001)), missed };
    assert_eq!(recording_calendar.following(&every_minute, at(9_400), days), told(600));
    // The same question costs nothing.
    assert_eq!(recording_calendar.following(&every_minute, at(9_400), days), told(600));
    assert_eq!(recording_calendar.following(&every_minute, at(9_000), days), told(400));
    assert_eq!(
        recording_calendar.following(&every_minute, at(9_001), days),
        told(0),
        "but the next time is right"
    );
    assert_eq!(recording_calendar.answers().len(), 4);
    assert_eq!(RecordingCalendar::new(&node).following(&every_minute, at(0), days), told(1_000));
}
