//! Cron expressions: when they come, in local time. croner reads them and knows which days are meant; the search is our
//! own, because croner's goes up to the year 5000: an expression that never comes costs it a third of a second.

use std::fmt;

use croner::parser::{CronParser, Seconds, Year};
use croner::time::Weekday;
use jiff::civil::{Date, DateTime};

/// Days that are searched: what doesn't come in a hundred years never comes.
pub const DAYS_MAX: usize = 36_525;

/// A cron expression that was read.
pub struct Pattern {
    days: croner::Cron,
    /// A bit for each second, minute and hour.
    seconds: u64,
    minutes: u64,
    hours: u64,
    is_by_the_clock: bool,
}

/// Why an expression can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Pattern {
    pub fn read(expression: &str) -> Result<Pattern, Unreadable> {
        let refused = |why: &str| Err(Unreadable(why.to_string()));
        if let Err(why) = check_fields(expression) {
            return refused(why);
        }
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let days = parser
            .parse(expression)
            .map_err(|error| Unreadable(error.to_string().trim_end_matches('.').to_ascii_lowercase()))?;
        let bits = |values: Vec<u16>| values.into_iter().fold(0, |bits, value| bits | 1u64 << value.min(63));
        let (seconds, minutes) = (bits(days.pattern.seconds.values()), bits(days.pattern.minutes.values()));
        let hours = bits(days.pattern.hours.values());
        let is_by_the_clock = !has_wildcard(days.pattern.as_str());
        let mut days = days;
        // Five thousand bytes that say that any year will do.
        drop(std::mem::take(&mut days.pattern.years));
        Ok(Pattern { days, seconds, minutes, hours, is_by_the_clock })
    }

    /// Whether it names its times of day. (One with a wildcard in hours, minutes or seconds goes by elapsed time.)
    pub fn is_by_the_clock(&self) -> bool {
        self.is_by_the_clock
    }

    /// The first time from `from` on and before `end`. Looks at as many days at most as `days` says, and takes those
    /// off.
    pub fn first(&self, from: DateTime, end: DateTime, days: &mut usize) -> Option<DateTime> {
        let mut second_of_day = second_of(from);
        let mut date = from.date();
        while date <= end.date() {
            *days = days.checked_sub(1)?;
            if self.is_in_month(date) {
                if self.is_day(date) {
                    if let Some(found) = self.time_from(second_of_day) {
                        let found = at(date, found)?;
                        return (found < end).then_some(found);
                    }
                }
                date = date.tomorrow().ok()?;
            } else {
                date = date.last_of_month().tomorrow().ok()?;
            }
            second_of_day = 0;
        }
        None
    }

    fn is_in_month(&self, date: Date) -> bool {
        self.days.pattern.month_match(date.month().unsigned_abs().into()).unwrap_or(false)
    }

    fn is_day(&self, date: Date) -> bool {
        let weekday = match date.weekday() {
            jiff::civil::Weekday::Monday => Weekday::Monday,
            jiff::civil::Weekday::Tuesday => Weekday::Tuesday,
            jiff::civil::Weekday::Wednesday => Weekday::Wednesday,
            jiff::civil::Weekday::Thursday => Weekday::Thursday,
            jiff::civil::Weekday::Friday => Weekday::Friday,
            jiff::civil::Weekday::Saturday => Weekday::Saturday,
            jiff::civil::Weekday::Sunday => Weekday::Sunday,
        };
        let (year, month, day) = (date.year(), date.month().unsigned_abs(), date.day().unsigned_abs());
        self.days.pattern.day_match(year.into(), month.into(), day.into(), weekday).unwrap_or(false)
    }

    /// The first time of a day from this second of it on.
    fn time_from(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        if let Some(minute_and_second) = bit_from(self.hours, hour)
            .filter(|found| *found == hour)
            .and_then(|_| self.within_hour(minute, second))
        {
            return Some(hour * 3_600 + minute_and_second);
        }
        Some(bit_from(self.hours, hour + 1)? * 3_600 + self.within_hour(0, 0)?)
    }

    fn within_hour(&self, minute: u32, second: u32) -> Option<u32> {
        if bit_from(self.minutes, minute) == Some(minute) {
            if let Some(second) = bit_from(self.seconds, second) {
                return Some(minute * 60 + second);
            }
        }
        Some(bit_from(self.minutes, minute + 1)? * 60 + bit_from(self.seconds, 0)?)
    }
}

/// The first bit that is set, from this one on.
fn bit_from(bits: u64, first: u32) -> Option<u32> {
    let bits = bits.checked_shr(first)?;
    (bits != 0).then(|| first + bits.trailing_zeros())
}

fn second_of(time: DateTime) -> u32 {
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    u32::from(hour.unsigned_abs()) * 3_600
        + u32::from(minute.unsigned_abs()) * 60
        + u32::from(second.unsigned_abs())
}

fn at(date: Date, second: u32) -> Option<DateTime> {
    let part = |number: u32| i8::try_from(number).ok();
    let (hour, minute, second) = (part(second / 3_600)?, part(second / 60 % 60)?, part(second % 60)?);
    let time = jiff::civil::Time::new(hour, minute, second, 0).ok()?;
    Some(date.to_datetime(time))
}

/// croner takes names of days and months in any field, empty parts of a list, and numbers of any length.
fn check_fields(expression: &str) -> Result<(), &'static str> {
    if expression.starts_with('@') {
        return Ok(());
    }
    let fields: Vec<&str> = expression.split_ascii_whitespace().collect();
    if !(5..=6).contains(&fields.len()) {
        return Err("it needs five fields, or six with seconds first");
    }
    for (place, field) in fields.iter().rev().enumerate() {
        let has_names = place < 2;
        let is_of_days = place == 0 || place == 2;
        for part in field.split([',', '-', '/', '#']) {
            if part.is_empty() {
                return Err("a part of a list, a range or a step is missing");
            }
            let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
            if is_number && part.len() > 2 {
                return Err("a number is out of range");
            }
            let letters = part.bytes().filter(u8::is_ascii_alphabetic).count();
            if letters > 0 && !(has_names || is_of_days) {
                return Err("names stand for months and days of the week only");
            }
        }
    }
    Ok(())
}

/// In a field for seconds, minutes or hours.
fn has_wildcard(expression: &str) -> bool {
    let fields: Vec<&str> = expression.split_ascii_whitespace().collect();
    let times = fields.len().saturating_sub(3);
    fields.iter().take(times).any(|field| field.contains('*'))
}

#[cfg(test)]
#[path = "cron_tests.rs"]
mod tests;
