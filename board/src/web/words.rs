//! Numbers, spans and times in words. Times are UTC here: board.js puts them into the reader's
//! zone.

use chrono::DateTime;
use maud::{html, Markup};

use crate::server::queue::State;

const UNITS: [(u64, &str); 4] =
    [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];

/// A span of time in its two largest units: `1 d 4 h`, `29 min 12 s`, `1.5 s`, `250 ms`.
pub fn span(ms: u64) -> String {
    if ms < 1_000 {
        return format!("{ms} ms");
    }
    if ms < 10_000 && ms % 1_000 >= 100 {
        return format!("{}.{} s", ms / 1_000, ms % 1_000 / 100);
    }
    let first = UNITS.iter().position(|(unit, _)| ms >= *unit).unwrap_or(UNITS.len() - 1);
    let mut rest = ms;
    let mut words = Vec::new();
    for (unit, name) in UNITS.iter().skip(first).take(2) {
        if rest / unit > 0 {
            words.push(format!("{} {name}", rest / unit));
        }
        rest %= unit;
    }
    words.join(" ")
}

/// `0` in settings means that there is none.
pub fn span_or(ms: u64, without: &str) -> String {
    if ms == 0 {
        without.into()
    } else {
        span(ms)
    }
}

pub fn relative(ms: u64, now_ms: u64) -> String {
    if ms.abs_diff(now_ms) < 1_000 {
        "now".into()
    } else if ms > now_ms {
        format!("in {}", rough(ms - now_ms))
    } else {
        format!("{} ago", rough(now_ms - ms))
    }
}

/// A span in its largest unit, and the next one while that says much. board.js has the same, so
/// that the words go on with the time.
fn rough(ms: u64) -> String {
    let first = UNITS.iter().find(|(unit, _)| ms >= *unit);
    match first {
        Some((unit, name)) if ms / unit >= 10 => format!("{} {name}", ms / unit),
        Some(_) => span(ms - ms % 1_000),
        None => span(ms),
    }
}

/// A moment, absolute and relative.
pub fn moment(ms: u64, now_ms: u64) -> Markup {
    html! {
        time datetime=(iso(ms)) data-ms=(ms) { (utc(ms)) }
        span.soft { " (" span data-rel=(ms) { (relative(ms, now_ms)) } ")" }
    }
}

/// A moment in a list: relative, the absolute time on hovering.
pub fn brief(ms: u64, now_ms: u64) -> Markup {
    html! { time datetime=(iso(ms)) data-rel=(ms) title=(utc(ms)) { (relative(ms, now_ms)) } }
}

pub fn utc(ms: u64) -> String {
    time_of(ms)
        .map_or_else(String::new, |time| time.format("%Y-%m-%d %H:%M:%S%.3f UTC").to_string())
}

