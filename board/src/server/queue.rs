//! What DQ.INFO says of a queue.

use redis::{Cmd, Value};

use super::replies::{fields, Field};
use super::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Ready,
    Delayed,
    Reserved,
    Dead,
    Done,
    /// It waits for other jobs, or for DQ.RESUME.
    Held,
}

impl State {
    pub const ALL: [State; 6] =
        [State::Ready, State::Delayed, State::Reserved, State::Dead, State::Done, State::Held];

    pub fn name(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Delayed => "delayed",
            State::Reserved => "reserved",
            State::Dead => "dead",
            State::Done => "done",
            State::Held => "held",
        }
    }

    /// Whether DQ.PURGE counts for how long a job has been in it.
    pub fn has_age(self) -> bool {
        !matches!(self, State::Delayed | State::Reserved)
    }

    pub fn named(name: &[u8]) -> Option<State> {
        State::ALL.into_iter().find(|state| state.name().as_bytes() == name)
    }
}

/// How many jobs are in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub ready: u64,
    pub delayed: u64,
    pub reserved: u64,
    pub dead: u64,
    pub done: u64,
    pub held: u64,
}

impl Counts {
    pub fn of(&self, state: State) -> u64 {
        match state {
            State::Ready => self.ready,
            State::Delayed => self.delayed,
            State::Reserved => self.reserved,
            State::Dead => self.dead,
            State::Done => self.done,
            State::Held => self.held,
        }
    }

    /// The states to show: few queues have held jobs, and older modules don't know them.
    pub fn states(&self) -> impl Iterator<Item = State> {
        let has_held = self.held > 0;
        State::ALL.into_iter().filter(move |state| *state != State::Held || has_held)
    }

    pub fn add(&mut self, more: &Counts) {
        self.ready += more.ready;
        self.delayed += more.delayed;
        self.reserved += more.reserved;
        self.dead += more.dead;
        self.done += more.done;
        self.held += more.held;
    }
}

/// What jobs get that say nothing themselves, and the queue's limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    pub ttr_ms: u64,
    pub attempts: u64,
    pub backoff_base_ms: u64,
    pub backoff_max_ms: u64,
    pub keep_ms: u64,
    pub max_jobs: u64,
    pub dead_keep_ms: u64,
    /// How late a job may be handed out; 0 is no limit, here and below.
    pub late_ms: u64,
    pub concurrency: u64,
    pub rate: Rate,
    /// The same of each group by itself.
    pub group_concurrency: u64,
    pub group_rate: Rate,
}

/// So many jobs may leave in so long, and so many at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rate {
    pub jobs: u64,
    pub per_ms: u64,
    pub burst: u64,
}

/// What limits do, as things are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// How many jobs the rate lets go now; `None` without a rate.
    pub rate_left: Option<u64>,
    /// Until when no job may leave; `None` when one may.
    pub blocked_until: Option<u64>,
}

/// The stream for which jobs leave as they come due.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sink {
    /// `None` without a sink.
    pub stream: Option<Vec<u8>>,
    /// 0 is no limit.
    pub maxlen: u64,
    /// Why jobs can't leave; `None` while they can.
    pub error: Option<Vec<u8>>,
}

/// What became of jobs since the queue was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    pub added: u64,
    pub replaced: u64,
    pub popped: u64,
    pub finished: u64,
    pub released: u64,
    pub timed_out: u64,
    pub buried: u64,
    pub dead: u64,
    pub kicked: u64,
    pub deleted: u64,
    pub purged: u64,
    /// Times of schedules that passed without a run of their own.
    pub missed: u64,
}

/// How late jobs were handed out, since the server started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lateness {
    pub p50_ms: Option<u64>,
    pub p90_ms: Option<u64>,
    pub p99_ms: Option<u64>,
    pub p999_ms: Option<u64>,
    pub max_ms: Option<u64>,
    /// How many jobs were at most so many milliseconds late, in the order of the latter.
    pub within: Vec<(u64, u64)>,
    pub count: u64,
    pub sum_ms: u64,
}

