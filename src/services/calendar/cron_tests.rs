use super::*;

use jiff::civil::date;
use proptest::prelude::*;

/// A hundred years from when most of these begin.
const END: DateTime = DateTime::constant(2126, 1, 15, 10, 0, 0, 0);

fn next(expression: &str, from: DateTime) -> Option<DateTime> {
    CronFields::read(expression).unwrap().first(from, END)
}

fn why(expression: &str) -> String {
    match CronFields::read(expression) {
        Ok(_) => format!("'{expression}' was read"),
        Err(why) => why.to_string(),
    }
}

#[test]
fn cron_expressions_give_their_next_time() {
    let thursday = date(2026, 1, 15).at(10, 0, 0, 0);
    for (expression, expected) in [
        ("* * * * *", "2026-01-15T10:00:00"),
        ("* * * * * *", "2026-01-15T10:00:00"),
        ("30 5 10 * * *", "2026-01-15T10:05:30"),
        ("59 9 * * *", "2026-01-16T09:59:00"),
        ("30 2,14 * * *", "2026-01-15T14:30:00"),
        ("*/7 * * * *", "2026-01-15T10:00:00"),
        ("1-59/20 23 * * *", "2026-01-15T23:01:00"),
        ("0 0 * JAN-mar mon-fri", "2026-01-16T00:00:00"),
        ("0 0 L * *", "2026-01-31T00:00:00"),
        ("0 0 * * 5L", "2026-01-30T00:00:00"),
        ("0 0 * * MON#1", "2026-02-02T00:00:00"),
        ("0 0 1W * *", "2026-02-02T00:00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00:00"),
        ("0 0 29 2 +MON", "2044-02-29T00:00:00"),
        // As cron has it: either of both days will do.
        ("0 0 13 * FRI", "2026-01-16T00:00:00"),
        ("0 0 * * 7", "2026-01-18T00:00:00"),
        ("@yearly", "2027-01-01T00:00:00"),
        ("@monthly", "2026-02-01T00:00:00"),
        ("@weekly", "2026-01-18T00:00:00"),
        ("@daily", "2026-01-16T00:00:00"),
        ("@hourly", "2026-01-15T10:00:00"),
        ("@annually", "2027-01-01T00:00:00"),
        (" @MIDNIGHT ", "2026-01-16T00:00:00"),
    ] {
        let found = next(expression, thursday).map(|time| time.to_string());
        assert_eq!(found.as_deref(), Some(expected), "{expression}");
    }
}

#[test]
fn a_cron_expression_that_never_comes_is_found_out_soon() {
    let now = date(2026, 1, 15).at(10, 0, 0, 0);
    for expression in [
        "0 0 30 2 *",
        "0 0 31 2,4,6,9,11 *",
        "0 0 31 * +MON#1",
        "0 0 1-7 * +5L",
        "0 0 30 2 +MON#5",
        "59 59 23 8-14 * +MON#1",
    ] {
        let begin = std::time::Instant::now();
        assert_eq!(next(expression, now), None, "{expression}");
        // In a release build it is at most one; see docs/commands/add.md.
        assert!(begin.elapsed().as_millis() < 200, "{expression}: {:?}", begin.elapsed());
    }
}

