//! Cron expressions: at which local times they come. croner parses them and knows their days, once
//! their words are checked (`cron_words.rs`). The search is our own: croner searches up to the year 5000, so an expression that never comes takes
//! it a third of a second.

use std::cell::Cell;

use croner::parser::{CronParser, Seconds, Year};
use croner::{CronComponent, CronPattern, Weekday};
use jiff::civil::{Date, DateTime};
use thiserror::Error;

use super::cron_words;
use crate::queue::CRON_NAMES;

/// A parsed cron expression.
pub struct CronFields {
    days: Days,
    /// A bit for each month, second, minute and hour.
    months: u64,
    seconds: u64,
    minutes: u64,
    hours: u64,
    is_by_the_clock: bool,
}

/// The days of an expression. In a month: a bit for each day, the first at bit 1.
enum Days {
    /// Days with these numbers, or these days of the week, Sunday first. With `both`: days to which
    /// both apply.
    Plain { numbers: u32, weekdays: u32, both: bool },
    /// With L, W or #: the days depend only on the length of the month and on its first day of the
    /// week. croner is asked once for each such shape of month, which takes some microseconds.
    Asked { pattern: Box<CronPattern>, known: [[Cell<u32>; 7]; 4] },
}

/// Bit 0 marks a month shape as known.
const IS_KNOWN: u32 = 1;

/// Why an expression can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Unreadable(String);

/// croner's errors repeat parts of the expression, which may contain any characters. An error reply
/// must be one line without NUL.
fn one_line(why: &str) -> String {
    let shown =
        |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    why.chars().map(shown).collect::<String>().to_ascii_lowercase()
}

impl CronFields {
    pub fn read(expression: &str) -> Result<CronFields, Unreadable> {
        let fields = fields_of(expression).map_err(|why| Unreadable(why.to_string()))?;
        let expression = cron_words::checked(fields).map_err(Unreadable)?;
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Optional).build();
        let read = parser.parse(&with_a_year(&expression));
        let pattern = read
            .map_err(|error| Unreadable(one_line(error.to_string().trim_end_matches('.'))))?
            .pattern;
        Ok(CronFields {
            months: bits(&pattern.months),
            seconds: bits(&pattern.seconds),
            minutes: bits(&pattern.minutes),
            hours: bits(&pattern.hours),
            is_by_the_clock: !has_wildcard(pattern.as_str()),
            days: Days::of(pattern),
        })
    }

    /// Whether the expression names its times of day. (One with a wildcard in hours, minutes or
    /// seconds goes by elapsed time.)
    pub fn is_by_the_clock(&self) -> bool {
        self.is_by_the_clock
    }

    /// The first time from `from` on and before `end`. A few nanoseconds for each month between
    /// them.
    pub fn first(&self, from: DateTime, end: DateTime) -> Option<DateTime> {
        let found = self.time_from(second_of(from)).filter(|_| self.is_day(from.date()));
        let found = match found {
            Some(second) => at(from.date(), second)?,
            None => {
                at(self.day_from(from.date().tomorrow().ok()?, end.date())?, self.time_from(0)?)?
            }
        };
        (found < end).then_some(found)
    }

    fn is_day(&self, date: Date) -> bool {
        self.days_of_month(date) >> day_of(date) & 1 == 1
    }

    /// The first day from this one on, in a month up to that of `end`.
    fn day_from(&self, from: Date, end: Date) -> Option<Date> {
        let (mut month, mut first_day) = (from.first_of_month(), day_of(from));
        while month <= end {
            if let Some(day) = bit_from(self.days_of_month(month).into(), first_day) {
                return Date::new(month.year(), month.month(), i8::try_from(day).ok()?).ok();
            }
            (month, first_day) = (month.last_of_month().tomorrow().ok()?, 1);
        }
        None
    }

    /// The days of the expression in the month of this date.
    fn days_of_month(&self, date: Date) -> u32 {
        if self.months >> date.month().unsigned_abs() & 1 == 0 {
            return 0;
        }
        self.days.of_month(date)
    }

    /// The first time of a day from this second of the day on.
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

