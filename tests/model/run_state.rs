//! Where a job of the reference is in its schedule, and the calendar of these tests.

use dq::queue::{self as core, Calendar, Following};

use crate::subject::{at, id, millis};
use crate::told::{Rule, Starts, Timing, LAST};

/// Where a job is in its schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunState {
    pub rule: Rule,
    pub anchor: u64,
    pub occurrence: u64,
    pub next: Option<u64>,
    /// Also where there is none.
    pub is_decided: bool,
    pub runs: u32,
    pub missed: u32,
    pub failed: u32,
}

/// The calendar of these tests: of the multiples of a number, two of three.
pub fn by_cron(step: u64, from: u64, after: u64) -> (Option<u64>, u64) {
    let comes = |multiple: u64| multiple % 3 != 1;
    let next =
        (after / step + 1..).find(|multiple| comes(*multiple)).map(|multiple| multiple * step);
    // Up to and with this one, how many come.
    let up_to = |time: u64| {
        let multiples = time / step;
        multiples - multiples.div_ceil(3)
    };
    (next.filter(|next| *next < LAST), up_to(after) - up_to(from))
}

/// It, as the core asks for it; and what it said.
#[derive(Debug, Default)]
pub struct OfTests(pub Vec<Following>);

impl Calendar for OfTests {
    fn following(&mut self, cron: &core::Cron, from: core::Time, after: core::Time) -> Following {
        let (next, missed) =
            by_cron(cron.expression.parse().unwrap(), from.unix_ms(), after.unix_ms());
        self.0.push(Following { next: next.map(at), missed: missed.min(u32::MAX.into()) as u32 });
        *self.0.last().unwrap()
    }
}

impl Rule {
    pub fn of_core(&self) -> core::Recurrence {
        core::Recurrence {
            timing: match self.timing {
                Timing::Every(period) => core::Timing::Every(millis(period)),
                Timing::Cron(step) => {
                    let expression = step.to_string().into_boxed_str();
                    core::Timing::Cron(core::Cron { expression, zone: "".into() })
                }
            },
            misfire: if self.all { core::Misfire::All } else { core::Misfire::One },
            jitter: millis(self.jitter),
            runs: self.runs,
            until: self.until.map(at),
            late: millis(self.late),
        }
    }

    /// When the job is ready for this occurrence. The length of a jitter is the core's, which has
    /// tests of its own.
    pub fn ready(&self, name: &[u8], occurrence: u64) -> u64 {
        self.of_core().ready_at(id(name), at(occurrence)).unix_ms()
    }

    pub fn allows(&self, time: u64) -> bool {
        self.until.is_none_or(|until| time <= until) && time < LAST
    }

    pub fn is_last(&self, run: u32) -> bool {
        self.runs != 0 && run >= self.runs
    }
}

impl Starts {
    fn time(self, now: u64) -> Option<u64> {
        match self {
            Starts::ByItself => None,
            Starts::In(delay) => Some((now + delay).min(LAST)),
            Starts::At(time) => Some(time),
        }
    }
}

impl RunState {
    /// Of a job that is added now; or of one that gets another schedule, which must not be due at
    /// once.
    pub fn new(rule: &Rule, now: u64, starts: Starts, at_once: bool) -> Option<RunState> {
        let starts_at = starts.time(now);
        let (anchor, occurrence) = match rule.timing {
            Timing::Every(period) => {
                let anchor = starts_at.unwrap_or((now + period).min(LAST));
                let periods = (now.saturating_sub(anchor) / period) + 1;
                let later = if at_once { now } else { anchor + periods * period };
                (anchor, if anchor > now || (at_once && anchor == now) { anchor } else { later })
            }
            Timing::Cron(step) => {
                let after = starts_at.filter(|time| *time > now).map_or(now, |time| time - 1);
                (0, by_cron(step, after, after).0?)
            }
        };
        rule.allows(occurrence).then_some(RunState::at(rule, anchor, occurrence))
    }

    pub fn at(rule: &Rule, anchor: u64, occurrence: u64) -> RunState {
        let (runs, missed, failed) = (0, 0, 0);
        RunState {
            rule: *rule,
            anchor,
            occurrence,
            next: None,
            is_decided: false,
            runs,
            missed,
            failed,
        }
    }

    /// Waits for the next time. False when there is none.
    pub fn arm(&mut self) -> bool {
        let Some(next) = self.next.take() else {
            return false;
        };
        (self.occurrence, self.is_decided) = (next, false);
        true
    }

    /// What comes after this time, and how many were missed since the occurrence.
    pub fn following(&self, after: u64) -> (Option<u64>, u64) {
        let (next, missed) = match self.rule.timing {
            Timing::Every(period) => {
                let up_to = |time: u64| {
                    if time < self.anchor {
                        0
                    } else {
                        (time - self.anchor) / period + 1
                    }
                };
                let next = self.anchor + up_to(after) * period;
                (Some(next), up_to(after).saturating_sub(up_to(self.occurrence)))
            }
            Timing::Cron(step) => by_cron(step, self.occurrence, after),
        };
        (next.filter(|next| self.rule.allows(*next)), missed)
    }

    /// A run begins.
    pub fn begin(&mut self, now: u64) {
        self.runs += 1;
        if self.rule.is_last(self.runs) {
            self.next = None;
        } else if !self.is_decided {
            let until = self.rule.until.unwrap_or(LAST);
            let after =
                if self.rule.all { self.occurrence } else { now.min(until).max(self.occurrence) };
            let (next, missed) = self.following(after);
            self.next = next;
            self.missed = self.missed.saturating_add(missed.min(u32::MAX.into()) as u32);
        }
        self.is_decided = true;
    }

    /// Nobody took it in time: what comes behind it, and behind all others that nobody took in
    /// time.
    pub fn pass_over(&mut self, now: u64) {
        let is_too_late =
            |round: &RunState| round.occurrence + round.rule.jitter + round.rule.late <= now;
        self.missed = self.missed.saturating_add(1);
        match self.next {
            Some(next) if !is_too_late(&RunState { occurrence: next, ..*self }) => return,
            Some(next) => {
                self.occurrence = next;
                self.missed = self.missed.saturating_add(1);
            }
            None if self.is_decided => return,
            None => {}
        }
        let latest = now - self.rule.jitter - self.rule.late;
        let (next, missed) =
            self.following(latest.min(self.rule.until.unwrap_or(LAST)).max(self.occurrence));
        (self.next, self.is_decided) = (next, true);
        self.missed = self.missed.saturating_add(missed.min(u32::MAX.into()) as u32);
    }

    pub fn fail(&mut self) {
        assert!(self.arm());
        self.failed += 1;
    }
}