#[test]
fn a_cron_expression_that_cannot_be_read_is_refused_in_words() {
    for (expression, expected) in [
        ("", "it needs five fields, or six with seconds first"),
        ("* * * *", "it needs five fields, or six with seconds first"),
        ("0 0 0 * * * 2030", "it needs five fields, or six with seconds first"),
        ("60 * * * *", "minutes are 0 to 59"),
        ("* 24 * * *", "hours are 0 to 23"),
        ("0 0 0 * *", "days of the month are 1 to 31"),
        ("0 0 * 13 *", "months are 1 to 12"),
        ("0 0 * * 8", "days of the week are 0 to 7"),
        ("5-1 * * * *", "minutes: a range ends before it begins"),
        ("*/0 * * * *", "a step can't be 0"),
        ("99999999999999 * * * *", "minutes are 0 to 59"),
        ("0-065535/65535 * * * *", "minutes are 0 to 59"),
        ("1,,2 * * * *", "a part of a list, a range or a step is missing"),
        (", * * * *", "a part of a list, a range or a step is missing"),
        ("mon * * * *", "minutes take numbers: names stand for months and days of the week only"),
        ("0 jan * * *", "hours take numbers: names stand"),
        ("H * * * *", "minutes take numbers: names stand"),
        ("0 0 * * funday", "days of the week take numbers, SUN to SAT, 5L and MON#1"),
        ("@", "the names are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually"),
        ("@reboot", "the names are @hourly,"),
        ("@every 5m", "the names are @hourly,"),
        ("@daily *", "the names are @hourly,"),
        ("@daily @daily @daily @daily @daily", "the names are @hourly,"),
        ("0 0 * * @daily", "days of the week take"),
        ("0 0 * * é", "days of the week take"),
    ] {
        assert!(why(expression).starts_with(expected), "{expression}: {}", why(expression));
    }
}

/// What croner takes for something else, or drops.
#[test]
fn a_word_that_does_not_fit_its_field_is_refused() {
    let days = "days of the month take numbers, L, LW and 15W";
    let months = "months take numbers and JAN to DEC";
    let weekdays = "days of the week take numbers, SUN to SAT, 5L and MON#1";
    let last = "a day of the week needs a number before L, as 5L";
    let week = "behind # goes 1 to 5, or L for the last one";
    let step = "a step needs * or a range before it";
    for (expression, expected) in [
        ("0 0 MON * *", days),
        ("0 0 JAN * *", days),
        ("0 0 FRI-SUN * *", days),
        ("0 0 1,MON * *", days),
        ("0 0 5L * *", days),
        ("0 0 15W5 * *", days),
        ("0 0 W15 * *", days),
        ("0 0 W * *", days),
        ("0 0 WL * *", days),
        ("0 0 1-5W * *", days),
        ("0 0 1W-5W * *", days),
        ("0 0 L-3 * *", days),
        ("0 0 MON#1 * *", days),
        ("0 0 1#1 * *", days),
        ("0 0 32W * *", "days of the month are 1 to 31"),
        ("0 0 0W * *", "days of the month are 1 to 31"),
        ("0 0 +1 * MON", days),
        ("* * * MON *", months),
        ("* * * JAN-FRI *", months),
        ("0 0 1 L *", months),
        ("0 0 1 JANUARY *", months),
        ("0 0 1 JAN1 *", months),
        ("0 0 1 ? *", months),
        ("* * * * JAN", weekdays),
        ("0 0 * * MON1", weekdays),
        ("0 0 * * 1MON", weekdays),
        ("0 0 * * LMON", weekdays),
        ("0 0 * * 1-5L", weekdays),
        ("0 0 * * 5L1", weekdays),
        ("0 0 * * 5W", weekdays),
        ("0 0 * * LW", weekdays),
        ("0 0 * * ++MON", weekdays),
        ("0 0 * * 1,+2", weekdays),
        ("0 0 * * L", last),
        ("0 0 * * l", last),
        ("0 0 * * +L", last),
        ("0 0 1 * L", last),
        ("0 0 * * 1,L", last),
        ("0 0 * * L,1", last),
        ("0 0 * * MON#6", week),
        ("0 0 * * MON#0", week),
        ("0 0 * * MON#", "a part of a list, a range or a step is missing"),
        ("0 0 * * #1", "a part of a list, a range or a step is missing"),
        ("0 0 * * MON#1#2", week),
        ("0 0 * * MON#1-2", week),
        ("0 0 * * 1-5/2#1", "a step is no number"),
        ("0 0 * * FRI-MON", "days of the week: a range ends before it begins"),
        ("0 0 * NOV-FEB *", "months: a range ends before it begins"),
        ("*/90 * * * *", "minutes have 60 values there: a step is longer"),
        ("*/61 * * * *", "minutes have 60 values there"),
        ("*/61 * * * * *", "seconds have 60 values there"),
        ("0 */25 * * *", "hours have 24 values there"),
        ("0 0 */32 * *", "days of the month have 31 values there"),
        ("0 0 1 */13 *", "months have 12 values there"),
        ("0 0 * * */8", "days of the week have 7 values there"),
        ("10-20/15 * * * *", "minutes have 11 values there"),
        ("1,*/90 * * * *", "minutes have 60 values there"),
        ("5-5/2 * * * *", "minutes have 1 value there: a step is longer"),
        ("0 0 * * SUN-SUN/2", "days of the week have 1 value there"),
        ("*,*/90 * * * *", "minutes have 60 values there"),
        ("5/15 * * * *", step),
        ("0 0 L/2 * *", step),
        ("0 0 * * MON/2", step),
        ("1-2-3 * * * *", "minutes take numbers"),
        ("1/2/3 * * * *", step),
        ("*/2/3 * * * *", "a step is no number"),
        ("*/MON * * * *", "a step is no number"),
        ("*-5 * * * *", "minutes take numbers"),
        ("** * * * *", "minutes take numbers"),
        ("*5 * * * *", "minutes take numbers"),
        ("? * * * *", "minutes take numbers"),
        ("-5 * * * *", "a part of a list, a range or a step is missing"),
        ("+5 * * * *", "minutes take numbers"),
        ("000 * * * *", "minutes are 0 to 59"),
    ] {
        let found = why(expression);
        assert!(found.starts_with(expected), "{expression}: {found}");
    }
}

