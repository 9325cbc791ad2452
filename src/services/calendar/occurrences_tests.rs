use super::*;

use jiff::civil::Date;
use jiff::{SignedDuration, ToSpan};

/// Half an hour in Lord Howe; at midnight in Cairo and Santiago.
const ZONES: [&str; 5] = [
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "America/Santiago",
    "Europe/London",
];

fn cron(expression: &str, zone: &str) -> Cron {
    Cron { expression: expression.into(), zone: zone.into() }
}

fn read(expression: &str, zone: &str) -> Result<ParsedCron, Error> {
    let mut cron_cache = CronCache::NONE;
    cron_cache.read(&cron(expression, zone))
}

fn reading(expression: &str, zone: &str) -> ParsedCron {
    read(expression, zone).unwrap()
}

fn time(text: &str) -> Time {
    let instant: Timestamp = text.parse().unwrap();
    Time::new(instant.as_millisecond() as u64).unwrap()
}

fn times(reading: &ParsedCron, from: &str, until: &str) -> Vec<Time> {
    let (mut after, until) = (time(from), time(until));
    std::iter::from_fn(|| {
        after = reading.next(after)?;
        Some(after)
    })
    .take_while(|time| *time < until)
    .collect()
}

fn shown(times: &[Time], zone: &str) -> Vec<String> {
    let zone = TimeZone::get(zone).unwrap();
    let local = |time: &Time| {
        let instant = Timestamp::from_millisecond(time.unix_ms() as i64).unwrap();
        instant.to_zoned(zone.clone()).strftime("%m-%d %H:%M %:z").to_string()
    };
    times.iter().map(local).collect()
}

const FROM: &str = "2020-01-01T00:00:00Z";
const UNTIL: &str = "2030-01-01T00:00:00Z";

/// What Vixie's cron does, minute by minute, from a day before a change of the clock to a day
/// behind it. A clock that jumps ahead makes up for what names its times and was passed over; one
/// that jumps back doesn't repeat it.
fn by_vixie(pattern: &CronFields, zone: &TimeZone, from: Timestamp, until: Timestamp) -> Vec<Time> {
    let local = |instant| zone.to_offset(instant).to_datetime(instant);
    let (mut instant, mut seen, mut found) = (from, local(from), Vec::new());
    let minute = SignedDuration::from_mins(1);
    while instant + minute < until {
        instant += minute;
        let now = local(instant);
        let comes = |from: DateTime| {
            let end = now.checked_add(1.second()).unwrap();
            pattern.first(from, end).is_some()
        };
        let is_due = if pattern.is_by_the_clock() {
            now > seen && comes(seen.checked_add(1.second()).unwrap())
        } else {
            comes(now)
        };
        seen = seen.max(now);
        if is_due {
            found.push(Time::new(instant.as_millisecond() as u64).unwrap());
        }
    }
    found
}

#[test]
fn every_change_of_the_clock_in_ten_years_is_as_in_vixies_cron() {
    const EXPRESSIONS: [&str; 7] = [
        "30 2 * * *",
        "30,45 0,1,2,23 * * *",
        "0 0 * * SUN",
        "*/30 * * * *",
        "15 * * * *",
        "7 1-3 * * *",
        "*/20 0,2 * * *",
    ];
    let (begin, end): (Timestamp, Timestamp) = (FROM.parse().unwrap(), UNTIL.parse().unwrap());
    let mut changes = 0;
    for name in ZONES {
        let zone = TimeZone::get(name).unwrap();
        for change in
            zone.following(begin).map(|change| change.timestamp()).take_while(|time| *time < end)
        {
            changes += 1;
            let (from, until) = (change - 30.hours(), change + 30.hours());
            for expression in EXPRESSIONS {
                let reading = reading(expression, name);
                let found = times(&reading, &from.to_string(), &until.to_string());
                let expected = by_vixie(&reading.pattern, &zone, from, until);
                assert_eq!(found, expected, "{expression} in {name} around {change}");
            }
        }
    }
    assert!(changes > 80, "{changes}");
}

