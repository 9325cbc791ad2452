//! A job that comes back, as it is added or changed: what DQ.ADD says of it.

use redis::Cmd;

use super::alter::Backoff;
use super::job::{Job, Schedule};

/// When it comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    Every(u64),
    Cron { expression: Vec<u8>, zone: Vec<u8> },
}

impl Rule {
    pub fn of(schedule: &Schedule) -> Rule {
        match (schedule.every_ms, &schedule.cron) {
            (None, Some(cron)) => Rule::Cron {
                expression: cron.clone(),
                zone: schedule.zone.clone().unwrap_or_else(|| b"UTC".to_vec()),
            },
            (every, _) => Rule::Every(every.unwrap_or(0)),
        }
    }

    /// Whether ENSURE takes it for the same.
    pub fn is(&self, other: &Rule) -> bool {
        match (self, other) {
            (Rule::Every(ms), Rule::Every(other)) => ms == other,
            (
                Rule::Cron { expression, zone },
                Rule::Cron { expression: other, zone: other_zone },
            ) => expression == other && zone.eq_ignore_ascii_case(other_zone),
            _ => false,
        }
    }
}

/// `None` is what the queue gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub id: Vec<u8>,
    /// `None`: the one that the job has.
    pub body: Option<Vec<u8>>,
    pub rule: Rule,
    /// How long from now its rule begins.
    pub delay_ms: Option<u64>,
    /// MISFIRE ALL.
    pub makes_up: bool,
    pub jitter_ms: u64,
    /// 0 is without end.
    pub runs: u64,
    pub until: Option<u64>,
    pub ttr_ms: Option<u64>,
    pub priority: Option<u64>,
    pub attempts: Option<u64>,
    pub backoff: Option<Backoff>,
    pub late_ms: Option<u64>,
    pub group: Option<Vec<u8>>,
}

impl Plan {
    /// What a job is now; `None` when it has no schedule.
    pub fn of(job: &Job) -> Option<Plan> {
        let schedule = job.schedule.as_deref()?;
        Some(Plan {
            id: job.id.clone(),
            body: None,
            rule: Rule::of(schedule),
            delay_ms: None,
            makes_up: schedule.misfire == b"ALL",
            jitter_ms: schedule.jitter_ms,
            runs: schedule.runs,
            until: schedule.until,
            ttr_ms: Some(job.ttr_ms),
            priority: Some(job.priority),
            attempts: Some(job.attempts),
            backoff: Some(Backoff { base: job.backoff_base_ms, max: job.backoff_max_ms }),
            late_ms: Some(job.late_ms),
            group: job.group.clone(),
        })
    }

    /// DQ.ADD of a new job: a taken id is an error.
    pub fn add(&self, queue: &[u8]) -> Cmd {
        self.command(queue, self.body.as_deref().unwrap_or_default())
    }

    /// DQ.ADD … ENSURE, which leaves the run that is under way, and the counts while the rule is the
    /// same.
    pub fn ensure(&self, queue: &[u8], old_body: &[u8]) -> Cmd {
        let mut command = self.command(queue, self.body.as_deref().unwrap_or(old_body));
        command.arg("ENSURE");
        command
    }

    fn command(&self, queue: &[u8], body: &[u8]) -> Cmd {
        let mut command = redis::cmd("DQ.ADD");
        command.arg(queue).arg(&self.id).arg(body);
        match &self.rule {
            Rule::Every(ms) => command.arg("EVERY").arg(*ms),
            Rule::Cron { expression, zone } => {
                command.arg("CRON").arg(expression).arg("TZ").arg(zone)
            }
        };
        command.arg("MISFIRE").arg(if self.makes_up { "ALL" } else { "ONE" });
        for (option, number) in [
            ("DELAY", self.delay_ms),
            ("JITTER", Some(self.jitter_ms).filter(|ms| *ms > 0)),
            ("RUNS", Some(self.runs).filter(|runs| *runs > 0)),
            ("UNTIL", self.until),
            ("TTR", self.ttr_ms),
            ("PRIORITY", self.priority),
            ("ATTEMPTS", self.attempts),
            ("LATE", self.late_ms),
        ] {
            if let Some(number) = number {
                command.arg(option).arg(number);
            }
        }
        if let Some(backoff) = &self.backoff {
            command.arg("BACKOFF").arg(backoff.base).arg(backoff.max);
        }
        if let Some(group) = &self.group {
            command.arg("GROUP").arg(group);
        }
        command
    }
}
