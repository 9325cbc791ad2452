//! What a schedule looks like in a job record.

use serde::{Deserialize, Serialize};

use crate::queue::value::record::{span, time, RecordError};
use crate::queue::value::recurrence::{
    Cron, Misfire, Recurrence, RunState, ScheduleView, Timing, CRON_BYTES_MAX, ZONE_BYTES_MAX,
};
use crate::queue::value::time::{Millis, Time};

/// A schedule that was read; or what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Fields", into = "Fields")]
pub(in crate::queue) struct ScheduleRecord(Result<(Recurrence, RunState), RecordError>);

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
    pub fn new(schedule: &ScheduleView) -> ScheduleRecord {
        ScheduleRecord(Ok((schedule.rule.clone(), schedule.run_state)))
    }

    pub fn parts(&self) -> Result<ScheduleView<'_>, RecordError> {
        match &self.0 {
            Ok((rule, run_state)) => Ok(ScheduleView { rule, run_state: *run_state }),
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

    fn run_state(&self) -> Result<RunState, RecordError> {
        let run_state = RunState::new(time(self.anchor)?, time(self.occurrence)?);
        let next = self.next.map(time).transpose()?;
        let (runs, missed, failed) = (self.runs, self.missed, self.failed);
        Ok(RunState { runs, missed, failed, next: next.unwrap_or(run_state.next), ..run_state })
    }
}

impl From<Fields> for ScheduleRecord {
    fn from(fields: Fields) -> ScheduleRecord {
        ScheduleRecord(fields.rule().and_then(|rule| Ok((rule, fields.run_state()?))))
    }
}

impl From<ScheduleRecord> for Fields {
    fn from(ScheduleRecord(schedule): ScheduleRecord) -> Fields {
        let Ok((rule, run_state)) = schedule else {
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
            anchor: run_state.anchor.unix_ms(),
            occurrence: run_state.occurrence.unix_ms(),
            next: run_state.is_decided().then_some(run_state.next.unix_ms()),
            runs: run_state.runs,
            missed: run_state.missed,
            failed: run_state.failed,
            late: Some(rule.late.as_u64()).filter(|late| *late > 0),
        }
    }
}