impl Lateness {
    /// Quantiles are exact to 1 %; the latest is exact, so none is above it.
    fn keep_below_max(&mut self) {
        let Some(max) = self.max_ms else { return };
        for ms in [&mut self.p50_ms, &mut self.p90_ms, &mut self.p99_ms, &mut self.p999_ms] {
            *ms = ms.map(|ms| ms.min(max));
        }
    }
}

/// The milliseconds of a field `lateness-within-100-ms`.
fn step_of(field: &str) -> Option<u64> {
    field.strip_prefix("lateness-within-")?.strip_suffix("-ms")?.parse().ok()
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Info {
    pub settings: Settings,
    pub is_paused: bool,
    pub paused_until: Option<u64>,
    pub jobs: u64,
    pub counts: Counts,
    /// How many held jobs wait for a dead one.
    pub held_behind_dead: u64,
    pub waiting_consumers: u64,
    /// Clients that wait for what becomes of a job or of a lease.
    pub watchers: u64,
    pub oldest_ready_ms: Option<u64>,
    pub next_due: Option<u64>,
    pub memory: u64,
    pub totals: Totals,
    pub lateness: Lateness,
    pub limits: Limits,
    pub sink: Sink,
    /// Jobs that come back.
    pub schedules: u64,
    /// Some of them are only remembered.
    pub groups: u64,
    /// What a later DQ says besides, as it says it.
    pub others: Vec<(String, Field)>,
}

impl Info {
    pub fn command(queue: &[u8]) -> Cmd {
        let mut command = redis::cmd("DQ.INFO");
        command.arg(queue);
        command
    }

    /// `None` when there is no such queue.
    pub fn read(reply: Value) -> Result<Option<Info>> {
        let Some(fields) = fields(reply)? else { return Ok(None) };
        let mut info = Info::default();
        fields.into_iter().for_each(|(name, field)| info.take(name, field));
        info.lateness.keep_below_max();
        Ok(Some(info))
    }

    fn take(&mut self, name: String, field: Field) {
        let maybe = field.number();
        let number = maybe.unwrap_or(0);
        match name.as_str() {
            "default-ttr" => self.settings.ttr_ms = number,
            "default-attempts" => self.settings.attempts = number,
            "default-backoff-base" => self.settings.backoff_base_ms = number,
            "default-backoff-max" => self.settings.backoff_max_ms = number,
            "default-keep" => self.settings.keep_ms = number,
            "default-late" => self.settings.late_ms = number,
            "max-jobs" => self.settings.max_jobs = number,
            "dead-keep" => self.settings.dead_keep_ms = number,
            "concurrency" => self.settings.concurrency = number,
            "rate" => self.settings.rate.jobs = number,
            "rate-per-ms" => self.settings.rate.per_ms = number,
            "rate-burst" => self.settings.rate.burst = number,
            "group-concurrency" => self.settings.group_concurrency = number,
            "group-rate" => self.settings.group_rate.jobs = number,
            "group-rate-per-ms" => self.settings.group_rate.per_ms = number,
            "group-rate-burst" => self.settings.group_rate.burst = number,
            "rate-left" => self.limits.rate_left = maybe,
            "blocked-until" => self.limits.blocked_until = maybe,
            "paused" => self.is_paused = number != 0,
            "paused-until" => self.paused_until = maybe,
            "jobs" => self.jobs = number,
            "delayed" => self.counts.delayed = number,
            "ready" => self.counts.ready = number,
            "reserved" => self.counts.reserved = number,
            "dead" => self.counts.dead = number,
            "done" => self.counts.done = number,
            "held" => self.counts.held = number,
            "held-behind-dead" => self.held_behind_dead = number,
            "waiting-consumers" => self.waiting_consumers = number,
            "watchers" => self.watchers = number,
            "sink" => self.sink.stream = field.bytes(),
            "sink-maxlen" => self.sink.maxlen = number,
            "sink-error" => self.sink.error = field.bytes(),
            "oldest-ready-ms" => self.oldest_ready_ms = maybe,
            "next-due" => self.next_due = maybe,
            "last-lease" => {}
            "memory" => self.memory = number,
            "total-added" => self.totals.added = number,
            "total-replaced" => self.totals.replaced = number,
            "total-popped" => self.totals.popped = number,
            "total-finished" => self.totals.finished = number,
            "total-released" => self.totals.released = number,
            "total-timed-out" => self.totals.timed_out = number,
            "total-buried" => self.totals.buried = number,
            "total-dead" => self.totals.dead = number,
            "total-kicked" => self.totals.kicked = number,
            "total-deleted" => self.totals.deleted = number,
            "total-purged" => self.totals.purged = number,
            "total-missed" => self.totals.missed = number,
            "schedules" => self.schedules = number,
            "groups" => self.groups = number,
            // How many came and left is told by what was seen here, for each second.
            "lateness-p50-ms" => self.lateness.p50_ms = maybe,
            "lateness-p90-ms" => self.lateness.p90_ms = maybe,
            "lateness-p99-ms" => self.lateness.p99_ms = maybe,
            "lateness-p999-ms" => self.lateness.p999_ms = maybe,
            "lateness-max-ms" => self.lateness.max_ms = maybe,
            "lateness-count" => self.lateness.count = number,
            "lateness-sum-ms" => self.lateness.sum_ms = number,
            name if step_of(name).is_some() => {
                self.lateness.within.extend(step_of(name).map(|ms| (ms, number)))
            }
            _ => self.others.push((name, field)),
        }
    }

    pub fn is_limited(&self) -> bool {
        self.settings.concurrency > 0 || self.settings.rate.jobs > 0
    }

    /// Whether each of its groups is.
    pub fn limits_groups(&self) -> bool {
        self.settings.group_concurrency > 0 || self.settings.group_rate.jobs > 0
    }

    /// Whether a limit lets no job go. Those of groups do where workers wait beside jobs that are
    /// ready.
    pub fn is_blocked(&self) -> bool {
        let is_blocked_by_groups = self.limits_groups()
            && !self.is_paused
            && self.counts.ready > 0
            && self.waiting_consumers > 0;
        self.limits.blocked_until.is_some() || is_blocked_by_groups
    }

    /// Whether a delayed job is due before then.
    pub fn is_due_before(&self, ms: u64) -> bool {
        self.counts.delayed > 0 && self.next_due.is_none_or(|due| due < ms)
    }

    /// For how long a job has waited that more workers could have taken: a paused queue has none.
    pub fn backlog_ms(&self) -> u64 {
        if self.is_paused {
            return 0;
        }
        self.oldest_ready_ms.unwrap_or(0)
    }

    /// Whether it takes no more jobs.
    pub fn is_full(&self) -> bool {
        self.settings.max_jobs > 0 && self.jobs >= self.settings.max_jobs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, Value)]) -> Info {
        let text = |name: &str| Value::BulkString(name.into());
        let pairs = fields.iter().map(|(name, value)| (text(name), value.clone()));
        Info::read(Value::Map(pairs.collect())).unwrap().unwrap()
    }

    #[test]
    fn held_jobs_and_the_sink_are_read_where_the_module_has_them() {
        let text = |text: &str| Value::BulkString(text.into());
        let info = read(&[
            ("ready", Value::Int(2)),
            ("held", Value::Int(7)),
            ("held-behind-dead", Value::Int(3)),
            ("watchers", Value::Int(1)),
            ("sink", text("mail:out")),
            ("sink-maxlen", Value::Int(0)),
            ("sink-error", text("WRONGTYPE Operation")),
        ]);
        assert_eq!((info.counts.ready, info.counts.of(State::Held)), (2, 7));
        assert_eq!((info.held_behind_dead, info.watchers), (3, 1));
        assert_eq!(info.sink.stream.as_deref(), Some(&b"mail:out"[..]));
        assert_eq!(info.sink.error.as_deref(), Some(&b"WRONGTYPE Operation"[..]));
        assert_eq!(info.others, []);

        let without = read(&[("sink", Value::Nil), ("sink-error", Value::Nil)]);
        let older = read(&[("ready", Value::Int(2)), ("done", Value::Int(0))]);
        assert_eq!(older, Info { counts: Counts { ready: 2, ..Counts::default() }, ..without });
        assert_eq!((older.counts.held, &older.sink), (0, &Sink::default()));
    }
}
