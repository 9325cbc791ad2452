//! The options with which DQ.ADD gives a job a schedule: EVERY, CRON, TZ, MISFIRE, JITTER, RUNS,
//! UNTIL. And those of CRON for DQ.NEXT.

use super::arg_reader::{option, ArgReader, Name};
use super::error::Error;
use crate::queue::{
    Cron, Millis, Misfire, Recurrence, Time, Timing, CRON_BYTES_MAX, ZONE_BYTES_MAX,
};
use crate::server::context::wall_clock;
use crate::services::calendar::occurrences;
use crate::services::change::frame::Source;
use crate::services::live;

/// What a command said.
#[derive(Default)]
pub struct ScheduleOptions {
    every: Option<Millis>,
    expression: Option<Box<str>>,
    zone: Option<Box<str>>,
    misfire: Option<Misfire>,
    jitter: Option<Millis>,
    runs: Option<u32>,
    until: Option<Time>,
}

impl ScheduleOptions {
    /// Reads an option, if it is one of these.
    pub fn read(&mut self, name: Name, args: &mut ArgReader) -> Result<bool, Error> {
        option!(name, args, {
            "EVERY" => self.every, span(1);
            "CRON" => self.expression, parsed(expression);
            "TZ" => self.zone, parsed(zone);
            "MISFIRE" => self.misfire, parsed(misfire);
            "JITTER" => self.jitter, millis(0);
            "RUNS" => self.runs, small_integer(1);
            "UNTIL" => self.until, time();
        } else Ok(false))
    }

    /// The first of the options that need EVERY or CRON, if one is given.
    fn first_besides(&self) -> Option<&'static str> {
        let given = [
            ("TZ", self.zone.is_some()),
            ("MISFIRE", self.misfire.is_some()),
            ("JITTER", self.jitter.is_some()),
            ("RUNS", self.runs.is_some()),
            ("UNTIL", self.until.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// The schedule, if one is given; for a client, one that has a time to come.
    pub fn recurrence(&self, source: Source) -> Result<Option<Recurrence>, Error> {
        let timing = match (self.every, &self.expression) {
            (Some(_), Some(_)) => return Err(Error::Exclusive { one: "EVERY", other: "CRON" }),
            (Some(_), None) if self.zone.is_some() => {
                return Err(Error::Exclusive { one: "EVERY", other: "TZ" });
            }
            (Some(period), None) => Timing::Every(period),
            (None, Some(expression)) => {
                let zone = self.zone.clone().unwrap_or_default();
                Timing::Cron(Cron { expression: expression.clone(), zone })
            }
            (None, None) => {
                return self
                    .first_besides()
                    .map_or(Ok(None), |option| Err(Error::NeedsSchedule { option }));
            }
        };
        let jitter = self.jitter.unwrap_or_default();
        if self.every.is_some_and(|period| jitter >= period) {
            return Err(Error::JitterLength);
        }
        if let (Timing::Cron(cron), Source::Client) = (&timing, source) {
            live::read_cron(cron)?.next(wall_clock()).ok_or(Error::NeverComes)?;
        }
        let misfire = self.misfire.unwrap_or(Misfire::One);
        let runs = self.runs.unwrap_or_default();
        // LATE is as the queue has it where the command doesn't say.
        let late = Millis::ZERO;
        Ok(Some(Recurrence { timing, misfire, jitter, runs, until: self.until, late }))
    }
}

/// The word that gave the job its schedule.
pub fn word_of(recurrence: &Recurrence) -> &'static str {
    match recurrence.timing {
        Timing::Every(_) => "EVERY",
        Timing::Cron(_) => "CRON",
    }
}

pub fn expression(word: &[u8]) -> Result<Box<str>, Error> {
    let text =
        std::str::from_utf8(word).ok().filter(|text| (1..=CRON_BYTES_MAX).contains(&text.len()));
    text.map(Box::from).ok_or(Error::CronLength)
}

/// The zone, by the one name that it has in a queue, however it was written.
pub fn zone(word: &[u8]) -> Result<Box<str>, Error> {
    let text =
        std::str::from_utf8(word).ok().filter(|text| (1..=ZONE_BYTES_MAX).contains(&text.len()));
    text.map(|text| occurrences::name_of_zone(text).into()).ok_or(Error::Zone)
}

fn misfire(word: &[u8]) -> Result<Misfire, Error> {
    let mut all = Misfire::ALL.into_iter();
    all.find(|misfire| word.eq_ignore_ascii_case(misfire.name().as_bytes()))
        .ok_or_else(|| Error::UnknownMisfire(word.to_vec()))
}

impl From<occurrences::Error> for Error {
    fn from(error: occurrences::Error) -> Error {
        match error {
            occurrences::Error::Expression(why) => Error::Cron(why.to_string()),
            occurrences::Error::Zone => Error::Zone,
        }
    }
}
