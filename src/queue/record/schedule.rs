//! What a schedule looks like in a job record.

use serde::{Deserialize, Serialize};

use crate::queue::value::record::{span, time, RecordError};
use crate::queue::value::recurrence::{
    Cron, Misfire, Recurrence, Round, Scheduled, Timing, CRON_BYTES_MAX, ZONE_BYTES_MAX,
};
use crate::queue::value::time::{Millis, Time};

/// A schedule that was read; or what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Fields", into = "Fields")]
pub(in crate::queue) struct ScheduleRecord(Result<(Recurrence, Round), RecordError>);

/// The fields, in their order.
#[derive(Default, Serialize, Deserialize)]
struct Fields {
    /// 0: it is CRON.
    every: u64,
    expression: Option<Box<str>>,
    zone: Option<Box<str>>,
    misfire: u8,
    jitter: u64,
    /// 0: without end.
    runs_max: u32,
    until: Option<u64>,
    anchor: u64,
    occurrence: u64,
    next: Option<u64>,
    runs: u32,
    missed: u32,
    failed: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    late: Option<u64>,
}

const MISFIRE_ONE: u8 = 0;
const MISFIRE_ALL: u8 = 1;

impl ScheduleRecord {
    pub fn new(schedule: &Scheduled) -> ScheduleRecord {
        ScheduleRecord(Ok((schedule.rule.clone(), schedule.round)))
    }

    pub fn parts(&self) -> Result<Scheduled<'_>, RecordError> {
        match &self.0 {
            Ok((rule, round)) => Ok(Scheduled { rule, round: *round }),
            Err(error) => Err(*error),
        }
    }
}

impl Fields {
    fn timing(&self) -> Result<Timing, RecordError> {
        let zone = self.zone.clone().unwrap_or_default();
        match &self.expression {
            None if self.every > 0 && zone.is_empty() => Ok(Timing::Every(span(self.every)?)),
            Some(expression)
                if self.every == 0
                    && (1..=CRON_BYTES_MAX).contains(&expression.len())
                    && zone.len() <= ZONE_BYTES_MAX =>
            {
                Ok(Timing::Cron(Cron { expression: expression.clone(), zone }))
            }
            None | Some(_) => Err(RecordError::Schedule),
        }
    }

    fn rule(&self) -> Result<Recurrence, RecordError> {
        let misfire = match self.misfire {
            MISFIRE_ONE => Misfire::One,
            MISFIRE_ALL => Misfire::All,
            _ => return Err(RecordError::Schedule),
        };
        let until = self.until.map(time).transpose()?;
        Ok(Recurrence {
            timing: self.timing()?,
            misfire,
            jitter: span(self.jitter)?,
            runs: self.runs_max,
            until,
            late: span(self.late.unwrap_or_default())?,
        })
    }

    fn round(&self) -> Result<Round, RecordError> {
        let round = Round::new(time(self.anchor)?, time(self.occurrence)?);
        let next = self.next.map(time).transpose()?;
        let (runs, missed, failed) = (self.runs, self.missed, self.failed);
        Ok(Round { runs, missed, failed, next: next.unwrap_or(round.next), ..round })
    }
}

impl From<Fields> for ScheduleRecord {
    fn from(fields: Fields) -> ScheduleRecord {
        ScheduleRecord(fields.rule().and_then(|rule| Ok((rule, fields.round()?))))
    }
}

impl From<ScheduleRecord> for Fields {
    fn from(ScheduleRecord(schedule): ScheduleRecord) -> Fields {
        let Ok((rule, round)) = schedule else {
            debug_assert!(false, "what is written was possible");
            return Fields::default();
        };
        let (every, expression, zone) = match rule.timing {
            Timing::Every(period) => (period, None, None),
            Timing::Cron(Cron { expression, zone }) => {
                (Millis::ZERO, Some(expression), Some(zone).filter(|zone| !zone.is_empty()))
            }
        };
        Fields {
            every: every.as_u64(),
            expression,
            zone,
            misfire: match rule.misfire {
                Misfire::One => MISFIRE_ONE,
                Misfire::All => MISFIRE_ALL,
            },
            jitter: rule.jitter.as_u64(),
            runs_max: rule.runs,
            until: rule.until.map(Time::unix_ms),
            anchor: round.anchor.unix_ms(),
            occurrence: round.occurrence.unix_ms(),
            next: round.is_decided().then_some(round.next.unix_ms()),
            runs: round.runs,
            missed: round.missed,
            failed: round.failed,
            late: Some(rule.late.as_u64()).filter(|late| *late > 0),
        }
    }
}