impl Days {
    fn of(mut pattern: CronPattern) -> Days {
        if pattern.days.has_modifiers() || pattern.days_of_week.has_modifiers() {
            // The set of five thousand years isn't used.
            pattern.years = CronComponent::default();
            return Days::Asked { pattern: Box::new(pattern), known: Default::default() };
        }
        // A `*` field doesn't count if the other field isn't `*`.
        let counts = |is_wildcard: bool, other: bool| !is_wildcard || other;
        let (any_number, any_weekday) = (pattern.is_dom_wildcard(), pattern.is_dow_wildcard());
        let both = !any_number && !any_weekday && pattern.matches_dom_and_dow();
        let field = |counts: bool, field| if counts { bits(field) as u32 } else { 0 };
        Days::Plain {
            numbers: field(counts(any_number, any_weekday), &pattern.days),
            weekdays: field(counts(any_weekday, any_number), &pattern.days_of_week),
            both,
        }
    }

    /// The days in the month of this date.
    fn of_month(&self, date: Date) -> u32 {
        let length = u32::from(date.days_in_month().unsigned_abs());
        let weekday =
            u32::from(date.first_of_month().weekday().to_sunday_zero_offset().unsigned_abs());
        match self {
            Days::Plain { numbers, weekdays, both } => {
                const FIRST_OF_WEEKS: u64 = 1 << 1 | 1 << 8 | 1 << 15 | 1 << 22 | 1 << 29;
                let of_first_week =
                    (weekdays >> weekday | weekdays << (DAYS_OF_WEEK - weekday)) & 0x7f;
                let on_weekdays = (u64::from(of_first_week) * FIRST_OF_WEEKS) as u32;
                let days = if *both { numbers & on_weekdays } else { numbers | on_weekdays };
                days & (((2u64 << length) - 2) as u32)
            }
            Days::Asked { pattern, known } => {
                let of_length =
                    length.checked_sub(28).and_then(|longer| known.get(longer as usize));
                let Some(known) = of_length.and_then(|known| known.get(weekday as usize)) else {
                    return 0;
                };
                if known.get() & IS_KNOWN == 0 {
                    known.set(ask(pattern, date, length, weekday) | IS_KNOWN);
                }
                known.get() & !IS_KNOWN
            }
        }
    }
}

const DAYS_OF_WEEK: u32 = 7;

/// Asks croner for each day of the month of this date.
fn ask(pattern: &CronPattern, date: Date, length: u32, first_weekday: u32) -> u32 {
    const WEEKDAYS: [Weekday; 7] = [
        Weekday::Sunday,
        Weekday::Monday,
        Weekday::Tuesday,
        Weekday::Wednesday,
        Weekday::Thursday,
        Weekday::Friday,
        Weekday::Saturday,
    ];
    let (year, month) = (i32::from(date.year()), u32::from(date.month().unsigned_abs()));
    let weekdays = WEEKDAYS.into_iter().cycle().skip(first_weekday as usize);
    (1..=length).zip(weekdays).fold(0, |days, (day, weekday)| {
        let is_meant = pattern.day_match(year, month, day, weekday).unwrap_or(false);
        days | u32::from(is_meant) << day
    })
}

/// A bit for each value of a field.
fn bits(field: &CronComponent) -> u64 {
    field.values().into_iter().fold(0, |bits, value| bits | 1u64 << value.min(63))
}

/// Adds a year that is never looked at. Without one, croner lists all five thousand years, which
/// takes ten times as long as parsing the rest.
fn with_a_year(expression: &str) -> String {
    match expression.split_ascii_whitespace().count() {
        5 => format!("0 {expression} 2000"),
        _ => format!("{expression} 2000"),
    }
}

fn day_of(date: Date) -> u32 {
    date.day().unsigned_abs().into()
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
    let (hour, minute, second) =
        (part(second / 3_600)?, part(second / 60 % 60)?, part(second % 60)?);
    let time = jiff::civil::Time::new(hour, minute, second, 0).ok()?;
    Some(date.to_datetime(time))
}

/// The fields of a named expression; any other expression as it is.
fn fields_of(expression: &str) -> Result<&str, &'static str> {
    let word = expression.trim_ascii();
    if !word.starts_with('@') {
        return Ok(expression);
    }
    let named = CRON_NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    named
        .map(|(_, fields)| *fields)
        .ok_or("the names are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually")
}

/// Whether a field for seconds, minutes or hours has a wildcard.
fn has_wildcard(expression: &str) -> bool {
    let fields: Vec<&str> = expression.split_ascii_whitespace().collect();
    let has_year = fields.len() == 7;
    let times = fields.len().saturating_sub(3 + usize::from(has_year));
    fields.iter().take(times).any(|field| field.contains('*'))
}

#[cfg(test)]
#[path = "cron_tests.rs"]
mod tests;