#[test]
fn what_other_crons_take_is_taken() {
    let thursday = date(2026, 1, 15).at(10, 0, 0, 0);
    for (expression, expected) in [
        // A list with a `*` is all, as in cronie and croniter.
        ("*,0 * * * *", "2026-01-15T10:00:00"),
        ("0,* * * * *", "2026-01-15T10:00:00"),
        ("0 0 *,1 * *", "2026-01-16T00:00:00"),
        ("0 0 *,1 * MON", "2026-01-19T00:00:00"),
        ("0 0 ? * MON", "2026-01-19T00:00:00"),
        ("0 0 * * +*,1", "2026-01-16T00:00:00"),
        // Steps as long as their field.
        ("*/60 * * * *", "2026-01-15T10:00:00"),
        ("0 */24 * * *", "2026-01-16T00:00:00"),
        ("0 0 * * */7", "2026-01-18T00:00:00"),
        ("0 0 1 */12 *", "2027-01-01T00:00:00"),
        ("0 0 * * FRI-SUN", "2026-01-16T00:00:00"),
        ("0 0 * * SUN-SUN", "2026-01-18T00:00:00"),
        ("0 0 * * 0-0", "2026-01-18T00:00:00"),
        ("0 0 * * tue,sun-sun/1", "2026-01-18T00:00:00"),
        ("0 0 * * SUN-SUN#1", "2026-02-01T00:00:00"),
        ("0 0 * * SUN-7", "2026-01-16T00:00:00"),
        ("0 0 * * MON#L", "2026-01-26T00:00:00"),
        ("0 0 * * MON-FRI#1", "2026-02-02T00:00:00"),
        ("0 0 ? * ?", "2026-01-16T00:00:00"),
        ("0 0 * * 1-5#2", "2026-02-09T00:00:00"),
        ("0 0 * * 5#L", "2026-01-30T00:00:00"),
        ("0 0 * * fril", "2026-01-30T00:00:00"),
        ("0 0 lw * *", "2026-01-30T00:00:00"),
        ("00 00 01 01 00", "2026-01-18T00:00:00"),
        ("\t0  0 1\t1 * \r\n", "2027-01-01T00:00:00"),
    ] {
        let found = next(expression, thursday).map(|time| time.to_string());
        assert_eq!(found.as_deref(), Some(expected), "{expression}");
    }
}