fn iso(ms: u64) -> String {
    time_of(ms).map_or_else(String::new, |time| time.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}

/// A time on an axis: the day, where ticks are days apart. charts.js puts it into the reader's zone.
pub fn tick(ms: u64, every_ms: u64) -> String {
    let form = if every_ms >= 86_400_000 { "%a %-d" } else { "%H:%M" };
    time_of(ms).map_or_else(String::new, |time| time.format(form).to_string())
}

fn time_of(ms: u64) -> Option<DateTime<chrono::Utc>> {
    DateTime::from_timestamp_millis(i64::try_from(ms).ok()?)
}

/// With thin spaces between thousands.
pub fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A number in at most five characters, for narrow columns.
pub fn short(value: u64) -> String {
    const STEPS: [(u64, &str); 3] = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    match STEPS.iter().find(|(step, _)| value >= *step) {
        _ if value < 100_000 => number(value),
        Some((step, unit)) if value / step < 100 => {
            format!("{}.{}{unit}", value / step, value % step * 10 / step)
        }
        Some((step, unit)) => format!("{}{unit}", value / step),
        None => number(value),
    }
}

pub fn rate(a_second: f64) -> String {
    match a_second {
        rate if rate <= 0.0 => "0".into(),
        rate if rate < 0.1 => "<0.1".into(),
        rate if rate < 10.0 => format!("{rate:.1}"),
        rate => short(rate.round() as u64),
    }
}

pub fn size(bytes: u64) -> String {
    const STEPS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match STEPS.iter().find(|(step, _)| bytes >= *step) {
        Some((step, unit)) => format!("{:.1} {unit}", bytes as f64 / *step as f64),
        None if bytes == 1 => "1 byte".into(),
        None => format!("{bytes} bytes"),
    }
}

/// `1 job`, `2 jobs`.
pub fn jobs(many: u64) -> String {
    format!("{} {}", number(many), if many == 1 { "job" } else { "jobs" })
}

/// `1 queue`, `2 queues`.
pub fn many(many: u64, what: &str) -> String {
    format!("{} {what}{}", number(many), if many == 1 { "" } else { "s" })
}

/// `1 dead job`, `2 dead jobs`.
pub fn jobs_in(state: State, many: u64) -> String {
    format!("{} {} {}", number(many), state.name(), if many == 1 { "job" } else { "jobs" })
}

/// `1 job is`, `2 jobs are`.
pub fn are(many: u64) -> String {
    format!("{} {}", jobs(many), if many == 1 { "is" } else { "are" })
}

/// As a part of a sentence.
pub fn uncapped(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// How many held jobs wait for what won't come by itself.
pub fn behind_dead(many: u64) -> String {
    match many {
        1 => "1 held job waits for a dead one".into(),
        many => format!("{} held jobs wait for dead ones", number(many)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_in_their_two_largest_units() {
        for (ms, words) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (1_550, "1.5 s"),
            (12_345, "12 s"),
            (60_000, "1 min"),
            (1_752_000, "29 min 12 s"),
            (3_600_000, "1 h"),
            (3_601_000, "1 h"),
            (90_000_000, "1 d 1 h"),
            ((1 << 48) - 1, "3257812 d 5 h"),
        ] {
            assert_eq!(span(ms), words, "{ms}");
        }
        assert_eq!(relative(5_000, 3_000), "in 2 s");
        assert_eq!(relative(3_000, 5_000), "2 s ago");
        assert_eq!(relative(4_500, 5_000), "now");
        assert_eq!(relative(552_900, 0), "in 9 min 12 s");
        assert_eq!(relative(0, 752_900), "12 min ago");
    }

    #[test]
    fn the_last_time_there_is_has_words_too() {
        assert_eq!(utc((1 << 48) - 1), "+10889-08-02 05:31:50.655 UTC");
        assert_eq!(utc(u64::MAX), "");
        assert_eq!(iso(1_795_300_000_123), "2026-11-21T22:26:40.123Z");
    }

    #[test]
    fn numbers_sizes_and_rates_are_short_and_readable() {
        assert_eq!(number(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(short(99_999), "99\u{202f}999");
        assert_eq!(short(123_456), "123k");
        assert_eq!(short(1_250_000), "1.2M");
        assert_eq!(rate(0.0), "0");
        assert_eq!(rate(0.01), "<0.1");
        assert_eq!(rate(3.24), "3.2");
        assert_eq!(rate(123.4), "123");
        assert_eq!(size(1), "1 byte");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(jobs(1), "1 job");
        assert_eq!((many(1, "queue"), many(0, "queue")), ("1 queue".into(), "0 queues".into()));
        assert_eq!(jobs_in(State::Dead, 1), "1 dead job");
        assert_eq!(jobs_in(State::Held, 2), "2 held jobs");
        assert_eq!((are(1), are(0)), ("1 job is".into(), "0 jobs are".into()));
        assert_eq!(behind_dead(1), "1 held job waits for a dead one");
        assert_eq!(behind_dead(3), "3 held jobs wait for dead ones");
    }
}
