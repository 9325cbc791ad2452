//! The calendar for one operation: what is asked of it, and what it answers, which goes into the log.

use super::host::Host;
use crate::queue::{self, Cron, Following, Time};

/// So many occurrences are counted as missed by one operation: each takes up to a microsecond.
const COUNTED_MAX: u32 = 1_000;

/// Writes down what it answers.
pub struct Almanac<H> {
    host: H,
    answers: Vec<Following>,
    /// How many more are counted.
    counted: u32,
    /// The last question, which often comes again.
    last: Option<(Cron, Time, Time)>,
}

impl<H: Host> Almanac<H> {
    pub fn new(host: H) -> Almanac<H> {
        Almanac { host, answers: Vec::new(), counted: COUNTED_MAX, last: None }
    }

    pub fn answers(&self) -> &[Following] {
        &self.answers
    }

    fn look_up(&mut self, cron: &Cron, from: Time, after: Time) -> Following {
        // Whatever is in a queue was read when it was added; but by another version, perhaps.
        let Some(Ok(reading)) = self.host.with(|state| Some(state.readings.read(cron))) else {
            return Following::default();
        };
        let mut missed = 0;
        let mut time = from;
        while self.counted > 0 {
            let Some(next) = reading.next(time) else {
                return Following { next: None, missed };
            };
            if next > after {
                return Following { next: Some(next), missed };
            }
            (missed, time) = (missed + 1, next);
            self.counted -= 1;
        }
        Following { next: reading.next(after), missed }
    }
}

impl<H: Host> queue::Calendar for Almanac<H> {
    fn following(&mut self, cron: &Cron, from: Time, after: Time) -> Following {
        let is_asked_again = self.last.as_ref().is_some_and(|(last, last_from, last_after)| {
            last == cron && (*last_from, *last_after) == (from, after)
        });
        let answer = match self.answers.last() {
            Some(answer) if is_asked_again => *answer,
            _ => {
                self.last = Some((cron.clone(), from, after));
                self.look_up(cron, from, after)
            }
        };
        self.answers.push(answer);
        answer
    }
}