#[test]
fn cron_times_of_ten_years_only_grow() {
    for zone in ZONES {
        for expression in ["30,45 0,1,2,23 * * *", "*/30 * * * *"] {
            let found = times(&reading(expression, zone), FROM, UNTIL);
            assert!(found.is_sorted_by(|one, next| one < next), "{expression} in {zone}");
        }
    }
}

/// Also where there is no such time of day, and where there are two.
#[test]
fn a_daily_job_comes_once_on_each_date() {
    for zone in ZONES {
        for expression in [
            "0 0 * * *",
            "30 0 * * *",
            "30 1 * * *",
            "0 2 * * *",
            "15 2 * * *",
            "30 23 * * *",
            "59 59 23 * * *",
        ] {
            let zone_found = TimeZone::get(zone).unwrap();
            let first = "2020-01-01T18:00:00Z";
            let dates: Vec<Date> = times(&reading(expression, zone), first, UNTIL)
                .iter()
                .map(|time| {
                    let instant = Timestamp::from_millisecond(time.unix_ms() as i64).unwrap();
                    zone_found.to_offset(instant).to_datetime(instant).date()
                })
                .collect();
            let expected: Vec<Date> = dates[0].series(1.day()).take(dates.len()).collect();
            assert_eq!(dates, expected, "{expression} in {zone}");
            assert!(dates.len() >= 3_651, "{}", dates.len());
        }
    }
}

#[test]
fn a_cron_time_in_a_gap_comes_at_the_end_of_the_gap() {
    let new_york = reading("30 2,14 * * *", "America/New_York");
    let found = times(&new_york, "2026-03-08T00:00:00Z", "2026-03-09T12:00:00Z");
    let expected = ["03-08 03:00 -04:00", "03-08 14:30 -04:00", "03-09 02:30 -04:00"];
    assert_eq!(shown(&found, "America/New_York"), expected);
    // Two in one gap are one.
    let found = times(
        &reading("15,30 2 * * *", "America/New_York"),
        "2026-03-08T00:00:00Z",
        "2026-03-08T12:00:00Z",
    );
    assert_eq!(shown(&found, "America/New_York"), ["03-08 03:00 -04:00"]);
    // There is no midnight on that day.
    let found = times(
        &reading("0 0 * * *", "America/Santiago"),
        "2026-09-05T12:00:00Z",
        "2026-09-07T12:00:00Z",
    );
    assert_eq!(shown(&found, "America/Santiago"), ["09-06 01:00 -03:00", "09-07 00:00 -03:00"]);
    let found = times(
        &reading("15 2 * * *", "Australia/Lord_Howe"),
        "2026-10-03T00:00:00Z",
        "2026-10-04T00:00:00Z",
    );
    assert_eq!(shown(&found, "Australia/Lord_Howe"), ["10-04 02:30 +11:00"]);
}

#[test]
fn a_cron_time_that_comes_twice_runs_the_first_time() {
    let found = times(
        &reading("30 1 * * *", "America/New_York"),
        "2026-11-01T00:00:00Z",
        "2026-11-02T12:00:00Z",
    );
    assert_eq!(shown(&found, "America/New_York"), ["11-01 01:30 -04:00", "11-02 01:30 -05:00"]);
    // Asked in the middle of the hour that is repeated.
    let after = time("2026-11-01T06:10:00Z");
    let next = reading("30 1 * * *", "America/New_York").next(after).unwrap();
    assert_eq!(shown(&[next], "America/New_York"), ["11-02 01:30 -05:00"]);
}

#[test]
fn cron_wildcards_go_by_elapsed_time() {
    let found = times(
        &reading("30 * * * *", "America/New_York"),
        "2026-11-01T04:00:00Z",
        "2026-11-01T08:00:00Z",
    );
    let expected =
        ["11-01 00:30 -04:00", "11-01 01:30 -04:00", "11-01 01:30 -05:00", "11-01 02:30 -05:00"];
    assert_eq!(shown(&found, "America/New_York"), expected);
    let found = times(
        &reading("*/30 2 * * *", "America/New_York"),
        "2026-03-08T00:00:00Z",
        "2026-03-09T12:00:00Z",
    );
    assert_eq!(shown(&found, "America/New_York"), ["03-09 02:00 -04:00", "03-09 02:30 -04:00"]);
}

