//! What DQ.GET and DQ.PEEK say of a job.

use redis::{Cmd, Value};

use super::queue::State;
use super::replies::{fields, Field};
use super::{Result, Trouble};

#[derive(Debug, Clone)]
pub struct Job {
    pub id: Vec<u8>,
    pub body: Vec<u8>,
    pub state: State,
    pub due: Option<u64>,
    pub deadline: Option<u64>,
    pub priority: u64,
    pub ttr_ms: u64,
    pub attempts: u64,
    pub attempt: u64,
    pub attempts_left: Option<u64>,
    pub lease: Option<u64>,
    pub created: u64,
    pub since: Option<u64>,
    pub backoff_base_ms: u64,
    pub backoff_max_ms: u64,
    pub ttl_ms: u64,
    pub expires: Option<u64>,
    pub keep_ms: u64,
    pub late_ms: u64,
    pub kept_until: Option<u64>,
    pub reason: Option<Vec<u8>>,
    pub group: Option<Vec<u8>>,
    /// How far it is, in its worker's words.
    pub note: Option<Vec<u8>>,
    pub result: Option<Vec<u8>>,
    pub edges: Edges,
    pub tally: Tally,
    /// Of a job that comes back.
    pub schedule: Option<Box<Schedule>>,
    /// What a later DQ says besides, as it says it.
    pub others: Vec<(String, Field)>,
}

/// How often these became of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub timed_out: u64,
    pub released: u64,
    pub buried: u64,
    pub kicked: u64,
}

/// What it waits for, and what waits for it: all 0 for most jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Edges {
    /// Of the jobs in `after`, those that it still waits for.
    pub pending: u64,
    pub after: u64,
    pub before: u64,
    /// It also waits for DQ.RESUME.
    pub is_on_hold: bool,
}

/// When a job comes back, and what became of its runs.
#[derive(Debug, Clone, Default)]
pub struct Schedule {
    /// A period, or else an expression with its zone.
    pub every_ms: Option<u64>,
    pub cron: Option<Vec<u8>>,
    pub zone: Option<Vec<u8>>,
    pub misfire: Vec<u8>,
    pub jitter_ms: u64,
    /// 0 is without end.
    pub runs: u64,
    pub until: Option<u64>,
    /// What the present run is for, or the next one.
    pub occurrence: Option<u64>,
    /// The one behind it, once that is decided.
    pub next: Option<u64>,
    pub runs_begun: u64,
    pub failed_runs: u64,
    pub missed: u64,
}

impl Schedule {
    /// Whether the field was one of a schedule's.
    fn take(&mut self, name: &str, field: &Field) -> bool {
        let maybe = field.number();
        let number = maybe.unwrap_or(0);
        let bytes = || field.clone().bytes();
        match name {
            "every" => self.every_ms = maybe,
            "cron" => self.cron = bytes(),
            "tz" => self.zone = bytes(),
            "misfire" => self.misfire = bytes().unwrap_or_default(),
            "jitter" => self.jitter_ms = number,
            "runs" => self.runs = number,
            "until" => self.until = maybe,
            "occurrence" => self.occurrence = maybe,
            "next" => self.next = maybe,
            "runs-begun" => self.runs_begun = number,
            "failed-runs" => self.failed_runs = number,
            "missed" => self.missed = number,
            _ => return false,
        }
        true
    }
}

impl Job {
    pub fn command(queue: &[u8], id: &[u8]) -> Cmd {
        let mut command = redis::cmd("DQ.GET");
        command.arg(queue).arg(id);
        command
    }

    /// `None` when there is no such job.
    pub fn read(reply: Value) -> Result<Option<Job>> {
        let Some(fields) = fields(reply)? else { return Ok(None) };
        let mut job = Job::new();
        let mut state = None;
        for (name, field) in fields {
            match name.as_str() {
                "state" => state = field.bytes().as_deref().and_then(State::named),
                _ => job.take(name, field),
            }
        }
        job.state =
            state.ok_or(Trouble::Strange("a job in a state that this board doesn't know"))?;
        Ok(Some(job))
    }

