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
    pub kept_until: Option<u64>,
    pub reason: Option<Vec<u8>>,
    /// What a later DQ says besides, as it says it.
    pub others: Vec<(String, Field)>,
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
        job.state = state.ok_or(Trouble::Strange("a job in a state that this board doesn't know"))?;
        Ok(Some(job))
    }

    fn new() -> Job {
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
            kept_until: None,
            reason: None,
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
            "kept-until" => self.kept_until = maybe,
            "reason" => self.reason = field.bytes(),
            _ => self.others.push((name, field)),
        }
    }
}