/// A star with a step names days, as in robfig's cron and croniter; in cronie it is a star.
#[test]
fn a_star_with_a_step_counts_as_a_day_that_is_given() {
    let mut from = date(2026, 1, 15).at(0, 0, 0, 0);
    let mut days = Vec::new();
    while days.len() < 7 {
        let found = next("0 0 */2 * MON", from).unwrap();
        days.push(found.day());
        from = found.checked_add(jiff::Span::new().seconds(1)).unwrap();
    }
    assert_eq!(days, [15, 17, 19, 21, 23, 25, 26], "odd days, and a Monday");
    let both = next("0 0 */2 * +MON", date(2026, 1, 20).at(0, 0, 0, 0));
    assert_eq!(both.unwrap().to_string(), "2026-02-09T00:00:00");
}

fn field(max: u32) -> impl Strategy<Value = String> {
    let number = move || 0..=max;
    prop_oneof![
        3 => Just("*".to_string()),
        3 => number().prop_map(|number| number.to_string()),
        2 => (number(), number()).prop_map(|(a, b)| format!("{},{}", a, b)),
        2 => (number(), number()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        2 => (1..=max).prop_map(|step| format!("*/{step}")),
        1 => (number(), number(), 1..9u32).prop_map(|(a, b, step)| format!("{}-{}/{}", a.min(b), a.max(b), step.min(a.abs_diff(b) + 1))),
    ]
}

fn day() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec!["L", "LW", "15W", "1W", "31W", "29,30,31", "1,15"]);
    prop_oneof![
        4 => Just("*".to_string()),
        2 => (1..32u32).prop_map(|day| day.to_string()),
        2 => special.prop_map(str::to_string),
    ]
}

fn weekday() -> impl Strategy<Value = String> {
    let special =
        prop::sample::select(vec!["MON", "1-5", "5L", "SUN#2", "6#5", "+FRI", "TUE,THU", "7"]);
    prop_oneof![4 => Just("*".to_string()), 3 => special.prop_map(str::to_string)]
}

fn month() -> impl Strategy<Value = String> {
    let some = prop::sample::select(vec!["2", "JAN", "4,6,9,11", "1-3", "*/5", "DEC"]);
    prop_oneof![4 => Just("*".to_string()), 2 => some.prop_map(str::to_string)]
}

fn expression() -> impl Strategy<Value = String> {
    let parts = (prop::option::of(field(59)), field(59), field(23), day(), month(), weekday());
    parts.prop_map(|(second, minute, hour, day, month, weekday)| {
        let seconds = second.map_or(String::new(), |second| format!("{second} "));
        format!("{seconds}{minute} {hour} {day} {month} {weekday}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// croner goes on for longer, and otherwise finds the same.
    #[test]
    fn the_cron_search_finds_what_croner_finds(expression in expression(), day in 0..4_000i32, second in 0..86_400i32) {
        let span = jiff::Span::new().days(day).seconds(second);
        let from = date(2024, 1, 1).at(0, 0, 0, 0).checked_add(span).unwrap();
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        if let Some(found) = next(&expression, from) {
            prop_assert!(found >= from);
            let expected = parser.parse(&expression).unwrap().find_next_occurrence(&from, true).unwrap();
            prop_assert_eq!(found, expected, "{} from {}", expression, from);
        }
    }

    /// Nothing that somebody can send brings the server down.
    #[test]
    fn any_text_is_read_or_refused_as_a_cron_expression(text in "[0-9*,/@LW#?+ a-zA-Z-]{0,40}|.{0,30}") {
        match CronFields::read(&text) {
            Ok(pattern) => {
                let from = date(2026, 1, 15).at(10, 0, 0, 0);
                let found = pattern.first(from, END);
                prop_assert!(found.is_none_or(|found| found >= from));
            }
            Err(why) => prop_assert!(!why.to_string().contains(char::is_control), "{:?}", why),
        }
    }
}

/// What couldn't be read was repeated as it was: with a line break in it, an error was two replies.
#[test]
fn an_error_of_a_cron_expression_is_one_line() {
    for text in ["\r\n:1 * * * *", "\u{b}\0\u{1} * * * *", "0 * \u{85} * *"] {
        let why = CronFields::read(text).err().map(|why| why.to_string());
        assert!(
            why.as_ref().is_some_and(|why| !why.contains(char::is_control)),
            "{text:?}: {why:?}"
        );
    }
}