    pub fn new() -> Job {
        Job {
            id: Vec::new(),
            body: Vec::new(),
            state: State::Ready,
            due: None,
            deadline: None,
            priority: 0,
            ttr_ms: 0,
            attempts: 0,
            attempt: 0,
            attempts_left: None,
            lease: None,
            created: 0,
            since: None,
            backoff_base_ms: 0,
            backoff_max_ms: 0,
            ttl_ms: 0,
            expires: None,
            keep_ms: 0,
            late_ms: 0,
            kept_until: None,
            reason: None,
            group: None,
            note: None,
            result: None,
            edges: Edges::default(),
            tally: Tally::default(),
            schedule: None,
            others: Vec::new(),
        }
    }

    fn take(&mut self, name: String, field: Field) {
        let maybe = field.number();
        let number = maybe.unwrap_or(0);
        match name.as_str() {
            "id" => self.id = field.bytes().unwrap_or_default(),
            "body" => self.body = field.bytes().unwrap_or_default(),
            "due" => self.due = maybe,
            "deadline" => self.deadline = maybe,
            "priority" => self.priority = number,
            "ttr" => self.ttr_ms = number,
            "attempts" => self.attempts = number,
            "attempt" => self.attempt = number,
            "attempts-left" => self.attempts_left = maybe,
            "lease" => self.lease = maybe,
            "created" => self.created = number,
            "since" => self.since = maybe,
            "backoff-base" => self.backoff_base_ms = number,
            "backoff-max" => self.backoff_max_ms = number,
            "ttl" => self.ttl_ms = number,
            "expires" => self.expires = maybe,
            "keep" => self.keep_ms = number,
            "late" => self.late_ms = number,
            "kept-until" => self.kept_until = maybe,
            "reason" => self.reason = field.bytes(),
            "group" => self.group = field.bytes(),
            "note" => self.note = field.bytes(),
            "result" => self.result = field.bytes(),
            "pending" => self.edges.pending = number,
            "after" => self.edges.after = number,
            "before" => self.edges.before = number,
            "on-hold" => self.edges.is_on_hold = number != 0,
            "timed-out" => self.tally.timed_out = number,
            "released" => self.tally.released = number,
            "buried" => self.tally.buried = number,
            "kicked" => self.tally.kicked = number,
            // The first of a schedule's fields.
            "every" => {
                let mut schedule = Box::<Schedule>::default();
                schedule.take(&name, &field);
                self.schedule = Some(schedule);
            }
            _ => {
                if !self.schedule.as_mut().is_some_and(|schedule| schedule.take(&name, &field)) {
                    self.others.push((name, field));
                }
            }
        }
    }

    /// Where it stands in the order of its state; ready jobs stand by their priority first.
    pub fn time_in_order(&self) -> Option<u64> {
        let or_expires = |time: Option<u64>| match (time, self.expires) {
            (Some(time), Some(expires)) => Some(time.min(expires)),
            (time, expires) => time.or(expires),
        };
        match self.state {
            State::Ready => None,
            State::Delayed => or_expires(self.due),
            State::Reserved => or_expires(self.deadline),
            State::Dead => self.since,
            State::Done => self.kept_until,
            State::Held => Some(self.created),
        }
    }

    /// Since when it has been in its state, as far as the server says: where it doesn't, since it was
    /// added. With its id it tells a job from a later one of the same id.
    pub fn came(&self) -> u64 {
        self.since.unwrap_or(self.created)
    }

    /// When its lease began or was last extended, which only the lease's end tells: where the worker
    /// asked for another time to run than the job's, it was at another time.
    pub fn began(&self, now: u64) -> Option<u64> {
        let began = self.deadline?.checked_sub(self.ttr_ms);
        began.filter(|at| (self.created..=now).contains(at))
    }

    /// From when on DQ.PURGE counts its age; `None` where jobs of a state have none.
    pub fn old_since(&self) -> Option<u64> {
        match self.state {
            State::Held => Some(self.created),
            _ => self.since,
        }
    }

    /// When it will run next, as things are.
    pub fn next_run(&self) -> Option<u64> {
        match self.state {
            State::Delayed | State::Ready => self.due,
            State::Reserved => self.schedule.as_ref().and_then(|schedule| schedule.next),
            State::Dead | State::Done | State::Held => None,
        }
    }
}