#[test]
fn zones_are_known_by_name_without_the_systems_database() {
    for zone in ["", "UTC", "europe/berlin", "Asia/Kathmandu", "Etc/GMT+5"] {
        assert!(read("@daily", zone).is_ok(), "{zone}");
    }
    for zone in
        ["Mars/Olympus", "../../etc/passwd", "EST5EDT,M3.2.0,M11.1.0", "Europe/Berlin\0", " "]
    {
        assert_eq!(read("@daily", zone).err(), Some(Error::Zone), "{zone}");
    }
    assert!(database_version().starts_with("20"), "{}", database_version());
}

#[test]
fn cron_times_are_after_the_given_one_and_to_the_second() {
    let each_second = reading("* * * * * *", "");
    for (after, next) in [(0, 1_000), (1, 1_000), (999, 1_000), (1_000, 2_000)] {
        assert_eq!(each_second.next(Time::new(after).unwrap()), Time::new(next));
    }
    assert_eq!(each_second.next(Time::MAX), None);
}

#[test]
fn a_cron_time_that_comes_once_in_years_is_found_and_one_that_never_comes_is_none() {
    for minutes in ["0 0", "*/30 *"] {
        let leap_days = reading(&format!("{minutes} 29 2 *"), "");
        assert_eq!(
            leap_days.next(time("2096-03-01T00:00:00Z")),
            Some(time("2104-02-29T00:00:00Z"))
        );
        assert_eq!(
            reading(&format!("{minutes} 30 2 *"), "").next(time("2026-01-01T00:00:00Z")),
            None
        );
    }
}

#[test]
fn a_zone_has_one_name_however_it_is_written() {
    for (written, name) in [
        ("Europe/Berlin", "Europe/Berlin"),
        ("europe/BERLIN", "Europe/Berlin"),
        ("utc", ""),
        ("UTC", ""),
        ("Mars/Olympus", "Mars/Olympus"),
    ] {
        assert_eq!(name_of_zone(written), name);
    }
}

fn numbered(n: usize) -> Cron {
    cron(&format!("{} {} {} * *", n % 60, n / 60 % 24, n / 1_440 + 1), "")
}

#[test]
fn the_cache_of_cron_readings_is_bounded_and_keeps_those_in_use() {
    let mut cron_cache = CronCache::NONE;
    let in_use = cron_cache.read(&numbered(0)).unwrap().pattern;
    for n in 1..4 * KEPT_MAX {
        cron_cache.read(&numbered(n)).unwrap();
        assert!(cron_cache.new.len() <= KEPT_MAX && cron_cache.old.len() <= KEPT_MAX);
        if n % 1_000 == 0 {
            assert!(Rc::ptr_eq(&in_use, &cron_cache.read(&numbered(0)).unwrap().pattern), "{n}");
        }
    }
    assert!(cron_cache.read(&cron("nonsense", "")).is_err());
}

#[test]
fn cron_expressions_of_more_jobs_than_one_pop_hands_out_are_read_once() {
    let mut cron_cache = CronCache::NONE;
    let mut read = || {
        (0..POP_JOBS_MAX)
            .map(|n| cron_cache.read(&numbered(n)).unwrap().pattern)
            .collect::<Vec<_>>()
    };
    let (before, after) = (read(), read());
    assert!(before.iter().zip(&after).all(|(one, other)| Rc::ptr_eq(one, other)));
}

#[test]
fn an_expression_is_read_once_for_all_zones() {
    let mut cron_cache = CronCache::NONE;
    let mut read = |zone| cron_cache.read(&cron("0 3 * * *", zone)).unwrap().pattern;
    assert!(Rc::ptr_eq(&read(ZONES[0]), &read(ZONES[1])));
}
